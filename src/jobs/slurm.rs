//! Asks Slurm: `squeue` for the jobs, `sinfo` for the drained hosts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use job_list::{
    JobList, JobListError, SINFO_FORMAT, SQUEUE_FORMAT, drained_text, squeue_json, squeue_text,
};

use super::report::JobsReport;
use crate::command::{CommandError, CommandLimits, output};

/// A command waits for a controller that is down for as long as this (`MessageTimeout` is 10 s, and it retries); and its
/// output: 20,000 jobs are some 100 MB of JSON. Those of more jobs are read as text.
const LIMITS: CommandLimits = CommandLimits { time: Duration::from_secs(30), bytes: 128 << 20 };

/// The commands, and what is known of this version of Slurm.
#[derive(Debug)]
pub(super) struct Slurm {
    squeue: PathBuf,
    sinfo: PathBuf,
    limits: CommandLimits,
    /// `squeue --json` does not work, and `squeue -o` does.
    lacks_json: bool,
}

impl Default for Slurm {
    /// The commands in `PATH`.
    fn default() -> Self {
        let (squeue, sinfo) = ("squeue".into(), "sinfo".into());
        Slurm { squeue, sinfo, limits: LIMITS, lacks_json: false }
    }
}

impl Slurm {
    /// Asks for all.
    pub(super) async fn read(&mut self, drained: bool) -> JobsReport {
        let jobs = self.jobs().await;
        let drained = if drained { Some(self.drained_hosts().await) } else { None };
        JobsReport { jobs, drained }
    }

    async fn jobs(&mut self) -> Result<JobList, String> {
        if self.lacks_json {
            return self.as_text().await.map_err(|error| format!("squeue: {error}"));
        }
        // Some versions ignore all but the first.
        let arguments = ["--json", "--all", "--states=RUNNING,SUSPENDED"];
        let of_json = match output(&self.squeue, &arguments, self.limits).await {
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
        match self.as_text().await {
            Ok(list) => {
                self.lacks_json = true;
                Ok(list)
            }
            Err(of_text) if of_text == of_json => Err(format!("squeue: {of_text}")),
            Err(of_text) => Err(format!("squeue --json: {of_json}; squeue: {of_text}")),
        }
    }

    async fn as_text(&self) -> Result<JobList, String> {
        let arguments = ["-h", "-a", "-t", "RUNNING,SUSPENDED", "-o", SQUEUE_FORMAT];
        let text = self.text_of(&self.squeue, &arguments).await?;
        squeue_text(&text).map_err(|error| error.to_string())
    }

    async fn drained_hosts(&self) -> Result<Vec<String>, String> {
        let text = self.text_of(&self.sinfo, &["-h", "-a", "-o", SINFO_FORMAT]).await;
        let hosts = text.and_then(|text| drained_text(&text).map_err(|error| error.to_string()));
        hosts.map_err(|problem| format!("sinfo: {problem}"))
    }

    async fn text_of(&self, program: &Path, arguments: &[&str]) -> Result<String, String> {
        let bytes = output(program, arguments, self.limits).await;
        let bytes = bytes.map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const LINE: &str = "4711|alice|gpu|RUNNING|1700000000|1700086400|gpu[001-002]";

    const JSON: &str = r#"{"jobs": [{"job_id": 4712, "job_state": ["RUNNING"], "nodes": "gpu003"}], "errors": []}"#;

    /// Commands that are scripts, and what they find.
    fn read(slurm: &mut Slurm, squeue: &str, sinfo: &str) -> JobsReport {
        let folder = tempfile::tempdir().unwrap();
        for (name, script) in [("squeue", squeue), ("sinfo", sinfo)] {
            // Another process writes it: a file that this one has open, and so what it starts meanwhile, cannot be run.
            let write = "printf '%s\n' '#!/bin/sh' \"$2\" > \"$1\" && chmod 755 \"$1\"";
            let file = folder.path().join(name);
            let mut shell = Command::new("sh");
            shell.args(["-c", write, "sh"]).arg(file).arg(script);
            assert!(shell.status().unwrap().success());
        }
        (slurm.squeue, slurm.sinfo) = (folder.path().join("squeue"), folder.path().join("sinfo"));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(slurm.read(true))
    }

    fn ids(report: &JobsReport) -> Vec<&str> {
        report.jobs.as_ref().unwrap().jobs.iter().map(|job| &*job.id).collect()
    }

    #[test]
    fn json_is_read_and_text_where_there_is_none() {
        let mut slurm = Slurm::default();
        let both = format!("case $1 in --json) echo '{JSON}';; *) echo '{LINE}';; esac");
        let report = read(&mut slurm, &both, "echo 'gpu003|drained'; echo 'gpu004|draining'");
        assert_eq!(ids(&report), ["4712"]);
        assert_eq!(report.drained, Some(Ok(vec!["gpu003".to_owned()])));
        // Both fail while the controller is down: that says nothing about the version.
        let down = "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1";
        let report = read(&mut slurm, down, down);
        let problem = "slurm_load_jobs error: Unable to contact slurm controller";
        assert_eq!(report.jobs, Err(format!("squeue: {problem}")));
        assert_eq!(report.drained, Some(Err(format!("sinfo: {problem}"))));
        assert!(!slurm.lacks_json);
        let old = format!(
            "case $1 in --json) echo 'unrecognized option' >&2; exit 1;; *) echo '{LINE}';; esac"
        );
        assert_eq!(ids(&read(&mut slurm, &old, "")), ["4711"]);
        assert_eq!(ids(&read(&mut slurm, &both, "")), ["4711"], "not tried again");
    }

    #[test]
    fn too_much_output_is_read_as_text_and_not_kept() {
        let mut slurm = Slurm::default();
        let huge =
            format!("case $1 in --json) head -c 200000000 /dev/zero;; *) echo '{LINE}';; esac");
        assert_eq!(ids(&read(&mut slurm, &huge, "")), ["4711"]);
        let report = read(&mut slurm, "head -c 200000000 /dev/zero", "head -c 200000000 /dev/zero");
        let problem = "it wrote more than 134217728 bytes";
        assert_eq!(report.jobs, Err(format!("squeue: {problem}")));
        assert_eq!(report.drained, Some(Err(format!("sinfo: {problem}"))));
    }

    #[test]
    fn commands_that_hang_or_are_missing_are_problems() {
        let time = Duration::from_millis(300);
        let mut slurm = Slurm { limits: CommandLimits { time, ..LIMITS }, ..Slurm::default() };
        let report = read(&mut slurm, "sleep 1000", "sleep 1000");
        assert_eq!(report.jobs, Err("squeue: no answer within 0.3 s".to_owned()));
        assert_eq!(report.drained, Some(Err("sinfo: no answer within 0.3 s".to_owned())));
        (slurm.squeue, slurm.sinfo) = ("/nowhere/squeue".into(), "/nowhere/sinfo".into());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let report = runtime.block_on(slurm.read(false));
        assert_eq!(report.jobs, Err("squeue: it is not installed, or not in PATH".to_owned()));
        assert_eq!(report.drained, None);
    }
}
