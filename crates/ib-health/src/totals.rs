//! Totals that survive saturation, clears, reboots and restarts: what a port's counters have counted since
//! the port was first seen.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ib_mad::counter::{COUNT, IMPLAUSIBLE};
use ib_mad::port_state::PortStatus;
use ib_mad::rate::{Speed, Width, bytes_per_second};
use ib_mad::reading::{CounterSet, Raw, Totals};
use ib_mad::{Counter, Moment, PortKey, PortNumber, Reading};

use super::assessment::CounterStatus;
use super::replica::ReplicaCounter;

pub use super::assessment::ResetOffsets;

/// Totals that an earlier run of the exporter recorded ([`PortTotals::restore`]), by port: what a
/// [`LinkEvaluator`](super::LinkEvaluator) starts from instead of zero.
pub type TotalsSeed = HashMap<PortKey, PortTotals>;

/// This many consecutive values that are impossible after the last accepted one, but consistent with each
/// other, mean that the counter was set to another value: 2 minutes at the default interval.
const CONFIRMATIONS: u8 = 8;

/// A counter whose values have been impossible since its last accepted one.
#[derive(Clone, Copy, Debug)]
struct RejectedValue {
    /// No later than the last accepted value; `None` if that was in an earlier run.
    since: Option<Moment>,
    /// The latest impossible value, and when it was read.
    shown: u64,
    at: Moment,
    /// How many consecutive ones are consistent with each other.
    consistent: u8,
}

/// The totals of one port, and what they are made from.
///
/// A total starts with what the counter shows when it is first read, so that it is the number that other
/// tools print. From then on it grows by what the counter grows.
#[derive(Clone, Debug)]
pub struct PortTotals {
    raws: [u64; COUNT],
    /// See [`ResetOffsets`]. Modulo 2^64, for a counter that was set to more than its total. `None` for most
    /// ports, whose counters were never reset, which saves 280 bytes per port. Shared with the assessment.
    offsets: Option<Arc<ResetOffsets>>,
    /// Counters whose latest value was impossible: empty for most ports.
    rejected: BTreeMap<Counter, RejectedValue>,
    seen: CounterSet,
    /// Others of which an earlier run recorded what they showed last.
    persisted: CounterSet,
    latest: CounterSet,
    /// When the port was first and last read in this run.
    began: Moment,
    at: Moment,
    status: CounterStatus,
}

