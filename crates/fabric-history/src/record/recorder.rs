//! The thread that records: it takes what the monitors published last, and nobody waits for it.
//!
//! Between monitors and recorder is the board itself, on which each fabric's latest observation takes
//! the place of the one before: a queue of one. So a recorder that is behind costs no memory, and
//! holds nobody up; how many sweeps it missed the monitor's own count of them tells, and what they
//! counted is in the next one. (An observation of 60,000 ports is 20 MB.)

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::HistoryError;
use crate::event::{About, Event, Kind};
use crate::file::whole;
use crate::file::whole::Header;
use crate::settings::{HOST_FABRIC, HistorySettings};
use fabric_observation::host::HostObservation;
use fabric_observation::{Observation, RecorderStats, SharedState};
use ib_fabric::Snapshot;
use ib_health::Assessment;
use ib_health::totals::TotalsSeed;

use super::clock::Clock;
use super::host::HostDevices;
use super::store::Store;
use super::story::Story;

/// How many events wait for a file that cannot be written, at most.
const MOST_WAITING: usize = 10_000;

/// How long a problem that was logged is not logged again, though it lasts or comes back.
const TOLD_FOR: Duration = Duration::from_secs(600);

/// How many kinds of problems are remembered, at most.
const MOST_PROBLEMS: usize = 64;

/// How long it is from one check of the whole file to the next: of 10 GB on a slow disk one takes 5 minutes.
const CHECK_EVERY: Duration = Duration::from_secs(3600);

/// How long it is from one count of the files that are set aside to the next. An operator may move some.
const COUNT_EVERY: Duration = Duration::from_secs(60);

/// What is known of a fabric that is recorded.
#[derive(Debug, Default)]
struct Watched {
    story: Story,
    clock: Clock,
    /// Sweeps that the monitor had done when it was recorded last.
    sweeps: u64,
    /// When the sweep that was recorded last ended.
    last: Option<SystemTime>,
    /// What happened and is not written yet.
    events: Vec<Event>,
}

impl Watched {
    /// One whose first event says that nobody knows what was before.
    fn begin(fabric: &str, story: Story, now: SystemTime) -> Self {
        let text = format!("fabric-exporter {}", env!("CARGO_PKG_VERSION"));
        let start = own(Kind::ExporterStart, fabric, text, now);
        Watched { story, events: vec![start], ..Watched::default() }
    }
}

/// Records what it is given.
#[derive(Debug)]
pub struct Recorder {
    settings: HistorySettings,
    account: Arc<RecorderStats>,
    store: Option<Store>,
    /// Closed after the store.
    header: Header,
    fabrics: HashMap<String, Watched>,
    host: HostDevices,
    /// The problems that were logged, and when.
    problems: HashMap<String, Instant>,
    /// Whether a problem was logged last.
    is_troubled: bool,
    /// When SQLite was last asked to check the file.
    checked: Option<Instant>,
    /// When it was last counted how many files are set aside.
    counted: Option<Instant>,
    /// Closed when recording is to end.
    board: Option<watch::Receiver<SharedState>>,
}

impl Recorder {
    /// One that writes from now on. A file that cannot be opened now is tried again with each sweep.
    pub fn new(settings: HistorySettings, account: Arc<RecorderStats>) -> Self {
        account.set_floor(settings.least_free);
        let mut recorder = Recorder {
            settings,
            account,
            store: None,
            header: Header::default(),
            fabrics: HashMap::new(),
            host: HostDevices::default(),
            problems: HashMap::new(),
            is_troubled: false,
            checked: None,
            counted: None,
            board: None,
        };
        match Store::open_again(&recorder.settings.file, &mut recorder.header) {
            Ok(store) => {
                recorder.account.set_bytes(store.bytes());
                recorder.store = Some(store);
            }
            Err(error) => recorder.failed(&error),
        }
        recorder.count_set_aside();
        recorder
    }

    /// Whether it has its file.
    pub fn is_open(&self) -> bool {
        self.store.is_some()
    }

    /// The totals of a fabric's ports, as they were recorded last.
    pub fn memory(&mut self, fabric: &str) -> TotalsSeed {
        match self.store.as_ref().map(|store| store.memory(fabric)) {
            None => TotalsSeed::new(),
            Some(Ok(memory)) => memory,
            Some(Err(error)) => {
                self.failed(&error);
                TotalsSeed::new()
            }
        }
    }

