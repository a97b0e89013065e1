//! The errors of a file, and how many of them are listed.

use std::fmt;

/// The most diagnostics of a file: one with more is a file of another kind. A further one says how many there are.
pub(crate) const MAX_DIAGNOSTICS: usize = 100;

/// Where something begins, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    pub line: u64,
    pub column: u64,
}

impl Position {
    pub const START: Position = Position { line: 1, column: 1 };
}

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
    pub(super) fn new(
        Position { line, column }: Position,
        key: impl Into<String>,
        problem: impl Into<String>,
    ) -> Self {
        Diagnostic { line, column, key: key.into(), problem: problem.into(), is_missing: false }
    }

    fn position(&self) -> Position {
        Position { line: self.line, column: self.column }
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

/// What is wrong with a file, as far as it is listed.
#[derive(Debug, Default)]
pub(super) struct DiagnosticList {
    diagnostics: Vec<Diagnostic>,
    /// How many more are known and not listed.
    more: usize,
}

impl DiagnosticList {
    pub fn is_full(&self) -> bool {
        self.diagnostics.len() >= MAX_DIAGNOSTICS
    }

    pub fn add(&mut self, diagnostic: impl FnOnce() -> Diagnostic) {
        if self.is_full() {
            self.more += 1;
        } else {
            self.diagnostics.push(diagnostic());
        }
    }

    /// In the order of the file; if there may be more than are listed, with a line about those.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(Diagnostic::position);
        if let Some(last) = self.diagnostics.last().filter(|_| self.is_full()) {
            let more = match self.more {
                0 => String::new(),
                more => format!("; there are at least {more} more"),
            };
            let problem = format!("only the first {MAX_DIAGNOSTICS} errors are listed{more}");
            self.diagnostics.push(Diagnostic::new(last.position(), "", problem));
        }
        self.diagnostics
    }
}
