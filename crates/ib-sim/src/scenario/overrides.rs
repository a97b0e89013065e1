//! Settings that replace those of a scenario.

use std::path::PathBuf;

use super::problem::{ScenarioError, bad_override};

/// The range of speed-ups. An entry may begin after ten years, be repeated for ten and last for
/// ten: ten times as long is 300 years, and the clock ends after 584.
pub const SPEEDUPS: std::ops::RangeInclusive<f64> = 0.1..=10_000.0;

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

impl Overrides {
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
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
