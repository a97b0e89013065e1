//! MAD statistics: counts by class and outcome, and round-trip times.

use std::time::Duration;

use display_text::labeled_enum;
use ib_mad::Class;

labeled_enum! {
    /// Outcome of one MAD. A retry is a MAD of its own.
    pub enum MadOutcome {
        Answered, "answered", "Response with status 0.";
        Busy, "busy", "Response with status busy.";
        Redirected, "redirected", "Response with a redirect.";
        Refused, "refused", "Response with another status.";
        TimedOut, "timed_out", "No response in time.";
        Unsent, "unsent", "Not sent: refused by the driver or the device.";
        Malformed, "malformed", "Received, but not a complete MAD.";
        Stray, "stray", "Received, but matches no outstanding request.";
    }
}

/// Upper bounds in seconds. Fabrics respond in 10 to 100 µs; milliseconds mean queueing or busy firmware.
pub const ROUND_TRIP_BOUNDS: [f64; 12] =
    [10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 20e-3, 100e-3, 500e-3];

/// A histogram of round-trip times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundTrips {
    /// Count of each bucket; the last is above all bounds.
    pub buckets: [u64; ROUND_TRIP_BOUNDS.len() + 1],
    /// Sum of all round trips.
    pub sum: Duration,
}

impl RoundTrips {
    fn observe(&mut self, round_trip: Duration) {
        let seconds = round_trip.as_secs_f64();
        let bucket = ROUND_TRIP_BOUNDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket] += 1;
        self.sum += round_trip;
    }

    /// Number of round trips.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// MAD statistics of one local port since the start of the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MadStats {
    /// By class; the last row is of MADs whose class is unknown.
    outcomes: [[u64; MadOutcome::ALL.len()]; Class::ALL.len() + 1],
    round_trips: [RoundTrips; Class::ALL.len()],
}

/// The row of a class.
fn row(class: Option<Class>) -> usize {
    class.map_or(Class::ALL.len(), Class::index)
}

impl MadStats {
    /// The classes by which MADs are counted; `None` is that of received MADs whose class is unknown.
    pub fn classes() -> impl Iterator<Item = Option<Class>> {
        Class::ALL.into_iter().map(Some).chain([None])
    }

    /// Whether MADs of a class can have an outcome. Only received MADs are of an unknown class; whether one that is
    /// malformed is of a class is unknown.
    pub fn is_counted(class: Option<Class>, outcome: MadOutcome) -> bool {
        match outcome {
            MadOutcome::Answered
            | MadOutcome::Busy
            | MadOutcome::Redirected
            | MadOutcome::Refused
            | MadOutcome::TimedOut
            | MadOutcome::Unsent => class.is_some(),
            MadOutcome::Malformed => class.is_none(),
            MadOutcome::Stray => true,
        }
    }

    pub(crate) fn record(&mut self, class: impl Into<Option<Class>>, outcome: MadOutcome) {
        let class = class.into();
        debug_assert!(Self::is_counted(class, outcome), "{class:?}: {outcome:?}");
        self.outcomes[row(class)][outcome as usize] += 1;
    }

    pub(crate) fn record_round_trip(&mut self, class: Class, round_trip: Duration) {
        self.round_trips[class.index()].observe(round_trip);
    }

    /// These statistics and those of another client of the port.
    #[must_use]
    pub fn with(mut self, other: &MadStats) -> Self {
        for (class, counts) in self.outcomes.iter_mut().zip(other.outcomes) {
            class.iter_mut().zip(counts).for_each(|(count, more)| *count += more);
        }
        for (trips, more) in self.round_trips.iter_mut().zip(&other.round_trips) {
            trips.buckets.iter_mut().zip(more.buckets).for_each(|(count, more)| *count += more);
            trips.sum += more.sum;
        }
        self
    }

    /// Number of MADs of a class with this outcome.
    pub fn count(&self, class: impl Into<Option<Class>>, outcome: MadOutcome) -> u64 {
        self.outcomes[row(class.into())][outcome as usize]
    }

    /// Number of MADs with this outcome, of all classes.
    pub fn total(&self, outcome: MadOutcome) -> u64 {
        self.outcomes.iter().map(|counts| counts[outcome as usize]).sum()
    }

    /// Round-trip times of a class.
    pub fn round_trips(&self, class: Class) -> &RoundTrips {
        &self.round_trips[class.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_bucket_bounds_are_inclusive() {
        let mut trips = RoundTrips::default();
        for (micros, bucket) in [(1, 0), (10, 0), (11, 1), (100, 3), (600_000, 12)] {
            let before = trips.buckets[bucket];
            trips.observe(Duration::from_micros(micros));
            assert_eq!(trips.buckets[bucket], before + 1, "{micros} µs");
        }
        assert_eq!(trips.count(), 5);
    }

    #[test]
    fn outcome_and_class_indexes_match_all() {
        for (index, outcome) in MadOutcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, index);
        }
        for (index, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), index);
        }
    }
}
