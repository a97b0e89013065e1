//! A fabric whose sweeps are known in advance: with each, the counters of every port increase by the same number,
//! and one link goes down and comes up. So the expected content of a file follows from the number of sweeps.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fabric_history::file::record_kind::RecordKind;
use fabric_history::model::{Port, Step, Window};
use fabric_history::record::store::Store;
use fabric_history::settings::HistorySettings;
use fabric_history::source::SeriesDetail;
use fabric_history::{Reader, Recorder, Source};
use fabric_observation::{Observation, RecorderMetrics};
use ib_health::totals::TotalsSeed;
use ib_mad::moment::Anchor;
use ib_mad::{Counter, Moment};

use crate::frames::frames;
use crate::{SWEEP, events, wall};
use test_rig::Simulated;

/// What traffic grows by with each sweep, and errors.
pub const BUSY: u64 = 1_000_003;
pub const RARE: u64 = 2;

/// What counters began with.
const FIRST: u64 = 77;

/// A node whose ports are checked one by one.
const NODE: &str = "leaf-0-0";

/// A node of the fabric to be swept.
pub struct Steady {
    pattern: Observation,
}

impl Steady {
    pub fn new() -> Self {
        let simulated = Simulated::text("{}");
        simulated.run_to(Duration::from_secs(5));
        Self { pattern: (*simulated.observation()).clone() }
    }

    pub fn fabric(&self) -> &str {
        &self.pattern.fabric
    }

    /// A sweep by its number, the first being 1, as an exporter sees it whose first one was `first`.
    pub fn sweep(&self, number: u64, first: u64) -> Observation {
        let since = SWEEP * u32::try_from(number).unwrap();
        self.sweep_at(number, first, Moment::default() + since, wall(since))
    }

    /// The same, at any time on either clock.
    pub fn sweep_at(&self, number: u64, first: u64, at: Moment, wall: SystemTime) -> Observation {
        let mut seen = self.pattern.clone();
        seen.stats.sweeps = number + 1 - first;
        let snapshot = Arc::make_mut(seen.snapshot.as_mut().unwrap());
        snapshot.anchor = Anchor { moment: at, wall };
        (snapshot.began, snapshot.ended) = (at, at + Duration::from_secs(1));
        for reading in snapshot.readings.iter_mut().flatten() {
            reading.at = at;
            for counter in Counter::all() {
                if reading.get(counter).is_some() {
                    reading.set(counter, total(counter, number));
                }
            }
        }
        seen.assessment.links[0].up = Some(number.is_multiple_of(2));
        seen
    }

    /// The sweep that a file's totals belong to, which must be the same for all: 0 where there are none.
    pub fn number_of(&self, memory: &TotalsSeed) -> u64 {
        let number = memory.values().next().and_then(|port| port.restored(Counter::XmitData));
        let number = number.map_or(0, |traffic| (traffic - FIRST) / BUSY);
        self.compare(memory, number, |of, told, wanted| {
            assert_eq!(told, wanted, "{of:?} after sweep {number}");
        });
        number
    }

    /// Calls a function with each counter, its total, and its expected total after a sweep.
    pub fn compare(
        &self,
        memory: &TotalsSeed,
        number: u64,
        mut with: impl FnMut(Counter, Option<u64>, Option<u64>),
    ) {
        let snapshot = self.pattern.snapshot.as_ref().unwrap();
        for (port, reading) in snapshot.fabric.port_indexes().zip(&snapshot.readings) {
            let remembered = memory.get(&snapshot.fabric.port_key(port));
            for counter in Counter::all() {
                let told = remembered.and_then(|port| port.restored(counter));
                let read = reading.as_ref().filter(|_| number > 0);
                let wanted = read.and_then(|reading| reading.get(counter));
                with(counter, told, wanted.map(|_| total(counter, number)));
            }
        }
    }
}

/// What a counter has come to with a sweep.
pub fn total(counter: Counter, number: u64) -> u64 {
    let grows = match counter {
        Counter::XmitData | Counter::RcvData => BUSY,
        Counter::SymbolErrors => RARE,
        _ => 0,
    };
    FIRST + grows * number
}

/// With room for everything, for ever.
pub fn settings(file: &Path) -> HistorySettings {
    let ever = Duration::from_secs(40 * 365 * 24 * 3600);
    HistorySettings {
        traffic_retention: ever,
        retention: ever,
        least_free: 0,
        ..HistorySettings::new(file.into())
    }
}

/// Records such sweeps.
pub struct SteadyRecorder {
    pub steady: Arc<Steady>,
    pub recorder: Recorder,
    pub metrics: Arc<RecorderMetrics>,
    /// The first sweep that it records, and the next.
    pub first: u64,
    pub next: u64,
}

