//! How links are judged.

use std::path::PathBuf;

use crate::fabric::fec::Fec;
use crate::fabric::rate::Speed;
use crate::health::HealthSettings;
use crate::health::bit_errors::{LimitRow, LimitTable, Limits};

use super::options::{HealthOptions, LimitOption};
use super::{ConfigError, invalid};

/// How links are judged, in all fabrics.
#[derive(Clone, Debug, Default)]
pub(super) struct Health {
    pub(super) settings: HealthSettings,
    pub(super) maintenance_file: Option<PathBuf>,
}

impl HealthOptions {
    pub(super) fn validate(self) -> Result<Health, ConfigError> {
        let own = self.limits.unwrap_or_default();
        let own = own.iter().map(LimitOption::validate).collect::<Result<Vec<_>, _>>()?;
        Ok(Health {
            settings: HealthSettings { limits: LimitTable::new(&own) },
            maintenance_file: self.maintenance_file,
        })
    }
}

impl LimitOption {
    fn validate(&self) -> Result<LimitRow, ConfigError> {
        let Some(speed) = Speed::from_label(&self.speed) else {
            let known = Speed::ALL.map(Speed::label).join(", ");
            return invalid("health.limits", format!("speed {:?} is none of {known}", self.speed));
        };
        let known_as = |label: &str| Fec::ALL.iter().copied().find(|fec| fec.label() == label);
        let fec = self.fec.as_deref().and_then(known_as);
        if let Some(label) = self.fec.as_deref().filter(|_| fec.is_none()) {
            let known: Vec<_> = Fec::ALL.iter().map(|fec| fec.label()).collect();
            let known = known.join(", ");
            return invalid("health.limits", format!("fec {label:?} is none of {known}"));
        }
        for ratio in [Some(self.symbol), self.pre_fec].into_iter().flatten() {
            // Below, a link would have to be watched for months; above, nothing would get through.
            if !(1e-18..=1e-2).contains(&ratio) {
                let problem = format!("{ratio:e} is not between 1e-18 and 1e-2");
                return invalid("health.limits", problem);
            }
        }
        let limits =
            Limits { symbol: self.symbol as f32, pre_fec: self.pre_fec.map(|ratio| ratio as f32) };
        Ok(LimitRow { speed, fec, limits })
    }
}
