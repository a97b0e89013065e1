//! A job, the limits of a list of them, and what all readers have in common.

use hostlist::HostlistError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The most running jobs: ten times those of the largest clusters.
pub const MAX_JOBS: usize = 100_000;

/// The most hosts of all jobs together; a host counts for each of its jobs.
pub const MAX_PLACEMENTS: usize = 1_000_000;

/// The most characters of an id, a user or a partition.
const MAX_TEXT: usize = 64;

/// A job that runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// Its id: `4711`, or `4711_3` of an array.
    pub id: String,
    /// Who submitted it.
    pub user: Option<String>,
    /// Its partition or queue.
    pub partition: Option<String>,
    /// The hosts that it runs on, sorted, each once.
    pub hosts: Vec<String>,
    /// How many GPUs it has on all hosts, if that is known.
    pub gpus: Option<u64>,
    /// When it started, in seconds since 1970.
    pub start: Option<u64>,
    /// When its time limit ends it, in seconds since 1970.
    pub end: Option<u64>,
}

/// The jobs that run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobList {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// Running jobs whose id or hosts could not be read, and files that could not.
    pub unreadable: usize,
}

/// Why there is no list of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JobListError {
    /// It is not JSON, or not of this form.
    #[error("it is not the JSON of squeue: {0}")]
    Json(String),
    /// It is JSON without jobs.
    #[error("the JSON has no list \"jobs\"")]
    NoJobs,
    /// Slurm reports an error in its JSON.
    #[error("it reports: {0}")]
    Slurm(String),
    /// A line has other fields than were asked for.
    #[error("line {line}: {text:?} is not {form}")]
    Line {
        /// The number of the line.
        line: usize,
        /// Its beginning.
        text: String,
        /// What it should be.
        form: &'static str,
    },
    /// More jobs than any cluster runs.
    #[error("more than {MAX_JOBS} running jobs")]
    TooManyJobs,
    /// More hosts than any cluster has.
    #[error("more than {MAX_PLACEMENTS} hosts of running jobs")]
    TooManyHosts,
}

/// The hosts of a list as Slurm writes it; none of a job that waits.
pub fn hosts_of(nodes: &str) -> Result<Vec<String>, HostlistError> {
    let nodes = nodes.trim();
    if ["", "None assigned", "(null)", "n/a", "N/A"].contains(&nodes) {
        return Ok(Vec::new());
    }
    hostlist::parse(nodes)
}

/// A time of Slurm in seconds since 1970; `None` if it is not set, unlimited or text.
pub fn unix_time(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|seconds| *seconds > 0)
}

/// Whether a job in this state has its hosts, by the names of `squeue`. One that completes does not compute any more.
pub(crate) fn has_hosts(state: &str) -> bool {
    ["RUNNING", "SUSPENDED"].iter().any(|it| state.eq_ignore_ascii_case(it))
}

/// A short text without control characters; `None` if nothing is left.
pub(crate) fn label(text: &str) -> Option<String> {
    let text = text.trim();
    let shown = text.chars().filter(|char| !char.is_control()).take(MAX_TEXT);
    Some(shown.collect::<String>()).filter(|it| !it.is_empty() && it != "(null)")
}

/// Jobs that are collected within the limits.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) list: JobList,
    placements: usize,
}

impl Collected {
    /// Adds a job, or counts it as unreadable if it has no id or no host.
    pub(crate) fn add(&mut self, mut job: Job) -> Result<(), JobListError> {
        if job.id.is_empty() || job.hosts.is_empty() {
            self.add_unreadable();
            return Ok(());
        }
        job.hosts.sort_unstable();
        job.hosts.dedup();
        self.placements += job.hosts.len();
        if self.placements > MAX_PLACEMENTS {
            return Err(JobListError::TooManyHosts);
        }
        if self.list.jobs.len() >= MAX_JOBS {
            return Err(JobListError::TooManyJobs);
        }
        self.list.jobs.push(job);
        Ok(())
    }

    pub(crate) fn add_unreadable(&mut self) {
        self.list.unreadable += 1;
    }
}
