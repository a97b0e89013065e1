//! Reads which jobs run on which hosts, and publishes that beside the fabrics.
//!
//! Neither a scheduler that does not respond nor a directory on a file system that hangs delays a sweep: a thread of its own
//! reads, and another one publishes what it has read.

mod directory;
pub mod helper;
mod report;
mod slurm;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use fabric_observation::{JobsObservation, SharedState};
use ib_health::settings::DrainedHosts;
use tokio::sync::watch;

use crate::config::{JobsFrom, JobsSettings};
use helper::Helper;
use report::JobsReport;

/// How often the thread looks whether it has to end.
const TICK: Duration = Duration::from_millis(250);

/// After so many intervals without the end of a read, it is said to hang.
const HANGS: u32 = 5;

/// Publishes the jobs.
#[derive(Debug)]
pub struct JobsMonitor {
    settings: JobsSettings,
    helper: Option<Helper>,
    states: Arc<watch::Sender<SharedState>>,
    stop: Arc<AtomicBool>,
    latest: JobsObservation,
    /// The problem that was logged last.
    logged: Option<String>,
}

impl JobsMonitor {
    /// The monitor, with the process that runs commands if there is one.
    pub fn new(
        settings: JobsSettings,
        helper: Option<Helper>,
        states: Arc<watch::Sender<SharedState>>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let latest = JobsObservation::new(settings.from.source(), settings.interval);
        JobsMonitor { settings, helper, states, stop, latest, logged: None }
    }

    /// Publishes until it has to stop.
    pub fn run(mut self) {
        let (sender, reports) = sync_channel(1);
        let requests = match self.start(sender) {
            Ok(requests) => requests,
            Err(error) => {
                self.fail(format!("the thread that reads did not start: {error}"));
                None
            }
        };
        let (mut due, mut last) = (Instant::now(), Instant::now());
        while !self.stop.load(Ordering::Relaxed) {
            let now = Instant::now();
            if let Some(requests) = requests.as_ref().filter(|_| now >= due) {
                due = now + self.settings.interval;
                if let Err(TrySendError::Disconnected(())) = requests.try_send(()) {
                    self.fail("the thread that reads has ended".to_owned());
                }
            }
            match reports.recv_timeout(TICK) {
                Ok(report) => {
                    last = Instant::now();
                    self.publish(report, SystemTime::now());
                }
                Err(RecvTimeoutError::Timeout) => {
                    let limit = self.settings.interval * HANGS;
                    if last.elapsed() > limit {
                        last = Instant::now();
                        self.fail(format!("no read has ended for {} s", limit.as_secs()));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.fail(helper::ENDED.to_owned());
                    std::thread::sleep(TICK);
                }
            }
        }
    }

    /// Starts the thread that reads. A directory is read at each request; the helper has its own interval.
    fn start(&mut self, sender: SyncSender<JobsReport>) -> std::io::Result<Option<SyncSender<()>>> {
        let thread = std::thread::Builder::new().name("jobs-reader".into());
        match (&self.settings.from, self.helper.take()) {
            (JobsFrom::Directory(folder), _) => {
                let folder = folder.clone();
                let (requests, requested) = sync_channel::<()>(1);
                thread.spawn(move || read_directory(&folder, &requested, &sender))?;
                Ok(Some(requests))
            }
            (JobsFrom::Slurm, Some(mut helper)) => {
                thread.spawn(move || {
                    while let Ok(report) = helper.receive() {
                        if sender.send(report).is_err() {
                            break;
                        }
                    }
                })?;
                Ok(None)
            }
            // That it did not start is logged; without a sender the rest follows.
            (JobsFrom::Slurm, None) => Ok(None),
        }
    }

    /// Publishes a problem, once.
    fn fail(&mut self, problem: String) {
        if self.latest.problem.as_ref() != Some(&problem) {
            let drained = None;
            self.publish(JobsReport { jobs: Err(problem), drained }, SystemTime::now());
        }
    }

    fn publish(&mut self, report: JobsReport, now: SystemTime) {
        let mut problems = Vec::new();
        match report.jobs {
            Ok(list) => {
                if list != *self.latest.list {
                    self.latest.list = Arc::new(list);
                }
                self.latest.read_at = Some(now);
            }
            Err(problem) => problems.push(problem),
        }
        match report.drained {
            Some(Ok(hosts)) => {
                let hosts = DrainedHosts::of_scheduler(hosts);
                // Another one would have the links evaluated again.
                if self.latest.drained.as_deref() != Some(&hosts) {
                    self.latest.drained = Some(Arc::new(hosts));
                }
            }
            Some(Err(problem)) => problems.push(problem),
            None => {}
        }
        self.latest.problem = Some(problems.join("; ")).filter(|text| !text.is_empty());
        self.log();
        let latest = Arc::new(self.latest.clone());
        self.states.send_modify(|state| state.jobs = Some(latest));
    }

    /// Logs a problem when it is new, and its end.
    fn log(&mut self) {
        let source = self.latest.source.label();
        if self.latest.problem == self.logged {
            return;
        }
        if let Some(problem) = &self.latest.problem {
            tracing::warn!(
                source, %problem,
                "running jobs not read: the last known ones are shown for 5 intervals"
            );
        } else {
            tracing::info!(source, jobs = self.latest.list.jobs.len(), "running jobs read");
        }
        self.logged.clone_from(&self.latest.problem);
    }
}

fn read_directory(
    folder: &std::path::Path,
    requested: &Receiver<()>,
    sender: &SyncSender<JobsReport>,
) {
    while requested.recv().is_ok() {
        let report = JobsReport { jobs: directory::read(folder), drained: None };
        if sender.send(report).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
