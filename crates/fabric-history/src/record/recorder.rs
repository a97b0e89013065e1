//! The recorder thread: takes the observation that each monitor published last. No monitor waits for it. What missed
//! sweeps counted is contained in the next sweep's totals.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::HistoryError;
use crate::error::Displaced;
use crate::event::{EventKind, NewEvent};
use crate::file::damaged::{count_aside, length};
use crate::file::header::Header;
use crate::model::Window;
use crate::record::detected::{DetectedFabric, Update};
use crate::record::events::EventDetector;
use crate::record::host::HostFabric;
use crate::record::listener::EventListener;
use crate::record::module_places::PlaceChange;
use crate::record::published::{Observer, observe_each};
use crate::record::store::Store;
use crate::settings::{HOST_FABRIC, HistorySettings};
use fabric_observation::host::HostObservation;
use fabric_observation::{Observation, RecorderMetrics, SharedState};
use ib_fabric::Snapshot;
use ib_health::Assessment;
use ib_health::recorded::{RecordedErrors, RecordedFlaps};
use ib_health::totals::TotalsSeed;

/// How many events are kept at most while the file cannot be written.
const MAX_PENDING_EVENTS: usize = 10_000;

/// A problem that was logged is not logged again for this long, although it lasts or recurs.
const REPEAT_LOG_AFTER: Duration = Duration::from_secs(600);

/// How many distinct problems are remembered for that.
const MAX_LOGGED_PROBLEMS: usize = 64;

/// Least time between two integrity checks of the file: of 10 GB on a slow disk one takes 5 minutes.
const CHECK_INTERVAL: Duration = Duration::from_secs(3600);

/// Time between two counts of the files that were set aside: an operator may move them.
const COUNT_INTERVAL: Duration = Duration::from_secs(60);

/// A fabric that is recorded.
#[derive(Debug, Default)]
struct RecordedFabric {
    detected: DetectedFabric,
    /// Events that are not written yet.
    events: Vec<NewEvent>,
}

impl RecordedFabric {
    /// One that begins now.
    fn begin(
        name: &str,
        detector: EventDetector,
        now: SystemTime,
        listener: &mut EventListener,
    ) -> Self {
        let (detected, start) = DetectedFabric::begin(name, detector, now);
        let mut fabric = RecordedFabric { detected, events: Vec::new() };
        fabric.add(name, [start], listener);
        fabric
    }

    /// Adds events, of which the listener hears at once: it does not depend on the file.
    fn add(
        &mut self,
        name: &str,
        events: impl IntoIterator<Item = NewEvent>,
        listener: &mut EventListener,
    ) {
        let told = self.events.len();
        self.events.extend(events);
        self.events[told..].iter().for_each(|event| listener.tell(name, event));
    }
}

/// Writes observations to the history file.
#[derive(Debug)]
pub struct Recorder {
    settings: HistorySettings,
    metrics: Arc<RecorderMetrics>,
    store: Option<Store>,
    /// Closed after the store.
    header: Header,
    fabrics: HashMap<String, RecordedFabric>,
    host: HostFabric,
    /// The problems that were logged, without their digits, and when.
    logged: HashMap<String, Instant>,
    /// Whether a problem was logged since the last successful write.
    is_failing: bool,
    /// When SQLite last checked the file.
    checked: Option<Instant>,
    /// When the files that are set aside were last counted.
    counted: Option<Instant>,
    /// Its sender is dropped when recording is to end.
    states: Option<watch::Receiver<SharedState>>,
    listener: EventListener,
}

impl Recorder {
    /// Opens or creates the file. If that fails, it is tried again with each sweep.
    pub fn new(settings: HistorySettings, metrics: Arc<RecorderMetrics>) -> Self {
        metrics.update(|it| it.floor = settings.least_free);
        let mut recorder = Recorder {
            settings,
            metrics,
            store: None,
            header: Header::default(),
            fabrics: HashMap::new(),
            host: HostFabric::default(),
            logged: HashMap::new(),
            is_failing: false,
            checked: None,
            counted: None,
            states: None,
            listener: EventListener::default(),
        };
        let store = open_store(&mut recorder.store, &mut recorder.header, &recorder.settings.file);
        match store.map(|store| store.bytes()) {
            Ok(bytes) => recorder.metrics.update(|it| it.bytes = bytes),
            Err(error) => recorder.handle_error(&error),
        }
        recorder.count_set_aside();
        recorder
    }

