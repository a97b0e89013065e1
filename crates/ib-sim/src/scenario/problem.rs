//! Mistakes in scenarios, with their lines.

use thiserror::Error;
use yaml_config::yaml::Document;

/// Why a scenario cannot be resolved, in one line: the file or the override, the line, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ScenarioError(pub(super) String);

/// A mistake in a scenario, before the file's name is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// `None` if the scenario has no line about it.
    pub(super) line: Option<u64>,
    pub(super) text: String,
}

impl Problem {
    pub(super) fn new(line: Option<u64>, text: impl Into<String>) -> Problem {
        Problem { line, text: text.into() }
    }

    /// The same with a key or the name of an entry before it.
    pub(super) fn within(self, key: &str) -> Problem {
        Problem { text: format!("{key}: {}", self.text), ..self }
    }

    pub(super) fn in_file(self, file: &str) -> ScenarioError {
        let line = self.line.map_or_else(String::new, |line| format!("line {line}: "));
        ScenarioError(format!("{file}: {line}{}", self.text))
    }
}

/// The lines of a file's keys, by paths such as `timeline[1].flap.down`.
#[derive(Debug)]
pub(super) struct Lines(pub(super) Document);

impl Lines {
    /// The line of a key's value; without the key, `None`.
    pub(super) fn of(&self, path: &str) -> Option<u64> {
        self.0.diagnostic(path, "").map(|found| found.line)
    }

    /// A mistake in a key, with the key before it.
    pub(super) fn problem(&self, path: &str, problem: impl Into<String>) -> Problem {
        Problem::new(self.of(path), problem).within(&path.replace('.', ": "))
    }

    /// The line of a shape's key, or else of the fabric.
    pub(super) fn of_shape(&self, key: &str) -> u64 {
        let shapes = ["fat-tree", "back-to-back", "dragonfly-plus", "xdr"]
            .iter()
            .filter(|_| !key.is_empty());
        let mut lines = shapes.filter_map(|shape| self.of(&format!("fabric.{shape}.{key}")));
        lines.next().or_else(|| self.of("fabric")).unwrap_or(1)
    }
}

/// A mistake in an override.
pub(super) fn bad_override(name: &str, problem: &str) -> ScenarioError {
    ScenarioError(format!("{name}: {problem}"))
}
