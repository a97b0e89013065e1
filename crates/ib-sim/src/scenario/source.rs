//! From a scenario's file to a resolved scenario: its fabric, and the overrides.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use thiserror::Error;

use super::ResolvedScenario;
use super::file::{self, File};
use super::resolve::{SPEEDUPS, resolve};
use crate::net::shapes::{BackToBack, DragonflyPlus, FatTree};
use crate::net::{self, Net};
use yaml_config::file::MAX_BYTES;
use yaml_config::yaml::Document;

/// The scenario of `demo`: it shows the most in five minutes, and its file is the first one to read.
const DEMO: &str = include_str!("demo.yml");

/// What happened on its fabric before it starts.
const DEMO_PAST: &str = include_str!("demo-past.yml");

/// The sizes of its fabric: with 30,000 hosts it has 181,000 ports. A subnet has no LIDs for more than 47,000 hosts.
const DEMO_HOSTS: RangeInclusive<u32> = 2..=30_000;

/// What in the text of [`DEMO`] depends on the number of hosts.
const DEMO_TREE: &str = "levels: 2, hosts: 36, radix: 18, down: 9, up: 6,";
const DEMO_UPLINK: &str = "leaf-0-1[10]";
const DEMO_FLAPPING: &str = "leaf-0-2[3]";
const DEMO_NAMED: [u32; 2] = [14, 28];
/// The same in the text of [`DEMO_PAST`].
const PAST_UPLINK: &str = "leaf-0-0[12]";
const PAST_FLAPPING: &str = "host-5";

/// The levels of the tree, and of its switches the number of ports, of those to hosts and of those up.
fn demo_shape(hosts: u32) -> (u32, u32, u32, u32) {
    match hosts {
        ..=36 => (2, 18, hosts.div_ceil(4), 6),
        37..=1920 => (2, 64, 30, 30),
        _ => (3, 64, 30, 30),
    }
}

/// Hosts of a smaller fabric have the same places in it. Not host-1, which has the master SM.
fn demo_host(hosts: u32, of_36: u32) -> String {
    match hosts.min(36) * of_36 / 36 {
        1 => "host-0".to_owned(),
        host => format!("host-{host}"),
    }
}

/// The built-in scenario for a number of hosts. Up to 36 there are four leaves, if there are as many hosts. A larger
/// tree has switches of 64 ports, 30 to hosts, 30 up and 4 for the rail host, and from 64 leaves on a third level.
fn demo_for(hosts: u32) -> String {
    let (levels, radix, down, up) = demo_shape(hosts);
    let tree = format!("levels: {levels}, hosts: {hosts}, radix: {radix}, down: {down}, up: {up},");
    let host = |of_36| demo_host(hosts, of_36);
    let text = DEMO.replace(DEMO_TREE, &tree);
    let text = text.replace(DEMO_UPLINK, &format!("leaf-0-1[{}]", down + 1));
    let text = text.replace(DEMO_FLAPPING, &host(20));
    DEMO_NAMED.iter().fold(text, |text, &named| {
        text.replace(&format!(": host-{named}\n"), &format!(": {}\n", host(named)))
    })
}

/// Why a scenario cannot be resolved, in one line: the file or the override, the line, and what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct ScenarioError(String);

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

/// Where a fabric comes from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the types describe themselves")]
pub enum FabricSource {
    FatTree(FatTree),
    BackToBack(BackToBack),
    DragonflyPlus(DragonflyPlus),
    /// A topology file, as ibnetdiscover writes and ibsim reads it.
    File(PathBuf),
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
    fn of_shape(&self, key: &str) -> u64 {
        let shapes =
            ["fat-tree", "back-to-back", "dragonfly-plus"].iter().filter(|_| !key.is_empty());
        let mut lines = shapes.filter_map(|shape| self.of(&format!("fabric.{shape}.{key}")));
        lines.next().or_else(|| self.of("fabric")).unwrap_or(1)
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
    /// The number of hosts of its fat tree. Switches of a tree of two levels get more ports if needed.
    pub hosts: Option<u32>,
    /// All times of its timeline are divided by this: those of `at`, `for`, `down` and `every`.
    pub speedup: f64,
    /// How many times as fast as real time its clock runs: descriptions have real durations.
    pub clock: u32,
}

impl Default for Overrides {
    fn default() -> Overrides {
        Overrides { fabric: None, hosts: None, speedup: 1.0, clock: 1 }
    }
}

fn bad_override(name: &str, problem: &str) -> ScenarioError {
    ScenarioError(format!("{name}: {problem}"))
}

impl Overrides {
    fn check(&self) -> Result<(), ScenarioError> {
        if !SPEEDUPS.contains(&self.speedup) {
            let (least, most) = (SPEEDUPS.start(), SPEEDUPS.end());
            let problem = format!("{} is not between {least} and {most}", self.speedup);
            return Err(bad_override("--speedup", &problem));
        }
        if self.fabric.is_some() && self.hosts.is_some() {
            let problem = "cannot be combined with a topology file, which sets the number of hosts";
            return Err(bad_override("--hosts", problem));
        }
        Ok(())
    }
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
        match hosts {
            None => Scenario::parse("demo.yml", DEMO),
            Some(hosts) if DEMO_HOSTS.contains(&hosts) => {
                Scenario::parse("demo.yml", &demo_for(hosts))
            }
            Some(hosts) => {
                let (least, most) = (DEMO_HOSTS.start(), DEMO_HOSTS.end());
                let problem = format!("{hosts} is not between {least} and {most}");
                Err(bad_override("--hosts", &problem))
            }
        }
    }

    /// What happened on the fabric of the built-in scenario in the hours before it starts.
    pub fn demo_past(hosts: Option<u32>) -> Result<Scenario, ScenarioError> {
        let hosts = hosts.unwrap_or(36);
        let (_, _, down, _) = demo_shape(hosts);
        let text = DEMO_PAST.replace(PAST_UPLINK, &format!("leaf-0-0[{}]", down + 3));
        Scenario::parse("demo-past.yml", &text.replace(PAST_FLAPPING, &demo_host(hosts, 5)))
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
        let default = || FabricSource::FatTree(FatTree::default());
        match (overrides.hosts, self.file.fabric.clone().unwrap_or_else(default)) {
            (_, FabricSource::File(path)) if path.as_os_str().is_empty() => {
                Err(self.lines.problem("fabric.file", "must not be empty").in_file(&self.name))
            }
            (None, FabricSource::File(path)) => Ok(FabricSource::File(self.folder.join(path))),
            (None, source) => Ok(source),
            (Some(hosts), FabricSource::FatTree(tree)) => {
                Ok(FabricSource::FatTree(tree.with_hosts(hosts)))
            }
            _ => Err(bad_override("--hosts", "valid only for fat trees")),
        }
    }

    /// The fabric, built.
    pub fn net(&self, overrides: &Overrides) -> Result<Net, ScenarioError> {
        let source = self.source(overrides)?;
        let built = match &source {
            FabricSource::FatTree(shape) => shape.build(),
            FabricSource::BackToBack(shape) => shape.build(),
            FabricSource::DragonflyPlus(shape) => shape.build(),
            FabricSource::File(path) => {
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
