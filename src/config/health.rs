//! How links are judged.

use std::path::PathBuf;

use ib_health::HealthSettings;
use ib_health::bit_errors::{LimitRow, LimitTable, Limits};
use ib_mad::fec::Fec;
use ib_mad::rate::Speed;

use super::options::{HealthOptions, LimitOption};
use site_config::mistakes::{Wrong, wrong};

/// How links are judged, in all fabrics.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    pub(super) settings: HealthSettings,
    pub(super) maintenance_file: Option<PathBuf>,
}

/// Below, a link would have to be watched for months; above, nothing would get through.
const RATIOS: std::ops::RangeInclusive<f64> = 1e-18..=1e-2;

impl HealthOptions {
    pub(super) fn mistakes(&self) -> Vec<Wrong> {
        let limits = self.limits.iter().flatten().enumerate();
        limits.flat_map(|(index, limit)| limit.mistakes(index)).collect()
    }

    pub(super) fn settings(self) -> Health {
        let own: Vec<_> = self.limits.iter().flatten().filter_map(LimitOption::row).collect();
        Health {
            settings: HealthSettings { limits: LimitTable::new(&own) },
            maintenance_file: self.maintenance_file,
        }
    }
}

fn fec_of(label: &str) -> Option<Fec> {
    Fec::ALL.iter().copied().find(|fec| fec.label() == label)
}

impl LimitOption {
    fn mistakes(&self, index: usize) -> Vec<Wrong> {
        let key = |key: &str| format!("limits[{index}].{key}");
        let mut found = Vec::new();
        if Speed::from_label(&self.speed).is_none() {
            let known = Speed::ALL.map(Speed::label).join(", ");
            found.push(wrong(key("speed"), format!("{:?} is none of: {known}", self.speed)));
        }
        if let Some(label) = self.fec.as_deref().filter(|label| fec_of(label).is_none()) {
            let known = Fec::ALL.iter().map(|fec| fec.label()).collect::<Vec<_>>().join(", ");
            found.push(wrong(key("fec"), format!("{label:?} is none of: {known}")));
        }
        for (name, ratio) in [("symbol", Some(self.symbol)), ("pre-fec", self.pre_fec)] {
            if let Some(ratio) = ratio.filter(|ratio| !RATIOS.contains(ratio)) {
                let (least, most) = (RATIOS.start(), RATIOS.end());
                let problem = format!("{ratio:e} is not between {least:e} and {most:e}");
                found.push(wrong(key(name), problem));
            }
        }
        found
    }

    fn row(&self) -> Option<LimitRow> {
        let speed = Speed::from_label(&self.speed)?;
        let limits =
            Limits { symbol: self.symbol as f32, pre_fec: self.pre_fec.map(|ratio| ratio as f32) };
        Some(LimitRow { speed, fec: self.fec.as_deref().and_then(fec_of), limits })
    }
}
