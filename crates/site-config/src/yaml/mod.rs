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

/// The most diagnostics of a file: one with more is a file of another kind.
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
}

impl Diagnostic {
    fn new((line, column): Position, key: impl Into<String>, problem: impl Into<String>) -> Self {
        Diagnostic { line, column, key: key.into(), problem: problem.into() }
    }
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
        if !error.is_reported(document) {
            diagnostics.push(error.diagnostic(document));
        }
        if diagnostics.len() >= MAX_DIAGNOSTICS {
            let (line, column) = diagnostics.last().map_or((1, 1), |last| (last.line, last.column));
            let problem = format!("only the first {MAX_DIAGNOSTICS} errors are listed");
            diagnostics.push(Diagnostic::new((line, column), "", problem));
            return T::default();
        }
        if !error.remove(document) {
            return T::default();
        }
    }
}

/// Why a type refuses an entry of the tree.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
struct ReadError {
    problem: String,
    /// A mapping lacks a key.
    is_missing_key: bool,
    /// The entry and those that it is in: the containers, with the indices in them. The entry is the first.
    entries: Vec<(usize, usize)>,
    /// It is about the key of the entry.
    at_key: bool,
}

impl ReadError {
    fn new(problem: impl Into<String>) -> Self {
        let problem = problem.into();
        ReadError { problem, is_missing_key: false, entries: Vec::new(), at_key: false }
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

    /// Whether it is reported already: a key is missing because it was removed.
    fn is_reported(&self, document: &Document) -> bool {
        let node = self.entry(document).map(|entry| entry.node).or(document.root);
        let mut children = node.iter().flat_map(|node| &document.nodes[*node].children);
        self.is_missing_key && children.any(|child| child.removed)
    }

    fn diagnostic(&self, document: &Document) -> Diagnostic {
        let position_of = |node: usize| document.nodes[node].position;
        let position = match self.entry(document) {
            None => document.root.map_or((1, 1), position_of),
            Some(entry) => entry.key.filter(|_| self.at_key).map_or(entry.position, position_of),
        };
        let entries = self.entries.iter().rev();
        let key = entries.fold(String::new(), |path, (container, index)| {
            document.path_of(&path, *container, *index)
        });
        Diagnostic::new(position, key, &*self.problem)
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
        ReadError::new(format!("unknown key{near}; known: {}", known.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        let problem = format!("the key {field:?} is missing");
        ReadError { is_missing_key: true, ..ReadError::new(problem) }
    }
}

#[cfg(test)]
mod tests;
