//! Time as a value: evaluations take moments and never read a clock.

use std::fmt;
use std::ops::Add;
use std::time::{Duration, SystemTime};

/// A moment of a monotonic clock, in nanoseconds since the clock started.
///
/// Deadlines and rates need a clock that NTP cannot set; output needs wall-clock time. An [`Anchor`]
/// converts between them. In the simulator the clock is virtual.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// The latest moment: no deadline.
    pub const NEVER: Moment = Moment(u64::MAX);

    /// Time since `earlier`; zero if that is later.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The moment this much earlier, at the earliest the start of the clock.
    #[must_use]
    pub fn before(self, earlier: Duration) -> Moment {
        Moment(self.0.saturating_sub(nanos(earlier)))
    }

    /// Whole seconds since the clock started: a compact form for many ports. It wraps after 136 years.
    pub fn whole_seconds(self) -> u32 {
        (self.0 / 1_000_000_000) as u32
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, rest: Duration) -> Moment {
        Moment(self.0.saturating_add(nanos(rest)))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// The same instant on both clocks: converts moments to wall-clock time.
///
/// Taken for each sweep, so that adjustments of the wall clock (10 ppm of drift are 26 s in a month) never
/// displace a reading by more than those of one sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Anchor {
    pub moment: Moment,
    pub wall: SystemTime,
}

impl Anchor {
    /// Wall-clock time of a moment.
    pub fn wall_of(&self, moment: Moment) -> SystemTime {
        if moment >= self.moment {
            self.wall + moment.since(self.moment)
        } else {
            self.wall - self.moment.since(moment)
        }
    }

    /// Unix time of a moment in seconds, as in metrics.
    pub fn unix_seconds_of(&self, moment: Moment) -> f64 {
        self.wall_of(moment)
            .duration_since(SystemTime::UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchor_converts_earlier_and_later_moments() {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let anchor = Anchor { moment: Moment(5_000_000_000), wall };
        for (moment, seconds) in [(5, 1_000.0), (7, 1_002.0), (4, 999.0)] {
            let unix = anchor.unix_seconds_of(Moment(moment * 1_000_000_000));
            assert!((unix - seconds).abs() < 1e-9, "{unix}");
        }
    }

    #[test]
    fn never_plus_duration_is_never() {
        assert_eq!(Moment::NEVER + Duration::from_secs(1), Moment::NEVER);
        assert_eq!(Moment(1).since(Moment(2)), Duration::ZERO);
    }
}
