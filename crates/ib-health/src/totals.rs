//! Totals that survive saturation, clears, reboots and restarts: what a port's counters have counted since
//! the port was first seen.

use std::collections::HashMap;
use std::sync::Arc;

use ib_mad::counter::{COUNT, IMPLAUSIBLE};
use ib_mad::reading::{CounterSet, Raw, Totals};
use ib_mad::{Counter, Moment, PortKey, Reading};

use super::counter_resets::{CounterOffsets, ResetOffsets, Step};
use super::counter_status::CounterStatus;
use super::impossible_values::{Acceptance, MaxGrowth, NextValue, RejectedValues};
use super::replica::ReplicaCounter;

/// Totals that an earlier run of the exporter recorded ([`PortTotals::restore`]), by port: what a
/// [`LinkEvaluator`](super::LinkEvaluator) starts from instead of zero.
pub type TotalsSeed = HashMap<PortKey, PortTotals>;

/// The rate of a port whose rate is not bounded, in bytes per second.
pub const UNBOUNDED: u64 = u64::MAX;

/// The totals of one port, and what they are made from.
///
/// A total starts with what the counter shows when it is first read, so that it is the number that other
/// tools print. From then on it grows by what the counter grows.
#[derive(Clone, Debug)]
pub struct PortTotals {
    /// The last accepted values.
    last_values: [u64; COUNT],
    offsets: CounterOffsets,
    rejected: RejectedValues,
    /// Counters that were read in this run.
    seen: CounterSet,
    /// Others of which an earlier run recorded what they showed last.
    persisted: CounterSet,
    /// Those with a value in the latest reading.
    latest: CounterSet,
    /// When the port was first and last read in this run.
    began: Moment,
    at: Moment,
    status: CounterStatus,
}

impl Default for PortTotals {
    fn default() -> Self {
        PortTotals {
            last_values: [0; COUNT],
            offsets: CounterOffsets::default(),
            rejected: RejectedValues::default(),
            seen: CounterSet::default(),
            persisted: CounterSet::default(),
            latest: CounterSet::default(),
            began: Moment::default(),
            at: Moment::default(),
            status: CounterStatus::default(),
        }
    }
}

/// By how much a port's counters have grown since they were last read.
#[derive(Clone, Debug)]
pub struct Growth {
    /// When they were read.
    pub at: Moment,
    /// Seconds since the reading before; 0 for the first one.
    pub seconds: f64,
    /// At least one counter decreased.
    pub reset: bool,
    /// Those that did.
    pub fell: CounterSet,
    known: CounterSet,
    /// Counters with a value in the reading before, so that they grew within `seconds`.
    timed: CounterSet,
    /// Counters whose value was impossible, so that their growth is not known.
    pub rejected: CounterSet,
    by: [u64; COUNT],
}

impl Growth {
    /// By how much a counter has grown; `None` if it was not read now, or never before.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        self.known.contains(counter).then(|| self.by[counter as usize])
    }

    /// The same, but `None` also if the reading before had no value of the counter: then it grew over
    /// a longer time than [`seconds`](Self::seconds).
    pub fn timed(&self, counter: Counter) -> Option<u64> {
        self.get(counter).filter(|_| self.timed.contains(counter))
    }
}

impl PortTotals {
    /// Continues an earlier run, which recorded this total of a counter, and of it this much from before its
    /// last reset. What was counted since is in no growth: when it was counted is unknown.
    pub fn restore(&mut self, counter: Counter, total: u64, offset: u64) {
        self.last_values[counter as usize] = total.wrapping_sub(offset);
        if offset > 0 {
            self.offsets.set(counter, offset);
        }
        self.persisted.insert(counter);
    }

    /// A counter's total of an earlier run, if it was not read in this one.
    pub fn restored(&self, counter: Counter) -> Option<u64> {
        self.persisted.contains(counter).then(|| self.last_total(counter))
    }

    /// Adds a reading, and returns the totals after it. How resets are handled: [`counter_resets`](super::counter_resets).
    ///
    /// An impossible value (`MaxGrowth`) is left out: one of 2^63 or more that is not traffic, and one that the
    /// counter cannot have reached since its last accepted value on a link of at most this many bytes per second. The
    /// total stays, and continues with the next possible value. If impossible values persist and are consistent with
    /// each other, the counter was set: it counts on from there, and the step is in no total.
    pub fn update(
        &mut self,
        mut reading: Reading<Raw>,
        bytes_per_second: u64,
    ) -> (Reading<Totals>, Growth) {
        let growth = self.update_in_place(&mut reading, bytes_per_second);
        (reading.assume_totals(), growth)
    }

