//! YAML files that a site writes: typed values, and all mistakes of a file with line, column and key.
//!
//! The text becomes a tree of values with their places. A type is read from the tree; what a
//! type refuses is noted, taken out of the tree, and the type is read again. So one look at a file
//! finds all of its mistakes, and the types are plain `serde` ones.

mod reader;
mod syntax;
mod tree;

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, SeqAccess, Visitor};

use reader::{At, Kind};
pub use tree::Document;

/// More mistakes than this are not listed: the file is of another kind.
pub(crate) const MOST_MISTAKES: usize = 100;

/// One mistake of a file. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// The path of the key: `fabrics[1].interval`; empty where no key is concerned.
    pub key: String,
    /// What is wrong, and what is expected.
    pub problem: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mistake { line, column, key, problem } = self;
        let colon = if key.is_empty() { "" } else { ": " };
        in_a_line(&format!("line {line}, column {column}: {key}{colon}{problem}")).fmt(f)
    }
}

/// A text with its control characters escaped, so that it is one line.
pub fn in_a_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_control() {
            line.extend(char.escape_default());
        } else {
            line.push(char);
        }
    }
    line
}

/// Where a text is not UTF-8, and what to do.
pub fn not_utf8(error: &std::string::FromUtf8Error) -> String {
    let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = good.split(|byte| *byte == b'\n').count();
    format!("line {line}: is not a text in UTF-8: save the file as UTF-8")
}

/// A value with the place at which it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
}

/// The name by which [`Spanned`] asks the reader for the place.
const SPANNED: &str = "fabric-exporter yaml place";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
            type Value = Spanned<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value with its place")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Spanned<T>, A::Error> {
                let lost = || A::Error::custom("the place of the value is not known");
                let line = parts.next_element()?.ok_or_else(lost)?;
                let column = parts.next_element()?.ok_or_else(lost)?;
                let value = parts.next_element()?.ok_or_else(lost)?;
                Ok(Spanned { value, line, column })
            }
        }
        deserializer.deserialize_newtype_struct(SPANNED, Parts(std::marker::PhantomData))
    }
}

/// What a file says, apart from its mistakes.
#[derive(Debug)]
pub struct Reading<T> {
    /// The value; without the keys and entries that are wrong.
    pub value: T,
    /// All mistakes, in the order of the file.
    pub mistakes: Vec<Mistake>,
    /// The tree, for the places of values that turn out to be wrong later.
    pub document: Document,
}

/// Reads a text; one of blanks and comments is the default.
pub fn read<T: DeserializeOwned + Default>(text: &str) -> Reading<T> {
    let (mut document, mut mistakes) = Document::parse(text);
    let value = collect(&mut document, &mut mistakes);
    mistakes.sort_by_key(|mistake| (mistake.line, mistake.column));
    Reading { value, mistakes, document }
}

/// Reads the type, and notes and removes what it refuses, until nothing is refused.
fn collect<T: DeserializeOwned + Default>(
    document: &mut Document,
    mistakes: &mut Vec<Mistake>,
) -> T {
    loop {
        let Some(root) = At::root(document) else { return T::default() };
        let wrong = match T::deserialize(root) {
            Ok(value) => return value,
            Err(wrong) => wrong,
        };
        // A key that is missing because its value was wrong is not another mistake.
        let is_echo = matches!(wrong.kind, Kind::Missing(_)) && wrong.has_removed(document);
        if !is_echo {
            mistakes.push(wrong.mistake(document));
        }
        if mistakes.len() >= MOST_MISTAKES {
            let (line, column) = mistakes.last().map_or((1, 1), |last| (last.line, last.column));
            let problem = format!("more mistakes may follow: these are the first {MOST_MISTAKES}");
            mistakes.push(Mistake { line, column, key: String::new(), problem });
            return T::default();
        }
        if !wrong.remove(document) {
            return T::default();
        }
    }
}

#[cfg(test)]
mod tests;
