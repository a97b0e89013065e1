//! Asks Slurm: `squeue` for the jobs, `sinfo` for the drained hosts.

use std::time::Duration;

use job_list::{
    JobList, JobListError, SINFO_FORMAT, SQUEUE_FORMAT, drained_text, squeue_json, squeue_text,
};

use super::JobsReport;
use crate::command::{CommandError, CommandLimits, output};

/// A command waits for a controller that is down for as long as this (`MessageTimeout` is 10 s, and it retries); and its
/// output: 20,000 jobs are some 100 MB of JSON. Those of more jobs are read as text.
const LIMITS: CommandLimits = CommandLimits { time: Duration::from_secs(30), bytes: 128 << 20 };

/// The commands, and what is known of this version of Slurm.
#[derive(Debug, Default)]
pub(super) struct Slurm {
    /// `squeue --json` does not work, and `squeue -o` does.
    lacks_json: bool,
}

impl Slurm {
    /// Asks for all.
    pub(super) async fn read(&mut self, drained: bool) -> JobsReport {
        let jobs = self.jobs().await;
        let drained = if drained { Some(drained_hosts().await) } else { None };
        JobsReport { jobs, drained }
    }

    async fn jobs(&mut self) -> Result<JobList, String> {
        if self.lacks_json {
            return as_text().await.map_err(|error| format!("squeue: {error}"));
        }
        // Versions before 23.11 ignore the states.
        let arguments = ["--json", "--all", "--states=RUNNING,SUSPENDED"];
        let of_json = match output("squeue", &arguments, LIMITS).await {
            Ok(bytes) => match squeue_json(&bytes) {
                Ok(list) => return Ok(list),
                Err(error @ (JobListError::TooManyJobs | JobListError::TooManyHosts)) => {
                    return Err(format!("squeue: {error}"));
                }
                Err(error) => error.to_string(),
            },
            Err(error @ (CommandError::NotInstalled | CommandError::TimeOut(_))) => {
                return Err(format!("squeue: {error}"));
            }
            Err(error) => error.to_string(),
        };
        match as_text().await {
            Ok(list) => {
                self.lacks_json = true;
                Ok(list)
            }
            Err(of_text) if of_text == of_json => Err(format!("squeue: {of_text}")),
            Err(of_text) => Err(format!("squeue --json: {of_json}; squeue: {of_text}")),
        }
    }
}

async fn as_text() -> Result<JobList, String> {
    let arguments = ["-h", "-a", "-t", "RUNNING,SUSPENDED", "-o", SQUEUE_FORMAT];
    let text = text_of("squeue", &arguments).await?;
    squeue_text(&text).map_err(|error| error.to_string())
}

async fn drained_hosts() -> Result<Vec<String>, String> {
    let text = text_of("sinfo", &["-h", "-a", "-o", SINFO_FORMAT]).await;
    let hosts = text.and_then(|text| drained_text(&text).map_err(|error| error.to_string()));
    hosts.map_err(|problem| format!("sinfo: {problem}"))
}

async fn text_of(program: &str, arguments: &[&str]) -> Result<String, String> {
    let bytes = output(program, arguments, LIMITS).await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
