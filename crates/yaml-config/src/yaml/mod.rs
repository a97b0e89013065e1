//! Reads YAML into `serde` types, with a diagnostic for each error of the file: line, column and key.
//!
//! The text is parsed once, into a tree of values with their positions, and the type is deserialized from the
//! tree. An entry that the type refuses becomes a diagnostic and is removed from the tree, and the type is
//! deserialized again. So all errors of a file are found at once, by plain `serde` types.

mod de;
mod syntax;
mod tree;

use std::fmt;

use serde::de::{DeserializeOwned, Error, Expected, Unexpected};

use crate::suggestion::{quoted, suggestion};
use de::ValueDeserializer;
pub use tree::Document;
use tree::{Child, Position};

/// The most diagnostics of a file: one with more is a file of another kind. A further one says how many there are.
pub(crate) const MAX_DIAGNOSTICS: usize = 100;

/// One error of a file. Displays as one line.
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
    /// It is about a key that is not there.
    pub is_missing: bool,
}

impl Diagnostic {
    fn new((line, column): Position, key: impl Into<String>, problem: impl Into<String>) -> Self {
        Diagnostic { line, column, key: key.into(), problem: problem.into(), is_missing: false }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { line, column, key, problem, .. } = self;
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
    format!("line {line}: is not UTF-8: save the file as UTF-8")
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

/// What is wrong with a file, as far as it is listed.
#[derive(Debug, Default)]
struct Found {
    diagnostics: Vec<Diagnostic>,
    /// How many more are known and not listed.
    more: usize,
}

impl Found {
    fn is_full(&self) -> bool {
        self.diagnostics.len() >= MAX_DIAGNOSTICS
    }

    fn add(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.diagnostics.push(diagnostic());
        }
    }

    /// In the order of the file; if there may be more than are listed, with a line about those.
    fn finish(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        if let Some(last) = self.diagnostics.last().filter(|_| self.is_full()) {
            let more = match self.more {
                0 => String::new(),
                more => format!("; there are at least {more} more"),
            };
            let problem = format!("only the first {MAX_DIAGNOSTICS} errors are listed{more}");
            self.diagnostics.push(Diagnostic::new((last.line, last.column), "", problem));
        }
        self.diagnostics
    }
}

/// Parses a text; one of blanks and comments is the default value.
pub fn parse<T: DeserializeOwned + Default>(text: &str) -> Parsed<T> {
    let (mut document, mut found) = Document::parse(text);
    let value = deserialize(&mut document, &mut found);
    Parsed { value, diagnostics: found.finish(), document }
}

/// Deserializes the type, and reports and removes what it refuses, until it refuses nothing. Each time takes as long as
/// the file is large, so the number of times is limited.
fn deserialize<T: DeserializeOwned + Default>(document: &mut Document, found: &mut Found) -> T {
    loop {
        let Some(root) = ValueDeserializer::root(document) else { return T::default() };
        let error = match T::deserialize(root) {
            Ok(value) => return value,
            Err(error) => error,
        };
        // All unknown keys of a mapping at once: one after the other they would take a time each.
        let is_removed = error.remove_unknown(document, found);
        if !is_removed && !error.is_reported(document) {
            found.add(|| error.diagnostic(document));
        }
        if found.is_full() || !is_removed && !error.remove(document) {
            return T::default();
        }
    }
}

/// Why a type refuses an entry of the tree.
#[derive(Debug, Default, thiserror::Error)]
#[error("{problem}")]
struct ReadError {
    problem: String,
    /// The key that a mapping lacks.
    missing: Option<&'static str>,
    /// The keys that a mapping may have, if it has another one.
    known: Option<&'static [&'static str]>,
    /// It follows from an entry that was removed.
    is_repeated: bool,
    /// The entry and those that it is in: the containers, with the indices in them. The entry is the first.
    entries: Vec<(usize, usize)>,
    /// It is about the key of the entry.
    at_key: bool,
}

impl ReadError {
    fn new(problem: impl Into<String>) -> Self {
        ReadError { problem: problem.into(), ..ReadError::default() }
    }

