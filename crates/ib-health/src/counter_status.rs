//! What limits the totals of a port's counters: saturation, resets and impossible values.

use ib_mad::Moment;
use ib_mad::reading::CounterSet;

/// What limits the totals of a port's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterStatus {
    /// Counters that are saturated now: they have stopped at their maximum.
    pub saturated_now: CounterSet,
    /// Counters that were saturated at least once: their totals are lower bounds.
    pub ever_saturated: CounterSet,
    /// Counters whose latest value was impossible, and is not used.
    pub impossible: CounterSet,
    /// How many impossible values there were, of all counters.
    pub impossible_readings: u32,
    /// How often counters decreased: a tool cleared them, or the device was reset.
    pub resets: u32,
    /// When that was last seen.
    pub last_reset: Option<Moment>,
}
