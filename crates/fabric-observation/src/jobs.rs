//! The jobs that run on the hosts, as the scheduler of a site says.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use display_text::labeled_enum;
use ib_health::settings::DrainedHosts;
use job_list::JobList;

labeled_enum! {
    /// Where the jobs are read from.
    pub enum JobsSource {
        Slurm, "slurm", "The commands squeue and sinfo.";
        Directory, "directory", "Files of hosts in a directory.";
    }
}

/// For so many intervals the last known jobs count; then nothing is known.
const KEPT: u32 = 5;

/// What was last read, and whether that still works.
#[derive(Clone, Debug)]
pub struct JobsObservation {
    /// Where it is from.
    pub source: JobsSource,
    /// The time between two reads.
    pub interval: Duration,
    /// The jobs of the latest read that succeeded; empty before it.
    pub list: Arc<JobList>,
    /// The hosts that the scheduler has drained, of the latest read that succeeded. `None` if they are not read.
    pub drained: Option<Arc<DrainedHosts>>,
    /// When the latest read that succeeded ended; `None` before it.
    pub read_at: Option<SystemTime>,
    /// Why the latest read failed.
    pub problem: Option<String>,
}

impl JobsObservation {
    /// What is known before the first read.
    pub fn new(source: JobsSource, interval: Duration) -> Self {
        let list = Arc::default();
        JobsObservation { source, interval, list, drained: None, read_at: None, problem: None }
    }

    /// The jobs, if they are known at this time: those of a read that is not too old.
    pub fn known(&self, now: SystemTime) -> Option<&Arc<JobList>> {
        self.age(now).filter(|age| *age <= self.interval * KEPT).map(|_| &self.list)
    }

    /// How old they are. A read in the future is new: the clock has been set back since.
    pub fn age(&self, now: SystemTime) -> Option<Duration> {
        self.read_at.map(|read| now.duration_since(read).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_forgotten_after_five_intervals() {
        let read = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let after = |seconds| read + Duration::from_secs(seconds);
        let mut jobs = JobsObservation::new(JobsSource::Slurm, Duration::from_secs(60));
        assert!(jobs.known(read).is_none() && jobs.age(read).is_none());
        jobs.read_at = Some(read);
        assert!(jobs.known(after(300)).is_some() && jobs.known(after(301)).is_none());
        assert_eq!(jobs.age(after(301)), Some(Duration::from_secs(301)));
        assert!(jobs.known(read - Duration::from_secs(9)).is_some());
    }
}