    /// Who hears of events from now on when they are detected, also while they cannot be written.
    pub fn set_listener(&mut self, listener: EventListener) {
        self.listener = listener;
    }

    /// Whether the file is open.
    pub fn is_open(&self) -> bool {
        self.store.is_some()
    }

    /// The recorded totals of a fabric's ports.
    pub fn totals(&mut self, fabric: &str) -> TotalsSeed {
        self.read(|store| store.totals(fabric))
    }

    /// What the file has; the default while it is not open, or if it cannot be read.
    fn read<T: Default>(&mut self, read: impl FnOnce(&Store) -> Result<T, HistoryError>) -> T {
        let found = self.store.as_ref().map(read).transpose();
        found.inspect_err(|error| self.handle_error(error)).ok().flatten().unwrap_or_default()
    }

    /// The recorded errors of a fabric's links before `now`. If they cannot be read, links are observed again; the next
    /// write handles the error.
    pub fn link_errors(&self, fabric: &str, now: SystemTime) -> RecordedErrors {
        let Some(store) = &self.store else { return RecordedErrors::default() };
        store.link_errors(fabric, now).unwrap_or_else(|error| {
            tracing::warn!(fabric, %error, "cannot read recorded bit errors: links are learning again");
            RecordedErrors::default()
        })
    }

    /// When links of a fabric flapped in so long a time before `now`. If that cannot be read, their days with flaps are
    /// counted anew; the next write handles the error.
    pub fn flaps(&self, fabric: &str, now: SystemTime, within: Duration) -> RecordedFlaps {
        let Some(store) = &self.store else { return RecordedFlaps::default() };
        let from = now.checked_sub(within).unwrap_or(SystemTime::UNIX_EPOCH);
        store.flaps(fabric, Window { from, to: now }).unwrap_or_else(|error| {
            tracing::warn!(fabric, %error, "cannot read recorded flaps: days with flaps are counted anew");
            RecordedFlaps::default()
        })
    }

    /// Records what is published until the sender of the published state is dropped.
    pub fn run(mut self, receiver: watch::Receiver<SharedState>, runtime: &Runtime) {
        self.states = Some(receiver.clone());
        observe_each(&mut self, receiver, runtime);
        self.finish(SystemTime::now());
    }

    /// Records the host's devices, except those that a fabric contains. `now` is the time of day.
    pub fn record_host(
        &mut self,
        host: &HostObservation,
        fabrics: &[Arc<Observation>],
        now: SystemTime,
    ) {
        let Some((observation, events)) = self.host.update(host, fabrics) else { return };
        let listener = &mut self.listener;
        let known = self.fabrics.remove(HOST_FABRIC);
        let mut fabric = known.unwrap_or_else(|| {
            RecordedFabric::begin(HOST_FABRIC, EventDetector::of_host(), now, listener)
        });
        fabric.add(HOST_FABRIC, events, listener);
        self.fabrics.insert(HOST_FABRIC.to_owned(), fabric);
        self.record(&observation, now);
    }

    /// Records an observation that another tool made at `at`, when this exporter may not have run.
    pub fn import(&mut self, observation: &Observation, at: SystemTime) {
        self.fabrics.entry(observation.fabric.clone()).or_default();
        self.record(observation, at);
    }

    /// Starts a new file if another program deleted, renamed, replaced or truncated the one that is open, with an event
    /// in each fabric.
    fn ensure_in_place(&mut self, now: SystemTime) {
        let Some(displaced) = self.store.as_ref().and_then(Store::displaced) else { return };
        let Some(store) = self.store.take() else { return };
        // Opening the file may set it aside.
        self.counted = None;
        if displaced == Displaced::Truncated {
            store.close_without_checkpoint();
            if !self.is_cut_off() {
                return;
            }
        } else if let Err(error) = store.leave(displaced) {
            self.report(&error);
        }
        let error = HistoryError::Displaced(self.settings.file.clone(), displaced);
        self.metrics.update(|it| it.errors[error.metric_kind() as usize] += 1);
        tracing::error!(%error, "history file displaced");
        let file = self.settings.file.display();
        let text = format!("the history file {file} {displaced} by another program");
        for (name, fabric) in &mut self.fabrics {
            let kind = EventKind::HistoryDisplaced;
            let event = NewEvent::of_fabric(kind, name, &*text, now);
            fabric.add(name, [event], &mut self.listener);
        }
    }

