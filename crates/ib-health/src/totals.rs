//! Totals that survive: what a port has counted since we first saw it, whatever became of its
//! counters in the meantime.

use std::collections::HashMap;
use std::sync::Arc;

use ib_fabric::topology::End;
use ib_mad::counter::COUNT;
use ib_mad::{Counter, Moment, Reading};

use super::findings::Counting;
use super::plausible::{self, UNKNOWN_TIME};

pub use super::findings::Before;

/// The totals of ports as somebody knows them who was there before us: what a
/// [`Judge`](super::Judge) begins with, instead of nothing.
pub type Memory = HashMap<End, Remembered>;

/// The totals of a port at the end of an earlier watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remembered {
    known: u64,
    totals: [u64; COUNT],
    before: Before,
}

impl Default for Remembered {
    fn default() -> Self {
        Remembered { known: 0, totals: [0; COUNT], before: [0; COUNT] }
    }
}

impl Remembered {
    /// Takes down a counter's total.
    pub fn set(&mut self, counter: Counter, total: u64) {
        self.totals[counter as usize] = total;
        self.known |= 1 << counter as usize;
    }

    /// Takes down that a counter's total has grown; what it has grown from must be known.
    pub fn grow(&mut self, counter: Counter, by: u64) {
        let total = &mut self.totals[counter as usize];
        *total = total.saturating_add(by);
    }

    /// Takes down what of a counter's total was counted before the counter fell last.
    pub fn set_before(&mut self, counter: Counter, before: u64) {
        self.before[counter as usize] = before;
    }

    /// A counter's total, if it is known.
    pub fn total(&self, counter: Counter) -> Option<u64> {
        (self.known >> counter as usize & 1 == 1).then(|| self.totals[counter as usize])
    }
}

/// So many values in a row that are impossible after the latest reading, but agree with each other, are
/// a counter that was set: 2 minutes at the usual interval.
const SETTLED: u8 = 8;

/// A counter whose values have been impossible since its latest reading.
#[derive(Clone, Copy, Debug)]
struct Refusal {
    counter: Counter,
    /// No later than its latest reading; `None` if that was in an earlier watch.
    since: Option<Moment>,
    /// The latest of the impossible values, and when it was read.
    shown: u64,
    at: Moment,
    /// How many in a row agree with each other.
    agree: u8,
}

/// The totals of one port, and what they were made from.
///
/// A total begins with what the counter shows when it is first seen, so that it is the number that
/// other tools print, too. From then on it grows by what the counter grows.
#[derive(Clone, Debug)]
pub struct PortTotals {
    /// What the counters showed last.
    raws: [u64; COUNT],
    /// What they had counted before they fell last: a total less this is what the counter shows, modulo
    /// 2^64, for one that was set to more than its total. Most never fall, and 280 bytes a port are saved.
    /// Shared with the findings, for who records them.
    before: Option<Arc<Before>>,
    /// Counters whose latest value was impossible: of most ports none.
    refused: Vec<Refusal>,
    /// One bit a counter: it was seen before.
    seen: u64,
    /// One bit a counter: it was not, and what it showed last is known from an earlier watch.
    remembered: u64,
    /// One bit a counter: the latest reading had it.
    latest: u64,
    /// When the port was first read in this watch, and when last.
    began: Moment,
    at: Moment,
    counting: Counting,
}

impl Default for PortTotals {
    fn default() -> Self {
        PortTotals {
            raws: [0; COUNT],
            before: None,
            refused: Vec::new(),
            seen: 0,
            remembered: 0,
            latest: 0,
            began: Moment::default(),
            at: Moment::default(),
            counting: Counting::default(),
        }
    }
}

/// What a port's counters have grown by since they were read before.
#[derive(Clone, Debug)]
pub struct Growth {
    /// When they were read.
    pub at: Moment,
    /// How long after the reading before, in seconds; 0 if there was none.
    pub seconds: f64,
    /// Some of them fell.
    pub reset: bool,
    known: u64,
    /// One bit a counter: it grew in those seconds, and not since an earlier reading.
    timed: u64,
    /// One bit a counter: it showed an impossible value.
    refused: u64,
    by: [u64; COUNT],
}

impl Growth {
    /// What a counter has grown by; `None` if it was not read now, or not before.
    pub fn of(&self, counter: Counter) -> Option<u64> {
        let index = counter as usize;
        (self.known >> index & 1 == 1).then(|| self.by[index])
    }

