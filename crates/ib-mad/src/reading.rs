//! A reading: the counter values of a port at one time.

use std::marker::PhantomData;

use crate::counter::{self, Counter};
use crate::moment::Moment;

/// The values as the device reports them: they saturate, and may be cleared or reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raw {}

/// The values are 64-bit totals since the port was first seen: they never fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Totals {}

/// A set of counters, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterSet(u64);

// One bit per counter.
const _: () = assert!(counter::COUNT <= 64);

impl CounterSet {
    /// Whether a counter is in the set.
    pub fn contains(self, counter: Counter) -> bool {
        self.0 >> counter as usize & 1 == 1
    }

    /// Adds a counter, or removes it.
    pub fn set(&mut self, counter: Counter, is_in: bool) {
        self.0 = self.0 & !(1 << counter as usize) | u64::from(is_in) << counter as usize;
    }

    /// Adds a counter.
    pub fn insert(&mut self, counter: Counter) {
        self.set(counter, true);
    }

    /// How many counters are in the set.
    pub fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether no counter is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The counters that are in either set.
    #[must_use]
    pub fn union(self, other: CounterSet) -> CounterSet {
        CounterSet(self.0 | other.0)
    }

    /// The counters that are in both sets.
    #[must_use]
    pub fn intersection(self, other: CounterSet) -> CounterSet {
        CounterSet(self.0 & other.0)
    }

    /// The counters that are not in the other set.
    #[must_use]
    pub fn without(self, other: CounterSet) -> CounterSet {
        CounterSet(self.0 & !other.0)
    }

    /// The counters of the set, in table order.
    pub fn iter(self) -> impl Iterator<Item = Counter> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let row = counter::TABLE.get(rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(row.counter)
        })
    }
}

/// The values of a port's counters, each present or absent, and when they were read.
///
/// Absent is not zero: a counter that the device does not have, or that could not be read, has no value.
///
/// `V` says which values they are. Collectors make a `Reading<Raw>`, and only `ib-health` makes a
/// `Reading<Totals>` of it ([`Reading::assume_totals`]), so that the two cannot be confused.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading<V = Totals> {
    /// When the last response was received.
    pub at: Moment,
    /// Counters with a value.
    present: CounterSet,
    /// Saturated counters: counts since then are lost. Totals have none of these three.
    pub saturated: CounterSet,
    /// Counters that are read on a slower interval and were not due in this sweep: their last totals stay valid.
    pub not_due: CounterSet,
    /// Counters that are read from another field than before: their values do not continue the last ones.
    pub rebased: CounterSet,
    values: [u64; counter::COUNT],
    kind: PhantomData<V>,
}

impl<V> Reading<V> {
    /// A reading without any value yet.
    pub fn empty(at: Moment) -> Self {
        let values = [0; counter::COUNT];
        let none = CounterSet::default();
        let (present, saturated, not_due, rebased) = (none, none, none, none);
        Reading { at, present, saturated, not_due, rebased, values, kind: PhantomData }
    }

    /// A counter's value in its own units (words of four bytes for data), if it is present.
    pub fn get(&self, counter: Counter) -> Option<u64> {
        self.present.contains(counter).then(|| self.values[counter as usize])
    }

    /// Sets a counter's value.
    pub fn set(&mut self, counter: Counter, value: u64) {
        self.values[counter as usize] = value;
        self.present.insert(counter);
    }

    /// Whether no counter has a value.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty()
    }
}

impl Reading<Raw> {
    /// Copies a counter's value, and whether it is saturated, from another reading.
    pub fn copy(&mut self, counter: Counter, from: &Self) {
        if let Some(value) = from.get(counter) {
            self.set(counter, value);
        }
        if from.saturated.contains(counter) {
            self.saturated.insert(counter);
        }
    }

    /// The counters whose values are these; an absent one's is 0.
    #[inline]
    pub fn equal_to(&self, values: &[u64; counter::COUNT]) -> CounterSet {
        let bits = self.values.iter().zip(values).enumerate();
        let equal = bits.fold(0, |set, (nth, (a, b))| set | u64::from(a == b) << nth);
        CounterSet(equal).intersection(self.present)
    }

    /// Removes a counter's value: absent, as if it had not been read.
    pub fn remove(&mut self, counter: Counter) {
        self.values[counter as usize] = 0;
        for set in [&mut self.present, &mut self.saturated, &mut self.rebased] {
            set.set(counter, false);
        }
    }

    /// Replaces each raw value by the counter's total; `None` leaves the counter absent. `total` gets the reading
    /// and the counter; the counters before it have their totals already.
    ///
    /// `unchanged` are counters whose raw values are their totals: they stay. Counters that have no value and are not
    /// due on a slower interval have no total, and are left out, too.
    ///
    /// In place, and [`assume_totals`](Self::assume_totals) after that: moving readings of 400 bytes took a tenth
    /// of the evaluation of a sweep.
    #[inline]
    pub fn replace_values(
        &mut self,
        unchanged: CounterSet,
        mut total: impl FnMut(&Self, Counter) -> Option<u64>,
    ) {
        let mut present = self.present.intersection(unchanged);
        for counter in self.present.union(self.not_due).without(present).iter() {
            let value = total(self, counter);
            present.set(counter, value.is_some());
            self.values[counter as usize] = value.unwrap_or(0);
        }
        let none = CounterSet::default();
        (self.present, self.saturated, self.not_due, self.rebased) = (present, none, none, none);
    }

    /// The same values as totals, after [`replace_values`](Self::replace_values).
    #[inline]
    pub fn assume_totals(self) -> Reading<Totals> {
        let Reading { at, present, saturated, not_due, rebased, values, .. } = self;
        Reading { at, present, saturated, not_due, rebased, values, kind: PhantomData }
    }
}

impl Reading<Totals> {
    /// The sum of the port's link errors; absent counters add nothing.
    pub fn link_errors(&self) -> u64 {
        counter::link_errors(|counter| self.get(counter).unwrap_or(0))
    }

    /// Whether any of the counters of link errors has a value.
    pub fn has_link_errors(&self) -> bool {
        counter::LINK_ERRORS.iter().any(|counter| self.get(*counter).is_some())
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
