//! Time as a value: judgements take moments, they never read a clock.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::{Duration, SystemTime};

/// A moment on a clock that never goes back, in nanoseconds since that clock began.
///
/// Deadlines and rates need a clock that NTP cannot turn back; what people read needs the wall's.
/// An [`Anchor`] joins the two. In the simulator the clock is virtual.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(pub u64);

impl Moment {
    /// The end of time: the deadline of what is not waited for.
    pub const NEVER: Moment = Moment(u64::MAX);

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Moment {
    /// So much earlier, or the beginning of the clock.
    #[must_use]
    pub fn before(self, earlier: Duration) -> Moment {
        Moment(self.0.saturating_sub(u64::try_from(earlier.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Moment {
    /// Whole seconds since the clock began: what is kept of many ports for long, and need not be known
    /// more exactly. They go round in 136 years.
    pub fn whole_seconds(self) -> u32 {
        (self.0 / 1_000_000_000) as u32
    }
}

impl Add<Duration> for Moment {
    type Output = Moment;

    fn add(self, rest: Duration) -> Moment {
        Moment(self.0.saturating_add(u64::try_from(rest.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Moment> for Moment {
    type Output = Duration;

    fn sub(self, earlier: Moment) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// The same instant on both clocks: turns moments near it into times of day.
///
/// Taken anew for each sweep, so that an adjustment of the wall clock (10 ppm of drift are 26 s in
/// a month) never makes readings disagree with the time of day by more than one sweep's worth.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    /// The instant on the exporter's own clock.
    pub moment: Moment,
    /// The same instant on the wall.
    pub wall: SystemTime,
}

impl Anchor {
    /// The time of day of a moment.
    pub fn wall_of(&self, moment: Moment) -> SystemTime {
        if moment >= self.moment {
            self.wall + moment.since(self.moment)
        } else {
            self.wall - self.moment.since(moment)
        }
    }

    /// The time of day of a moment in seconds since 1970, as metrics carry it.
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
    fn an_anchor_tells_the_time_of_day_on_both_sides_of_it() {
        let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let anchor = Anchor { moment: Moment(5_000_000_000), wall };
        for (moment, seconds) in [(5, 1_000.0), (7, 1_002.0), (4, 999.0)] {
            let told = anchor.unix_seconds_of(Moment(moment * 1_000_000_000));
            assert!((told - seconds).abs() < 1e-9, "{told}");
        }
    }

    #[test]
    fn the_end_of_time_stays_there() {
        assert_eq!(Moment::NEVER + Duration::from_secs(1), Moment::NEVER);
        assert_eq!(Moment(1) - Moment(2), Duration::ZERO);
    }
}