    /// Whether a counter showed an impossible value, so that nothing is known of it.
    pub fn is_refused(&self, counter: Counter) -> bool {
        self.refused >> counter as usize & 1 == 1
    }

    /// The same, if it grew in the seconds since the reading before: `None` if that did not have it.
    pub fn timed(&self, counter: Counter) -> Option<u64> {
        self.of(counter).filter(|_| self.timed >> counter as usize & 1 == 1)
    }
}

impl PortTotals {
    /// Goes on where an earlier watch ended. What was counted since is in the totals, and no growth:
    /// nobody knows when that was.
    pub fn resume(memory: &Remembered) -> Self {
        let mut raws = memory.totals;
        for (raw, before) in raws.iter_mut().zip(memory.before) {
            *raw = raw.wrapping_sub(before);
        }
        let before =
            memory.before.iter().any(|before| *before > 0).then(|| Arc::new(memory.before));
        PortTotals { raws, before, remembered: memory.known, ..PortTotals::default() }
    }

    /// Takes a reading in, and puts the totals in the place of its raw values.
    ///
    /// A counter that fell was cleared, or its device was reset: what it shows now was counted
    /// since. What it had counted between the last reading and the clear nobody knows, so the
    /// total is that much too low; it never falls, and never jumps. Each counter is judged by
    /// itself, for tools clear some and not others: one that was cleared and shows more than
    /// before by now seems to have grown by the difference.
    ///
    /// An impossible value ([`plausible`]) is dropped from the reading: one of 2^63 or more that is no
    /// traffic, and one that the counter cannot have come to since its latest reading on a link of at
    /// most so many bytes a second. The total stays, and goes on with the next possible value. If the
    /// impossible ones go on and agree with each other, the counter was set: it counts on from
    /// there, and the step is in no total.
    pub fn take(&mut self, reading: &mut Reading, bytes_a_second: u64) -> Growth {
        let seconds = if self.seen == 0 { 0.0 } else { reading.at.since(self.at).as_secs_f64() };
        let (before, at) = (std::mem::take(&mut self.latest), reading.at);
        let (known, by) = (0, [0; COUNT]);
        let mut growth = Growth { at, seconds, reset: false, known, timed: before, refused: 0, by };
        if self.seen == 0 {
            self.began = at;
        }
        let mut stuck = self.counting.stuck;
        let mut impossible = 0;
        for counter in Counter::all() {
            let (index, bit) = (counter as usize, 1 << counter as usize);
            let Some(raw) = reading.get(counter) else {
                // Read on a slower interval: between two reads the last total stands, or that there is
                // none because the last value was impossible.
                if reading.is_kept(counter) {
                    impossible |= self.counting.impossible & bit;
                    if self.seen & bit != 0 && impossible & bit == 0 {
                        reading.set(counter, self.sum(index));
                    }
                }
                continue;
            };
            let is_rebased = reading.is_rebased(counter) && self.seen & bit != 0;
            let since = (before & bit != 0).then_some(self.at);
            if !self.accept(counter, raw, at, since, is_rebased, bytes_a_second) {
                growth.refused |= bit;
                reading.remove(counter);
                continue;
            }
            if is_rebased {
                // Another field, which does not continue the last one: what both have in common is
                // not known, so the total only rises to what the field shows.
                let last = self.sum(index);
                growth.by[index] = raw.saturating_sub(last);
                growth.known |= bit;
                self.set_before(index, last.max(raw) - raw);
            } else if (self.seen | self.remembered) & bit != 0 {
                let last = self.raws[index];
                let fell = raw < last;
                if fell {
                    self.fall(index, last);
                }
                growth.reset |= fell;
                growth.by[index] = if fell { raw } else { raw - last };
                growth.known |= self.seen & bit;
            }
            self.remembered &= !bit;
            self.raws[index] = raw;
            self.seen |= bit;
            self.latest |= bit;
            stuck = if reading.is_stuck(counter) { stuck | bit } else { stuck & !bit };
            reading.set(counter, self.sum(index));
        }
        self.at = reading.at;
        self.counting.impossible = impossible | growth.refused;
        let refused = growth.refused.count_ones();
        self.counting.impossible_readings =
            self.counting.impossible_readings.saturating_add(refused);
        self.counting.stuck = stuck;
        self.counting.saturated |= stuck;
        if growth.reset {
            self.counting.resets = self.counting.resets.saturating_add(1);
            self.counting.last_reset = Some(reading.at);
        }
        growth
    }

