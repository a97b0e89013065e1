//! What is wrong with the settings, or may be unintended.

use std::fmt::Display;

use yaml_config::suggestion::suggestion;
use yaml_config::yaml::{Diagnostic, Document, single_line};

/// Why a file cannot be used.
#[derive(Debug)]
pub(super) enum Mistake {
    /// A section needs another key.
    Missing { section: &'static str, key: &'static str, text: String },
    /// A value is wrong.
    Wrong(String),
}

impl From<String> for Mistake {
    fn from(text: String) -> Self {
        Mistake::Wrong(text)
    }
}

impl Mistake {
    fn text(self) -> String {
        match self {
            Mistake::Missing { text, .. } | Mistake::Wrong(text) => text,
        }
    }

    /// Whether a diagnostic of the YAML says the same: the key is misspelt or has no usable value, or the whole section
    /// could not be read.
    fn follows_from(&self, diagnostic: &Diagnostic) -> bool {
        let Mistake::Missing { section, key, .. } = self else { return false };
        match diagnostic.key.split_once('.') {
            Some((other, given)) => {
                other == *section && (given == *key || !suggestion(given, [*key]).is_empty())
            }
            None => diagnostic.key.is_empty() || diagnostic.key == *section,
        }
    }
}

/// Collects what is found while the sections are checked.
#[derive(Debug)]
pub(super) struct Problems<'d> {
    /// Where the values are.
    pub document: &'d Document,
    /// Valid settings that may be unintended.
    warnings: Vec<String>,
    mistakes: Vec<Mistake>,
}

impl<'d> Problems<'d> {
    pub fn new(document: &'d Document) -> Self {
        Problems { document, warnings: Vec::new(), mistakes: Vec::new() }
    }

    /// Adds a valid setting that may be unintended.
    pub fn warn(&mut self, warning: impl AsRef<str>) {
        self.warnings.push(single_line(warning.as_ref()));
    }

    pub fn add(&mut self, mistake: impl Into<Mistake>) {
        self.mistakes.push(mistake.into());
    }

    /// The value, or `None` with its mistake added to the others.
    pub fn keep<T>(&mut self, result: Result<T, impl Into<Mistake>>) -> Option<T> {
        result.map_err(|mistake| self.add(mistake)).ok()
    }

    pub fn has_mistakes(&self) -> bool {
        !self.mistakes.is_empty()
    }

    /// The warnings of a file without mistakes, or all its mistakes.
    pub fn finish(self, diagnostics: &[Diagnostic]) -> Result<Vec<String>, Vec<String>> {
        let Problems { warnings, mut mistakes, .. } = self;
        mistakes.retain(|mistake| !diagnostics.iter().any(|it| mistake.follows_from(it)));
        let diagnostics = diagnostics.iter().map(ToString::to_string);
        let lines: Vec<_> = diagnostics.chain(mistakes.into_iter().map(Mistake::text)).collect();
        if lines.is_empty() { Ok(warnings) } else { Err(lines) }
    }
}

/// A problem at the value of a key: its line, its column and the key.
pub(super) fn at(document: &Document, key: &str, problem: impl Display) -> String {
    format!("{}: {problem}", place(document, key, key))
}

/// The position of the value of a key, and the key that it is about.
pub(super) fn place(document: &Document, value: &str, key: &str) -> String {
    let position = document.diagnostic(value, "");
    let (line, column) = position.map_or((1, 1), |value| (value.line, value.column));
    format!("line {line}, column {column}: {key}")
}
