//! The real clock, behind the same type as a simulated one.

use std::time::{Instant, SystemTime};

use crate::fabric::Moment;
use crate::fabric::moment::Anchor;

/// A monotonic clock that begins when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// Begins a clock. One serves the whole process, so that the moments of several ports compare.
    pub fn start() -> Self {
        Clock { began: Instant::now() }
    }

    /// The moment now.
    pub fn now(&self) -> Moment {
        Moment(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// The moment now on both clocks.
    pub fn anchor(&self) -> Anchor {
        Anchor { moment: self.now(), wall: SystemTime::now() }
    }
}
