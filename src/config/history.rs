//! What is recorded, where, and for how long.

use std::path::PathBuf;
use std::time::Duration;

use super::mistakes::{Wrong, too_short, wrong};
use super::options::{Bytes, HistoryOptions};

/// The least size of a history: one sweep of the largest fabrics, and some days of a small one.
const LEAST: u64 = 16 << 20;

/// What the history calls this host's own devices, as if they were a fabric.
pub const HOST_FABRIC: &str = "host";

/// So many bytes of a disk are left alone: what a host needs to keep its logs and to be logged in to.
pub const LEAST_FREE: u64 = 256 << 20;

/// What is recorded, where, and for how long.
#[derive(Clone, Debug)]
pub struct HistorySettings {
    /// The file.
    pub file: PathBuf,
    /// How many bytes it may have.
    pub size: u64,
    /// How long each sweep's traffic is kept.
    pub traffic_for: Duration,
    /// How long events and all other counters are kept.
    pub rare_for: Duration,
    /// Below so many free bytes on its disk nothing is written.
    pub least_free: u64,
}

impl HistorySettings {
    /// With the usual budget.
    pub fn new(file: PathBuf) -> Self {
        HistorySettings {
            file,
            size: 1 << 30,
            traffic_for: Duration::from_secs(24 * 3600),
            rare_for: Duration::from_secs(30 * 24 * 3600),
            least_free: LEAST_FREE,
        }
    }
}

impl HistoryOptions {
    pub(super) fn mistakes(&self) -> Vec<Wrong> {
        let minute = Duration::from_secs(60);
        let size = self.size.filter(|Bytes(size)| *size < LEAST);
        let size =
            size.map(|Bytes(size)| wrong("size", format!("{size} bytes are less than 16MiB")));
        let times = [
            too_short("traffic-for", self.traffic_for, minute),
            too_short("rare-for", self.rare_for, minute),
        ];
        size.into_iter().chain(times.into_iter().flatten()).collect()
    }

    pub(super) fn settings(self) -> Option<HistorySettings> {
        let usual = HistorySettings::new(self.file?);
        Some(HistorySettings {
            size: self.size.map_or(usual.size, |Bytes(size)| size),
            traffic_for: self.traffic_for.map_or(usual.traffic_for, Duration::from),
            rare_for: self.rare_for.map_or(usual.rare_for, Duration::from),
            ..usual
        })
    }
}