    /// Whether a file that became shorter, and is closed, has lost pages. One that has any left is set aside.
    fn is_cut_off(&mut self) -> bool {
        // Nothing is left to examine; a log is set aside when the file is opened.
        if length(&self.settings.file, "").is_ok_and(|length| length == 0) {
            return true;
        }
        let is_over = self.is_over();
        match Store::check(&self.settings.file, &mut self.header, is_over) {
            Ok(fault) => fault.is_some(),
            Err(error) => {
                self.handle_error(&error);
                false
            }
        }
    }

    /// Records an observation. `now` is the time of day.
    pub fn record(&mut self, observation: &Observation, now: SystemTime) {
        self.ensure_in_place(now);
        let name = &observation.fabric;
        let known = self.fabrics.remove(name);
        let mut fabric = known.unwrap_or_else(|| {
            let mut detector = EventDetector::default();
            // Where cables were seen in earlier runs.
            detector.reports.places.restore(self.read(|store| store.module_places(name)));
            RecordedFabric::begin(name, detector, now, &mut self.listener)
        });
        let Update { events, sweep, missed } = fabric.detected.update(observation, now);
        fabric.add(name, events, &mut self.listener);
        if missed > 0 {
            self.metrics.update(|it| it.missed += missed);
            let fabric = name;
            tracing::warn!(fabric, missed, "history recorder missed sweeps: it fell behind");
        }
        if sweep.is_some() || !fabric.events.is_empty() {
            let began = Instant::now();
            let sweep = sweep.map(|sweep| (sweep, &observation.assessment));
            let trusted_time = fabric.detected.trusted_time();
            let modules = &mut fabric.detected.detector.reports.places.changes;
            let written = self.write(name, &fabric.events, modules, sweep, trusted_time);
            match written {
                Ok(()) => {
                    fabric.events.clear();
                    modules.clear();
                    self.metrics.update(|it| it.write_duration = began.elapsed());
                }
                Err(error) => {
                    self.handle_error(&error);
                    self.check_file_after(&error);
                    // The events are written with the next sweep, whose totals contain this one's.
                    self.metrics.update(|it| it.missed += u64::from(sweep.is_some()));
                    let excess = fabric.events.len().saturating_sub(MAX_PENDING_EVENTS);
                    fabric.events.drain(..excess);
                }
            }
        }
        self.fabrics.insert(name.clone(), fabric);
        self.count_set_aside();
    }

    fn write(
        &mut self,
        fabric: &str,
        events: &[NewEvent],
        modules: &[PlaceChange],
        sweep: Option<(&Snapshot, &Assessment)>,
        trusted_time: Option<SystemTime>,
    ) -> Result<(), HistoryError> {
        if self.store.is_none() {
            // Opening the file may set it aside.
            self.counted = None;
        }
        let store = open_store(&mut self.store, &mut self.header, &self.settings.file)?;
        store.ensure_free_space(self.settings.least_free, &self.metrics)?;
        let frames = store.write(fabric, events, modules, sweep)?;
        self.metrics.update(|it| {
            it.frames += frames;
            it.events += events.len() as u64;
        });
        let pruned = store.prune(&self.settings, trusted_time);
        store.note_length();
        let bytes = store.bytes();
        self.metrics.update(|it| it.bytes = bytes);
        match pruned {
            Ok(()) if std::mem::take(&mut self.is_failing) => {
                tracing::info!(file = %self.settings.file.display(), "history recording resumed");
            }
            Ok(()) => {}
            // The sweep itself is committed.
            Err(error) => {
                self.handle_error(&error);
                self.check_file_after(&error);
            }
        }
        Ok(())
    }

