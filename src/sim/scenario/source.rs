//! A scenario from its file to its story.

use std::path::{Path, PathBuf};

use super::Story;
use super::error::ScenarioError;
use super::fabric::{self, Shape};
use super::file::{self, File};
use super::resolve::{SPEEDUPS, resolve};
use super::value::line_of;
use crate::sim::net::Net;

/// What shows most of it in five minutes; its file is also the first to read.
const DEMO: &str = include_str!("demo.yml");

/// A scenario that was read, and not yet brought together with a fabric.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What its errors call it.
    name: String,
    /// Where the paths in it start.
    folder: PathBuf,
    file: File,
}

/// What is wanted in place of what the scenario says.
#[derive(Clone, Debug, PartialEq)]
pub struct Overrides {
    /// This topology file in place of its fabric.
    pub fabric: Option<PathBuf>,
    /// So many hosts in place of its tree's.
    pub hosts: Option<u32>,
    /// All times of its timeline are divided by this: those of `at`, `for`, `down` and `every`.
    pub speedup: f64,
}

impl Default for Overrides {
    fn default() -> Overrides {
        Overrides { fabric: None, hosts: None, speedup: 1.0 }
    }
}

impl Overrides {
    fn check(&self) -> Result<(), ScenarioError> {
        let refuse = |name, problem| Err(ScenarioError::Override { name, problem });
        if !SPEEDUPS.contains(&self.speedup) {
            let (least, most) = (SPEEDUPS.start(), SPEEDUPS.end());
            return refuse(
                "speedup",
                format!("{} is not between {least} and {most}", self.speedup),
            );
        }
        if self.fabric.is_some() && self.hosts.is_some() {
            return refuse("hosts", "a topology file says itself how many hosts there are".into());
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
        let file = file::parse(text).map_err(|problem| problem.in_file(name))?;
        Ok(Scenario { name: name.to_owned(), folder: PathBuf::new(), file })
    }

    /// The one that is built in.
    pub fn demo() -> Result<Scenario, ScenarioError> {
        Scenario::parse("demo.yml", DEMO)
    }

    /// What it shows, in a sentence; empty if it does not say.
    pub fn about(&self) -> &str {
        self.file.about.as_deref().unwrap_or_default()
    }

    /// The fabric that it is to happen to.
    pub fn shape(&self, overrides: &Overrides) -> Result<Shape, ScenarioError> {
        overrides.check()?;
        if let Some(path) = &overrides.fabric {
            return Ok(Shape::File(path.clone()));
        }
        let shape = fabric::shape(self.file.fabric.as_ref(), &self.folder, overrides.hosts)
            .map_err(|problem| problem.in_file(&self.name))?;
        match overrides.hosts.map(|hosts| fabric::other_hosts(&shape, hosts)) {
            Some(Err(problem)) => Err(ScenarioError::Override { name: "hosts", problem }),
            _ => Ok(shape),
        }
    }

    /// The scenario as it happens to its fabric.
    pub fn story(&self, overrides: &Overrides) -> Result<Story, ScenarioError> {
        let shape = self.shape(overrides)?;
        let net = fabric::build(&shape).map_err(|problem| match &shape {
            Shape::File(path) => ScenarioError::File { file: path.display().to_string(), problem },
            _ => ScenarioError::Scenario {
                file: self.name.clone(),
                line: self.file.fabric.as_ref().map_or(1, line_of),
                problem: format!("fabric: {problem}"),
            },
        })?;
        self.story_on(net, overrides)
    }

    /// The scenario as it happens to this fabric.
    pub fn story_on(&self, net: Net, overrides: &Overrides) -> Result<Story, ScenarioError> {
        overrides.check()?;
        resolve(&self.file, net, overrides.speedup).map_err(|problem| problem.in_file(&self.name))
    }
}
