//! An exporter: the evaluator, the API and the client of the real one, with its own clock.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fabric_api::Filter;
use fabric_api::model::Totals;
use fabric_api::totals::{replica_totals, totals};
use fabric_observation::Observation;
use ib_fabric::snapshot::Cleared;
use ib_fabric::testing::{end, fabric, found};
use ib_fabric::{Fabric, PortIndex, Snapshot};
use ib_health::{LimitTable, LinkEvaluator};
use ib_mad::moment::Anchor;
use ib_mad::{Moment, NodeKind, Reading};
use ib_sim::rng::Rng;

use super::Found;
use super::device::{COUNTERS, Device};

const FABRIC: &str = "f";

/// Seconds from one request to the next.
const POLL: u64 = 15;

pub struct Exporter {
    nth: usize,
    interval: u64,
    /// Sweeps are at these seconds of the interval, and requests to the other exporter.
    phase: u64,
    poll_phase: u64,
    /// Whether it clears counters before they saturate.
    clears: bool,
    /// Its clock began at this second, and its wall clock is wrong by this much.
    began: u64,
    wall_error: u64,
    fabric: Arc<Fabric>,
    evaluator: LinkEvaluator,
    /// What it publishes, and what the device had counted when that was read, all and visible.
    seen: Option<(Arc<Observation>, [[u64; 2]; COUNTERS.len()])>,
    /// A response of the other exporter, and the second in which it was requested.
    response: Option<(Totals, u64)>,
    /// It runs from this second on.
    up_from: u64,
    /// It keeps its history over its next restart.
    restarts: Option<bool>,
}

impl Exporter {
    pub fn new(nth: usize, interval: u64, clears: bool, rng: &mut Rng) -> Exporter {
        let nodes = vec![found(1, NodeKind::Ca, 1), found(2, NodeKind::Ca, 1)];
        Exporter {
            nth,
            interval,
            phase: rng.below(interval),
            poll_phase: rng.below(POLL),
            clears,
            began: 0,
            wall_error: rng.below(7200),
            fabric: Arc::new(fabric(nodes, &[(end(1, 1), end(2, 1))], None)),
            evaluator: LinkEvaluator::new(LimitTable::default()),
            seen: None,
            response: None,
            // The second one may be started later.
            up_from: rng.below(2) * rng.below(240),
            restarts: None,
        }
    }

    fn port(&self) -> PortIndex {
        self.fabric.find(end(1, 1)).unwrap()
    }

    pub fn is_up(&self, now: u64) -> bool {
        now >= self.up_from && self.seen.is_some()
    }

    /// Whether it has run long enough to have the totals of the other one.
    pub fn is_settled(&self, now: u64) -> bool {
        self.is_up(now) && now >= self.up_from + super::SETTLED
    }

    /// Stops it for seconds to minutes.
    pub fn stop(&mut self, now: u64, device: &mut Device, rng: &mut Rng) {
        let has_history = rng.below(2) == 0;
        (self.up_from, self.restarts) = (now + 2 + rng.below(300), Some(has_history));
        if !has_history {
            device.forget(self.nth);
        }
    }

    fn moment(&self, now: u64) -> Moment {
        Moment::default() + Duration::from_secs(now - self.began + 10)
    }

    fn wall(&self, now: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + now + self.wall_error)
    }

    /// The total of a counter, and what the device had counted when it was read, all and visible.
    pub fn total(&self, nth: usize) -> Option<(u64, [u64; 2])> {
        let (seen, counted) = self.seen.as_ref()?;
        let reading = seen.snapshot.as_ref()?.reading(self.port())?;
        Some((reading.get(COUNTERS[nth].0)?, counted[nth]))
    }

    /// One second.
    pub fn advance(&mut self, now: u64, device: &mut Device, rng: &mut Rng, found: &mut Found) {
        if now < self.up_from {
            return;
        }
        if self.is_starting() || now % self.interval == self.phase {
            if let Some(has_history) = self.restarts.take() {
                self.restart(now, has_history);
            }
            if let Some((totals, at)) = self.response.take() {
                // It took up to a second.
                let at = [self.moment(at).before(Duration::from_millis(900)), self.moment(at)];
                self.evaluator.replica.update(replica_totals(&totals, FABRIC, at));
            }
            self.sweep(now, device, rng, found);
        }
    }

    /// Whether its first sweep is the next.
    fn is_starting(&self) -> bool {
        self.seen.is_none() || self.restarts.is_some()
    }

    /// Requests the totals of the other exporter, if that is due.
    pub fn request(&mut self, now: u64, other: &Exporter) {
        let is_due = self.is_starting() || now % POLL == self.poll_phase;
        if now >= self.up_from && is_due && other.is_up(now) {
            self.response = other.response(now).map(|totals| (totals, now));
        }
    }

    /// A new process; with a history it continues its totals.
    fn restart(&mut self, now: u64, has_history: bool) {
        let (port, seen) = (self.port(), self.seen.take());
        self.evaluator = LinkEvaluator::new(LimitTable::default());
        self.began = now;
        let Some((seen, _)) = seen.filter(|_| has_history) else { return };
        let offsets = seen.assessment.ports[port].reset_offsets.clone();
        let Some(reading) = seen.snapshot.as_ref().unwrap().reading(port) else { return };
        let totals = self.evaluator.seed.entry(end(1, 1)).or_default();
        for (counter, ..) in COUNTERS {
            let offset = offsets.as_ref().map_or(0, |offsets| offsets[counter as usize]);
            if let Some(total) = reading.get(counter) {
                totals.restore(counter, total, offset);
            }
        }
    }

    /// What its API returns.
    fn response(&self, now: u64) -> Option<Totals> {
        let (seen, _) = self.seen.as_ref()?;
        let totals = totals(&[Arc::clone(seen)], &Filter::default(), self.wall(now));
        let json = serde_json::to_vec(&totals).unwrap();
        Some(serde_json::from_slice(&json).unwrap())
    }

    fn sweep(&mut self, now: u64, device: &mut Device, rng: &mut Rng, found: &mut Found) {
        let (at, port) = (self.moment(now), self.port());
        let anchor = Anchor { moment: at, wall: self.wall(now) };
        let mut snapshot = Snapshot::blank(Arc::clone(&self.fabric), anchor);
        let is_lost = now < device.silent_until || rng.below(50) == 0;
        found.lost += u32::from(is_lost);
        if !is_lost {
            let mut reading = Reading::empty(at);
            for (nth, (counter, max, _)) in COUNTERS.into_iter().enumerate() {
                // Counters are in several attributes.
                if rng.below(50) == 0 {
                    continue;
                }
                reading.set(counter, device.raw[nth]);
                device.read(self.nth, nth);
                if device.raw[nth] == max {
                    reading.saturated.insert(counter);
                    found.saturated += 1;
                }
                if self.clears && max < 1 << 32 && device.raw[nth] > max / 4 * 3 {
                    let last = device.raw[nth];
                    snapshot.cleared.push(Cleared { port, counter, last, at });
                    device.raw[nth] = 0;
                    device.reset_at = now;
                    found.own_clears += 1;
                }
            }
            snapshot.readings[port] = Some(reading);
        }
        let counted = std::array::from_fn(|nth| [device.counted[nth], device.visible(nth)]);
        let (snapshot, assessment) = self.evaluator.evaluate(snapshot);
        let observation = Observation {
            fabric: FABRIC.into(),
            snapshot: Some(Arc::new(snapshot)),
            assessment,
            ..Observation::default()
        };
        self.seen = Some((Arc::new(observation), counted));
    }
}
