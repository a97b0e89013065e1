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

/// Receives what is wrong with a section of settings: a key within the section, and the problem of its value.
pub type Report<'a> = &'a mut dyn FnMut(&str, String);

/// Reports a duration that is shorter than `min`.
pub fn check_minimum(key: &str, value: Option<HumanDuration>, min: Duration, report: Report<'_>) {
    if let Some(value) = value.map(Duration::from).filter(|value| *value < min) {
        let [value, min] = [value, min].map(humantime::format_duration);
        report(key, format!("{value} is less than the minimum of {min}"));
    }
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

    /// Adds what is wrong with a section in the flags and in the file: in both, so that a flag does not hide a wrong
    /// value of the file.
    pub fn check<S>(&mut self, section: &str, flags: &S, file: &S, validate: fn(&S, Report<'_>)) {
        validate(flags, &mut |key, problem| {
            self.flags.push(format!("--{section}.{key}: {problem}"));
        });
        self.check_file(section, file, validate);
    }

    /// Adds what is wrong with a section of the file.
    pub fn check_file<S>(&mut self, section: &str, file: &S, validate: fn(&S, Report<'_>)) {
        validate(file, &mut |key, problem| {
            self.add(None, &[&format!("{section}.{key}")], problem);
        });
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
        // The last one of a file with too many says how many more there are.
        let more = self.file.len().saturating_sub(MAX_DIAGNOSTICS + 1);
        if more > 0 {
            self.flags.push(format!("config file {}: {more} more errors", self.path));
            self.file.truncate(MAX_DIAGNOSTICS + 1);
        }
        let in_file = self.file.iter().map(|it| format!("config file {}: {it}", self.path));
        let flags = self.flags.iter().map(|line| single_line(line));
        let lines: Vec<String> = flags.chain(in_file).collect();
        if lines.is_empty() { Ok(()) } else { Err(ConfigError { lines }) }
    }
}
