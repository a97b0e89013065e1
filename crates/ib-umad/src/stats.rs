//! What became of the MADs that were sent: counts by class and outcome, and round trips.

use std::time::Duration;

use ib_mad::Class;

/// What became of one MAD on the wire. A retry is a MAD of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Answered, with status 0.
    Answered,
    /// Answered: too busy.
    Busy,
    /// Answered: ask elsewhere.
    Redirected,
    /// Answered: the device does not do that.
    Refused,
    /// Not answered in time.
    TimedOut,
    /// Not sent, because the driver or the device refused it.
    Unsent,
    /// Came in and was not a whole MAD.
    Malformed,
    /// Came in and answered nothing that was still waited for.
    Stray,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Outcome; 8] = [
        Outcome::Answered,
        Outcome::Busy,
        Outcome::Redirected,
        Outcome::Refused,
        Outcome::TimedOut,
        Outcome::Unsent,
        Outcome::Malformed,
        Outcome::Stray,
    ];

    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            Outcome::Answered => "answered",
            Outcome::Busy => "busy",
            Outcome::Redirected => "redirected",
            Outcome::Refused => "refused",
            Outcome::TimedOut => "timed_out",
            Outcome::Unsent => "unsent",
            Outcome::Malformed => "malformed",
            Outcome::Stray => "stray",
        }
    }
}

/// The upper bounds of the round-trip buckets, in seconds. Fabrics answer in 10 to 100 µs; what
/// takes milliseconds is queued behind something, or its firmware is busy.
pub const ROUND_TRIP_BOUNDS: [f64; 12] =
    [10e-6, 20e-6, 50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 20e-3, 100e-3, 500e-3];

/// A histogram of round trips.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundTrips {
    /// How many fell in each bucket; the last holds what is above all bounds.
    pub buckets: [u64; ROUND_TRIP_BOUNDS.len() + 1],
    /// All of them, added up.
    pub sum: Duration,
}

impl RoundTrips {
    fn observe(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = ROUND_TRIP_BOUNDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket] += 1;
        self.sum += took;
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// The counts of one port's traffic, since the process began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    outcomes: [[u64; Outcome::ALL.len()]; Class::ALL.len()],
    round_trips: [RoundTrips; Class::ALL.len()],
}

impl Stats {
    pub(super) fn count(&mut self, class: Class, outcome: Outcome) {
        self.outcomes[class.index()][outcome as usize] += 1;
    }

    pub(super) fn round_trip(&mut self, class: Class, took: Duration) {
        self.round_trips[class.index()].observe(took);
    }

    /// How many MADs of a class ended so.
    pub fn of(&self, class: Class, outcome: Outcome) -> u64 {
        self.outcomes[class.index()][outcome as usize]
    }

    /// How many MADs ended so, of all classes.
    pub fn total(&self, outcome: Outcome) -> u64 {
        self.outcomes.iter().map(|of| of[outcome as usize]).sum()
    }

    /// How long answers of a class took.
    pub fn round_trips(&self, class: Class) -> &RoundTrips {
        &self.round_trips[class.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_falls_in_the_bucket_whose_bound_it_does_not_pass() {
        let mut trips = RoundTrips::default();
        for (micros, bucket) in [(1, 0), (10, 0), (11, 1), (100, 3), (600_000, 12)] {
            let before = trips.buckets[bucket];
            trips.observe(Duration::from_micros(micros));
            assert_eq!(trips.buckets[bucket], before + 1, "{micros} µs");
        }
        assert_eq!(trips.count(), 5);
    }

    #[test]
    fn outcomes_stand_where_their_labels_do() {
        for (index, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, index);
        }
        for (index, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class.index(), index);
        }
    }
}
