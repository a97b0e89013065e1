//! After how long data is stale.

use std::time::Duration;

/// Data is stale when it is older than this number of intervals and [`STALE_GRACE`] more, as in the alert
/// `FabricExporterStale`.
const STALE_INTERVALS: u32 = 4;
const STALE_GRACE: Duration = Duration::from_secs(60);

/// After how long data is stale that is read at intervals, and was read in this time. If that is longer than the interval,
/// the next data is late, but not missing.
pub fn stale_after(interval: Duration, took: Duration) -> Duration {
    interval.max(took).saturating_mul(STALE_INTERVALS).saturating_add(STALE_GRACE)
}