    /// Adds the entry of a container that the error comes from.
    fn within(mut self, container: usize, index: usize, at_key: bool) -> Self {
        self.at_key |= at_key && self.entries.is_empty();
        self.entries.push((container, index));
        self
    }

    /// The entry, if it is not the whole document.
    fn entry<'d>(&self, document: &'d Document) -> Option<&'d Child> {
        let (container, index) = self.entries.first()?;
        document.nodes[*container].children.get(*index)
    }

    /// Whether it is reported already: the key that is missing was removed, or one that is a misspelling of it.
    fn is_reported(&self, document: &Document) -> bool {
        let Some(missing) = self.missing else { return self.is_repeated };
        let node = self.entry(document).map(|entry| entry.node).or(document.root);
        let children = node.iter().flat_map(|node| &document.nodes[*node].children);
        let mut removed = children.filter(|child| child.removed);
        removed.any(|child| {
            let key = document.key_of(child);
            key.is_none_or(|key| key == missing || !suggestion(key, [missing]).is_empty())
        })
    }

    fn diagnostic(&self, document: &Document) -> Diagnostic {
        let position_of = |node: usize| document.nodes[node].position;
        let position = match self.entry(document) {
            None => document.root.map_or((1, 1), position_of),
            Some(entry) => entry.key.filter(|_| self.at_key).map_or(entry.position, position_of),
        };
        let is_missing = self.missing.is_some();
        Diagnostic {
            is_missing,
            ..Diagnostic::new(position, self.path(document, 0), &*self.problem)
        }
    }

    /// The path of the entry, or of the container that is so many levels above it.
    fn path(&self, document: &Document, above: usize) -> String {
        let entries = self.entries.iter().skip(above).rev();
        entries.fold(String::new(), |path, (container, index)| {
            document.path_of(&path, *container, *index)
        })
    }

    /// If it is about an unknown key, reports and removes all unknown keys of that mapping.
    fn remove_unknown(&self, document: &mut Document, found: &mut Found) -> bool {
        let (Some(known), Some(&(container, index)), true) =
            (self.known, self.entries.first(), self.at_key)
        else {
            return false;
        };
        let path = self.path(document, 1);
        let is_unknown = |document: &Document, child: &Child| {
            !child.removed && document.key_of(child).is_some_and(|key| !known.contains(&key))
        };
        let children = &document.nodes[container].children;
        if !children.get(index).is_some_and(|child| is_unknown(document, child)) {
            return false;
        }
        for index in 0..children.len() {
            let child = &document.nodes[container].children[index];
            let Some(key) = child.key.filter(|_| is_unknown(document, child)) else { continue };
            found.add(|| {
                let (position, text) = (document.nodes[key].position, &document.nodes[key].text);
                let ReadError { problem, .. } = ReadError::unknown_field(text, known);
                Diagnostic::new(position, document.path_of(&path, container, index), problem)
            });
            document.remove(container, index);
        }
        true
    }

    /// Removes the entry from the tree; `false` if there is none.
    fn remove(&self, document: &mut Document) -> bool {
        self.entries.first().is_some_and(|(container, index)| document.remove(*container, *index))
    }
}

impl Error for ReadError {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        ReadError::new(problem.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        ReadError::new(format!("must be {expected}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        ReadError::new(format!("must be {expected}"))
    }

    fn unknown_variant(given: &str, known: &'static [&'static str]) -> Self {
        let near = suggestion(given, known.iter().copied());
        ReadError::new(format!("{} is not one of: {}{near}", quoted(given), known.join(", ")))
    }

    fn unknown_field(given: &str, known: &'static [&'static str]) -> Self {
        let near = suggestion(given, known.iter().copied());
        let problem = format!("unknown key{near}; known: {}", known.join(", "));
        ReadError { known: Some(known), ..ReadError::new(problem) }
    }

    fn missing_field(field: &'static str) -> Self {
        let problem = format!("the key {field:?} is missing");
        ReadError { missing: Some(field), ..ReadError::new(problem) }
    }
}

#[cfg(test)]
mod tests;