    /// The same for a reading that stays where it is, and then has totals as its values.
    #[inline]
    pub(crate) fn update_in_place(
        &mut self,
        reading: &mut Reading<Raw>,
        bytes_per_second: u64,
    ) -> Growth {
        let at = reading.at;
        if self.seen.is_empty() {
            (self.began, self.at) = (at, at);
        }
        let seconds = at.since(self.at).as_secs_f64();
        let timed = std::mem::take(&mut self.latest);
        let none = CounterSet::default();
        // Most counters of most ports have not changed. What was accepted once is possible.
        let is_usual = self.rejected.is_empty() && reading.rebased.is_empty();
        let seen = if is_usual { self.seen } else { none };
        let unchanged = seen.intersection(reading.equal_to(&self.last_values));
        self.latest = unchanged;
        let kept = if self.offsets.shared().is_none() { unchanged } else { none };
        let known_full = self.status.saturated_now.without(unchanged);
        let mut update = Update {
            growth: Growth {
                at,
                seconds,
                reset: false,
                fell: none,
                known: unchanged,
                timed,
                rejected: none,
                by: [0; COUNT],
            },
            unchanged,
            usual: seen.intersection(timed),
            saturated: known_full.union(reading.saturated.intersection(unchanged)),
            impossible: none,
            bytes_per_second,
            port: self,
        };
        reading.replace_values(kept, |reading, counter| update.total(reading, counter));
        let Update { growth, saturated, impossible, .. } = update;
        self.at = at;
        let status = &mut self.status;
        status.impossible = impossible.union(growth.rejected);
        let rejected = growth.rejected.len();
        status.impossible_readings = status.impossible_readings.saturating_add(rejected);
        status.saturated_now = saturated;
        status.ever_saturated = status.ever_saturated.union(saturated);
        if growth.reset {
            status.resets = status.resets.saturating_add(1);
            status.last_reset = Some(at);
        }
        growth
    }

    /// The exporter itself cleared a counter, which showed `last` just before.
    pub fn on_clear(&mut self, counter: Counter, last: u64) {
        if self.seen.contains(counter) {
            let accepted = self.last_values[counter as usize];
            let was_rejected = self.rejected.forget(counter);
            // `last` may be an impossible value; the last accepted one is not.
            let last = if was_rejected { accepted } else { last.max(accepted) };
            self.offsets.add_reset(counter, last);
            self.last_values[counter as usize] = 0;
        }
    }

    /// Raises the totals to those of a replica, where it has seen more of what was counted before a reset; `reading` is
    /// the one that was added last.
    ///
    /// What the replica knows is no more than the true count at the time of its value. If our value is later, and lower,
    /// there was a reset in between: all that the replica knows was counted before it. If our value is not lower, what was
    /// counted before the reset that the replica knows was counted before ours, too. A value that grew by more than a
    /// counter can is that of another field of the device, which has other resets.
    pub(crate) fn raise(
        &mut self,
        reading: &mut Reading<Raw>,
        replica: &[ReplicaCounter],
        bytes_per_second: u64,
    ) {
        for &ReplicaCounter { counter, offset, raw, read: [after, before] } in replica {
            if !self.latest.contains(counter) || self.at < before {
                continue;
            }
            let own = self.last_values[counter as usize];
            let most = MaxGrowth { bytes_per_second, seconds: self.at.since(after).as_secs_f64() };
            let offset = match raw.map(|raw| (raw, own.checked_sub(raw))) {
                Some((raw, None)) => offset.saturating_add(raw),
                Some((_, Some(by))) if by > most.of(counter) => continue,
                Some(_) => offset,
                // It is better than to begin without what was counted before.
                None if self.began == self.at => offset,
                None => continue,
            };
            // A counter that was set to more than its total has a negative offset.
            let is_more =
                offset.cast_signed() > self.last_total(counter).wrapping_sub(own).cast_signed();
            let total = offset.checked_add(own).filter(|total| counter.is_plausible(*total));
            if let Some(total) = total.filter(|_| is_more) {
                self.offsets.set(counter, offset);
                reading.set(counter, total);
            }
        }
    }

    /// A counter's total, if it was ever read in this run.
    pub fn total(&self, counter: Counter) -> Option<u64> {
        self.seen.contains(counter).then(|| self.last_total(counter))
    }

    /// What a counter showed before it grew.
    pub(crate) fn before(&self, growth: &Growth, counter: Counter) -> u64 {
        self.last_values[counter as usize].saturating_sub(growth.by[counter as usize])
    }

    /// What the traffic counters show, together: it falls if the device resets.
    pub fn traffic(&self) -> u64 {
        use Counter::{RcvData, RcvPkts, XmitData, XmitPkts};
        let shown = [XmitPkts, RcvPkts, XmitData, RcvData].map(|it| self.last_values[it as usize]);
        shown.into_iter().fold(0, u64::saturating_add)
    }