impl SteadyRecorder {
    /// Continues after the last sweep that is in the file.
    pub fn new(steady: &Arc<Steady>, settings: HistorySettings) -> Self {
        let mut steady_recorder = Self::at(steady, settings, 1);
        steady_recorder.first =
            steady.number_of(&steady_recorder.recorder.totals(steady.fabric())) + 1;
        steady_recorder.next = steady_recorder.first;
        steady_recorder
    }

    /// Continues with a given sweep, whatever is in the file.
    pub fn at(steady: &Arc<Steady>, settings: HistorySettings, first: u64) -> Self {
        let metrics = Arc::new(RecorderMetrics::default());
        let recorder = Recorder::new(settings, Arc::clone(&metrics));
        Self { steady: Arc::clone(steady), recorder, metrics, first, next: first }
    }

    /// Records the next sweep; returns whether that succeeded.
    pub fn record(&mut self) -> bool {
        let seen = self.steady.sweep(self.next, self.first);
        let errors = self.metrics.errors();
        self.recorder.record(&seen, wall(SWEEP * u32::try_from(self.next).unwrap()));
        self.next += 1;
        self.metrics.errors() == errors
    }
}

/// The increases of the counters of a node by sweep: over longer windows traffic is read by hour.
fn steps(reader: &Reader, began: SystemTime, last: u64) -> Vec<(Counter, Step)> {
    let ports: Vec<_> = reader.ports(NODE).unwrap().iter().map(Port::end).collect();
    let end = wall(SWEEP * u32::try_from(last + 1).unwrap());
    let (mut steps, mut from) = (Vec::new(), began);
    while from < end {
        // Between two windows is half a sweep, in which nothing was read.
        let window = Window { from, to: from + SWEEP * 400 - Duration::from_millis(1) };
        for of in reader.series(&ports, SeriesDetail::All, window).unwrap() {
            steps.extend(of.steps.iter().map(|step| (of.counter, *step)));
        }
        from += SWEEP * 400;
    }
    steps
}

/// Checks a file that is not being written; returns its last sweep. Each sweep after `from` must be there once
/// and complete, except those in `left_out`, whose increases must be in the next one.
pub fn check(steady: &Steady, file: &Path, from: u64, left_out: &[u64]) -> u64 {
    let store = Store::open(file).unwrap();
    let last = steady.number_of(&store.totals(steady.fabric()).unwrap());
    drop(store);
    let reader = Reader::open(file).unwrap();
    for tier in [
        RecordKind::ErrorDeltas,
        RecordKind::TrafficDeltas,
        RecordKind::FirstTotals,
        RecordKind::AllTotals,
        RecordKind::ErrorTotals,
    ] {
        assert_eq!(frames(file, tier).unwrap().1, 0, "torn: {tier:?}");
    }
    let linked = steady.sweep(1, 1).snapshot.unwrap();
    let linked =
        linked.fabric.port_indexes().zip(&linked.readings).filter(|(port, reading)| {
            reading.is_some() && linked.fabric.node_of(*port).name == NODE
        });
    let linked = if last == 0 { 0 } else { linked.count() };
    // The first sweep has totals and no increases.
    let wanted: Vec<u64> =
        (from.max(1) + 1..=last).filter(|number| !left_out.contains(number)).collect();
    let began = wall(SWEEP * u32::try_from(from.max(1)).unwrap()) + SWEEP / 2;
    let steps = steps(&reader, began, last);
    for (tier, by, counters) in
        [(RecordKind::TrafficDeltas, BUSY, 2), (RecordKind::ErrorDeltas, RARE, 1)]
    {
        let mut told: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
        for (counter, step) in steps.iter().filter(|(counter, _)| RecordKind::of(*counter) == tier)
        {
            let number =
                step.to.duration_since(wall(Duration::ZERO)).unwrap().as_secs() / SWEEP.as_secs();
            let told = told.entry(number).or_default();
            *told = (told.0 + 1, told.1 + step.by / counter.row().scale);
        }
        let numbers: Vec<u64> = told.keys().copied().collect();
        assert_eq!(numbers, wanted, "{tier:?}: sweeps after {from}");
        let mut before = from.max(1);
        for (number, (times, sum)) in told {
            let of = linked * counters;
            let sum_of = by * of as u64 * (number - before);
            assert_eq!((times, sum), (of, sum_of), "{tier:?} of sweep {number}, after {before}");
            before = number;
        }
    }
    let mut times = BTreeMap::new();
    for event in events(file).iter().filter(|event| event.kind.starts_with("link_")) {
        *times.entry(event.at).or_insert(0) += 1;
    }
    assert!(times.values().all(|times| *times == 1), "an event is recorded twice: {times:?}");
    last
}
