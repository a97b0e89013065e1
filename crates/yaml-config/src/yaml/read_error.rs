//! Why a type refuses the tree, and which entry it is about.

use std::fmt;

use serde::de::{Error, Expected, Unexpected};

use super::diagnostic::{Diagnostic, DiagnosticList, Position};
use super::tree::{Child, Document, EntryIndex};
use crate::suggestion::{quoted, suggestion};

/// Why a type refuses an entry of the tree.
#[derive(Debug, Default, thiserror::Error)]
#[error("{problem}")]
pub(super) struct ReadError {
    problem: String,
    /// The key that a mapping lacks.
    missing: Option<&'static str>,
    /// The keys that a mapping may have, if it has another one.
    known: Option<&'static [&'static str]>,
    /// It follows from an entry that was removed.
    is_repeated: bool,
    /// The entry, and then those that it is in, from the inside to the outside.
    entries: Vec<EntryIndex>,
    /// It is about the key of the entry.
    at_key: bool,
}

impl ReadError {
    pub fn new(problem: impl Into<String>) -> Self {
        ReadError { problem: problem.into(), ..ReadError::default() }
    }

    /// One that follows from an entry that was removed.
    pub fn repeated(problem: impl Into<String>) -> Self {
        ReadError { is_repeated: true, ..ReadError::new(problem) }
    }

    /// Adds the entry of a container that the error comes from.
    pub fn within(mut self, entry: EntryIndex, at_key: bool) -> Self {
        self.at_key |= at_key && self.entries.is_empty();
        self.entries.push(entry);
        self
    }

    /// The entry, if it is not the whole document.
    fn entry<'d>(&self, document: &'d Document) -> Option<&'d Child> {
        document.child(*self.entries.first()?)
    }

    /// Whether it is reported already: the key that is missing was removed, or one that is a misspelling of it.
    pub fn is_reported(&self, document: &Document) -> bool {
        let Some(missing) = self.missing else { return self.is_repeated };
        let node = self.entry(document).map(|entry| entry.node).or(document.root);
        let children = node.iter().flat_map(|node| &document.nodes[*node].children);
        let mut removed = children.filter(|child| child.removed);
        removed.any(|child| {
            let key = document.key_of(child);
            key.is_none_or(|key| key == missing || !suggestion(key, [missing]).is_empty())
        })
    }

    pub fn diagnostic(&self, document: &Document) -> Diagnostic {
        let position_of = |node: usize| document.nodes[node].position;
        let position = match self.entry(document) {
            None => document.root.map_or(Position::START, position_of),
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
        entries.fold(String::new(), |path, entry| document.path_of(&path, *entry))
    }

    /// If it is about an unknown key, reports and removes all unknown keys of that mapping.
    pub fn remove_unknown(
        &self,
        document: &mut Document,
        diagnostics: &mut DiagnosticList,
    ) -> bool {
        let (Some(known), Some(&entry), true) = (self.known, self.entries.first(), self.at_key)
        else {
            return false;
        };
        let path = self.path(document, 1);
        let is_unknown = |document: &Document, child: &Child| {
            !child.removed && document.key_of(child).is_some_and(|key| !known.contains(&key))
        };
        if !document.child(entry).is_some_and(|child| is_unknown(document, child)) {
            return false;
        }
        for index in 0..document.nodes[entry.container].children.len() {
            let entry = EntryIndex { index, ..entry };
            let Some(child) = document.child(entry) else { continue };
            let Some(key) = child.key.filter(|_| is_unknown(document, child)) else { continue };
            diagnostics.add(|| {
                let (position, text) = (document.nodes[key].position, &document.nodes[key].text);
                let ReadError { problem, .. } = ReadError::unknown_field(text, known);
                Diagnostic::new(position, document.path_of(&path, entry), problem)
            });
            document.remove(entry);
        }
        true
    }

    /// Removes the entry from the tree; `false` if there is none.
    pub fn remove(&self, document: &mut Document) -> bool {
        self.entries.first().is_some_and(|entry| document.remove(*entry))
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
