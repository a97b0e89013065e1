#![doc = include_str!("../README.md")]

use std::time::{Duration, Instant, SystemTime};

use ib_mad::moment::{Anchor, Moment};

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
        let (gap, before, wall) = pair().min(pair()).min(pair());
        Anchor { moment: before + gap / 2, wall }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
