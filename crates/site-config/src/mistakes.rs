//! What is wrong with settings: a line each, which names the flag, or the file with line, column and key.

use std::path::Path;
use std::time::Duration;

use super::yaml::{Document, MOST_MISTAKES, Mistake, in_a_line};
use crate::values::Span;

/// All that is wrong with a file or with the settings: a line each, and one at least.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", lines.join("\n"))]
pub struct ConfigError {
    lines: Vec<String>,
}

impl ConfigError {
    /// One thing that is wrong.
    pub fn new(line: impl AsRef<str>) -> Self {
        ConfigError { lines: vec![in_a_line(line.as_ref())] }
    }

    /// Several things that are wrong with one file: `maintenance file work.yml: line 1, column 3: …`.
    pub fn in_file<P: std::fmt::Display>(
        kind: &str,
        path: &Path,
        problems: impl IntoIterator<Item = P>,
    ) -> Self {
        let (path, problems) = (path.display(), problems.into_iter());
        let line = |problem| in_a_line(&format!("{kind} {path}: {problem}"));
        ConfigError { lines: problems.map(line).collect() }
    }

    /// The lines.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

/// A value that a setting cannot have.
#[derive(Debug)]
pub struct Wrong {
    /// The key, within its section.
    pub(super) key: String,
    pub(super) problem: String,
}

pub fn wrong(key: impl Into<String>, problem: impl Into<String>) -> Wrong {
    Wrong { key: key.into(), problem: problem.into() }
}

/// A length of time that is shorter than it may be.
pub fn too_short(key: &str, value: Option<Span>, least: Duration) -> Option<Wrong> {
    let value = Duration::from(value?);
    let shown = humantime::format_duration;
    (value < least).then(|| wrong(key, format!("{} is less than {}", shown(value), shown(least))))
}

/// What was found while flags and file are brought together.
#[derive(Debug)]
pub struct Mistakes<'a> {
    path: &'a str,
    document: Document,
    flags: Vec<String>,
    file: Vec<Mistake>,
}

impl<'a> Mistakes<'a> {
    pub fn new(path: &'a str, document: Document, file: Vec<Mistake>) -> Self {
        Mistakes { path, document, flags: Vec::new(), file }
    }

    /// Values that flags of a section gave.
    pub fn in_flags(&mut self, section: &str, wrong: Vec<Wrong>) {
        let line = |Wrong { key, problem }| format!("--{section}.{key}: {problem}");
        self.flags.extend(wrong.into_iter().map(line));
    }

    /// Values that a section of the file has.
    pub fn in_file(&mut self, section: &str, wrong: Vec<Wrong>) {
        for Wrong { key, problem } in wrong {
            self.either(None, &[&format!("{section}.{key}")], problem);
        }
    }

    /// What a flag says, if one is given, or else the first of these keys that the file has.
    pub fn either(&mut self, flag: Option<&str>, keys: &[&str], problem: impl Into<String>) {
        let problem = problem.into();
        let in_file = |key: &&str| self.document.mistake(key, problem.clone());
        match (flag, keys.iter().find_map(in_file)) {
            (None, Some(mistake)) => self.file.push(mistake),
            (flag, _) => {
                let named = flag.or_else(|| keys.last().copied()).unwrap_or_default();
                self.flags.push(format!("{named}: {problem}"));
            }
        }
    }

    /// All that was found, if anything was.
    pub fn end(&mut self) -> Result<(), ConfigError> {
        self.file.sort_by_key(|mistake| (mistake.line, mistake.column));
        let more = self.file.len().saturating_sub(MOST_MISTAKES);
        if more > 0 {
            self.flags.push(format!("config file {}: {more} more mistakes than these", self.path));
            self.file.truncate(MOST_MISTAKES);
        }
        let in_file = |mistake: &Mistake| format!("config file {}: {mistake}", self.path);
        let lines: Vec<String> = self
            .flags
            .iter()
            .map(|line| in_a_line(line))
            .chain(self.file.iter().map(in_file))
            .collect();
        if lines.is_empty() { Ok(()) } else { Err(ConfigError { lines }) }
    }
}
