//! What is wrong with a text.

use std::fmt;

use crate::lines::Line;
use crate::remark::shown;

/// Why a text is not a valid dump: the line, from 1 on, and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    line: usize,
    what: String,
}

impl Problem {
    pub(crate) fn at(line: usize, what: impl Into<String>) -> Problem {
        Problem { line, what: what.into() }
    }

    /// A line that cannot be read as `expected`.
    pub(crate) fn unreadable(line: Line<'_>, expected: &str) -> Problem {
        Problem::at(line.number, format!("expected {expected}, found {}", shown(line.text)))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Problem { line, what } = self;
        write!(f, "line {line}: {what}")
    }
}
