//! Settings of the recorder.

use std::path::PathBuf;
use std::time::Duration;

use super::mistakes::{InvalidSetting, invalid, too_short};
use super::options::{ByteSize, HistoryOptions};

/// The smallest size of a history: one sweep of the largest fabrics, or some days of a small one.
const MIN_SIZE: u64 = 16 << 20;

/// The name under which the history keeps this host's own devices, as if they were a fabric.
pub const HOST_FABRIC: &str = "host";

/// The free bytes of a disk that the history leaves to the host: for its logs, and for logins.
pub const LEAST_FREE: u64 = 256 << 20;

/// What is recorded, where, and for how long.
#[derive(Clone, Debug)]
pub struct HistorySettings {
    /// The file.
    pub file: PathBuf,
    /// The most bytes that it may have.
    pub size: u64,
    /// How long each sweep's traffic is kept.
    pub traffic_for: Duration,
    /// How long events and all other counters are kept.
    pub rare_for: Duration,
    /// With fewer free bytes on its disk nothing is written.
    pub least_free: u64,
}

impl HistorySettings {
    /// With the default sizes and times.
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
    pub(super) fn validate(&self) -> Vec<InvalidSetting> {
        let minute = Duration::from_secs(60);
        let size = self.size.filter(|ByteSize(size)| *size < MIN_SIZE);
        let size =
            size.map(|ByteSize(size)| invalid("size", format!("{size} bytes are less than 16MiB")));
        let times = [
            too_short("traffic-for", self.traffic_for, minute),
            too_short("rare-for", self.rare_for, minute),
        ];
        size.into_iter().chain(times.into_iter().flatten()).collect()
    }

    pub(super) fn settings(self) -> Option<HistorySettings> {
        let defaults = HistorySettings::new(self.file?);
        Some(HistorySettings {
            size: self.size.map_or(defaults.size, |ByteSize(size)| size),
            traffic_for: self.traffic_for.map_or(defaults.traffic_for, Duration::from),
            rare_for: self.rare_for.map_or(defaults.rare_for, Duration::from),
            ..defaults
        })
    }
}
