//! What one port's counters said at one moment.

use super::counter::{self, Counter};
use super::moment::Moment;

/// The raw values of a port's counters, each present or absent, and when they were read.
///
/// Absent is not zero: a counter that the device does not have, or did not answer for, has no value.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// When the last of its answers came in.
    pub at: Moment,
    present: u64,
    /// Counters that stand at their field's highest value and count no further.
    stuck: u64,
    /// Counters that are read less often, and were not due: their last totals stand.
    kept: u64,
    /// Counters that are read from another field from now on: their values do not continue the last.
    rebased: u64,
    values: [u64; counter::COUNT],
}

// One bit a counter in `present`.
const _: () = assert!(counter::COUNT <= 64);

impl Reading {
    /// A reading without any value yet.
    pub fn empty(at: Moment) -> Self {
        Reading { at, present: 0, stuck: 0, kept: 0, rebased: 0, values: [0; counter::COUNT] }
    }

    /// The raw value, in the counter's own units (words for data), if it was read.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        let index = counter as usize;
        (self.present >> index & 1 == 1).then(|| self.values[index])
    }

    /// The sum of its link errors; what was not read adds nothing.
    pub fn link_errors(&self) -> u64 {
        counter::link_errors(|counter| self.get(counter).unwrap_or(0))
    }

    /// Takes down a raw value.
    pub fn set(&mut self, counter: Counter, value: u64) {
        self.values[counter as usize] = value;
        self.present |= 1 << counter as usize;
    }

    /// Takes down that a counter's field is full: what it would have counted since is lost.
    pub fn set_stuck(&mut self, counter: Counter) {
        self.stuck |= 1 << counter as usize;
    }

    /// Whether a counter's field is full.
    pub fn is_stuck(&self, counter: Counter) -> bool {
        self.stuck >> counter as usize & 1 == 1
    }

    /// Takes a counter's value over from another reading, and whether its field is full there.
    pub fn copy(&mut self, counter: Counter, from: &Reading) {
        if let Some(value) = from.get(counter) {
            self.set(counter, value);
        }
        if from.is_stuck(counter) {
            self.set_stuck(counter);
        }
    }

    /// Removes a counter's value: absent, as if the counter had not been read.
    pub fn remove(&mut self, counter: Counter) {
        self.values[counter as usize] = 0;
        for mask in [&mut self.present, &mut self.stuck, &mut self.rebased] {
            *mask &= !(1 << counter as usize);
        }
    }

    /// Marks a counter that is read on a slower interval and was not due in this sweep.
    pub fn keep(&mut self, counter: Counter) {
        self.kept |= 1 << counter as usize;
    }

    /// Whether the last total of a counter stands, because the counter was not due.
    pub fn is_kept(&self, counter: Counter) -> bool {
        self.kept >> counter as usize & 1 == 1
    }

    /// Marks a counter that comes from another field than before: its growth is not the difference
    /// to the last value.
    pub fn rebase(&mut self, counter: Counter) {
        self.rebased |= 1 << counter as usize;
    }

    /// Whether a counter comes from another field than before.
    pub fn is_rebased(&self, counter: Counter) -> bool {
        self.rebased >> counter as usize & 1 == 1
    }

    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        self.present == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_read_is_absent_and_zero_is_a_value() {
        let mut reading = Reading::empty(Moment(1));
        assert!(reading.is_empty());
        reading.set(Counter::LinkDowned, 0);
        assert_eq!(reading.get(Counter::LinkDowned), Some(0));
        assert_eq!(reading.get(Counter::SymbolErrors), None);
    }
}
