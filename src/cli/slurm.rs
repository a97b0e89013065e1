//! The hosts of a job of Slurm, and when it ran: from `sacct`, or from `squeue` where accounting is off.

use std::time::{Duration, SystemTime};

use job_list::{hosts_of, unix_time};
use tokio::runtime::Builder;

use crate::command::{CommandError, CommandLimits, output};
use crate::exit::Fatal;

/// Commands of Slurm wait for a controller that is down for as long as this (`MessageTimeout` is 10 s, and they retry).
const LIMITS: CommandLimits = CommandLimits { time: Duration::from_secs(30), bytes: 64 << 20 };

/// A job: all of its runs and array tasks together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// The hosts that it ran on.
    pub hosts: Vec<String>,
    /// When the first run started; `None` while it is pending.
    pub start: Option<SystemTime>,
    /// When the last run ended; `None` while it runs.
    pub end: Option<SystemTime>,
}

/// `123`, the task `123_4` of an array, or the component `123+1` of a heterogeneous job.
fn is_job_id(id: &str) -> bool {
    id.starts_with(|char: char| char.is_ascii_digit())
        && id.len() <= 40
        && id.bytes().all(|byte| byte.is_ascii_digit() || b"_+".contains(&byte))
}

/// Finds a job. `what` is the name of the option.
pub fn find(what: &str, id: &str) -> Result<Job, Fatal> {
    if !is_job_id(id) {
        return Err(Fatal::usage(format!("{what}: {id:?} is not a job ID such as 4711 or 4711_2")));
    }
    // With -D also the runs before it was requeued.
    let accounting = ["-X", "-n", "-P", "-D", "-j", id, "-o", "JobIDRaw,State,Start,End,NodeList"];
    // Without -t not one that has just ended, which slurmctld knows for MinJobAge (5 minutes).
    let queue = ["-h", "-t", "all", "-j", id, "-o", "%A|%T|%S|%e|%N"];
    let mut problems = Vec::new();
    for (program, arguments) in [("sacct", &accounting[..]), ("squeue", &queue[..])] {
        match run(program, arguments) {
            Ok(Some(text)) => match parse(&text) {
                Ok(Some(job)) => return Ok(job),
                Ok(None) => problems.push(format!("{program} does not know it")),
                Err(problem) => problems.push(format!("{program}: {problem}")),
            },
            Ok(None) => problems.push(format!("{program} is not installed")),
            Err(problem) => problems.push(format!("{program}: {problem}")),
        }
    }
    let problems = problems.join("; ");
    Err(Fatal::failed(format!("{what}: job {id}: {problems}. Or name its nodes with --nodes")))
}

/// The output of a command; `None` if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Result<Option<String>, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    match runtime.block_on(output(program, arguments, LIMITS)) {
        Ok(stdout) => Ok(Some(String::from_utf8_lossy(&stdout).into_owned())),
        Err(CommandError::NotInstalled) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads lines of an ID, a state, two times and a list of hosts. `None` if there is none.
fn parse(text: &str) -> Result<Option<Job>, String> {
    let mut job: Option<Job> = None;
    let mut runs_on = false;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let wrong = || format!("{line:?} is not ID|STATE|START|END|NODES");
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, state, start, end, nodes] = fields[..] else { return Err(wrong()) };
        let job = job.get_or_insert_default();
        job.hosts.extend(hosts_of(nodes).map_err(|error| error.to_string())?);
        let Some(start) = time(start) else { continue };
        job.start = Some(job.start.map_or(start, |first| first.min(start)));
        // What squeue says of a job that runs is when its time limit ends it.
        let is_over = !["RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "CONFIGURING", "RESIZING"]
            .iter()
            .any(|running| state.starts_with(running));
        match time(end).filter(|_| is_over) {
            Some(end) => job.end = Some(job.end.map_or(end, |last| last.max(end))),
            None => runs_on = true,
        }
    }
    Ok(job.map(|job| Job { end: job.end.filter(|_| !runs_on), ..job }))
}

/// A time in seconds since 1970; `Unknown`, `None` and `N/A` are none.
fn time(text: &str) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(unix_time(text)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn job(text: &str) -> Job {
        parse(text).unwrap().unwrap()
    }

    #[test]
    fn runs_and_tasks_of_a_job_are_one() {
        let one = job("4711|COMPLETED|1700000000|1700003600|gpu[001-002]\n");
        let hosts = ["gpu001", "gpu002"].map(str::to_owned).to_vec();
        assert_eq!(
            one,
            Job { hosts, start: Some(at(1_700_000_000)), end: Some(at(1_700_003_600)) }
        );
        // Requeued after a node failed.
        let two = job(
            "4711|NODE_FAIL|1700000000|1700000060|gpu1\n4711|CANCELLED by 1000|1700000100|1700000200|gpu2\n",
        );
        assert_eq!(
            (two.hosts.len(), two.start, two.end),
            (2, Some(at(1_700_000_000)), Some(at(1_700_000_200)))
        );
        // A task of an array still runs.
        let array = job("12|COMPLETED|100|200|a\n13|RUNNING|150|Unknown|b\n");
        assert_eq!((array.start, array.end), (Some(at(100)), None));
    }

    #[test]
    fn job_that_runs_has_no_end() {
        // squeue: the end is that of its time limit.
        let running = job("4711|RUNNING|1700000000|1700086400|gpu[1-3],login1\n");
        assert_eq!((running.hosts.len(), running.end), (4, None));
        assert_eq!(job("4711|PENDING|Unknown|Unknown|None assigned\n"), Job::default());
        assert_eq!(job("4711|PENDING|N/A|N/A|\n"), Job::default());
    }

    #[test]
    fn other_output_is_an_error() {
        assert_eq!(parse("\n"), Ok(None));
        for text in ["slurm_load_jobs error: Invalid job id specified", "1|2|3|4", "1|2|3|4|5|6"] {
            assert!(parse(text).unwrap_err().contains("is not ID|STATE"), "{text}");
        }
        assert!(parse("1|RUNNING|1|2|gpu[1-\n").is_err());
    }

    #[test]
    fn only_job_ids_reach_the_command() {
        for id in ["1", "4711_12", "4711+1"] {
            assert!(is_job_id(id), "{id}");
        }
        for id in ["", "-1", "4711,1", "a", "4711 ", "_1", "1;ls"] {
            assert!(!is_job_id(id), "{id}");
        }
    }
}
