//! The sweep of the past that is shown.

use std::time::SystemTime;

use crate::time_of;
use ib_mad::Moment;
use ib_mad::moment::Anchor;

/// The moment at which a past sweep ended: as late as no process runs, so that everything before it is a moment, too.
const ENDED: Moment = Moment(120 * 366 * 24 * 3600 * 1_000_000_000);

/// A past sweep, and the clock of the observation that is made of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    /// When it began, in microseconds since 1970: its key in the file.
    pub began: i64,
    /// When it ended.
    pub anchor: Anchor,
}

impl Sweep {
    /// A sweep by its times in the file.
    pub fn new(began: i64, ended: i64) -> Self {
        Sweep { began, anchor: Anchor { moment: ENDED, wall: time_of(ended) } }
    }

    /// The moment of a time of day.
    pub fn moment(&self, at: SystemTime) -> Moment {
        match at.duration_since(self.anchor.wall) {
            Ok(after) => ENDED + after,
            Err(before) => ENDED.before(before.duration()),
        }
    }
}
