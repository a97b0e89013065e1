//! A scenario from its file to its story.

use std::path::{Path, PathBuf};

use super::Story;
use super::error::ScenarioError;
use super::fabric::{self, Shape};
use super::file::{self, File};
use super::resolve::{SPEEDUPS, resolve};
use crate::net::Net;
use crate::net::shapes;
use crate::net::shapes::ShapeError;

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
    /// So many hosts in place of its tree's; the switches of two levels grow if they must.
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
        let mut shape = fabric::shape(self.file.fabric.as_ref(), &self.folder)
            .map_err(|problem| problem.in_file(&self.name))?;
        match (overrides.hosts, &mut shape) {
            (Some(hosts), Shape::Built(shapes::Shape::FatTree(tree))) => {
                *tree = tree.clone().with_hosts(hosts);
            }
            (Some(_), _) => {
                let problem = "only a fat tree can have another number of hosts".into();
                return Err(ScenarioError::Override { name: "hosts", problem });
            }
            (None, _) => {}
        }
        Ok(shape)
    }

    /// That fabric, built.
    pub fn net(&self, overrides: &Overrides) -> Result<Net, ScenarioError> {
        match self.shape(overrides)? {
            Shape::File(path) => fabric::read(&path),
            Shape::Built(shape) => shape.build().map_err(|error| self.unbuilt(overrides, &error)),
        }
    }

    /// Where it is to be told that the fabric cannot be built.
    fn unbuilt(&self, overrides: &Overrides, error: &ShapeError) -> ScenarioError {
        // These depend on the number of hosts, and the file's is another.
        let problem = match error {
            ShapeError::Range { name: "hosts", value, least, most } => {
                format!("{value} is not between {least} and {most}")
            }
            ShapeError::Apart { .. } | ShapeError::Build(_) => error.to_string(),
            _ => String::new(),
        };
        if overrides.hosts.is_some() && !problem.is_empty() {
            return ScenarioError::Override { name: "hosts", problem };
        }
        fabric::unbuilt(self.file.fabric.as_ref(), error).in_file(&self.name)
    }

    /// The scenario as it happens to its fabric.
    pub fn story(&self, overrides: &Overrides) -> Result<Story, ScenarioError> {
        self.story_on(self.net(overrides)?, overrides)
    }

    /// The scenario as it happens to this fabric.
    pub fn story_on(&self, net: Net, overrides: &Overrides) -> Result<Story, ScenarioError> {
        overrides.check()?;
        resolve(&self.file, net, overrides.speedup).map_err(|problem| problem.in_file(&self.name))
    }
}
