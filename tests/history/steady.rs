//! A fabric of which everybody knows what each sweep says: every port's counters grow by the same with
//! each, and one link goes down and comes up. So whoever finds a file knows what has to be in it, and
//! nothing needs to be told apart from how many sweeps there were.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fabric_history::file::tier::Tier;
use fabric_history::model::{Port, Step, Window};
use fabric_history::record::store::Store;
use fabric_history::settings::HistorySettings;
use fabric_history::source::Detail;
use fabric_history::{Reader, Recorder, Source};
use fabric_observation::{Observation, RecorderStats};
use ib_health::totals::TotalsSeed;
use ib_mad::moment::Anchor;
use ib_mad::{Counter, Moment};

use crate::{SWEEP, events, wall};
use test_rig::Simulated;

/// What traffic grows by with each sweep, and errors.
pub const BUSY: u64 = 1_000_003;
pub const RARE: u64 = 2;

/// What counters began with.
const FIRST: u64 = 77;

/// A node whose ports are looked at one by one.
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

    /// Which sweep a file's totals are of, all of them: 0 where there are none.
    pub fn number_of(&self, memory: &TotalsSeed) -> u64 {
        let number = memory.values().next().and_then(|port| port.total(Counter::XmitData));
        let number = number.map_or(0, |traffic| (traffic - FIRST) / BUSY);
        self.compare(memory, number, |of, told, wanted| {
            assert_eq!(told, wanted, "{of:?} after sweep {number}");
        });
        number
    }

    /// Calls with each counter that is read, what totals say of it, and what they should after a sweep.
    pub fn compare(
        &self,
        memory: &TotalsSeed,
        number: u64,
        mut with: impl FnMut(Counter, Option<u64>, Option<u64>),
    ) {
        let snapshot = self.pattern.snapshot.as_ref().unwrap();
        for (port, reading) in snapshot.fabric.port_indexes().zip(&snapshot.readings) {
            let remembered = memory.get(&snapshot.fabric.end(port));
            for counter in Counter::all() {
                let told = remembered.and_then(|port| port.total(counter));
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
        traffic_for: ever,
        rare_for: ever,
        least_free: 0,
        ..HistorySettings::new(file.into())
    }
}

/// Records such sweeps.
pub struct Tape {
    pub steady: Arc<Steady>,
    pub recorder: Recorder,
    pub account: Arc<RecorderStats>,
    /// The first sweep that it records, and the next.
    pub first: u64,
    pub next: u64,
}

impl Tape {
    /// Goes on after the last sweep that is in the file.
    pub fn new(steady: &Arc<Steady>, settings: HistorySettings) -> Self {
        let mut tape = Self::at(steady, settings, 1);
        tape.first = steady.number_of(&tape.recorder.memory(steady.fabric())) + 1;
        tape.next = tape.first;
        tape
    }

    /// Goes on with a sweep, whatever is in the file.
    pub fn at(steady: &Arc<Steady>, settings: HistorySettings, first: u64) -> Self {
        let account = Arc::new(RecorderStats::default());
        let recorder = Recorder::new(settings, Arc::clone(&account));
        Self { steady: Arc::clone(steady), recorder, account, first, next: first }
    }

    /// Records the next sweep, or tries to; tells whether that went well.
    pub fn record(&mut self) -> bool {
        let seen = self.steady.sweep(self.next, self.first);
        let errors = self.account.errors();
        self.recorder.take(&seen, wall(SWEEP * u32::try_from(self.next).unwrap()));
        self.next += 1;
        self.account.errors() == errors
    }
}

/// What counters of a node grew by, sweep by sweep: of longer windows traffic is told hour by hour.
fn steps(reader: &Reader, began: SystemTime, last: u64) -> Vec<(Counter, Step)> {
    let ports: Vec<_> = reader.ports(NODE).unwrap().iter().map(Port::end).collect();
    let end = wall(SWEEP * u32::try_from(last + 1).unwrap());
    let (mut steps, mut from) = (Vec::new(), began);
    while from < end {
        // Half a sweep stands between windows, in which nothing was read.
        let window = Window { from, to: from + SWEEP * 400 - Duration::from_millis(1) };
        for of in reader.series(&ports, Detail::All, window).unwrap() {
            steps.extend(of.steps.iter().map(|step| (of.counter, *step)));
        }
        from += SWEEP * 400;
    }
    steps
}

/// Holds a file that nobody writes to its word, and tells the last sweep in it. Of those after `from`
/// each is there once, and whole: `left_out` of them alone may be missing, and what they counted is
/// in the next one then.
pub fn check(steady: &Steady, file: &Path, from: u64, left_out: &[u64]) -> u64 {
    let store = Store::open(file).unwrap();
    let last = steady.number_of(&store.memory(steady.fabric()).unwrap());
    drop(store);
    let reader = Reader::open(file).unwrap();
    for tier in [Tier::Rare, Tier::Busy, Tier::First, Tier::All] {
        assert_eq!(reader.frames(tier).unwrap().1, 0, "torn: {tier:?}");
    }
    let linked = steady.sweep(1, 1).snapshot.unwrap();
    let linked =
        linked.fabric.port_indexes().zip(&linked.readings).filter(|(port, reading)| {
            reading.is_some() && linked.fabric.node_of(*port).name == NODE
        });
    let linked = if last == 0 { 0 } else { linked.count() };
    // The first sweep says what counters came to.
    let wanted: Vec<u64> =
        (from.max(1) + 1..=last).filter(|number| !left_out.contains(number)).collect();
    let began = wall(SWEEP * u32::try_from(from.max(1)).unwrap()) + SWEEP / 2;
    let steps = steps(&reader, began, last);
    for (tier, by, counters) in [(Tier::Busy, BUSY, 2), (Tier::Rare, RARE, 1)] {
        let mut told: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
        for (counter, step) in steps.iter().filter(|(counter, _)| Tier::of(*counter) == tier) {
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
    assert!(times.values().all(|times| *times == 1), "an event is told twice: {times:?}");
    last
}
