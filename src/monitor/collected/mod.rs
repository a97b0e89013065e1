//! The monitor of a fabric whose data another program collects: UFM Telemetry, or ibdiagnet that refills a directory. It
//! sends no MADs. It polls the source, evaluates what is new there, and publishes that as if it had swept.
//!
//! Times are those of the data: its clock is the clock of the source (`source_clock`). What was read once is no new
//! reading when it is polled again.

mod endpoint;
mod folder;
mod polled;
mod source_clock;
mod wait;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::watch;

use super::judge::{Judge, span};
use super::report::{self, LogLimiter};
use crate::config::{DataFrom, FabricSettings};
use endpoint::Endpoints;
use fabric_dumps::Dump;
use fabric_observation::{
    Collector, DataSource, MonitorStats, Observation, SharedState, stale_after,
};
use folder::Folder;
use ib_fabric::Snapshot;
use ib_health::Assessment;
use ib_health::recorded::{RecordedErrors, RecordedFlaps};
use ib_health::totals::TotalsSeed;
use ib_mad::Moment;
use ib_mad::moment::Anchor;
use ib_umad::Heartbeat;
use polled::{PollError, Polled, USUAL_INTERVAL, stands_still};
use process_clock::Clock;
use source_clock::{Placed, SourceClock};
use wait::Waiting;
use yaml_config::ConfigError;

/// Data that is more often than this has all checks: a sweep each minute has several in the window of 75 s.
const GOOD_INTERVAL: Duration = Duration::from_secs(60);

enum Reader {
    Endpoints(Endpoints),
    Folder(Folder),
}

impl Reader {
    fn poll(&mut self, now: Anchor, waiting: &Waiting<'_>) -> Result<Polled, PollError> {
        match self {
            Reader::Endpoints(endpoints) => endpoints.poll(now, waiting),
            Reader::Folder(folder) => folder.poll(now, waiting),
        }
    }

    /// Why a part of its data is old, a sentence each.
    fn outdated(&self, now: Moment, interval: Duration) -> Vec<String> {
        match self {
            Reader::Endpoints(endpoints) => endpoints.outdated(now, interval),
            Reader::Folder(_) => Vec::new(),
        }
    }
}

/// The monitor of one fabric; see the module.
pub struct CollectedMonitor {
    settings: FabricSettings,
    judge: Judge,
    reader: Reader,
    stop: Arc<AtomicBool>,
    heartbeat: Heartbeat,
    log_limiter: LogLimiter,
    stats: MonitorStats,
    source: DataSource,
    clock: SourceClock,
    /// When data was last new.
    changed: Option<Moment>,
    /// Since when its files are being written.
    unsettled: Option<Moment>,
    /// How long polls take that have new data.
    pub sweep_durations: Histogram,
}