    /// Takes what is published, until nobody publishes any more.
    pub fn run(mut self, mut seen: watch::Receiver<SharedState>, runtime: &Runtime) {
        self.board = Some(seen.clone());
        let mut last: Vec<Arc<Observation>> = Vec::new();
        let mut looks = 0;
        loop {
            let (fabrics, host) = {
                let board = seen.borrow_and_update();
                (board.fabrics.clone(), board.host.clone())
            };
            for (slot, observation) in fabrics.iter().enumerate() {
                if last.get(slot).is_none_or(|last| !Arc::ptr_eq(last, observation)) {
                    self.take(observation, SystemTime::now());
                }
            }
            if let Some(host) = host.filter(|host| host.reads != looks) {
                looks = host.reads;
                self.take_host(&host, &fabrics, SystemTime::now());
            }
            last = fabrics;
            if runtime.block_on(seen.changed()).is_err() {
                break;
            }
        }
        self.end(SystemTime::now());
    }

    /// Records a look at the host's own devices, but for those that the fabrics tell of; `now` is what
    /// the wall says.
    pub fn take_host(
        &mut self,
        seen: &HostObservation,
        fabrics: &[Arc<Observation>],
        now: SystemTime,
    ) {
        let Some((observation, told)) = self.host.follow(seen, fabrics) else { return };
        self.fabrics
            .entry(HOST_FABRIC.to_owned())
            .or_insert_with(|| Watched::begin(HOST_FABRIC, Story::of_host(), now))
            .events
            .extend(told);
        self.take(&observation, now);
    }

    /// Records an observation; `now` is what the wall says.
    pub fn take(&mut self, seen: &Observation, now: SystemTime) {
        let mut watched = self
            .fabrics
            .remove(&seen.fabric)
            .unwrap_or_else(|| Watched::begin(&seen.fabric, Story::default(), now));
        watched.events.extend(watched.story.follow(seen, now));
        // A device that is gone leaves a board without a sweep of its own.
        let sweeps = seen.stats.sweeps;
        let sweep = seen.snapshot.as_ref().filter(|_| sweeps > watched.sweeps);
        if let Some(sweep) = sweep {
            let missed = sweeps - watched.sweeps - 1;
            if missed > 0 && watched.sweeps > 0 {
                self.account.add_missed(missed);
                tracing::warn!(
                    fabric = seen.fabric,
                    missed,
                    "sweeps are not in the history: it was behind"
                );
            }
            watched.sweeps = sweeps;
            watched.events.extend(watched.clock.follow(&seen.fabric, sweep));
            watched.last = Some(sweep.anchor.wall_of(sweep.ended));
        }
        if sweep.is_some() || !watched.events.is_empty() {
            let began = Instant::now();
            let sweep = sweep.map(|sweep| (&**sweep, &seen.assessment));
            let time = watched.clock.believed();
            match self.write(&seen.fabric, &watched.events, sweep, time) {
                Ok(()) => {
                    watched.events.clear();
                    self.account.set_took(began.elapsed());
                }
                Err(error) => {
                    self.failed(&error);
                    self.check_for(&error);
                    // What happened waits for the next sweep, and what was counted is in that.
                    self.account.add_missed(sweep.is_some().into());
                    let too_many = watched.events.len().saturating_sub(MOST_WAITING);
                    watched.events.drain(..too_many);
                }
            }
        }
        self.fabrics.insert(seen.fabric.clone(), watched);
        self.count_set_aside();
    }

    fn write(
        &mut self,
        fabric: &str,
        events: &[Event],
        sweep: Option<(&Snapshot, &Assessment)>,
        time: Option<SystemTime>,
    ) -> Result<(), HistoryError> {
        if self.store.is_none() {
            // Opening it may set it aside.
            self.counted = None;
        }
        let store = opened(&mut self.store, &mut self.header, &self.settings.file)?;
        store.ensure_room(self.settings.least_free, &self.account)?;
        let written = store.write(fabric, events, sweep)?;
        self.account.add_frames(written.frames);
        self.account.add_events(written.events);
        let pruned = store.prune(&self.settings, time);
        self.account.set_bytes(store.bytes());
        // What was written stays written.
        match pruned {
            Ok(()) => self.well(),
            Err(error) => {
                self.failed(&error);
                self.check_for(&error);
            }
        }
        Ok(())
    }

