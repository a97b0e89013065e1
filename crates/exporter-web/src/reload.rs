//! Whether what a site has written is what counts: how the web config file was read last.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// How the web config file was read last; told at each scrape.
#[derive(Debug, Default)]
pub struct Reload {
    failed: AtomicBool,
    /// Milliseconds since 1970.
    read_at: AtomicU64,
}

impl Reload {
    /// One that went well, now.
    pub fn now() -> Self {
        let reload = Reload::default();
        reload.went(true);
        reload
    }

    /// It was read once more: well, or not at all.
    pub fn went(&self, well: bool) {
        self.failed.store(!well, Ordering::Relaxed);
        if well {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
            self.read_at.store(millis, Ordering::Relaxed);
        }
    }

    /// Whether the last time went well. If not, what was before still counts.
    pub fn went_well(&self) -> bool {
        !self.failed.load(Ordering::Relaxed)
    }

    /// When it went well for the last time, in seconds since 1970.
    pub fn read_at(&self) -> f64 {
        self.read_at.load(Ordering::Relaxed) as f64 / 1e3
    }
}