impl CollectedMonitor {
    /// The monitor of a fabric, which publishes to a place of the shared state. Fails when a site file or the login of the
    /// source is invalid.
    pub fn new(
        settings: FabricSettings,
        from: &DataFrom,
        shared: Arc<watch::Sender<SharedState>>,
        fabric_index: usize,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, ConfigError> {
        let _in_fabric = span(&settings.name).entered();
        let mut judge = Judge::new(&settings, shared, fabric_index)?;
        let mut stats = MonitorStats::default();
        judge.refresh_maintenance(&mut stats);
        let reader = match from {
            DataFrom::Endpoints(urls, access) => Reader::Endpoints(
                Endpoints::new(urls, access, settings.interval).map_err(ConfigError::new)?,
            ),
            DataFrom::Directory(path) => Reader::Folder(Folder::new(path.clone())),
        };
        let source = DataSource { name: from.name(), ..DataSource::default() };
        Ok(CollectedMonitor {
            settings,
            judge,
            reader,
            stop,
            heartbeat: Heartbeat::default(),
            log_limiter: LogLimiter::default(),
            stats,
            source,
            clock: SourceClock::default(),
            changed: None,
            unsettled: None,
            sweep_durations: Histogram::new([]),
        })
    }

    /// Its heartbeat: several ticks per second, also while it waits.
    pub fn heartbeat(&self) -> Heartbeat {
        self.heartbeat.clone()
    }

    /// Sets the totals and the errors of an earlier run, from which ports and links continue.
    pub fn restore(&mut self, seed: TotalsSeed, recorded: RecordedErrors, flaps: RecordedFlaps) {
        self.judge.restore(seed, recorded, flaps);
    }

    /// Monitors until stopped.
    pub fn run(mut self, clock: Clock) {
        let _in_fabric = span(&self.settings.name).entered();
        tracing::info!(
            source = self.source.name,
            "no MADs are sent: all data is read from this source"
        );
        let mut due = clock.now();
        while self.poll_now(clock.anchor()).is_ok() {
            let now = clock.now();
            while due <= now {
                due = due + self.settings.interval;
            }
            let waiting = Waiting { stop: &self.stop, heartbeat: &self.heartbeat };
            if waiting.sleep(due.since(now)).is_err() {
                break;
            }
        }
        tracing::debug!("monitor stopped");
    }

    /// Polls once at a time of day. Returns whether new data was published.
    pub fn poll(&mut self, now: Anchor) -> bool {
        let _in_fabric = span(&self.settings.name).entered();
        let before = self.stats.sweeps;
        let _ = self.poll_now(now);
        self.stats.sweeps > before
    }

    fn poll_now(&mut self, now: Anchor) -> Result<(), PollError> {
        self.heartbeat.tick();
        let began = Instant::now();
        let waiting = Waiting { stop: &self.stop, heartbeat: &self.heartbeat };
        let polled = self.reader.poll(now, &waiting);
        if self.stop.load(Ordering::Relaxed) {
            return Err(PollError::Stopped);
        }
        if !matches!(polled, Ok(Polled::Unsettled)) {
            self.unsettled = None;
        }
        match polled {
            Ok(Polled::NotDue) => {}
            Ok(Polled::Unsettled) => self.on_unsettled(now.moment),
            Ok(Polled::Unchanged) => self.on_unchanged(now.moment),
            Ok(Polled::New(dumps)) => {
                let times: Vec<SystemTime> = dumps.iter().map(|dump| dump.taken_at).collect();
                for (dump, placed) in dumps.iter().zip(self.clock.place(&times, now)) {
                    self.add(dump, placed, now.moment);
                    self.heartbeat.tick();
                }
                self.changed = Some(now.moment);
                let took = began.elapsed();
                self.sweep_durations.observe(took.as_secs_f64());
                tracing::debug!(?took, "data evaluated");
            }
            Err(PollError::Problem(problem)) => self.on_problem(problem),
            Err(PollError::Stopped) => return Err(PollError::Stopped),
        }
        Ok(())
    }

    /// The time between two changes of the data, as far as it is known.
    fn interval(&self) -> Duration {
        self.source.interval.unwrap_or(USUAL_INTERVAL).max(self.settings.interval)
    }

    /// The source answers, and has what it had.
    fn on_unchanged(&mut self, now: Moment) {
        let since = self.changed.map(|changed| now.since(changed)).unwrap_or_default();
        if since > stale_after(self.interval(), Duration::ZERO) {
            self.on_problem(stands_still(since));
        } else {
            let outdated = self.reader.outdated(now, self.interval());
            if self.set_problem(outdated.into_iter().next()) {
                self.republish();
            }
        }
    }

    /// Its files are being written. A run of ibdiagnet writes its log for minutes, but ends before the next one begins.
    fn on_unsettled(&mut self, now: Moment) {
        let since = now.since(*self.unsettled.get_or_insert(now));
        if since > self.interval().max(USUAL_INTERVAL) {
            let minutes = since.as_secs() / 60;
            self.on_problem(format!(
                "its files are modified all the time, for {minutes} minutes: they are read when they were not modified \
                 for 5 s; let no program write there but the one that collects the data, once per interval"
            ));
        }
    }

    /// The source does not answer, or with something else. What was published stays, and becomes stale.
    fn on_problem(&mut self, problem: String) {
        if self.set_problem(Some(problem)) {
            self.republish();
        }
    }

    /// Sets what is wrong with the source, and logs it if it is something else than before. Returns whether it is.
    fn set_problem(&mut self, problem: Option<String>) -> bool {
        // Texts with a growing number are one problem.
        let kind = |text: &str| text.chars().filter(|it| !it.is_ascii_digit()).collect::<String>();
        let before = std::mem::replace(&mut self.source.problem, problem);
        let problem = &self.source.problem;
        match (&before, problem) {
            (None, None) => return false,
            (Some(_), None) => tracing::info!("{}: data received again", self.source.name),
            (_, Some(text)) if before.as_deref().map(kind) != Some(kind(text)) => {
                tracing::warn!("{}: {text}", self.source.name);
            }
            _ => {}
        }
        for collector in Collector::ALL {
            self.stats.set_success(collector, problem.is_none());
        }
        before != *problem
    }

    /// Evaluates data as if a sweep had read it.
    fn add(&mut self, dump: &Dump, Placed { anchor, passed }: Placed, now: Moment) {
        self.source.interval = passed.or(self.source.interval);
        let formats = dump.files.iter().map(|(_, format)| format.label());
        let mut formats: Vec<&str> = formats.collect();
        formats.dedup();
        self.source.format = formats.join(", ");
        let old_parts = self.reader.outdated(now, self.interval());
        self.set_problem(old_parts.first().cloned());
        self.judge.refresh_names();
        let latest = self.judge.latest();
        let previous = latest.snapshot.as_ref().map(|snapshot| &*snapshot.fabric);
        let forget_before = anchor.moment.before(self.settings.forget_after);
        let known = previous.map(|fabric| (fabric, forget_before));
        let mut snapshot = dump.snapshot(known, &self.judge.naming, anchor);
        report::log_changes(&mut self.stats, previous, &snapshot.fabric, Duration::ZERO);
        // A port that the source does not read any more keeps its last values there.
        let oldest = anchor.moment.before(stale_after(self.interval(), Duration::ZERO));
        let mut outdated = 0;
        for reading in &mut snapshot.readings {
            if reading.as_ref().is_some_and(|reading| reading.at < oldest) {
                *reading = None;
                outdated += 1;
            }
        }
        self.stats.sweeps += 1;
        self.stats.discoveries += 1;
        self.stats.discovery = Some((anchor, anchor.moment));
        self.stats.failed_ports = outdated;
        let has_links = snapshot.fabric.links().next().is_some();
        self.stats.set_success(Collector::Discovery, has_links && old_parts.is_empty());
        let has_readings = snapshot.readings.iter().flatten().any(|reading| !reading.is_empty());
        self.stats.set_success(Collector::Perfmgt, has_readings && old_parts.is_empty());
        self.tell_limits(dump, has_links, has_readings, now);
        self.source.limits.extend(old_parts);
        self.judge.refresh_maintenance(&mut self.stats);
        let (snapshot, assessment) = self.judge.evaluator.evaluate(snapshot);
        self.publish(Some(Arc::new(snapshot)), assessment);
    }

    /// Says which checks the data does not allow.
    fn tell_limits(&mut self, dump: &Dump, has_links: bool, has_readings: bool, now: Moment) {
        let mut limits = Vec::new();
        if !has_links {
            limits.push(
                "it has no cables, so no link is judged: add the URL of a counter set with link_partner_node_guid and \
                 link_partner_port_num, such as low_freq_debug"
                    .to_owned(),
            );
        }
        if !has_readings {
            limits.push("it has no counters: use a counter set that has them".to_owned());
        }
        if self.source.interval.is_some_and(|interval| interval > GOOD_INTERVAL) {
            // Without the seconds, which are never the same.
            limits.push(
                "it changes less than once a minute: bad cables are found later, outages between two samples are seen \
                 only as counts, and short congestion is not seen; see docs/collected.md"
                    .to_owned(),
            );
        }
        let unused = dump.remarks.iter().filter(|remark| remark.is_unused);
        let unused = unused.map(ToString::to_string);
        let warnings = limits.iter().map(|limit| format!("{}: {limit}", self.source.name));
        let warnings = warnings.chain(unused).collect();
        self.log_limiter.warn(warnings, now, "further remarks on the data not logged");
        self.source.limits = limits;
    }

    /// Publishes what has changed besides the data.
    fn republish(&mut self) {
        let latest = self.judge.latest();
        self.publish(latest.snapshot.clone(), latest.assessment.clone());
    }

    fn publish(&mut self, snapshot: Option<Arc<Snapshot>>, assessment: Assessment) {
        self.judge.publish(Observation {
            fabric: self.settings.name.clone(),
            interval: self.interval(),
            snapshot,
            assessment,
            stats: self.stats.clone(),
            source: Some(Arc::new(self.source.clone())),
            ..Observation::default()
        });
    }
}

/// Reads a source once: what it has in one line, or what is wrong with it. For doctor.
pub fn inspect_source(from: &DataFrom) -> Result<String, String> {
    let (stop, heartbeat) = (AtomicBool::new(false), Heartbeat::default());
    let mut reader = match from {
        DataFrom::Endpoints(urls, access) => {
            Reader::Endpoints(Endpoints::new(urls, access, Duration::from_secs(1))?)
        }
        DataFrom::Directory(path) => Reader::Folder(Folder::new(path.clone())),
    };
    let waiting = Waiting { stop: &stop, heartbeat: &heartbeat };
    match reader.poll(Clock::start().anchor(), &waiting) {
        Ok(Polled::New(dumps)) => Ok(dumps.last().map(summary).unwrap_or_default()),
        Ok(_) => Err("its files are being written: try again in a minute".into()),
        Err(PollError::Problem(problem)) => Err(problem),
        Err(PollError::Stopped) => Err("stopped".into()),
    }
}

fn summary(dump: &Dump) -> String {
    use display_text::plural;
    let (nodes, links) = (plural(dump.nodes.len(), "node"), plural(dump.links.len(), "link"));
    format!("{nodes}, {links}, counters of {}", plural(dump.counted(), "port"))
}

#[cfg(test)]
mod tests;
