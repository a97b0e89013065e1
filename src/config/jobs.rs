//! Settings of the jobs that run on the hosts.

use std::path::PathBuf;
use std::time::Duration;

use fabric_observation::JobsSource;
use yaml_config::diagnostics::{Report, check_minimum};

use super::options::{JobsOptions, seconds_or};

/// Where running jobs are read from, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobsSettings {
    /// Where from.
    pub from: JobsFrom,
    /// From the start of one read to that of the next.
    pub interval: Duration,
    /// Whether the hosts that the scheduler has drained are in maintenance.
    pub drained: bool,
}

/// Where running jobs are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobsFrom {
    /// The commands of Slurm.
    Slurm,
    /// Files of hosts in a directory.
    Directory(PathBuf),
}

impl JobsFrom {
    /// How observations call it.
    pub fn source(&self) -> JobsSource {
        match self {
            JobsFrom::Slurm => JobsSource::Slurm,
            JobsFrom::Directory(_) => JobsSource::Directory,
        }
    }
}

impl JobsOptions {
    pub(super) fn validate(&self, report: Report<'_>) {
        if let Some(text) = &self.from
            && parse(text).is_none()
        {
            report("from", format!("{text:?} is neither slurm nor a directory such as /run/jobs"));
        }
        // Each read is work for the controller of the scheduler, which all jobs of a site need.
        check_minimum("interval", self.interval, Duration::from_secs(10), report);
    }

    pub(super) fn settings(self) -> Option<JobsSettings> {
        let from = parse(&self.from?)?;
        let drained = self.drained.unwrap_or(true) && from == JobsFrom::Slurm;
        Some(JobsSettings { from, interval: seconds_or(self.interval, 60), drained })
    }
}

/// `slurm`, or a path, which has a slash: another word is a mistake, and not the name of a directory.
fn parse(text: &str) -> Option<JobsFrom> {
    match text {
        "slurm" => Some(JobsFrom::Slurm),
        path if path.contains('/') => Some(JobsFrom::Directory(path.into())),
        _ => None,
    }
}