    /// Writes that it ends, and what waits to be written; each fabric to a file that is as it is known.
    pub fn end(&mut self, now: SystemTime) {
        for (fabric, mut watched) in std::mem::take(&mut self.fabrics) {
            let at = watched.last.map_or(now, |last| last.max(now));
            watched.events.push(own(Kind::ExporterStop, &fabric, "it was told to end".into(), at));
            let written = opened(&mut self.store, &mut self.header, &self.settings.file)
                .and_then(|store| store.write(&fabric, &watched.events, None));
            match written {
                Ok(written) => self.account.add_events(written.events),
                Err(error) => self.failed(&error),
            }
        }
    }

    /// Counts and logs an error.
    fn report(&mut self, error: &HistoryError) {
        self.account.add_error(error.trouble());
        let told = error.to_string();
        // Numbers in it change, and say nothing new.
        let kind: String = told.chars().filter(|char| !char.is_ascii_digit()).collect();
        if self.problems.get(&kind).is_none_or(|told| told.elapsed() >= TOLD_FOR) {
            if self.problems.len() >= MOST_PROBLEMS {
                self.problems.clear();
            }
            self.problems.insert(kind, Instant::now());
            self.is_troubled = true;
            tracing::error!(%error, "the history is not written: tried again with each sweep");
        }
    }

    fn failed(&mut self, error: &HistoryError) {
        self.report(error);
        // A full disk leaves the file as it is; what else there is in memory may not be what is in it.
        if matches!(error, HistoryError::Full { .. }) {
            return;
        }
        if let Some(store) = self.store.take() {
            store.close_as_it_is();
        }
        self.counted = None;
        // The file itself, not a copy of it or what lies beside it.
        if matches!(error, HistoryError::Damaged { .. } | HistoryError::Database { .. })
            && error.is_damage()
            && let Err(error) = Store::set_aside(&self.settings.file, error)
        {
            self.failed(&error);
        }
    }

    /// Lets SQLite check the file after an error that damage may have caused, once in a while: what it
    /// finds no fault with stays as it is.
    fn check_for(&mut self, error: &HistoryError) {
        let is_checked = self.checked.is_some_and(|checked| checked.elapsed() < CHECK_EVERY);
        if !error.is_suspicious() || error.is_damage() || is_checked {
            return;
        }
        self.checked = Some(Instant::now());
        let file = self.settings.file.display();
        tracing::info!(%file, "SQLite checks the history");
        // Events that wait are written when recording ends, and the end does not wait for minutes.
        let is_over = || self.board.as_ref().is_some_and(|board| board.has_changed().is_err());
        match Store::check(&self.settings.file, &is_over) {
            Ok(Some(error)) => self.report(&error),
            _ if is_over() => tracing::info!(%file, "recording ends: the history is not checked"),
            Ok(None) => tracing::info!(%file, "SQLite finds no fault with the history"),
            Err(error) => self.failed(&error),
        }
        self.counted = None;
    }

    /// Counts the damaged files that lie beside the file, unless that was done lately.
    fn count_set_aside(&mut self) {
        if self.counted.is_some_and(|counted| counted.elapsed() < COUNT_EVERY) {
            return;
        }
        self.counted = Some(Instant::now());
        if let Ok(count) = whole::aside(&self.settings.file) {
            self.account.count_set_aside(count as u64);
        }
    }

    fn well(&mut self) {
        if std::mem::take(&mut self.is_troubled) {
            tracing::info!(file = %self.settings.file.display(), "the history is written again");
        }
    }
}

/// The file as it is known; opened anew after an error.
fn opened<'a>(
    known: &'a mut Option<Store>,
    header: &mut Header,
    file: &Path,
) -> Result<&'a mut Store, HistoryError> {
    match known {
        Some(store) => Ok(store),
        none => Ok(none.insert(Store::open_again(file, header)?)),
    }
}

fn own(kind: Kind, fabric: &str, text: String, at: SystemTime) -> Event {
    let detail = match kind {
        Kind::ExporterStart => json!({"version": env!("CARGO_PKG_VERSION")}),
        _ => Value::Null,
    };
    Event { at, kind, about: About::All, place: fabric.into(), text, detail }
}
