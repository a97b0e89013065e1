//! The result of the latest read of the web config file, for a metric.

use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::locked::locked;

/// Whether the web config file in force is the latest one.
#[derive(Debug, Default)]
pub struct ReloadStatus(Mutex<LatestRead>);

#[derive(Clone, Copy, Debug, Default)]
struct LatestRead {
    failed: bool,
    /// When a read last succeeded: since 1970.
    succeeded_at: Duration,
}

impl ReloadStatus {
    /// Records a read.
    pub fn record(&self, success: bool) {
        let mut latest = locked(&self.0);
        latest.failed = !success;
        if success {
            latest.succeeded_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        }
    }

    /// Whether the latest read succeeded. If not, the previous configuration is in force.
    pub fn succeeded(&self) -> bool {
        !locked(&self.0).failed
    }

    /// When a read last succeeded, in seconds since 1970.
    pub fn succeeded_at(&self) -> f64 {
        locked(&self.0).succeeded_at.as_millis() as f64 / 1e3
    }
}
