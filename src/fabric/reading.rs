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
    values: [u64; counter::COUNT],
}

// One bit a counter in `present`.
const _: () = assert!(counter::COUNT <= 64);

impl Reading {
    /// A reading without any value yet.
    pub fn empty(at: Moment) -> Self {
        Reading { at, present: 0, stuck: 0, values: [0; counter::COUNT] }
    }

    /// The raw value, in the counter's own units (words for data), if it was read.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        let index = counter as usize;
        (self.present >> index & 1 == 1).then(|| self.values[index])
    }

    /// Takes down a raw value.
    pub fn set(&mut self, counter: Counter, value: u64) {
        self.values[counter as usize] = value;
        self.present |= 1 << counter as usize;
    }

    /// Drops a value that turned out to be none.
    pub fn unset(&mut self, counter: Counter) {
        self.present &= !(1 << counter as usize);
    }

    /// Takes down that a counter's field is full: what it would have counted since is lost.
    pub fn set_stuck(&mut self, counter: Counter) {
        self.stuck |= 1 << counter as usize;
    }

    /// Whether a counter's field is full.
    pub fn is_stuck(&self, counter: Counter) -> bool {
        self.stuck >> counter as usize & 1 == 1
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
