//! How the web config file was read last.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How the web config file was read last, for a metric.
#[derive(Debug, Default)]
pub struct ReloadStatus {
    failed: AtomicBool,
    /// Milliseconds since 1970.
    succeeded_at: AtomicU64,
}

impl ReloadStatus {
    /// Records a reading.
    pub fn record(&self, success: bool) {
        self.failed.store(!success, Ordering::Relaxed);
        if success {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            self.succeeded_at.store(millis, Ordering::Relaxed);
        }
    }

    /// Whether the last reading succeeded. If not, the configuration before is in force.
    pub fn succeeded(&self) -> bool {
        !self.failed.load(Ordering::Relaxed)
    }

    /// When a reading succeeded last, in seconds since 1970.
    pub fn succeeded_at(&self) -> f64 {
        self.succeeded_at.load(Ordering::Relaxed) as f64 / 1e3
    }
}
