//! What is recorded, where, and for how long.

use std::path::PathBuf;
use std::time::Duration;

/// What the history calls this host's own devices, as if they were a fabric.
pub const HOST_FABRIC: &str = "host";

/// Bytes of a disk that are never used: what a host needs for its logs and for logins.
pub const LEAST_FREE: u64 = 256 << 20;

/// What is recorded, where, and for how long.
#[derive(Clone, Debug)]
pub struct HistorySettings {
    /// The file.
    pub file: PathBuf,
    /// How many bytes it may have.
    pub size: u64,
    /// How long each sweep's traffic is kept.
    pub traffic_retention: Duration,
    /// How long events and all other counters are kept.
    pub retention: Duration,
    /// Nothing is written if its disk has fewer free bytes.
    pub least_free: u64,
}

impl HistorySettings {
    /// With the usual budget.
    pub fn new(file: PathBuf) -> Self {
        HistorySettings {
            file,
            size: 1 << 30,
            traffic_retention: Duration::from_secs(24 * 3600),
            retention: Duration::from_secs(30 * 24 * 3600),
            least_free: LEAST_FREE,
        }
    }
}
