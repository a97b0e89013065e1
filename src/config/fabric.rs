//! How fabrics are watched.

use std::path::PathBuf;
use std::time::Duration;

use crate::fabric::PortNumber;
use crate::health::HealthSettings;
use crate::mad::p_key::PKey;
use crate::mad::pma::Details;
use crate::transport::pace::Pace;
use crate::transport::transactor::MOST_IN_FLIGHT;

use super::options::FabricOptions;
use super::{ConfigError, duration, invalid};

const MIB: u64 = 1 << 20;

/// What a fabric is called that has no name.
pub(super) const DEFAULT_FABRIC: &str = "default";

/// One fabric: a port to ask from, and how.
#[derive(Clone, Debug)]
pub struct FabricSettings {
    /// The value of the label `fabric`.
    pub name: String,
    /// The HCA to ask from; the first that serves, if none is named.
    pub hca: Option<String>,
    /// Its port.
    pub port: Option<PortNumber>,
    /// From the beginning of one sweep to that of the next.
    pub interval: Duration,
    /// From one discovery to the next, when nothing moves.
    pub discovery_interval: Duration,
    /// How long a node that is gone is told of.
    pub forget_after: Duration,
    /// The site's names for nodes.
    pub node_name_map: Option<PathBuf>,
    /// The fabric's M_Keys.
    pub m_key_file: Option<PathBuf>,
    /// The partition to ask performance management in; the first of the port's table, if none is
    /// named.
    pub p_key: Option<PKey>,
    /// When the causes of errors and discards are read, too.
    pub details: Details,
    /// Whether what error correction had to mend is read, too.
    pub fec: bool,
    /// Whether narrow counters are set to zero before they are full.
    pub clear_saturated: bool,
    /// How hard the fabric may be asked.
    pub pace: Pace,
    /// Where to write each MAD to, and how many bytes at the most.
    pub capture: Option<(PathBuf, u64)>,
    /// How its links are judged.
    pub health: HealthSettings,
    /// What is worked on.
    pub maintenance_file: Option<PathBuf>,
}

impl FabricOptions {
    /// Whether something is set that only one fabric can have.
    pub(super) fn names_one(&self) -> bool {
        self.name.is_some() || self.hca.is_some() || self.port.is_some() || self.capture.is_some()
    }

    pub(super) fn validate(self) -> Result<FabricSettings, ConfigError> {
        let usual = Pace::default();
        let pace = Pace {
            smp_window: self.smp_window.unwrap_or(usual.smp_window),
            gmp_window: self.gmp_window.unwrap_or(usual.gmp_window),
            smp_lid_window: self.smp_lid_window.unwrap_or(usual.smp_lid_window),
            gmp_lid_window: self.gmp_lid_window.unwrap_or(usual.gmp_lid_window),
            timeout: self.timeout.map_or(usual.timeout, Duration::from),
            retries: self.retries.unwrap_or(usual.retries),
        };
        for (setting, window) in [
            ("--fabric.smp-window", pace.smp_window),
            ("--fabric.gmp-window", pace.gmp_window),
            ("--fabric.smp-lid-window", pace.smp_lid_window),
            ("--fabric.gmp-lid-window", pace.gmp_lid_window),
        ] {
            // A port's own queue takes 128 sends by default (ib_mad's send_queue_size); half of
            // what transaction ids can name is more than any fabric wants.
            if !(1..=MOST_IN_FLIGHT / 2).contains(&usize::from(window)) {
                return invalid(
                    setting,
                    format!("{window} is not between 1 and {}", MOST_IN_FLIGHT / 2),
                );
            }
        }
        if pace.retries > 10 {
            return invalid("--fabric.retries", format!("{} is more than 10", pace.retries));
        }
        if !(Duration::from_millis(1)..=Duration::from_secs(60)).contains(&pace.timeout) {
            return invalid(
                "--fabric.timeout",
                format!("{:?} is not between 1ms and 1m", pace.timeout),
            );
        }
        let second = Duration::from_secs(1);
        let name = self.name.unwrap_or_else(|| DEFAULT_FABRIC.into());
        if name.is_empty() {
            return invalid("--fabric.name", "it must not be empty");
        }
        let details_interval =
            duration("--fabric.details-interval", self.details_interval, 120, Duration::ZERO)?;
        let details = match (self.details.unwrap_or(false), details_interval) {
            (true, _) => Details::EachSweep,
            (false, Duration::ZERO) => Details::Never,
            (false, interval) => Details::Every(interval),
        };
        Ok(FabricSettings {
            name,
            hca: self.hca,
            port: self.port,
            interval: duration("--fabric.interval", self.interval, 15, second)?,
            discovery_interval: duration(
                "--fabric.discovery-interval",
                self.discovery_interval,
                300,
                second,
            )?,
            forget_after: duration(
                "--fabric.forget-after",
                self.forget_after,
                7 * 24 * 3600,
                Duration::ZERO,
            )?,
            node_name_map: self.node_name_map,
            m_key_file: self.m_key_file,
            p_key: self.pkey,
            details,
            health: HealthSettings::default(),
            maintenance_file: None,
            fec: self.fec.unwrap_or(true),
            clear_saturated: self.clear_saturated.unwrap_or(false),
            pace,
            capture: self
                .capture
                .map(|path| (path, self.capture_limit.unwrap_or(100).saturating_mul(MIB))),
        })
    }
}

/// Several fabrics need names, ports and captures of their own: one port asked twice is twice the
/// load for the same samples.
pub(super) fn tell_apart(fabrics: &[FabricSettings]) -> Result<(), ConfigError> {
    let captured = |fabric: &FabricSettings| fabric.capture.as_ref().map(|(path, _)| path.clone());
    for (index, fabric) in fabrics.iter().enumerate() {
        let name = &fabric.name;
        if fabrics.len() > 1 && fabric.hca.is_none() {
            return invalid("fabrics", format!("{name:?} names no hca, which one of several must"));
        }
        for other in &fabrics[..index] {
            if other.name == *name {
                return invalid("fabrics", format!("two of them have the name {name:?}"));
            }
            if captured(fabric).is_some() && captured(fabric) == captured(other) {
                return invalid(
                    "fabrics",
                    format!("{:?} and {name:?} write one capture", other.name),
                );
            }
            if other.hca == fabric.hca
                && (other.port == fabric.port || other.port.is_none() || fabric.port.is_none())
            {
                return invalid(
                    "fabrics",
                    format!("{:?} and {name:?} ask from the same port", other.name),
                );
            }
        }
    }
    Ok(())
}
