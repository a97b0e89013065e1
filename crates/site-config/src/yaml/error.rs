//! Errors of deserialization, with the entry of the tree that they are about.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use super::Diagnostic;
use super::tree::{Document, join};
use crate::suggestion::{quoted, suggestion};

/// Why a type refuses a value.
#[derive(Debug)]
pub(super) enum Reason {
    /// The value is not of the expected form.
    Invalid(String),
    /// A mapping lacks a key.
    MissingKey(&'static str),
}

/// A type refuses an entry of a container.
#[derive(Debug)]
pub(super) struct ReadError {
    pub(super) reason: Reason,
    entry: Option<Entry>,
    /// The segments of the path to the entry, the last one first.
    path: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    container: usize,
    index: usize,
    /// The error is about the key.
    at_key: bool,
}

impl ReadError {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        ReadError { reason: Reason::Invalid(problem.into()), entry: None, path: Vec::new() }
    }

    /// Adds the entry of a container that the error comes from.
    pub(super) fn within(
        mut self,
        document: &Document,
        container: usize,
        index: usize,
        at_key: bool,
    ) -> Self {
        self.entry.get_or_insert(Entry { container, index, at_key });
        self.path.push(document.segment(container, index));
        self
    }

    /// Whether the mapping that lacks a key had more keys, which were removed.
    pub(super) fn has_removed(&self, document: &Document) -> bool {
        let node = self.entry.map_or(document.root, |entry| {
            document.nodes[entry.container].children().get(entry.index).map(|child| child.node)
        });
        let children = node.map_or(&[][..], |node| document.nodes[node].children());
        children.iter().any(|child| child.removed)
    }

    pub(super) fn diagnostic(&self, document: &Document) -> Diagnostic {
        let position = match self.entry {
            None => document.root.map(|root| document.nodes[root].position),
            Some(entry) => {
                let child = document.nodes[entry.container].children().get(entry.index);
                child.map(|child| match child.key.filter(|_| entry.at_key) {
                    Some(key) => document.nodes[key].position,
                    None => child.position,
                })
            }
        };
        let (line, column) = position.unwrap_or((1, 1));
        let key = self.path.iter().rev().fold(String::new(), |path, segment| join(&path, segment));
        let problem = match &self.reason {
            Reason::Invalid(problem) => problem.clone(),
            Reason::MissingKey(field) => format!("the key {field:?} is missing"),
        };
        Diagnostic { line, column, key, problem }
    }

    /// Removes the entry from the tree; `false` if there is none.
    pub(super) fn remove(&self, document: &mut Document) -> bool {
        self.entry.is_some_and(|entry| document.remove(entry.container, entry.index))
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.reason)
    }
}

impl std::error::Error for ReadError {}

impl Error for ReadError {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        ReadError::new(problem.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_value(found, expected)
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        ReadError::new(format!("has to be {expected}"))
    }

    fn invalid_length(_: usize, expected: &dyn Expected) -> Self {
        ReadError::new(format!("has to be {expected}"))
    }

    fn unknown_variant(given: &str, known: &'static [&'static str]) -> Self {
        let near = suggestion(given, known.iter().copied());
        ReadError::new(format!("{} is none of: {}{near}", quoted(given), known.join(", ")))
    }

    fn unknown_field(given: &str, known: &'static [&'static str]) -> Self {
        let near = suggestion(given, known.iter().copied());
        ReadError::new(format!("unknown key{near}; known: {}", known.join(", ")))
    }

    fn missing_field(field: &'static str) -> Self {
        ReadError { reason: Reason::MissingKey(field), ..ReadError::new("") }
    }
}
