//! Errors of settings: one line each, which names the flag, or the file with line, column and key.

use std::path::Path;
use std::time::Duration;

use super::yaml::{Diagnostic, Document, MAX_DIAGNOSTICS, single_line};
use crate::units::HumanDuration;

/// All that is wrong with a file or with the settings: one line each, and at least one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines.join("\n"))]
pub struct ConfigError {
    lines: Vec<String>,
}

impl ConfigError {
    /// One problem.
    pub fn new(line: impl AsRef<str>) -> Self {
        ConfigError { lines: vec![single_line(line.as_ref())] }
    }

    /// Several problems of one file: `maintenance file work.yml: line 1, column 3: …`.
    pub fn in_file<P: std::fmt::Display>(
        kind: &str,
        path: &Path,
        problems: impl IntoIterator<Item = P>,
    ) -> Self {
        let (path, problems) = (path.display(), problems.into_iter());
        let line = |problem| single_line(&format!("{kind} {path}: {problem}"));
        ConfigError { lines: problems.map(line).collect() }
    }

    /// The lines.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

/// A setting has a value that it cannot have.
#[derive(Debug)]
pub struct InvalidSetting {
    /// The key, within its section.
    key: String,
    problem: String,
}

/// A problem of the setting with this key.
pub fn invalid(key: impl Into<String>, problem: impl Into<String>) -> InvalidSetting {
    InvalidSetting { key: key.into(), problem: problem.into() }
}

/// A duration that is shorter than `min`.
pub fn too_short(key: &str, value: Option<HumanDuration>, min: Duration) -> Option<InvalidSetting> {
    let value = Duration::from(value?);
    let shown = humantime::format_duration;
    (value < min).then(|| {
        invalid(key, format!("{} is less than the minimum of {}", shown(value), shown(min)))
    })
}

/// Collects the problems of flags and file while they are merged.
#[derive(Debug)]
pub struct Diagnostics<'a> {
    path: &'a str,
    document: Document,
    /// Lines about flags.
    flags: Vec<String>,
    file: Vec<Diagnostic>,
}

impl<'a> Diagnostics<'a> {
    /// Starts with what parsing the config file at `path` reported.
    pub fn new(path: &'a str, document: Document, file: Vec<Diagnostic>) -> Self {
        Diagnostics { path, document, flags: Vec::new(), file }
    }

    /// Adds invalid flags of a section.
    pub fn add_flags(&mut self, section: &str, invalid: Vec<InvalidSetting>) {
        for InvalidSetting { key, problem } in invalid {
            self.flags.push(format!("--{section}.{key}: {problem}"));
        }
    }

    /// Adds invalid values of a section of the file.
    pub fn add_file(&mut self, section: &str, invalid: Vec<InvalidSetting>) {
        for InvalidSetting { key, problem } in invalid {
            self.add(None, &[&format!("{section}.{key}")], problem);
        }
    }

    /// Adds a problem of a flag, if one is given, or else of the first of these keys that the file has.
    pub fn add(&mut self, flag: Option<&str>, keys: &[&str], problem: impl Into<String>) {
        let problem = problem.into();
        let in_file = |key: &&str| self.document.diagnostic(key, problem.clone());
        match (flag, keys.iter().find_map(in_file)) {
            (None, Some(diagnostic)) => self.file.push(diagnostic),
            (flag, _) => {
                let named = flag.or_else(|| keys.last().copied()).unwrap_or_default();
                self.flags.push(format!("{named}: {problem}"));
            }
        }
    }

    /// The error, if anything was added.
    pub fn finish(&mut self) -> Result<(), ConfigError> {
        self.file.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        let more = self.file.len().saturating_sub(MAX_DIAGNOSTICS);
        if more > 0 {
            self.flags.push(format!("config file {}: {more} more errors", self.path));
            self.file.truncate(MAX_DIAGNOSTICS);
        }
        let in_file = self.file.iter().map(|it| format!("config file {}: {it}", self.path));
        let flags = self.flags.iter().map(|line| single_line(line));
        let lines: Vec<String> = flags.chain(in_file).collect();
        if lines.is_empty() { Ok(()) } else { Err(ConfigError { lines }) }
    }
}
