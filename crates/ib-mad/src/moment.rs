//! Time as a value: evaluations take moments and never read a clock. And the clock.

use std::fmt;
use std::ops::Add;
use std::time::{Duration, Instant, SystemTime};

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

/// A monotonic clock that starts at its creation.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    /// Its first moment.
    first: Moment,
    /// Wall-clock time at the start.
    wall: SystemTime,
    /// Seconds of this clock per real second.
    speedup: u32,
}

impl Clock {
    /// Starts a clock. The process uses a single one, so that moments of several ports are comparable.
    pub fn start() -> Self {
        Self::accelerated(1)
    }

    /// Starts a clock whose moments and wall-clock time run `speedup` times as fast, for simulated fabrics.
    pub fn accelerated(speedup: u32) -> Self {
        let (began, wall, first) = (Instant::now(), SystemTime::now(), Moment::default());
        Clock { began, first, wall, speedup: speedup.max(1) }
    }

    /// The same clock with another first moment: there were moments before its start.
    #[must_use]
    pub fn beginning_at(self, first: Moment) -> Self {
        Clock { first, ..self }
    }

    /// The current moment.
    pub fn now(&self) -> Moment {
        self.first + self.began.elapsed() * self.speedup
    }

    /// How long a duration of this clock takes.
    pub fn real(&self, time: Duration) -> Duration {
        time / self.speedup
    }

    /// Sleeps for a duration of this clock.
    pub fn sleep(&self, time: Duration) {
        std::thread::sleep(self.real(time));
    }

    /// The current moment on both clocks.
    pub fn anchor(&self) -> Anchor {
        if self.speedup != 1 {
            // The wall clock may be set at run time; an accelerated clock does not follow it.
            let moment = self.now();
            return Anchor { moment, wall: self.wall + moment.since(self.first) };
        }
        // On a busy host the thread may be suspended for 10 ms between the readings of the two clocks: of three pairs
        // the one that took the least time counts.
        let pair = || {
            let before = self.now();
            let wall = SystemTime::now();
            (self.now().since(before), before, wall)
        };
        let (took, before, wall) = pair().min(pair()).min(pair());
        Anchor { moment: before + took / 2, wall }
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

    #[test]
    fn clock_has_moments_before_its_start() {
        let past = Duration::from_secs(9_000);
        for speedup in [1, 100] {
            let clock = Clock::accelerated(speedup).beginning_at(Moment::default() + past);
            let (anchor, wall) = (clock.anchor(), SystemTime::now());
            assert!(anchor.moment >= Moment::default() + past);
            let began = anchor.wall_of(Moment::default());
            let ago = wall.duration_since(began).unwrap();
            assert!(ago.abs_diff(past) < Duration::from_secs(60), "{ago:?}");
        }
    }

    #[test]
    fn accelerated_clock_advances_both_times() {
        let (clock, wall) = (Clock::accelerated(100), SystemTime::now());
        clock.sleep(Duration::from_secs(1));
        let anchor = clock.anchor();
        assert!(anchor.moment >= Moment::default() + Duration::from_secs(1));
        // The real time was a hundredth of it, plus the machine's overhead.
        let ahead = anchor.wall.duration_since(wall).unwrap();
        assert!(ahead >= Duration::from_secs(1) && wall.elapsed().unwrap() < ahead);
    }
}
