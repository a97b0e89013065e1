//! The thread that records: it takes what the monitors published last, and nobody waits for it.
//!
//! Between monitors and recorder is the board itself, on which each fabric's latest observation takes
//! the place of the one before: a queue of one. So a recorder that is behind costs no memory, and
//! holds nobody up; how many sweeps it missed the monitor's own count of them tells, and what they
//! counted is in the next one. (An observation of 60,000 ports is 20 MB.)

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::config::{HOST_FABRIC, HistorySettings};
use crate::fabric::Snapshot;
use crate::health::Findings;
use crate::health::totals::Memory;
use crate::history::HistoryError;
use crate::history::event::{About, Event, Kind};
use crate::history::file::set_aside;
use crate::monitor::host::HostObservation;
use crate::monitor::{Board, Observation, Recording};

use super::clock::Clock;
use super::host::HostDevices;
use super::store::Store;
use super::story::Story;

/// How many events wait for a file that cannot be written, at most.
const MOST_WAITING: usize = 10_000;

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
    account: Arc<Recording>,
    store: Option<Store>,
    fabrics: HashMap<String, Watched>,
    host: HostDevices,
    /// The problems that were told since it was last well: each is told once, however long it lasts.
    problems: HashSet<String>,
}

impl Recorder {
    /// One that writes from now on. A file that cannot be opened now is tried again with each sweep.
    pub fn new(settings: HistorySettings, account: Arc<Recording>) -> Self {
        account.set_floor(settings.least_free);
        let (store, fabrics, problems) = (None, HashMap::new(), HashSet::new());
        let host = HostDevices::default();
        let mut recorder = Recorder { settings, account, store, fabrics, host, problems };
        match Store::open(&recorder.settings.file) {
            Ok(store) => {
                recorder.account.set_bytes(store.bytes());
                recorder.store = Some(store);
            }
            Err(error) => recorder.failed(&error),
        }
        recorder
    }

    /// Whether it has its file.
    pub fn is_open(&self) -> bool {
        self.store.is_some()
    }

    /// The totals of a fabric's ports, as they were recorded last.
    pub fn memory(&mut self, fabric: &str) -> Memory {
        match self.store.as_ref().map(|store| store.memory(fabric)) {
            None => Memory::new(),
            Some(Ok(memory)) => memory,
            Some(Err(error)) => {
                self.failed(&error);
                Memory::new()
            }
        }
    }

    /// Takes what is published, until nobody publishes any more.
    pub fn run(mut self, mut seen: watch::Receiver<Board>, runtime: &Runtime) {
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
            if let Some(host) = host.filter(|host| host.looks != looks) {
                looks = host.looks;
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
        let sweeps = seen.tally.sweeps;
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
            let sweep = sweep.map(|sweep| (sweep, &seen.findings));
            let time = watched.clock.believed();
            match self.write(&seen.fabric, &watched.events, sweep, time) {
                Ok(()) => {
                    watched.events.clear();
                    self.account.set_took(began.elapsed());
                }
                Err(error) => {
                    self.failed(&error);
                    // What happened waits for the next sweep, and what was counted is in that.
                    self.account.add_missed(sweep.is_some().into());
                    let too_many = watched.events.len().saturating_sub(MOST_WAITING);
                    watched.events.drain(..too_many);
                }
            }
        }
        self.fabrics.insert(seen.fabric.clone(), watched);
    }

    fn write(
        &mut self,
        fabric: &str,
        events: &[Event],
        sweep: Option<(&Snapshot, &Findings)>,
        time: Option<SystemTime>,
    ) -> Result<(), HistoryError> {
        let store = match &mut self.store {
            Some(store) => store,
            none => none.insert(Store::open(&self.settings.file)?),
        };
        store.ensure_room(self.settings.least_free, &self.account)?;
        let written = store.write(fabric, events, sweep)?;
        self.account.add_frames(written.frames);
        self.account.add_events(written.events);
        let pruned = store.prune(&self.settings, time);
        self.account.set_bytes(store.bytes());
        // What was written stays written.
        match pruned {
            Ok(()) => self.well(),
            Err(error) => self.failed(&error),
        }
        Ok(())
    }

    /// Writes that it ends.
    pub fn end(&mut self, now: SystemTime) {
        let Some(store) = &mut self.store else { return };
        let mut problem = None;
        for (fabric, watched) in &mut self.fabrics {
            let at = watched.last.map_or(now, |last| last.max(now));
            watched.events.push(own(Kind::ExporterStop, fabric, "it was told to end".into(), at));
            match store.write(fabric, &watched.events, None) {
                Ok(written) => self.account.add_events(written.events),
                Err(error) => problem = Some(error),
            }
        }
        if let Some(error) = problem {
            self.failed(&error);
        }
    }

    fn failed(&mut self, error: &HistoryError) {
        self.account.add_errors(1);

        let told = error.to_string();
        // Numbers in it change, and say nothing new.
        let kind: String = told.chars().filter(|char| !char.is_ascii_digit()).collect();
        if self.problems.insert(kind) {
            tracing::error!(%error, "the history is not written: tried again with each sweep");
        }
        // A full disk leaves the file as it is; what else there is in memory may not be what is in it.
        if matches!(error, HistoryError::Full { .. }) {
            return;
        }
        self.store = None;
        if error.is_damage()
            && let Err(error) = set_aside(&self.settings.file, error)
        {
            tracing::error!(%error, "the damaged history stays where it is");
        }
    }

    fn well(&mut self) {
        if !self.problems.is_empty() {
            self.problems.clear();
            tracing::info!(file = %self.settings.file.display(), "the history is written again");
        }
    }
}

fn own(kind: Kind, fabric: &str, text: String, at: SystemTime) -> Event {
    let detail = match kind {
        Kind::ExporterStart => json!({"version": env!("CARGO_PKG_VERSION")}),
        _ => Value::Null,
    };
    Event { at, kind, about: About::All, place: fabric.into(), text, detail }
}
