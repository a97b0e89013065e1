//! The settings of the history.

use std::time::Duration;

use fabric_history::settings::HistorySettings;
use site_config::mistakes::{Wrong, too_short, wrong};
use site_config::values::Bytes;

use super::options::HistoryOptions;

/// The least size of a history: one sweep of the largest fabrics, and some days of a small one.
const LEAST: u64 = 16 << 20;

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