    /// Writes pending events, and one event per fabric that the exporter stopped.
    pub fn finish(&mut self, now: SystemTime) {
        self.ensure_in_place(now);
        for (name, mut fabric) in std::mem::take(&mut self.fabrics) {
            let stop = fabric.detected.end(&name, now);
            fabric.add(&name, [stop], &mut self.listener);
            // After an error the file is reopened for the next fabric.
            let written = open_store(&mut self.store, &mut self.header, &self.settings.file)
                .and_then(|store| store.write(&name, &fabric.events, &[], None));
            match written {
                Ok(_) => self.metrics.update(|it| it.events += fabric.events.len() as u64),
                Err(error) => self.handle_error(&error),
            }
        }
    }

    /// Counts an error and logs it, unless the same one was logged recently.
    fn report(&mut self, error: &HistoryError) {
        self.metrics.update(|it| it.errors[error.metric_kind() as usize] += 1);
        // Only numbers differ between two occurrences of one problem.
        let kind: String =
            error.to_string().chars().filter(|char| !char.is_ascii_digit()).collect();
        if self.logged.get(&kind).is_none_or(|logged| logged.elapsed() >= REPEAT_LOG_AFTER) {
            if self.logged.len() >= MAX_LOGGED_PROBLEMS {
                self.logged.clear();
            }
            self.logged.insert(kind, Instant::now());
            self.is_failing = true;
            tracing::error!(%error, "history recording failed: retrying at the next sweep or host read");
        }
    }

    fn handle_error(&mut self, error: &HistoryError) {
        self.report(error);
        // A full disk does not change the file. After any other error the state in memory may differ from
        // the file, so the file is reopened.
        if matches!(error, HistoryError::Full(..)) {
            return;
        }
        if let Some(store) = self.store.take() {
            store.close_without_checkpoint();
        }
        self.counted = None;
        // Only if the error is about the file itself, not about a copy or a file beside it.
        if matches!(error, HistoryError::Damaged(..) | HistoryError::Database(..))
            && error.is_damage()
            && let Err(error) = Store::set_aside(&self.settings.file, &mut self.header, error)
        {
            self.handle_error(&error);
        }
    }

    /// Lets SQLite check the file after an error that damage may have caused, at most once in
    /// [`CHECK_INTERVAL`]. A file without a fault stays in use.
    fn check_file_after(&mut self, error: &HistoryError) {
        let is_recent = self.checked.is_some_and(|checked| checked.elapsed() < CHECK_INTERVAL);
        if !error.is_suspicious() || error.is_damage() || is_recent {
            return;
        }
        self.checked = Some(Instant::now());
        let file = self.settings.file.display();
        tracing::info!(%file, "history check started");
        let is_over = self.is_over();
        match Store::check(&self.settings.file, &mut self.header, is_over.clone()) {
            Ok(Some(error)) => self.report(&error),
            _ if is_over() => tracing::info!(%file, "history check canceled: recording ends"),
            Ok(None) => tracing::info!(%file, "history check found no damage"),
            Err(error) => self.handle_error(&error),
        }
        self.counted = None;
    }

    /// Says whether recording is to end. Shutdown must not wait for a check that takes minutes: pending events are still
    /// to be written.
    fn is_over(&self) -> impl Fn() -> bool + Clone + Send + 'static {
        let states = self.states.clone();
        move || states.as_ref().is_some_and(|states| states.has_changed().is_err())
    }

    /// Counts the damaged files beside the history file, at most once in [`COUNT_INTERVAL`].
    fn count_set_aside(&mut self) {
        if self.counted.is_some_and(|counted| counted.elapsed() < COUNT_INTERVAL) {
            return;
        }
        self.counted = Some(Instant::now());
        if let Ok(count) = count_aside(&self.settings.file) {
            self.metrics.update(|it| it.set_aside = Some(count as u64));
        }
    }
}

impl Observer for Recorder {
    fn observe(&mut self, observation: &Observation, now: SystemTime) {
        self.record(observation, now);
    }

    fn observe_host(
        &mut self,
        host: &HostObservation,
        fabrics: &[Arc<Observation>],
        now: SystemTime,
    ) {
        self.record_host(host, fabrics, now);
    }
}

/// The open store; reopened after an error.
fn open_store<'a>(
    store: &'a mut Option<Store>,
    header: &mut Header,
    file: &Path,
) -> Result<&'a mut Store, HistoryError> {
    match store {
        Some(store) => Ok(store),
        none => Ok(none.insert(Store::reopen(file, header)?)),
    }
}
