//! How this host's own devices are watched.

use std::path::PathBuf;
use std::time::Duration;

use rdma_host::model::rails::Rails;
use rdma_host::reader::selection::Selection;

use super::fabric::{DEFAULT_FABRIC, FabricSettings};
use super::options::HostOptions;
use site_config::mistakes::{Wrong, too_short, wrong};
use site_config::values::Span;

/// This host's own devices.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Where sysfs is mounted.
    pub sysfs: PathBuf,
    /// From the beginning of one look to that of the next.
    pub interval: Duration,
    /// Which devices are looked at.
    pub selection: Selection,
    /// How long a file that refused is left alone.
    pub retry_refused: Duration,
    /// How long a device that disappeared is reported as down: the longest time that a fabric has for nodes.
    pub forget_after: Duration,
    /// Whether to hear what devices tell of themselves.
    pub events: bool,
    /// Whether to read what Ethernet drivers count on the wire.
    pub ethtool: bool,
    /// Whether to read the connection manager's counters.
    pub cm_counters: bool,
    /// Which port is in which fabric.
    pub rails: Rails,
}

impl HostOptions {
    pub(super) fn mistakes(&self) -> Vec<Wrong> {
        let second = Duration::from_secs(1);
        let (include, exclude) = (self.device_include.as_deref(), self.device_exclude.as_deref());
        let pattern = |key: &str, pattern: Option<&str>| {
            let problem = Selection::new(pattern, None).err()?.problem;
            let text = pattern.unwrap_or_default();
            Some(wrong(key, format!("{text:?} is not a regular expression: {problem}")))
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
        let seconds =
            |value: Option<Span>, usual| value.map_or(Duration::from_secs(usual), Duration::from);
        let patterns = (self.device_include.as_deref(), self.device_exclude.as_deref());
        HostSettings {
            sysfs,
            interval: seconds(self.interval, 15),
            selection: Selection::new(patterns.0, patterns.1).unwrap_or_default(),
            retry_refused: seconds(self.retry_refused, 300),
            forget_after: fabrics.iter().map(|it| it.forget_after).max().unwrap_or_default(),
            events: self.events.unwrap_or(true),
            ethtool: self.ethtool.unwrap_or(true),
            cm_counters: self.cm_counters.unwrap_or(false),
            rails: rails(fabrics),
        }
    }
}

/// Which of this host's ports is in which fabric. With one fabric all are in it, for a host's other
/// ports are mostly its other rails; of several, those that are listed.
fn rails(fabrics: &[FabricSettings]) -> Rails {
    let ports = fabrics
        .iter()
        .filter_map(|fabric| Some((fabric.hca.clone()?, fabric.port, fabric.name.as_str().into())));
    let usual = match fabrics {
        [only] => only.name.as_str(),
        _ => DEFAULT_FABRIC,
    };
    Rails::new(ports.collect(), usual.into())
}
