//! Scenarios: the changes of a fabric, and their times.
//!
//! A [`Scenario`] is read from YAML. [`Scenario::resolve`] builds its fabric and applies each entry
//! of the timeline to it: names become ports, cables are followed as they move, and effects that
//! overlap are put in order. The result, a [`ResolvedScenario`], names nothing that does not exist.
//! `docs/dev/scenarios.md` is the reference of the file.

mod demo;
mod entries;
mod file;
mod index;
mod initial_traffic;
mod overrides;
mod problem;
mod resolve;
mod resolved;
#[cfg(test)]
mod tests;
mod timeline;
mod topology_source;
mod value;

use std::path::{Path, PathBuf};

use yaml_config::file::MAX_BYTES;

use crate::net::shapes::FatTree;
use crate::net::{self, Net};
use file::File;
use problem::{Lines, Problem, bad_override};
use resolve::resolve;

pub use crate::change::{
    AgentBehavior, Dirt, FabricChange, MadDelivery, ModuleReport, RegisterBehavior, TableBehavior,
    TimedChange,
};
pub use entries::ENTRIES;
pub use overrides::Overrides;
pub use problem::ScenarioError;
pub use resolved::{OwnHost, ResolvedScenario};
pub use topology_source::TopologySource;

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

/// The largest topology file: one of the largest subnet, which has 49,151 LIDs, has some 30 MB.
pub const MAX_TOPOLOGY_BYTES: u64 = 256 << 20;

/// Reads a regular file, up to a size.
fn read_file(path: &Path, max: u64) -> Result<String, ScenarioError> {
    let wrong = |problem: String| Problem::new(None, problem).in_file(&path.display().to_string());
    let bytes = yaml_config::file::read(path, max).map_err(|error| wrong(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| wrong(yaml_config::yaml::not_utf8(&error)))
}

impl Scenario {
    /// Reads a scenario's file.
    pub fn read(path: &Path) -> Result<Scenario, ScenarioError> {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let scenario = Scenario::parse(&path.display().to_string(), &read_file(path, MAX_BYTES)?)?;
        Ok(Scenario { folder, ..scenario })
    }

    /// Reads a scenario from its text; paths in it start from the working directory.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let (file, lines) = file::parse(text).map_err(|problem| problem.in_file(name))?;
        Ok(Scenario { name: name.to_owned(), folder: PathBuf::new(), file, lines })
    }

    /// The built-in scenario, on a fabric with this many hosts, by default 36.
    pub fn demo(hosts: Option<u32>) -> Result<Scenario, ScenarioError> {
        Scenario::parse("demo.yml", &demo::text(hosts)?)
    }

    /// What happened on the fabric of the built-in scenario in the hours before it starts.
    pub fn demo_past(hosts: Option<u32>) -> Result<Scenario, ScenarioError> {
        Scenario::parse("demo-past.yml", &demo::past_text(hosts))
    }

    /// The built-in scenario of a multi-plane fabric (XDR).
    pub fn demo_xdr() -> Result<Scenario, ScenarioError> {
        Scenario::parse("demo-xdr.yml", demo::DEMO_XDR)
    }

    /// What it shows, in a sentence; empty if the file does not say.
    pub fn about(&self) -> &str {
        self.file.about.as_deref().unwrap_or_default()
    }

    /// Where the fabric comes from.
    pub fn source(&self, overrides: &Overrides) -> Result<TopologySource, ScenarioError> {
        overrides.check()?;
        if let Some(path) = &overrides.fabric {
            return Ok(TopologySource::File(path.clone()));
        }
        let default = || TopologySource::FatTree(FatTree::default());
        match (overrides.hosts, self.file.fabric.clone().unwrap_or_else(default)) {
            (_, TopologySource::File(path)) if path.as_os_str().is_empty() => {
                Err(self.lines.problem("fabric.file", "must not be empty").in_file(&self.name))
            }
            (None, TopologySource::File(path)) => Ok(TopologySource::File(self.folder.join(path))),
            (None, source) => Ok(source),
            (Some(hosts), TopologySource::FatTree(tree)) => {
                Ok(TopologySource::FatTree(tree.with_hosts(hosts)))
            }
            (
                Some(_),
                TopologySource::BackToBack(_)
                | TopologySource::DragonflyPlus(_)
                | TopologySource::Xdr(_)
                | TopologySource::File(_),
            ) => Err(bad_override("--hosts", "valid only for fat trees")),
        }
    }

    /// The fabric, built.
    pub fn net(&self, overrides: &Overrides) -> Result<Net, ScenarioError> {
        let source = self.source(overrides)?;
        let built = match &source {
            TopologySource::FatTree(shape) => shape.build(),
            TopologySource::BackToBack(shape) => shape.build(),
            TopologySource::DragonflyPlus(shape) => shape.build(),
            TopologySource::Xdr(shape) => shape.build(),
            TopologySource::File(path) => {
                let net = net::file::parse(&read_file(path, MAX_TOPOLOGY_BYTES)?);
                let file = path.display().to_string();
                return net.map_err(|wrong| Problem::new(None, wrong.to_string()).in_file(&file));
            }
        };
        built.map_err(|error| {
            // What depends on the number of hosts is about the override.
            let about_hosts = error.about_hosts.as_ref().filter(|_| overrides.hosts.is_some());
            match about_hosts {
                Some(problem) => bad_override("--hosts", problem),
                None => Problem::new(Some(self.lines.of_shape(error.key)), error.to_string())
                    .within("fabric")
                    .in_file(&self.name),
            }
        })
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
        resolve(&self.file, &self.lines, net, overrides)
            .map_err(|problem| problem.in_file(&self.name))
    }
}
