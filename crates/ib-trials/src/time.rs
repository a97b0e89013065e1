//! Simulated time, in seconds from 0 on.

use std::time::{Duration, SystemTime};

use ib_mad::Moment;

/// Seconds of a day.
pub const DAY: f64 = 86_400.0;

/// The moment at a second.
pub fn moment(second: f64) -> Moment {
    Moment::default() + Duration::from_secs_f64(second.max(0.0))
}

/// The time of day at a second.
pub fn wall(second: f64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs_f64(second.max(0.0))
}
