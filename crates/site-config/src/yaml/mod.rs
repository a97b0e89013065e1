//! Reads YAML into `serde` types, with a diagnostic for each mistake of the file: line, column and key.
//!
//! The text is parsed once, into a tree of values with their positions, and the type is deserialized from the
//! tree. An entry that the type refuses becomes a diagnostic and is removed from the tree, and the type is
//! deserialized again. So all mistakes of a file are found at once, by plain `serde` types.

mod de;
mod error;
mod syntax;
mod tree;

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, SeqAccess, Visitor};

use de::ValueDeserializer;
use error::Reason;
pub use tree::Document;

/// The most diagnostics of a file: one with more is a file of another kind.
pub(crate) const MAX_DIAGNOSTICS: usize = 100;

/// One mistake of a file. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// The path of the key: `fabrics[1].interval`; empty if it is not about a key.
    pub key: String,
    /// What is wrong and what is expected.
    pub problem: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { line, column, key, problem } = self;
        let colon = if key.is_empty() { "" } else { ": " };
        single_line(&format!("line {line}, column {column}: {key}{colon}{problem}")).fmt(f)
    }
}

/// Escapes the control characters of a text, so that it is one line.
pub fn single_line(text: &str) -> String {
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

/// The problem of a file that is not UTF-8, with the line.
pub fn not_utf8(error: &std::string::FromUtf8Error) -> String {
    let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = good.split(|byte| *byte == b'\n').count();
    format!("line {line}: is not a text in UTF-8: save the file as UTF-8")
}

/// A value with the position at which it begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
}

/// The name of a newtype by which [`Spanned`] requests the position from the deserializer.
const SPANNED: &str = "fabric-exporter yaml position";

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Parts<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Parts<T> {
            type Value = Spanned<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value with its position")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Spanned<T>, A::Error> {
                let lost = || A::Error::custom("the position of the value is not known");
                let line = parts.next_element()?.ok_or_else(lost)?;
                let column = parts.next_element()?.ok_or_else(lost)?;
                let value = parts.next_element()?.ok_or_else(lost)?;
                Ok(Spanned { value, line, column })
            }
        }
        deserializer.deserialize_newtype_struct(SPANNED, Parts(std::marker::PhantomData))
    }
}

/// What was read of a file.
#[derive(Debug)]
pub struct Parsed<T> {
    /// The value, without the keys and entries that are wrong.
    pub value: T,
    /// What is wrong, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The tree, for the positions of values that turn out to be wrong later.
    pub document: Document,
}

/// Parses a text; one of blanks and comments is the default value.
pub fn parse<T: DeserializeOwned + Default>(text: &str) -> Parsed<T> {
    let (mut document, mut diagnostics) = Document::parse(text);
    let value = deserialize(&mut document, &mut diagnostics);
    diagnostics.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
    Parsed { value, diagnostics, document }
}

/// Deserializes the type, and reports and removes what it refuses, until it refuses nothing.
fn deserialize<T: DeserializeOwned + Default>(
    document: &mut Document,
    diagnostics: &mut Vec<Diagnostic>,
) -> T {
    loop {
        let Some(root) = ValueDeserializer::root(document) else { return T::default() };
        let error = match T::deserialize(root) {
            Ok(value) => return value,
            Err(error) => error,
        };
        // A key that is missing because it was removed has a diagnostic already.
        let is_reported =
            matches!(error.reason, Reason::MissingKey(_)) && error.has_removed(document);
        if !is_reported {
            diagnostics.push(error.diagnostic(document));
        }
        if diagnostics.len() >= MAX_DIAGNOSTICS {
            let (line, column) = diagnostics.last().map_or((1, 1), |last| (last.line, last.column));
            let problem =
                format!("more mistakes may follow: these are the first {MAX_DIAGNOSTICS}");
            diagnostics.push(Diagnostic { line, column, key: String::new(), problem });
            return T::default();
        }
        if !error.remove(document) {
            return T::default();
        }
    }
}

#[cfg(test)]
mod tests;
