//! The real clock, behind the same type as a simulated one.

use std::time::{Duration, Instant, SystemTime};

use crate::Moment;
use crate::moment::Anchor;

/// A monotonic clock that begins when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    /// The time of day then.
    wall: SystemTime,
    /// How many seconds go by here in one outside.
    pace: u32,
}

impl Clock {
    /// Begins a clock. One serves the whole process, so that the moments of several ports compare.
    pub fn start() -> Self {
        Self::fast(1)
    }

    /// Begins one on which so many seconds go by in one outside: for a fabric that is not there. Both
    /// the moments and the time of day run ahead.
    pub fn fast(pace: u32) -> Self {
        Clock { began: Instant::now(), wall: SystemTime::now(), pace: pace.max(1) }
    }

    /// The moment now.
    pub fn now(&self) -> Moment {
        let elapsed = self.began.elapsed() * self.pace;
        Moment(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Sleeps until so much time has gone by on this clock.
    pub fn sleep(&self, time: Duration) {
        std::thread::sleep(time / self.pace);
    }

    /// The moment now on both clocks.
    pub fn anchor(&self) -> Anchor {
        let moment = self.now();
        // The wall's own clock may be set while we run; a clock of our own making has nothing to follow.
        let wall = if self.pace == 1 {
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
    fn a_fast_clock_runs_ahead_by_both_of_its_faces() {
        let (clock, wall) = (Clock::fast(100), SystemTime::now());
        clock.sleep(Duration::from_secs(1));
        let anchor = clock.anchor();
        assert!(anchor.moment >= Moment::default() + Duration::from_secs(1));
        // A hundredth of it went by outside, and what the machine took besides.
        let ahead = anchor.wall.duration_since(wall).unwrap();
        assert!(ahead >= Duration::from_secs(1) && wall.elapsed().unwrap() < ahead);
    }
}
