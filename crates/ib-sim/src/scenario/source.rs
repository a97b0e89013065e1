//! From a scenario's file to a resolved scenario.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::ResolvedScenario;
use super::fabric::{self, FabricSource};
use super::file::{self, File};
use super::resolve::{SPEEDUPS, resolve};
use crate::net::Net;
use crate::net::shapes::ShapeError;
use site_config::yaml::Document;

/// The scenario of `demo`: it shows most in five minutes, and its file is the first one to read.
const DEMO: &str = include_str!("demo.yml");

/// Why a scenario cannot be resolved. The text is one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the texts name the fields")]
pub enum ScenarioError {
    /// A file cannot be read, is no topology, or its fabric cannot be used.
    #[error("{file}: {problem}")]
    File { file: String, problem: String },
    /// A line of the scenario is wrong.
    #[error("{file}: line {line}: {problem}")]
    Line { file: String, line: u64, problem: String },
    /// One of the [`Overrides`] is wrong.
    #[error("{name}: {problem}")]
    Override { name: &'static str, problem: String },
}

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
        let (file, problem) = (file.to_owned(), self.text);
        match self.line {
            Some(line) => ScenarioError::Line { file, line, problem },
            None => ScenarioError::File { file, problem },
        }
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
}

/// A scenario's file.
#[derive(Debug)]
pub struct Scenario {
    /// The file's name in errors.
    name: String,
    /// The folder that paths in it start from.
    folder: PathBuf,
    file: File,
    lines: Lines,
}

/// Settings that replace those of the scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Overrides {
    /// A topology file instead of its fabric.
    pub fabric: Option<PathBuf>,
    /// The number of hosts of its fat tree. Switches of a tree of two levels get more ports if
    /// needed.
    pub hosts: Option<u32>,
    /// All times of its timeline are divided by this: those of `at`, `for`, `down` and `every`.
    pub speedup: f64,
}

impl Default for Overrides {
    fn default() -> Overrides {
        Overrides { fabric: None, hosts: None, speedup: 1.0 }
    }
}

fn bad_override(name: &'static str, problem: impl Into<String>) -> ScenarioError {
    ScenarioError::Override { name, problem: problem.into() }
}

impl Overrides {
    fn check(&self) -> Result<(), ScenarioError> {
        if !SPEEDUPS.contains(&self.speedup) {
            let (least, most) = (SPEEDUPS.start(), SPEEDUPS.end());
            let problem = format!("{} is not between {least} and {most}", self.speedup);
            return Err(bad_override("speedup", problem));
        }
        if self.fabric.is_some() && self.hosts.is_some() {
            return Err(bad_override(
                "hosts",
                "a topology file says itself how many hosts there are",
            ));
        }
        Ok(())
    }
}

impl Scenario {
    /// Reads a scenario's file.
    pub fn read(path: &Path) -> Result<Scenario, ScenarioError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| ScenarioError::File {
            file: name.clone(),
            problem: error.to_string(),
        })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(Scenario { folder, ..Scenario::parse(&name, &text)? })
    }

    /// Reads a scenario from its text; paths in it start from the working directory.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let (file, lines) = file::parse(text).map_err(|problem| problem.in_file(name))?;
        Ok(Scenario { name: name.to_owned(), folder: PathBuf::new(), file, lines })
    }

    /// The built-in scenario.
    pub fn demo() -> Result<Scenario, ScenarioError> {
        Scenario::parse("demo.yml", DEMO)
    }

    /// What it shows, in a sentence; empty if the file does not say.
    pub fn about(&self) -> &str {
        self.file.about.as_deref().unwrap_or_default()
    }

    /// Where the fabric comes from.
    pub fn source(&self, overrides: &Overrides) -> Result<FabricSource, ScenarioError> {
        overrides.check()?;
        if let Some(path) = &overrides.fabric {
            return Ok(FabricSource::File(path.clone()));
        }
        let source = self.file.fabric.clone().unwrap_or_default();
        fabric::check(&source, &self.lines).map_err(|problem| problem.in_file(&self.name))?;
        match (overrides.hosts, source) {
            (None, FabricSource::File(path)) => Ok(FabricSource::File(self.folder.join(path))),
            (None, source) => Ok(source),
            (Some(hosts), FabricSource::FatTree(tree)) => {
                Ok(FabricSource::FatTree(tree.with_hosts(hosts)))
            }
            (Some(_), _) => {
                Err(bad_override("hosts", "only a fat tree can have another number of hosts"))
            }
        }
    }

    /// The fabric, built.
    pub fn net(&self, overrides: &Overrides) -> Result<Net, ScenarioError> {
        match self.source(overrides)? {
            FabricSource::File(path) => fabric::read(&path),
            source => source.build().map_err(|error| self.shape_error(overrides, &error)),
        }
    }

    /// Attributes an error that depends on the number of hosts to its override, and others to the file.
    fn shape_error(&self, overrides: &Overrides, error: &ShapeError) -> ScenarioError {
        let problem = match error {
            ShapeError::Range { name: "hosts", value, least, most } => {
                Some(format!("{value} is not between {least} and {most}"))
            }
            ShapeError::Disjoint { .. } | ShapeError::Build(_) => Some(error.to_string()),
            _ => None,
        };
        match problem.filter(|_| overrides.hosts.is_some()) {
            Some(problem) => bad_override("hosts", problem),
            None => {
                fabric::problem(self.file.fabric.as_ref(), &self.lines, error).in_file(&self.name)
            }
        }
    }

    /// The scenario on its own fabric.
    pub fn resolve(&self, overrides: &Overrides) -> Result<ResolvedScenario, ScenarioError> {
        self.resolve_on(self.net(overrides)?, overrides)
    }

    /// The scenario on this fabric.
    pub fn resolve_on(
        &self,
        net: Net,
        overrides: &Overrides,
    ) -> Result<ResolvedScenario, ScenarioError> {
        overrides.check()?;
        resolve(&self.file, &self.lines, net, overrides.speedup)
            .map_err(|problem| problem.in_file(&self.name))
    }
}
