//! Clears by other tools: how much of the time between two readings the counters of a port observed.
//!
//! A counter that was cleared shows what it counted since then. What it counted before, since the last reading, is lost,
//! and when it was cleared is not known. An error ratio must not divide by the lost time, or it is too low by the number
//! of clears in each interval: all of a bad cable's errors may be hidden behind a tool that clears every few seconds.
//! Nor may it divide by too little, or a good link seems bad. The estimate of the share that was observed:
//!
//! - **Now and then a clear**: half of the interval, because it may have been at any moment in it. That is right on
//!   average, and of a single one off by half of an interval at most.
//! - **Again and again in two intervals in a row** ([`Clears::are_frequent`]): half of each interval. Then a tool clears
//!   more often than every second interval, and how often cannot be seen: a clear in each leaves half of it on average, a
//!   hundred leave nothing. A ratio is too high by a factor of 1.5 at most (a clear in almost every second interval), so
//!   that `bad` is certain; and it is too low by the number of clears in an interval. So a link is only fine if it
//!   would be with [`DOUBT`] times as many errors. That no counter fell in an interval says nothing then: one that was
//!   cleared early in it shows more than before, which also loses up to a third of the errors.
//!
//! Not every fast tool is seen. With steady traffic a counter that is cleared each 3.6 s and read each 15 s shows 0.6 s more
//! in each reading, and falls in every sixth: just like one that is cleared each 90 s.
//!
//! Counters that stand when others fall are not cleared with them: `ibqueryerrors -k` spares traffic, OpenSM's
//! performance manager clears what is nearly full.

use std::time::Duration;

use ib_mad::Counter;
use ib_mad::reading::CounterSet;

use super::totals::Growth;

/// The counters of which it matters how long they counted.
pub const TIMED: [Counter; 5] = [
    Counter::SymbolErrors,
    Counter::FecUncorrectableBlocks,
    Counter::FecCorrectedSymbols,
    Counter::XmitWait,
    Counter::XmitData,
];

/// So many clears in [`INTERVALS`] are a tool that clears again and again, not an operator's command.
const REPEATED: u32 = 3;

/// A tool that clears every few seconds does so several times in an interval of 15 s.
const DOUBT: f32 = 4.0;

/// The number of intervals that are remembered: 8 minutes at the default interval.
const INTERVALS: u32 = u32::BITS;

/// The latest intervals between two readings of a port in which counters fell.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clears {
    /// A bit for each interval; that of the latest one is the lowest.
    seen: u32,
    /// Those of [`TIMED`] that stood when others last fell.
    spared: CounterSet,
}

impl Clears {
    /// Adds the interval that ends now. `before` returns what a counter showed at its beginning.
    pub fn record(&mut self, growth: &Growth, before: impl Fn(Counter) -> u64) {
        if growth.seconds <= 0.0 {
            return;
        }
        self.seen = self.seen << 1 | u32::from(growth.reset);
        for counter in TIMED.into_iter().filter(|_| growth.reset) {
            if growth.fell.contains(counter) {
                self.spared.set(counter, false);
            } else if growth.get(counter).is_some() && before(counter) > 0 {
                self.spared.insert(counter);
            }
        }
    }

    /// Whether counters are cleared in most intervals. A tool that clears in every second one or less often never does so
    /// in two in a row. Of one that clears faster, a counter is as often higher as lower than before, so that it shows
    /// in two in a row once in six times.
    fn are_frequent(&self) -> bool {
        (self.seen & self.seen >> 1).count_ones() >= 2
    }

    /// Whether a counter was certainly not cleared, as far as is known.
    fn is_spared(&self, growth: &Growth, counter: Counter) -> bool {
        self.spared.contains(counter) && !growth.fell.contains(counter)
    }

    /// By how much a ratio may be too low, for a link to be called fine.
    pub fn doubt(&self) -> f32 {
        if self.are_frequent() { DOUBT } else { 1.0 }
    }

    /// The share of the latest interval in which a counter counted what it shows.
    pub fn observed(&self, growth: &Growth, counter: Counter) -> f32 {
        match (self.are_frequent(), growth.reset) {
            _ if self.is_spared(growth, counter) => 1.0,
            (false, false) => 1.0,
            _ => 0.5,
        }
    }

    /// The time between two clears at most, while a tool clears again and again.
    pub fn every(&self, growth: &Growth) -> Option<Duration> {
        let times = self.seen.count_ones();
        // Since the oldest of them.
        let intervals = INTERVALS - self.seen.leading_zeros();
        let seconds = growth.seconds * f64::from(intervals) / f64::from(times);
        (times >= REPEATED).then(|| Duration::try_from_secs_f64(seconds).ok())?
    }
}
