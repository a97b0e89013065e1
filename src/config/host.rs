//! Settings of this host's own devices.

use std::path::PathBuf;
use std::time::Duration;

use rdma_host::model::Rails;
use rdma_host::reader::{DeviceFilter, ReadOptions};

use super::fabric::{DEFAULT_FABRIC, FabricSettings};
use super::options::{HostOptions, seconds_or};
use site_config::diagnostics::{InvalidSetting, invalid, too_short};

/// This host's own devices.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Where sysfs is mounted.
    pub sysfs: PathBuf,
    /// From the start of one read to that of the next.
    pub interval: Duration,
    /// Which devices are read.
    pub filter: DeviceFilter,
    /// What is read of a device, and how often after failures.
    pub read: ReadOptions,
    /// How long a device that disappeared is reported as down: the longest time that a fabric has for nodes.
    pub forget_after: Duration,
    /// Whether to listen to the events of devices.
    pub events: bool,
    /// Which port is in which fabric.
    pub rails: Rails,
}

impl HostOptions {
    pub(super) fn validate(&self) -> Vec<InvalidSetting> {
        let second = Duration::from_secs(1);
        let (include, exclude) = (self.device_include.as_deref(), self.device_exclude.as_deref());
        let pattern = |key: &str, pattern: Option<&str>| {
            let error = DeviceFilter::new(pattern, None).err()?;
            let text = pattern.unwrap_or_default();
            Some(invalid(key, format!("{text:?} is not a regular expression: {error}")))
        };
        [
            too_short("interval", self.interval, second),
            pattern("device-include", include),
            pattern("device-exclude", exclude),
            too_short("retry-refused", self.retry_refused, second),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    pub(super) fn settings(self, sysfs: PathBuf, fabrics: &[FabricSettings]) -> HostSettings {
        let patterns = (self.device_include.as_deref(), self.device_exclude.as_deref());
        HostSettings {
            sysfs,
            interval: seconds_or(self.interval, 15),
            filter: DeviceFilter::new(patterns.0, patterns.1).unwrap_or_default(),
            read: ReadOptions {
                error_backoff: seconds_or(self.retry_refused, 300),
                ethtool: self.ethtool.unwrap_or(true),
                cm: self.cm_counters.unwrap_or(false),
            },
            forget_after: fabrics.iter().map(|it| it.forget_after).max().unwrap_or_default(),
            events: self.events.unwrap_or(true),
            rails: rails(fabrics),
        }
    }
}

/// Which of this host's ports is in which fabric. With one fabric all are in it, for a host's other ports are
/// mostly its other rails; with several, those that are listed.
fn rails(fabrics: &[FabricSettings]) -> Rails {
    let ports = fabrics
        .iter()
        .filter_map(|fabric| Some((fabric.hca.clone()?, fabric.port, fabric.name.as_str().into())));
    let default = match fabrics {
        [only] => only.name.as_str(),
        _ => DEFAULT_FABRIC,
    };
    Rails::new(ports.collect(), default.into())
}