    /// Whether a value is a reading; see [`take`](Self::take). `since` is when the counter was read
    /// last, if that was the port's latest reading.
    fn accept(
        &mut self,
        counter: Counter,
        raw: u64,
        at: Moment,
        since: Option<Moment>,
        is_rebased: bool,
        bytes_a_second: u64,
    ) -> bool {
        let (index, bit) = (counter as usize, 1 << counter as usize);
        let is_possible = counter.is_plausible(raw);
        if (self.seen | self.remembered) & bit == 0 {
            // There is nothing that it could have grown from.
            return is_possible;
        }
        let place = self.refused.iter().position(|refusal| refusal.counter == counter);
        let refusal = place.and_then(|place| self.refused.get(place)).copied();
        let since = refusal.map_or(since, |refusal| refusal.since);
        // A reading was lost, or it is read on a slower interval: it grew in this watch at least.
        let since = since.or((self.seen & bit != 0).then_some(self.began));
        let most = |since: Option<Moment>| {
            let seconds = since.map_or(UNKNOWN_TIME, |since| at.since(since).as_secs_f64());
            plausible::most(counter, bytes_a_second, seconds)
        };
        let last = self.raws[index];
        let total = self.sum(index);
        let by = match raw.checked_sub(last) {
            _ if is_rebased => raw.saturating_sub(total),
            Some(by) => by,
            None => raw,
        };
        let fits = total.checked_add(by).is_some();
        if is_possible && fits && by <= most(since) {
            self.refused.retain(|refusal| refusal.counter != counter);
            return true;
        }
        let agrees = |refusal: Refusal| {
            let by = raw.checked_sub(refusal.shown)?;
            (by <= most(Some(refusal.at))).then_some(refusal.agree)
        };
        let agree = match refusal.and_then(agrees).filter(|_| is_possible) {
            Some(agree) => agree.saturating_add(1),
            None => u8::from(is_possible),
        };
        self.refused.retain(|refusal| refusal.counter != counter);
        if agree >= SETTLED {
            self.set_before(index, total.wrapping_sub(raw));
            self.raws[index] = raw;
            return true;
        }
        self.refused.push(Refusal { counter, since, shown: raw, at, agree });
        false
    }

    /// We ourselves cleared a counter, which showed `last` just before.
    pub fn cleared(&mut self, counter: Counter, last: u64) {
        let index = counter as usize;
        if self.seen >> index & 1 == 1 {
            let known = self.raws[index];
            let refused = self.refused.iter().any(|refusal| refusal.counter == counter);
            // What it showed may be no reading; what it showed before that was one.
            self.fall(index, if refused { known } else { last.max(known) });
            self.refused.retain(|refusal| refusal.counter != counter);
            self.raws[index] = 0;
        }
    }

    /// A counter's total, if it was ever read.
    pub fn total(&self, counter: Counter) -> Option<u64> {
        let index = counter as usize;
        (self.seen >> index & 1 == 1).then(|| self.sum(index))
    }

    /// Whether a traffic counter shows anything: if the device resets, it falls.
    pub fn shows_traffic(&self) -> bool {
        use Counter::{RcvData, RcvPkts, XmitData, XmitPkts};
        let shows = |counter: Counter| self.raws[counter as usize] > 0;
        [XmitPkts, RcvPkts, XmitData, RcvData].into_iter().any(shows)
    }

    /// A counter begins anew after it showed `last`.
    fn fall(&mut self, index: usize, last: u64) {
        let before = self.before.as_ref().map_or(0, |before| before[index]);
        self.set_before(index, before.wrapping_add(last));
    }

    fn set_before(&mut self, index: usize, before: u64) {
        let all = self.before.get_or_insert_with(|| Arc::new([0; COUNT]));
        Arc::make_mut(all)[index] = before;
    }

    fn sum(&self, index: usize) -> u64 {
        let before = self.before.as_ref().map_or(0, |before| before[index]);
        before.wrapping_add(self.raws[index])
    }

    /// What counters had counted before they fell last, if one ever did.
    pub fn before(&self) -> Option<&Arc<Before>> {
        self.before.as_ref()
    }

