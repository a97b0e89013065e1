//! What one port's counters said at one moment.

use std::marker::PhantomData;

use super::counter::{self, Counter};
use super::moment::Moment;

/// The values are as the device shows them: they stick at their field's highest value, and fall when
/// somebody clears them or the device is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw {}

/// The values are 64-bit totals since the port was first seen: they never fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Totals {}

/// The values of a port's counters, each present or absent, and when they were read.
///
/// Absent is not zero: a counter that the device does not have, or did not answer for, has no value.
///
/// `V` says which values they are. Collectors make a `Reading<Raw>`, and only `ib-health` makes a
/// `Reading<Totals>` of it ([`Reading::into_totals`]), so that neither is taken for the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading<V = Totals> {
    /// When the last of its answers came in.
    pub at: Moment,
    /// One bit per counter in this and the next three masks.
    present: u64,
    /// The counter's field is full and counts no further.
    stuck: u64,
    /// The counter is read on a slower interval and was not due: its last total stays valid.
    not_due: u64,
    /// The counter is read from another field from now on: its value does not continue the last one.
    rebased: u64,
    values: [u64; counter::COUNT],
    kind: PhantomData<V>,
}

// One bit per counter in the masks.
const _: () = assert!(counter::COUNT <= 64);

impl<V> Reading<V> {
    /// A reading without any value yet.
    pub fn empty(at: Moment) -> Self {
        let values = [0; counter::COUNT];
        Reading { at, present: 0, stuck: 0, not_due: 0, rebased: 0, values, kind: PhantomData }
    }

    /// A counter's value in its own units (words of four bytes for data), if it is present.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        let index = counter as usize;
        (self.present >> index & 1 == 1).then(|| self.values[index])
    }

    /// Sets a counter's value.
    pub fn set(&mut self, counter: Counter, value: u64) {
        self.values[counter as usize] = value;
        self.present |= 1 << counter as usize;
    }

    /// Whether no counter has a value.
    pub fn is_empty(&self) -> bool {
        self.present == 0
    }
}

impl Reading<Raw> {
    /// Marks a counter whose field is full: what it would have counted since then is lost.
    pub fn set_stuck(&mut self, counter: Counter) {
        self.stuck |= 1 << counter as usize;
    }

    /// Whether a counter's field is full.
    pub fn is_stuck(&self, counter: Counter) -> bool {
        self.stuck >> counter as usize & 1 == 1
    }

    /// Copies a counter's value, and whether its field is full, from another reading.
    pub fn copy(&mut self, counter: Counter, from: &Self) {
        if let Some(value) = from.get(counter) {
            self.set(counter, value);
        }
        if from.is_stuck(counter) {
            self.set_stuck(counter);
        }
    }

    /// Removes a counter's value: absent, as if it had not been read.
    pub fn remove(&mut self, counter: Counter) {
        self.values[counter as usize] = 0;
        for mask in [&mut self.present, &mut self.stuck, &mut self.rebased] {
            *mask &= !(1 << counter as usize);
        }
    }

    /// Marks a counter that is read on a slower interval and was not due in this sweep.
    pub fn set_not_due(&mut self, counter: Counter) {
        self.not_due |= 1 << counter as usize;
    }

    /// Whether a counter was not due, so that its last total stays valid.
    pub fn is_not_due(&self, counter: Counter) -> bool {
        self.not_due >> counter as usize & 1 == 1
    }

    /// Marks a counter that comes from another field than before: its growth is not the difference
    /// to its last value.
    pub fn set_rebased(&mut self, counter: Counter) {
        self.rebased |= 1 << counter as usize;
    }

    /// Whether a counter comes from another field than before.
    pub fn is_rebased(&self, counter: Counter) -> bool {
        self.rebased >> counter as usize & 1 == 1
    }

    /// Replaces each raw value by the counter's total; `None` leaves the counter absent.
    pub fn into_totals(
        self,
        mut total: impl FnMut(&Self, Counter) -> Option<u64>,
    ) -> Reading<Totals> {
        let mut totals = Reading::empty(self.at);
        for counter in Counter::all() {
            if let Some(value) = total(&self, counter) {
                totals.set(counter, value);
            }
        }
        totals
    }
}

impl Reading<Totals> {
    /// The sum of the port's link errors; absent counters add nothing.
    pub fn link_errors(&self) -> u64 {
        counter::link_errors(|counter| self.get(counter).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_is_not_zero() {
        let mut reading = Reading::<Raw>::empty(Moment(1));
        assert!(reading.is_empty());
        reading.set(Counter::LinkDowned, 0);
        assert_eq!(reading.get(Counter::LinkDowned), Some(0));
        assert_eq!(reading.get(Counter::SymbolErrors), None);
    }
}
