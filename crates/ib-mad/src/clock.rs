//! The real clock, also at an accelerated rate for simulated fabrics.

use std::time::{Duration, Instant, SystemTime};

use crate::Moment;
use crate::moment::Anchor;

/// A monotonic clock that starts at its creation.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
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

    /// Starts a clock that runs `speedup` times as fast, for simulated fabrics. Moments and wall-clock
    /// time both run ahead.
    pub fn accelerated(speedup: u32) -> Self {
        Clock { began: Instant::now(), wall: SystemTime::now(), speedup: speedup.max(1) }
    }

    /// The current moment.
    pub fn now(&self) -> Moment {
        let elapsed = self.began.elapsed() * self.speedup;
        Moment(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Sleeps for a duration of this clock.
    pub fn sleep(&self, time: Duration) {
        std::thread::sleep(time / self.speedup);
    }

    /// The current moment on both clocks.
    pub fn anchor(&self) -> Anchor {
        let moment = self.now();
        // The wall clock may be set at run time; an accelerated clock does not follow it.
        let wall = if self.speedup == 1 {
            SystemTime::now()
        } else {
            self.wall + Duration::from_nanos(moment.0)
        };
        Anchor { moment, wall }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