    /// How its counters fared.
    pub fn counting(&self) -> Counting {
        self.counting
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ERRORS: Counter = Counter::SymbolErrors;

    /// 4x NDR, in bytes a second.
    const RATE: u64 = 50_000_000_000;

    fn reading(at: u64, raw: u64, stuck: bool) -> Reading {
        let mut reading = Reading::empty(Moment(at * 1_000_000_000));
        reading.set(ERRORS, raw);
        if stuck {
            reading.set_stuck(ERRORS);
        }
        reading
    }

    /// Takes raw values in, one a second, and tells the totals.
    fn totals(raws: &[u64]) -> (Vec<u64>, Counting) {
        let mut totals = PortTotals::default();
        let told = raws.iter().enumerate().map(|(at, &raw)| {
            let mut reading = reading(at as u64, raw, raw == 255);
            totals.take(&mut reading, RATE);
            reading.get(ERRORS).unwrap()
        });
        (told.collect(), totals.counting())
    }

    #[test]
    fn a_total_grows_as_its_counter_does_and_never_falls() {
        for (raws, told, resets) in [
            (&[7, 7, 9][..], &[7, 7, 9][..], 0),
            // Cleared, and counting on.
            (&[7, 0, 2, 5], &[7, 7, 9, 12], 1),
            // Cleared twice.
            (&[100, 40, 3], &[100, 140, 143], 2),
            // Full: a lower bound, until it is cleared.
            (&[250, 255, 255, 4], &[250, 255, 255, 259], 1),
        ] {
            let (got, counting) = totals(raws);
            assert_eq!((&got[..], counting.resets), (told, resets), "{raws:?}");
        }
    }

    #[test]
    fn saturation_is_told_while_it_lasts_and_after() {
        let (_, counting) = totals(&[255]);
        assert!(counting.is_stuck(ERRORS) && counting.was_saturated(ERRORS));
        let (_, counting) = totals(&[255, 0]);
        assert!(!counting.is_stuck(ERRORS) && counting.was_saturated(ERRORS));
        let (_, counting) = totals(&[254, 3]);
        assert!(!counting.was_any_saturated());
        assert_eq!(counting.last_reset, Some(Moment(1_000_000_000)));
    }

    #[test]
    fn growth_is_known_from_the_second_reading_on() {
        let mut totals = PortTotals::default();
        let first = totals.take(&mut reading(10, 5, false), RATE);
        assert_eq!((first.of(ERRORS), first.reset), (None, false));
        assert!(first.seconds.abs() < 1e-9);
        let second = totals.take(&mut reading(25, 8, false), RATE);
        assert_eq!(second.of(ERRORS), Some(3));
        assert_eq!(second.of(Counter::XmitWait), None);
        assert!((second.seconds - 15.0).abs() < 1e-9);
        // It was not read in between: nothing is lost, but that took longer.
        totals.take(&mut Reading::empty(Moment(40_000_000_000)), RATE);
        let third = totals.take(&mut reading(55, 20, false), RATE);
        assert_eq!((third.of(ERRORS), third.timed(ERRORS)), (Some(12), None));
        assert_eq!(totals.take(&mut reading(70, 21, false), RATE).timed(ERRORS), Some(1));
    }

    #[test]
    fn what_we_clear_ourselves_is_no_reset_and_loses_nothing() {
        let mut totals = PortTotals::default();
        totals.take(&mut reading(0, 200, false), RATE);
        totals.cleared(ERRORS, 203);
        assert_eq!(totals.total(ERRORS), Some(203));
        totals.take(&mut reading(1, 2, false), RATE);
        assert_eq!((totals.total(ERRORS), totals.counting().resets), (Some(205), 0));
        // Of one that was never read nothing is known.
        totals.cleared(Counter::LinkDowned, 9);
        assert_eq!(totals.total(Counter::LinkDowned), None);
    }

    #[test]
    fn totals_go_on_where_an_earlier_watch_ended() {
        let memory = |total, before| {
            let mut memory = Remembered::default();
            memory.set(ERRORS, total);
            memory.set_before(ERRORS, before);
            memory
        };
        for (total, before, raw, goes_on, resets) in [
            // It had fallen before, and counted on meanwhile.
            (140, 100, 47, 147, 0),
            (140, 100, 40, 140, 0),
            (7, 0, 9, 9, 0),
            // It fell meanwhile.
            (140, 100, 39, 179, 1),
        ] {
            let mut totals = PortTotals::resume(&memory(total, before));
            assert_eq!(totals.total(ERRORS), None, "nothing was read in this watch");
            let mut first = reading(10, raw, false);
            let growth = totals.take(&mut first, RATE);
            assert_eq!((first.get(ERRORS), totals.counting().resets), (Some(goes_on), resets));
            assert_eq!(growth.of(ERRORS), None, "nobody knows since when");
            assert!(growth.seconds.abs() < 1e-9);
            let mut second = reading(25, raw + 3, false);
            let growth = totals.take(&mut second, RATE);
            assert_eq!((growth.timed(ERRORS), second.get(ERRORS)), (Some(3), Some(goes_on + 3)));
        }
    }

    /// What a ConnectX-7 was seen to report.
    const NEGATIVE: u64 = u64::MAX - 39;

    /// More symbol errors than 4x NDR carries symbols in an hour.
    const TOO_MANY: u64 = 1 << 52;

    /// Takes raw values in, one a second: the totals, `None` where there is no reading, and how the
    /// counters fared.
    fn readings(totals: &mut PortTotals, raws: &[u64]) -> Vec<Option<u64>> {
        let told = raws.iter().map(|&raw| {
            let at = totals.at.0 / 1_000_000_000 + 1;
            let mut reading = reading(at, raw, false);
            totals.take(&mut reading, RATE);
            reading.get(ERRORS)
        });
        told.collect()
    }

    #[test]
    fn an_impossible_value_is_no_reading_and_the_total_goes_on_after_it() {
        for (raws, told, impossible) in [
            (&[7, NEGATIVE, 9][..], &[Some(7), None, Some(9)][..], 1),
            (&[7, TOO_MANY, 9], &[Some(7), None, Some(9)], 1),
            // From the beginning, and for good.
            (&[NEGATIVE; 20], &[None; 20], 20),
            (&[NEGATIVE, 5, 6], &[None, Some(5), Some(6)], 1),
            // Cleared meanwhile.
            (&[7, NEGATIVE, 2], &[Some(7), None, Some(9)], 1),
            // Impossible values that do not agree with each other.
            (&[7, TOO_MANY, 2 * TOO_MANY, TOO_MANY, 8], &[Some(7), None, None, None, Some(8)], 3),
        ] {
            let mut totals = PortTotals::default();
            assert_eq!(readings(&mut totals, raws), told, "{raws:?}");
            assert_eq!(totals.counting().impossible_readings, impossible, "{raws:?}");
            let now = told.last().is_some_and(Option::is_none);
            assert_eq!(totals.counting().is_impossible(ERRORS), now, "{raws:?}");
        }
    }

    #[test]
    fn nothing_is_known_of_the_growth_of_an_impossible_value() {
        let mut totals = PortTotals::default();
        totals.take(&mut reading(10, 5, false), RATE);
        let growth = totals.take(&mut reading(25, NEGATIVE, false), RATE);
        assert_eq!(
            (growth.of(ERRORS), growth.is_refused(ERRORS), growth.reset),
            (None, true, false)
        );
        let growth = totals.take(&mut reading(40, 8, false), RATE);
        assert_eq!((growth.of(ERRORS), growth.timed(ERRORS)), (Some(3), None));
        assert!(!growth.is_refused(ERRORS));
    }

    #[test]
    fn a_lost_answer_does_not_admit_what_a_year_could_bring() {
        let mut totals = PortTotals::default();
        let mut told = |at: u64, raw: Option<u64>| {
            let mut reading = Reading::empty(Moment(at * 1_000_000_000));
            if let Some(raw) = raw {
                reading.set(ERRORS, raw);
            }
            totals.take(&mut reading, RATE);
            reading.get(ERRORS)
        };
        let values = [(0, Some(7)), (15, None), (30, Some(1_000_000_000_000_000)), (45, Some(9))];
        let values = values.map(|(at, raw)| told(at, raw));
        assert_eq!(values, [Some(7), None, None, Some(9)]);
    }

    #[test]
    fn a_counter_stays_impossible_until_it_is_read_again() {
        let mut totals = PortTotals::default();
        let mut told = |at: u64, raw: Option<u64>| {
            let mut reading = Reading::empty(Moment(at * 1_000_000_000));
            match raw {
                Some(raw) => reading.set(ERRORS, raw),
                None => reading.keep(ERRORS),
            }
            totals.take(&mut reading, RATE);
            (reading.get(ERRORS), totals.counting().is_impossible(ERRORS))
        };
        assert_eq!(told(0, Some(7)), (Some(7), false));
        assert_eq!(told(15, None), (Some(7), false));
        assert_eq!(told(30, Some(NEGATIVE)), (None, true));
        assert_eq!(told(45, None), (None, true));
        assert_eq!(told(60, Some(8)), (Some(8), false));
    }

    #[test]
    fn a_total_at_its_highest_value_does_not_wrap() {
        let mut totals = PortTotals::default();
        let mut told = |raw| {
            let mut reading = Reading::empty(totals.at + std::time::Duration::from_secs(1));
            reading.set(Counter::XmitData, raw);
            totals.take(&mut reading, RATE);
            reading.get(Counter::XmitData)
        };
        let values = [u64::MAX - 1, u64::MAX, 0, 1].map(&mut told);
        assert_eq!(values, [Some(u64::MAX - 1), Some(u64::MAX), Some(u64::MAX), None]);
    }

    #[test]
    fn a_counter_that_was_set_counts_on_from_there_after_a_while() {
        let mut totals = PortTotals::default();
        readings(&mut totals, &[10, 20]);
        let set: Vec<u64> = (0..u64::from(SETTLED)).map(|nth| TOO_MANY + nth).collect();
        let told = readings(&mut totals, &set);
        assert!(told[..told.len() - 1].iter().all(Option::is_none), "{told:?}");
        assert_eq!(told.last(), Some(&Some(20)), "the step is in no total");
        assert_eq!(readings(&mut totals, &[TOO_MANY + 100]), [Some(20 + 100 - 7)]);
        // The same in the watch after this one.
        let mut memory = Remembered::default();
        memory.set(ERRORS, totals.total(ERRORS).unwrap());
        memory.set_before(ERRORS, totals.before().unwrap()[ERRORS as usize]);
        let mut next = PortTotals::resume(&memory);
        assert_eq!(readings(&mut next, &[TOO_MANY + 103]), [Some(116)]);
        assert_eq!(next.counting().resets, 0);
    }

    #[test]
    fn resumed_totals_survive_an_impossible_first_value() {
        let mut memory = Remembered::default();
        memory.set(ERRORS, 140);
        let mut totals = PortTotals::resume(&memory);
        assert_eq!(readings(&mut totals, &[NEGATIVE, 150, 151]), [None, Some(150), Some(151)]);
    }

    #[test]
    fn what_we_clear_while_it_shows_an_impossible_value_is_not_counted() {
        let mut totals = PortTotals::default();
        readings(&mut totals, &[10, TOO_MANY]);
        totals.cleared(ERRORS, TOO_MANY);
        assert_eq!(readings(&mut totals, &[2]), [Some(12)]);
    }

    proptest! {
        /// A device that now and then shows nonsense: no total is above the truth, none falls, and each
        /// one that there is is the truth.
        #[test]
        fn nonsense_in_between_changes_no_total(
            steps in proptest::collection::vec((0u64..300, 0u8..3, TOO_MANY..), 1..60),
        ) {
            let mut totals = PortTotals::default();
            let mut truth = 5;
            readings(&mut totals, &[truth]);
            let mut nonsense = 0;
            for (count, what, value) in steps {
                truth += count;
                // Nonsense that never agrees with itself for long: a counter that was set would.
                let is_nonsense = what == 0 && nonsense < SETTLED - 1;
                nonsense = if is_nonsense { nonsense + 1 } else { 0 };
                let told = readings(&mut totals, &[if is_nonsense { value } else { truth }]);
                prop_assert_eq!(told[0], (!is_nonsense).then_some(truth));
                prop_assert!(totals.total(ERRORS).is_some_and(|total| total <= truth));
            }
        }

        /// Whatever is counted, read and cleared, in whatever order: the total is what was counted
        /// but for what was counted between a reading and a clear, or at a full counter.
        #[test]
        fn totals_are_the_truth_less_what_nobody_saw(
            steps in proptest::collection::vec((0u64..300, 0u8..8, any::<bool>()), 1..60),
            wide in any::<bool>(),
        ) {
            let most = if wide { u64::MAX } else { 255 };
            let mut totals = PortTotals::default();
            let (mut raw, mut truth) = (0u64, 0u64);
            let (mut before, mut exact) = (0u64, true);
            totals.take(&mut reading(0, 0, false), RATE);
            for (at, (count, what, ours)) in steps.into_iter().enumerate() {
                let counted = raw.saturating_add(count).min(most);
                exact &= counted < most;
                (raw, truth) = (counted, truth + count);
                if what == 0 {
                    if ours {
                        totals.cleared(ERRORS, raw);
                    } else {
                        // Hidden from now on: what was counted since the latest reading, and, if the
                        // counter is past its old value when it is next read, that value.
                        exact = false;
                    }
                    raw = 0;
                } else {
                    let mut reading = reading(at as u64 + 1, raw, raw == most);
                    totals.take(&mut reading, RATE);
                    let total = reading.get(ERRORS).unwrap();
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
}
