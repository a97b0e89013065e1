//! How many flaps make a link bad or degraded: within hours, and on how many days.

use std::time::Duration;

/// So many flaps in this time make a link bad (gpud: three returns in 12 h; Azure: five losses in 24 h).
pub(super) const FLAPS: (usize, Duration) = (3, Duration::from_secs(12 * 3600));
/// One flap in this time makes it degraded.
pub(super) const ONE_FLAP: Duration = Duration::from_secs(3600);

/// On how many days a link flaps before it is degraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlapDayLimit {
    /// So many days with flaps.
    pub days: u8,
    /// In this time.
    pub within: Duration,
}

impl FlapDayLimit {
    /// The most days that can be set: more are not kept.
    pub const MOST: u8 = 32;
}

impl Default for FlapDayLimit {
    fn default() -> Self {
        FlapDayLimit { days: 3, within: Duration::from_secs(14 * 24 * 3600) }
    }
}
