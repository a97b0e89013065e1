//! What is wrong with a scenario, in one line that says where.

use thiserror::Error;

/// Why there is no story.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ScenarioError {
    /// A file cannot be read, or is no topology.
    #[error("{file}: {problem}")]
    File {
        /// Which.
        file: String,
        /// Why.
        problem: String,
    },
    /// Something in the scenario is not what it should be.
    #[error("{file}: line {line}: {problem}")]
    Scenario {
        /// The scenario.
        file: String,
        /// Where in it.
        line: u64,
        /// What.
        problem: String,
    },
    /// The fabric cannot be used, and no line of the scenario says anything about it.
    #[error("{file}: {problem}")]
    Fabric {
        /// The scenario or the topology file.
        file: String,
        /// Why.
        problem: String,
    },
    /// What is set in place of something in the scenario cannot be.
    #[error("{name}: {problem}")]
    Override {
        /// What is set.
        name: &'static str,
        /// Why not.
        problem: String,
    },
}

/// What is wrong and where, before it is known which file it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// `None` if the scenario has no line about it.
    pub(super) line: Option<u64>,
    pub(super) text: String,
}

impl Problem {
    pub(super) fn at(line: impl Into<Option<u64>>, text: impl Into<String>) -> Problem {
        Problem { line: line.into(), text: text.into() }
    }

    /// The same, told of the entry that it is in.
    pub(super) fn of(self, entry: &str) -> Problem {
        Problem { text: format!("{entry}: {}", self.text), ..self }
    }

    pub(super) fn in_file(self, file: &str) -> ScenarioError {
        let (file, problem) = (file.to_owned(), self.text);
        match self.line {
            Some(line) => ScenarioError::Scenario { file, line, problem },
            None => ScenarioError::Fabric { file, problem },
        }
    }
}
