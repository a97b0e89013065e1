//! The lines of `squeue` and `sinfo`, for versions of Slurm whose `squeue` has no `--json`, and where its JSON is too long.

use std::collections::BTreeSet;

use crate::job::{
    Collected, Job, JobList, JobListError, MAX_PLACEMENTS, has_hosts, hosts_of, label, unix_time,
};

/// The format of `squeue -o` that [`squeue_text`] reads, with times in seconds (`SLURM_TIME_FORMAT=%s`).
pub const SQUEUE_FORMAT: &str = "%i|%u|%P|%T|%S|%e|%N";

/// The format of `sinfo -o` that [`drained_text`] reads.
pub const SINFO_FORMAT: &str = "%n|%T";

/// Characters after a state: not responding, powered down, rebooting, reserved and the like.
const FLAGS: [char; 9] = ['*', '~', '#', '!', '%', '$', '@', '^', '-'];

/// How much of a line an error shows.
const SHOWN: usize = 80;

/// Reads the lines of `squeue` in [`SQUEUE_FORMAT`].
pub fn squeue_text(text: &str) -> Result<JobList, JobListError> {
    let mut collected = Collected::default();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [id, user, partition, state, start, end, nodes] = fields[..] else {
            return Err(wrong(index, line, "ID|USER|PARTITION|STATE|START|END|NODES"));
        };
        if !has_hosts(state) {
            continue;
        }
        let Ok(hosts) = hosts_of(nodes) else {
            collected.add_unreadable();
            continue;
        };
        collected.add(Job {
            id: label(id).unwrap_or_default(),
            user: label(user),
            partition: label(partition),
            hosts,
            gpus: None,
            start: unix_time(start),
            end: unix_time(end),
        })?;
    }
    Ok(collected.list)
}

/// Reads the lines of `sinfo` in [`SINFO_FORMAT`]: the hosts that are drained, sorted. A host that is still draining runs
/// jobs, and is not one of them.
pub fn drained_text(text: &str) -> Result<Vec<String>, JobListError> {
    let mut hosts = BTreeSet::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [host, state] = fields[..] else { return Err(wrong(index, line, "HOST|STATE")) };
        let state = state.trim_end_matches(FLAGS);
        let is_drained = ["drained", "drain"].iter().any(|it| state.eq_ignore_ascii_case(it));
        if let Some(host) = label(host).filter(|_| is_drained) {
            hosts.insert(host);
        }
        if hosts.len() > MAX_PLACEMENTS {
            return Err(JobListError::TooManyHosts);
        }
    }
    Ok(hosts.into_iter().collect())
}

fn wrong(index: usize, line: &str, form: &'static str) -> JobListError {
    JobListError::Line { line: index + 1, text: line.chars().take(SHOWN).collect(), form }
}