    /// The total after the last accepted value.
    fn last_total(&self, counter: Counter) -> u64 {
        self.offsets.total(counter, self.last_values[counter as usize])
    }

    /// What counters had counted before their last reset; `None` if none was ever reset.
    pub fn reset_offsets(&self) -> Option<&Arc<ResetOffsets>> {
        self.offsets.shared()
    }

    /// Saturation, resets and impossible values of its counters.
    pub fn status(&self) -> CounterStatus {
        self.status
    }
}

/// A reading that is added to the totals of its port, counter by counter.
struct Update<'a> {
    port: &'a mut PortTotals,
    bytes_per_second: u64,
    /// Counters that show what they showed in the reading before.
    unchanged: CounterSet,
    /// Counters that have grown since the reading before, mostly, by what is possible.
    usual: CounterSet,
    saturated: CounterSet,
    /// Counters that are not due, and whose last value was impossible.
    impossible: CounterSet,
    growth: Growth,
}

impl Update<'_> {
    /// Adds a counter of the reading, and returns its total; `None` if it has none.
    #[inline]
    fn total(&mut self, reading: &Reading<Raw>, counter: Counter) -> Option<u64> {
        let Some(value) = reading.get(counter) else { return self.total_before(reading, counter) };
        if self.unchanged.contains(counter) {
            return Some(self.port.last_total(counter));
        }
        if let Some(by) = self.usual_growth(counter, value) {
            self.growth.by[counter as usize] = by;
            self.growth.known.insert(counter);
        } else if !self.add_change(reading, counter, value) {
            self.growth.rejected.insert(counter);
            return None;
        }
        let port = &mut *self.port;
        port.persisted.set(counter, false);
        port.last_values[counter as usize] = value;
        port.seen.insert(counter);
        port.latest.insert(counter);
        self.saturated.set(counter, reading.saturated.contains(counter));
        Some(port.last_total(counter))
    }

    /// The total of a counter that was not read: if it was not due, the last one is valid, or there is none because the
    /// last value was impossible.
    fn total_before(&mut self, reading: &Reading<Raw>, counter: Counter) -> Option<u64> {
        if !reading.not_due.contains(counter) {
            return None;
        }
        let was_impossible = self.port.status.impossible.contains(counter);
        self.impossible.set(counter, was_impossible);
        self.port.total(counter).filter(|_| !was_impossible)
    }

    /// The growth of a counter that was read before, and has grown since by what is possible.
    #[inline]
    fn usual_growth(&self, counter: Counter, value: u64) -> Option<u64> {
        let last = self.port.last_values[counter as usize];
        let by = value.checked_sub(last).filter(|by| *by > 0)?;
        let Growth { seconds, .. } = self.growth;
        let most = MaxGrowth { bytes_per_second: self.bytes_per_second, seconds };
        let is_usual = self.usual.contains(counter)
            && value < IMPLAUSIBLE
            && by <= most.of(counter)
            && self.port.last_total(counter).checked_add(by).is_some();
        is_usual.then_some(by)
    }

    /// Adds any other value of a counter. Returns whether it is possible.
    fn add_change(&mut self, reading: &Reading<Raw>, counter: Counter, value: u64) -> bool {
        let (port, growth) = (&mut *self.port, &mut self.growth);
        let is_seen = port.seen.contains(counter);
        if !is_seen && !port.persisted.contains(counter) {
            // There is nothing that it could have grown from.
            return counter.is_plausible(value);
        }
        let total = port.last_total(counter);
        let step = Step::between(port.last_values[counter as usize], value);
        let is_rebased = reading.rebased.contains(counter) && is_seen;
        // Another field, which does not continue the last one: what both have in common is not known, so the total
        // only rises to what the field shows.
        let mut by = if is_rebased { value.saturating_sub(total) } else { step.by };
        let next = NextValue {
            counter,
            value,
            at: growth.at,
            by,
            total,
            since: growth.timed.contains(counter).then_some(port.at),
            began: is_seen.then_some(port.began),
        };
        match port.rejected.judge(&next, self.bytes_per_second) {
            Acceptance::Impossible => return false,
            Acceptance::Possible | Acceptance::Set if is_rebased => {
                port.offsets.set(counter, total.max(value) - value);
            }
            Acceptance::Set => {
                port.offsets.set(counter, total.wrapping_sub(value));
                by = 0;
            }
            Acceptance::Possible if step.is_reset => {
                port.offsets.add_reset(counter, port.last_values[counter as usize]);
                growth.reset = true;
                growth.fell.insert(counter);
            }
            Acceptance::Possible => {}
        }
        growth.by[counter as usize] = by;
        growth.known.set(counter, is_seen);
        true
    }
}

#[cfg(test)]
mod tests;