impl Default for PortTotals {
    fn default() -> Self {
        PortTotals {
            raws: [0; COUNT],
            offsets: None,
            rejected: BTreeMap::new(),
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
        let index = counter as usize;
        self.raws[index] = total.wrapping_sub(offset);
        if offset > 0 {
            self.set_offset(index, offset);
        }
        self.persisted.insert(counter);
    }

    /// A counter's total of an earlier run, if it was not read in this one.
    pub fn restored(&self, counter: Counter) -> Option<u64> {
        self.persisted.contains(counter).then(|| self.sum(counter as usize))
    }

    /// Adds a reading, and returns the totals after it.
    ///
    /// A counter that decreased was cleared, or its device was reset: its value was counted since then. What it
    /// counted between the last reading and the reset is lost, so the total is too low by that much; it never
    /// falls and never jumps. Each counter is checked separately, because tools clear some of them and not
    /// others: one that was cleared and already shows more than before seems to have grown by the difference.
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
        let seconds = if self.seen.is_empty() { 0.0 } else { at.since(self.at).as_secs_f64() };
        let timed = std::mem::take(&mut self.latest);
        let none = CounterSet::default();
        let by = [0; COUNT];
        let mut growth = Growth {
            at,
            seconds,
            reset: false,
            fell: none,
            known: none,
            timed,
            rejected: none,
            by,
        };
        if self.seen.is_empty() {
            self.began = at;
        }
        let mut impossible = CounterSet::default();
        // Most counters of most ports have not changed. What was accepted once is possible.
        let is_usual = self.rejected.is_empty() && reading.rebased.is_empty();
        let same =
            if is_usual { self.seen.intersection(reading.equal_to(&self.raws)) } else { none };
        let mut saturated =
            self.status.saturated_now.without(same).union(reading.saturated.intersection(same));
        self.latest = same;
        growth.known = same;
        let kept = if self.offsets.is_none() { same } else { none };
        // The rest have grown since the reading before, mostly, by what is possible.
        let usual = if is_usual { self.seen.intersection(timed) } else { none };
        let most = MaxGrowth { bytes_per_second, seconds };
        reading.replace_values(kept, |reading, counter| {
            let index = counter as usize;
            let Some(raw) = reading.get(counter) else {
                // Not due: the last total is valid, or there is none because the last value was impossible.
                if !reading.not_due.contains(counter) {
                    return None;
                }
                let was_impossible = self.status.impossible.contains(counter);
                impossible.set(counter, was_impossible);
                return self.total(counter).filter(|_| !was_impossible);
            };
            if same.contains(counter) {
                return Some(self.sum(index));
            }
            let by = raw.wrapping_sub(self.raws[index]);
            if usual.contains(counter)
                && raw > self.raws[index]
                && raw < IMPLAUSIBLE
                && by <= most.of(counter)
                && self.sum(index).checked_add(by).is_some()
            {
                growth.by[index] = by;
                growth.known.insert(counter);
                self.raws[index] = raw;
                self.latest.insert(counter);
                saturated.set(counter, reading.saturated.contains(counter));
                return Some(self.sum(index));
            }
            let is_rebased = reading.rebased.contains(counter) && self.seen.contains(counter);
            let since = timed.contains(counter).then_some(self.at);
            if !self.accept(counter, raw, at, since, is_rebased, bytes_per_second) {
                growth.rejected.insert(counter);
                return None;
            }
            if is_rebased {
                // Another field, which does not continue the last one: what both have in common is not
                // known, so the total only rises to what the field shows.
                let last = self.sum(index);
                growth.by[index] = raw.saturating_sub(last);
                growth.known.insert(counter);
                self.set_offset(index, last.max(raw) - raw);
            } else if self.seen.union(self.persisted).contains(counter) {
                let last = self.raws[index];
                let fell = raw < last;
                if fell {
                    self.add_reset(index, last);
                }
                growth.reset |= fell;
                growth.fell.set(counter, fell);
                growth.by[index] = if fell { raw } else { raw - last };
                growth.known.set(counter, self.seen.contains(counter));
            }
            self.persisted.set(counter, false);
            self.raws[index] = raw;
            self.seen.insert(counter);
            self.latest.insert(counter);
            saturated.set(counter, reading.saturated.contains(counter));
            Some(self.sum(index))
        });
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

    /// Whether a value is used. `since` is when the counter was last read, if in the latest reading.
    #[inline]
    fn accept(
        &mut self,
        counter: Counter,
        raw: u64,
        at: Moment,
        since: Option<Moment>,
        is_rebased: bool,
        bytes_per_second: u64,
    ) -> bool {
        let index = counter as usize;
        let is_possible = counter.is_plausible(raw);
        if !self.seen.union(self.persisted).contains(counter) {
            // There is nothing that it could have grown from.
            return is_possible;
        }
        // `remove` searches an empty map, too.
        let rejected = if self.rejected.is_empty() { None } else { self.rejected.remove(&counter) };
        let since = rejected.map_or(since, |rejected| rejected.since);
        // A response was lost, or it is read on a slower interval: it grew in this run at least.
        let since = since.or(self.seen.contains(counter).then_some(self.began));
        let most = |since: Option<Moment>| {
            let seconds = since.map_or(UNKNOWN_TIME, |since| at.since(since).as_secs_f64());
            MaxGrowth { bytes_per_second, seconds }.of(counter)
        };
        let total = self.sum(index);
        let by = match raw.checked_sub(self.raws[index]) {
            _ if is_rebased => raw.saturating_sub(total),
            Some(by) => by,
            None => raw,
        };
        let fits = total.checked_add(by).is_some();
        if is_possible && fits && by <= most(since) {
            return true;
        }
        let is_consistent = |last: RejectedValue| {
            let by = raw.checked_sub(last.shown)?;
            (by <= most(Some(last.at))).then_some(last.consistent)
        };
        let consistent = match rejected.and_then(is_consistent).filter(|_| is_possible) {
            Some(consistent) => consistent.saturating_add(1),
            None => u8::from(is_possible),
        };
        if consistent >= CONFIRMATIONS {
            self.set_offset(index, total.wrapping_sub(raw));
            self.raws[index] = raw;
            return true;
        }
        self.rejected.insert(counter, RejectedValue { since, shown: raw, at, consistent });
        false
    }

    /// The exporter itself cleared a counter, which showed `last` just before.
    pub fn on_clear(&mut self, counter: Counter, last: u64) {
        let index = counter as usize;
        if self.seen.contains(counter) {
            let accepted = self.raws[index];
            let was_rejected = self.rejected.remove(&counter).is_some();
            // `last` may be an impossible value; the last accepted one is not.
            self.add_reset(index, if was_rejected { accepted } else { last.max(accepted) });
            self.raws[index] = 0;
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
            let (index, own) = (counter as usize, self.raws[counter as usize]);
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
            let is_more = offset.cast_signed() > self.sum(index).wrapping_sub(own).cast_signed();
            let total = offset.checked_add(own).filter(|total| counter.is_plausible(*total));
            if let Some(total) = total.filter(|_| is_more) {
                self.set_offset(index, offset);
                reading.set(counter, total);
            }
        }
    }

    /// A counter's total, if it was ever read in this run.
    pub fn total(&self, counter: Counter) -> Option<u64> {
        self.seen.contains(counter).then(|| self.sum(counter as usize))
    }

    /// What a counter showed before it grew.
    pub(crate) fn before(&self, growth: &Growth, counter: Counter) -> u64 {
        self.raws[counter as usize].saturating_sub(growth.by[counter as usize])
    }

    /// What the traffic counters show, together: it falls if the device resets.
    pub fn traffic(&self) -> u64 {
        use Counter::{RcvData, RcvPkts, XmitData, XmitPkts};
        let shown = [XmitPkts, RcvPkts, XmitData, RcvData].map(|it| self.raws[it as usize]);
        shown.into_iter().fold(0, u64::saturating_add)
    }

    /// A counter starts from 0 again after it showed `last`.
    fn add_reset(&mut self, index: usize, last: u64) {
        let offset = self.offsets.as_ref().map_or(0, |offsets| offsets[index]);
        self.set_offset(index, offset.wrapping_add(last));
    }

    fn set_offset(&mut self, index: usize, offset: u64) {
        let all = self.offsets.get_or_insert_with(|| Arc::new([0; COUNT]));
        Arc::make_mut(all)[index] = offset;
    }

    fn sum(&self, index: usize) -> u64 {
        let offset = self.offsets.as_ref().map_or(0, |offsets| offsets[index]);
        offset.wrapping_add(self.raws[index])
    }

    /// What counters had counted before their last reset; `None` if none was ever reset.
    pub fn reset_offsets(&self) -> Option<&Arc<ResetOffsets>> {
        self.offsets.as_ref()
    }

    /// Saturation, resets and impossible values of its counters.
    pub fn status(&self) -> CounterStatus {
        self.status
    }
}

// Bounds of a counter's growth. One ConnectX-7 of a public dump reports 2^64 - 40 receive errors: such a value is
// an error of the device, and so is a jump that the link cannot have carried. The bounds are generous: they
// reject what no link can do, and never what a busy link does.

/// Measured growth may exceed what the nominal rate allows by this factor: rates are rounded, NDR's nominal
/// 100 Gb/s are 106.25 on the lane, and some adapters count loopback traffic.
const SLACK: f64 = 4.0;

/// Seconds by which the time in which a counter grew may exceed the time between two readings: a port's
/// attributes are read one after the other, and a retry takes up to 2 s.
const JITTER: f64 = 2.0;

/// Bytes of LRH, BTH, ICRC and VCRC: no packet of a transport is shorter (IBTA 1.4, 5.2).
const SHORTEST_PACKET: f64 = 26.0;

/// Retraining a link takes milliseconds, and so does reaching a threshold of local errors.
const EVENTS_PER_SECOND: f64 = 1000.0;

/// The seconds since an earlier run, which are not stored: no exporter is stopped for over a year.
const UNKNOWN_TIME: f64 = 366.0 * 24.0 * 3600.0;

/// The rate of a port whose rate is not bounded, in bytes per second.
pub const UNBOUNDED: u64 = u64::MAX;

/// The most that a port can ever carry, in bytes per second: it may have run faster since the latest reading
/// than it does now. Where the port does not report what it supports, the fastest link that exists.
pub(crate) fn fastest(number: PortNumber, status: Option<&PortStatus>) -> u64 {
    let known = status.filter(|_| number != 0).and_then(|status| {
        let width = Width::widest(status.widths_supported)?;
        let speed = status.speeds_supported.fastest()?;
        Some(bytes_per_second(width, speed).max(status.rate().unwrap_or(0)))
    });
    // Port 0 of a switch leads into the chip; the speed that it reports means nothing.
    known.unwrap_or_else(|| bytes_per_second(Width::X12, Speed::Xdr))
}

/// The most that a counter of a port with this rate, in bytes per second, can grow by in some seconds.
#[derive(Clone, Copy)]
struct MaxGrowth {
    bytes_per_second: u64,
    seconds: f64,
}

impl MaxGrowth {
    #[expect(clippy::cast_sign_loss, reason = "no rate and no time is below zero")]
    fn of(self, counter: Counter) -> u64 {
        use Counter::{
            ExcessiveBufferOverrunErrors, FecCorrectedSymbols, LinkDowned, LinkErrorRecoveries,
            LocalLinkIntegrityErrors, RcvData, SymbolErrors, XmitData, XmitWait,
        };
        let bytes = self.bytes_per_second as f64;
        let per_second = match counter {
            // Words of four bytes.
            XmitData | RcvData => bytes / 4.0,
            // A symbol has eight bits, with Reed-Solomon ten.
            SymbolErrors | FecCorrectedSymbols => bytes,
            // A tick is the time of one or several bytes, and each of 16 virtual lanes may wait.
            XmitWait => bytes * 16.0,
            LinkDowned
            | LinkErrorRecoveries
            | LocalLinkIntegrityErrors
            | ExcessiveBufferOverrunErrors => EVENTS_PER_SECOND,
            // Packets, or FEC blocks, which are longer.
            _ => bytes / SHORTEST_PACKET,
        };
        // The cast saturates.
        (per_second * ((self.seconds + JITTER) * SLACK)) as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use ib_mad::port_state::testing::up;

    const ERRORS: Counter = Counter::SymbolErrors;

    /// 4x NDR, in bytes a second.
    const RATE: u64 = 50_000_000_000;

    fn reading(at: u64, raw: u64, saturated: bool) -> Reading<Raw> {
        let mut reading = Reading::empty(Moment(at * 1_000_000_000));
        reading.set(ERRORS, raw);
        if saturated {
            reading.saturated.insert(ERRORS);
        }
        reading
    }

    /// The totals of raw values that are read once per second; 255 is a full field.
    fn totals(raws: &[u64]) -> (Vec<u64>, CounterStatus) {
        let mut totals = PortTotals::default();
        let values = raws.iter().enumerate().map(|(at, &raw)| {
            let reading = reading(at as u64, raw, raw == 255);
            totals.update(reading, RATE).0.get(ERRORS).unwrap()
        });
        (values.collect(), totals.status())
    }

    #[test]
    fn total_follows_counter_and_never_falls() {
        for (raws, values, resets) in [
            (&[7, 7, 9][..], &[7, 7, 9][..], 0),
            // Cleared, and status on.
            (&[7, 0, 2, 5], &[7, 7, 9, 12], 1),
            // Cleared twice.
            (&[100, 40, 3], &[100, 140, 143], 2),
            // Full: a lower bound, until it is cleared.
            (&[250, 255, 255, 4], &[250, 255, 255, 259], 1),
        ] {
            let (got, status) = totals(raws);
            assert_eq!((&got[..], status.resets), (values, resets), "{raws:?}");
        }
    }

    #[test]
    fn saturation_is_reported_during_and_after() {
        let (_, status) = totals(&[255]);
        assert!(status.saturated_now.contains(ERRORS) && status.ever_saturated.contains(ERRORS));
        let (_, status) = totals(&[255, 0]);
        assert!(!status.saturated_now.contains(ERRORS) && status.ever_saturated.contains(ERRORS));
        let (_, status) = totals(&[254, 3]);
        assert!(status.ever_saturated.is_empty());
        assert_eq!(status.last_reset, Some(Moment(1_000_000_000)));
    }

    #[test]
    fn growth_is_known_from_the_second_reading_on() {
        let mut totals = PortTotals::default();
        let (_, first) = totals.update(reading(10, 5, false), RATE);
        assert_eq!((first.get(ERRORS), first.reset), (None, false));
        assert!(first.seconds.abs() < 1e-9);
        let (_, second) = totals.update(reading(25, 8, false), RATE);
        assert_eq!(second.get(ERRORS), Some(3));
        assert_eq!(second.get(Counter::XmitWait), None);
        assert!((second.seconds - 15.0).abs() < 1e-9);
        // It was not read in between: nothing is lost, but that took longer.
        totals.update(Reading::empty(Moment(40_000_000_000)), RATE);
        let (_, third) = totals.update(reading(55, 20, false), RATE);
        assert_eq!((third.get(ERRORS), third.timed(ERRORS)), (Some(12), None));
        assert_eq!(totals.update(reading(70, 21, false), RATE).1.timed(ERRORS), Some(1));
    }

    #[test]
    fn own_clear_is_no_reset_and_loses_nothing() {
        let mut totals = PortTotals::default();
        totals.update(reading(0, 200, false), RATE);
        totals.on_clear(ERRORS, 203);
        assert_eq!(totals.total(ERRORS), Some(203));
        totals.update(reading(1, 2, false), RATE);
        assert_eq!((totals.total(ERRORS), totals.status().resets), (Some(205), 0));
        // Of one that was never read nothing is known.
        totals.on_clear(Counter::LinkDowned, 9);
        assert_eq!(totals.total(Counter::LinkDowned), None);
    }

    #[test]
    fn totals_resume_from_an_earlier_run() {
        for (total, offset, raw, resumed, resets) in [
            // It had fallen before, and counted on meanwhile.
            (140, 100, 47, 147, 0),
            (140, 100, 40, 140, 0),
            (7, 0, 9, 9, 0),
            // It decreased meanwhile.
            (140, 100, 39, 179, 1),
        ] {
            let mut totals = PortTotals::default();
            totals.restore(ERRORS, total, offset);
            assert_eq!(totals.restored(ERRORS), Some(total));
            assert_eq!(totals.total(ERRORS), None, "nothing was read in this run");
            let (first, growth) = totals.update(reading(10, raw, false), RATE);
            assert_eq!((first.get(ERRORS), totals.status().resets), (Some(resumed), resets));
            assert_eq!(growth.get(ERRORS), None, "it is not known since when");
            assert!(growth.seconds.abs() < 1e-9);
            let (second, growth) = totals.update(reading(25, raw + 3, false), RATE);
            assert_eq!((growth.timed(ERRORS), second.get(ERRORS)), (Some(3), Some(resumed + 3)));
        }
    }

    /// What a ConnectX-7 was seen to report.
    const NEGATIVE: u64 = u64::MAX - 39;

    /// More symbol errors than 4x NDR carries symbols in an hour.
    const TOO_MANY: u64 = 1 << 52;

    /// Adds raw values, one per second, and returns the totals; `None` where the value is rejected.
    fn readings(totals: &mut PortTotals, raws: &[u64]) -> Vec<Option<u64>> {
        let values = raws.iter().map(|&raw| {
            let at = totals.at.0 / 1_000_000_000 + 1;
            totals.update(reading(at, raw, false), RATE).0.get(ERRORS)
        });
        values.collect()
    }

    #[test]
    fn impossible_value_is_skipped() {
        for (raws, values, impossible) in [
            (&[7, NEGATIVE, 9][..], &[Some(7), None, Some(9)][..], 1),
            (&[7, TOO_MANY, 9], &[Some(7), None, Some(9)], 1),
            // From the beginning, permanently.
            (&[NEGATIVE; 20], &[None; 20], 20),
            (&[NEGATIVE, 5, 6], &[None, Some(5), Some(6)], 1),
            // Cleared meanwhile.
            (&[7, NEGATIVE, 2], &[Some(7), None, Some(9)], 1),
            // Impossible values that do not agree with each other.
            (&[7, TOO_MANY, 2 * TOO_MANY, TOO_MANY, 8], &[Some(7), None, None, None, Some(8)], 3),
        ] {
            let mut totals = PortTotals::default();
            assert_eq!(readings(&mut totals, raws), values, "{raws:?}");
            assert_eq!(totals.status().impossible_readings, impossible, "{raws:?}");
            let now = values.last().is_some_and(Option::is_none);
            assert_eq!(totals.status().impossible.contains(ERRORS), now, "{raws:?}");
        }
    }

    #[test]
    fn growth_of_an_impossible_value_is_unknown() {
        let mut totals = PortTotals::default();
        totals.update(reading(10, 5, false), RATE);
        let (_, growth) = totals.update(reading(25, NEGATIVE, false), RATE);
        assert_eq!(
            (growth.get(ERRORS), growth.rejected.contains(ERRORS), growth.reset),
            (None, true, false)
        );
        let (_, growth) = totals.update(reading(40, 8, false), RATE);
        assert_eq!((growth.get(ERRORS), growth.timed(ERRORS)), (Some(3), None));
        assert!(!growth.rejected.contains(ERRORS));
    }

    #[test]
    fn lost_response_does_not_widen_the_bound_to_a_year() {
        let mut totals = PortTotals::default();
        let mut total = |at: u64, raw: Option<u64>| {
            let mut reading = Reading::empty(Moment(at * 1_000_000_000));
            if let Some(raw) = raw {
                reading.set(ERRORS, raw);
            }
            totals.update(reading, RATE).0.get(ERRORS)
        };
        let values = [(0, Some(7)), (15, None), (30, Some(1_000_000_000_000_000)), (45, Some(9))];
        let values = values.map(|(at, raw)| total(at, raw));
        assert_eq!(values, [Some(7), None, None, Some(9)]);
    }

    #[test]
    fn counter_stays_impossible_until_read_again() {
        let mut totals = PortTotals::default();
        let mut total = |at: u64, raw: Option<u64>| {
            let mut reading = Reading::empty(Moment(at * 1_000_000_000));
            match raw {
                Some(raw) => reading.set(ERRORS, raw),
                None => reading.not_due.insert(ERRORS),
            }
            let (reading, _) = totals.update(reading, RATE);
            (reading.get(ERRORS), totals.status().impossible.contains(ERRORS))
        };
        assert_eq!(total(0, Some(7)), (Some(7), false));
        assert_eq!(total(15, None), (Some(7), false));
        assert_eq!(total(30, Some(NEGATIVE)), (None, true));
        assert_eq!(total(45, None), (None, true));
        assert_eq!(total(60, Some(8)), (Some(8), false));
    }

    #[test]
    fn total_does_not_wrap_at_its_maximum() {
        let mut totals = PortTotals::default();
        let mut total = |raw| {
            let mut reading = Reading::empty(totals.at + std::time::Duration::from_secs(1));
            reading.set(Counter::XmitData, raw);
            totals.update(reading, RATE).0.get(Counter::XmitData)
        };
        let values = [u64::MAX - 1, u64::MAX, 0, 1].map(&mut total);
        assert_eq!(values, [Some(u64::MAX - 1), Some(u64::MAX), Some(u64::MAX), None]);
    }

    #[test]
    fn counter_that_was_set_resumes_after_confirmation() {
        let mut totals = PortTotals::default();
        readings(&mut totals, &[10, 20]);
        let set: Vec<u64> = (0..u64::from(CONFIRMATIONS)).map(|nth| TOO_MANY + nth).collect();
        let values = readings(&mut totals, &set);
        assert!(values[..values.len() - 1].iter().all(Option::is_none), "{values:?}");
        assert_eq!(values.last(), Some(&Some(20)), "the step is in no total");
        assert_eq!(readings(&mut totals, &[TOO_MANY + 100]), [Some(20 + 100 - 7)]);
        // The same in the run after this one.
        let mut next = PortTotals::default();
        let offset = totals.reset_offsets().unwrap()[ERRORS as usize];
        next.restore(ERRORS, totals.total(ERRORS).unwrap(), offset);
        assert_eq!(readings(&mut next, &[TOO_MANY + 103]), [Some(116)]);
        assert_eq!(next.status().resets, 0);
    }

    #[test]
    fn resumed_totals_survive_an_impossible_first_value() {
        let mut totals = PortTotals::default();
        totals.restore(ERRORS, 140, 0);
        assert_eq!(readings(&mut totals, &[NEGATIVE, 150, 151]), [None, Some(150), Some(151)]);
    }

    #[test]
    fn clear_of_an_impossible_value_adds_nothing() {
        let mut totals = PortTotals::default();
        readings(&mut totals, &[10, TOO_MANY]);
        totals.on_clear(ERRORS, TOO_MANY);
        assert_eq!(readings(&mut totals, &[2]), [Some(12)]);
    }

    /// What a replica knows: before its last reset, and the value that it read in second 10.
    fn replica(offset: u64, raw: Option<u64>) -> ReplicaCounter {
        let read = [Moment(9_500_000_000), Moment(10_000_000_000)];
        ReplicaCounter { counter: ERRORS, offset, raw, read }
    }

    #[test]
    fn total_rises_to_what_a_replica_has_seen() {
        for (before, raw, known, expected) in [
            // The replica saw more of what was counted before the same reset, or less.
            (100, 7, replica(120, Some(5)), 127),
            (100, 7, replica(80, Some(5)), 107),
            // It does not know of the reset yet; its value was counted before.
            (100, 7, replica(90, Some(60)), 157),
            (100, 7, replica(20, Some(60)), 107),
            // The value of another field: it cannot have grown that much since.
            (100, 7 + (1 << 40), replica(500, Some(5)), 7 + (1 << 40)),
            // It could not read the counter, and this is not our first reading.
            (100, 7, replica(120, None), 107),
            // Nothing that makes sense.
            (100, 7, replica(u64::MAX, Some(5)), 107),
            (100, 7, replica(u64::MAX / 2, Some(5)), 107),
        ] {
            let mut totals = PortTotals::default();
            totals.update(reading(1, before, false), RATE);
            let mut last = reading(11, raw, false);
            let growth = totals.update_in_place(&mut last, RATE);
            let grown = growth.get(ERRORS);
            totals.raise(&mut last, &[known], RATE);
            assert_eq!(last.get(ERRORS), Some(expected), "{before} {raw} {known:?}");
            assert_eq!(totals.total(ERRORS), Some(expected), "{before} {raw} {known:?}");
            // What the replica knows is not counted as growth: no verdict changes.
            assert_eq!(grown, Some(if raw < before { raw } else { raw - before }));
            // It continues from there.
            let next = totals.update(reading(12, raw + 1, false), RATE).0;
            assert_eq!(next.get(ERRORS), Some(expected + 1));
        }
    }

    #[test]
    fn first_reading_continues_the_totals_of_a_replica() {
        for (known, expected) in
            [(replica(120, Some(5)), 127), (replica(120, Some(60)), 187), (replica(120, None), 127)]
        {
            let mut totals = PortTotals::default();
            let mut first = reading(11, 7, false);
            totals.update_in_place(&mut first, RATE);
            totals.raise(&mut first, &[known], RATE);
            assert_eq!(first.get(ERRORS), Some(expected), "{known:?}");
            assert_eq!(totals.status().resets, 0);
        }
        // A value that may be older than that of the replica does not decide.
        let mut totals = PortTotals::default();
        let mut early = reading(9, 7, false);
        totals.update_in_place(&mut early, RATE);
        totals.raise(&mut early, &[replica(120, Some(5))], RATE);
        assert_eq!(early.get(ERRORS), Some(7));
    }

    proptest! {
        /// A device that now and then shows nonsense: no total is above the truth, none falls, and each
        /// one that there is is the truth.
        #[test]
        fn random_nonsense_changes_no_total(
            steps in proptest::collection::vec((0u64..300, 0u8..3, TOO_MANY..), 1..60),
        ) {
            let mut totals = PortTotals::default();
            let mut truth = 5;
            readings(&mut totals, &[truth]);
            let mut nonsense = 0;
            for (count, what, value) in steps {
                truth += count;
                // Nonsense that never agrees with itself for long: a counter that was set would.
                let is_nonsense = what == 0 && nonsense < CONFIRMATIONS - 1;
                nonsense = if is_nonsense { nonsense + 1 } else { 0 };
                let values = readings(&mut totals, &[if is_nonsense { value } else { truth }]);
                prop_assert_eq!(values[0], (!is_nonsense).then_some(truth));
                prop_assert!(totals.total(ERRORS).is_some_and(|total| total <= truth));
            }
        }

        /// Whatever is counted, read and cleared, in whatever order: the total is what was counted
        /// but for what was counted between a reading and a clear, or at a full counter.
        #[test]
        fn totals_never_exceed_what_was_counted(
            steps in proptest::collection::vec((0u64..300, 0u8..8, any::<bool>()), 1..60),
            wide in any::<bool>(),
        ) {
            let most = if wide { u64::MAX } else { 255 };
            let mut totals = PortTotals::default();
            let (mut raw, mut truth) = (0u64, 0u64);
            let (mut before, mut exact) = (0u64, true);
            totals.update(reading(0, 0, false), RATE);
            for (at, (count, what, ours)) in steps.into_iter().enumerate() {
                let counted = raw.saturating_add(count).min(most);
                exact &= counted < most;
                (raw, truth) = (counted, truth + count);
                if what == 0 {
                    if ours {
                        totals.on_clear(ERRORS, raw);
                    } else {
                        // Hidden from now on: what was counted since the latest reading, and, if the
                        // counter is past its old value when it is next read, that value.
                        exact = false;
                    }
                    raw = 0;
                } else {
                    let reading = reading(at as u64 + 1, raw, raw == most);
                    let total = totals.update(reading, RATE).0.get(ERRORS).unwrap();
                    prop_assert!(total >= before, "never falls");
                    prop_assert!(total <= truth, "never jumps: {total} of {truth}");
                    if exact {
                        prop_assert_eq!(total, truth);
                    }
                    before = total;
                }
            }
        }
    }

    #[test]
    fn full_link_rate_is_possible_and_far_more_is_not() {
        // 4x NDR for 15 s: 50 GB/s.
        let rate = 50_000_000_000;
        for (counter, per_second) in [
            (Counter::XmitData, rate / 4),
            (Counter::RcvPkts, rate / 64),
            (Counter::SymbolErrors, rate * 8 / 10),
            (Counter::FecCorrectedSymbols, rate * 8 / 10),
            (Counter::RcvErrors, rate / 64),
            (Counter::XmitWait, rate / 8),
            (Counter::LinkDowned, 100),
        ] {
            let most = MaxGrowth { bytes_per_second: rate, seconds: 15.0 }.of(counter);
            assert!(most >= per_second * 15, "{counter:?}: {most}");
            assert!(most < per_second * 15 * 1000, "{counter:?}: {most}");
        }
        let unbounded = MaxGrowth { bytes_per_second: UNBOUNDED, seconds: UNKNOWN_TIME };
        assert_eq!(unbounded.of(Counter::XmitData), u64::MAX);
    }

    #[test]
    fn bound_follows_supported_rate_not_active_rate() {
        let slow = PortStatus { speed: Some(Speed::Sdr), width: Some(Width::X1), ..up(1) };
        assert_eq!(fastest(1, Some(&slow)), 12_500_000_000, "4x EDR");
        let most = bytes_per_second(Width::X12, Speed::Xdr);
        assert_eq!(fastest(0, Some(&slow)), most);
        assert_eq!(fastest(1, None), most);
        assert_eq!(fastest(1, Some(&PortStatus { widths_supported: 0, ..up(1) })), most);
    }
}
