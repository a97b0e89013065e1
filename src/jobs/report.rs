//! What a read of the jobs found, also as it is passed from one process to the other.

use job_list::JobList;
use serde::{Deserialize, Serialize};

/// What one read found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobsReport {
    /// The jobs, or the problem.
    pub jobs: Result<JobList, String>,
    /// The drained hosts, if they are asked for, or the problem.
    pub drained: Option<Result<Vec<String>, String>>,
}
