//! Settings of the recorder.

use std::time::Duration;

use fabric_history::settings::HistorySettings;
use site_config::diagnostics::{InvalidSetting, invalid, too_short};
use site_config::units::ByteSize;

use super::options::HistoryOptions;

/// The smallest size of a history: one sweep of the largest fabrics, or some days of a small one.
const MIN_SIZE: u64 = 16 << 20;

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
