//! Settings of fabrics.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ib_fabric::collect::registers::RegisterIntervals;
use ib_fabric::forwarding::budget::SmpBudget;
use ib_fabric::hosts::HostRegex;
use ib_fabric::rails::RailChoice;
use ib_health::LimitTable;
use ib_mad::PortNumber;
use ib_mad::p_key::PKey;
use ib_mad::pma::{DetailPolicy, OptionalCounters};
use ib_umad::client::{MAX_IN_FLIGHT, SendConfig};
use ib_umad::umad::{DeviceError, PortChoice, Umad, UmadPort, Unsuitable};
use process_clock::Clock;
use rdma_host::reader::{DeviceFilter, is_nvlink_bridge};

use super::data_from::DataFrom;
use super::options::{FabricOptions, HealthOptions, seconds_or};
use crate::remote::{Access, Remote};
use yaml_config::diagnostics::{Report, check_minimum};

const MIB: u64 = 1 << 20;

/// The default name of a fabric.
pub(super) const DEFAULT_FABRIC: &str = "default";

/// One fabric: the local port that sends the MADs, and how it is swept and evaluated.
#[derive(Clone, Debug)]
pub struct FabricSettings {
    /// The value of the label `fabric`.
    pub name: String,
    /// Where its data is from, if no MADs are sent.
    pub from: Option<DataFrom>,
    /// The HCA that sends the MADs; `None` for the first with a usable port.
    pub hca: Option<String>,
    /// The devices of this host that are not chosen, unless by name.
    pub excluded: DeviceFilter,
    /// Its port.
    pub port: Option<PortNumber>,
    /// The SMI device of that HCA; `None` if it is to be found.
    pub smi_hca: Option<String>,
    /// The only port of the SMI device that sends SMPs.
    pub smi_port: Option<PortNumber>,
    /// From the start of one sweep to that of the next.
    pub interval: Duration,
    /// From one discovery to the next, while nothing changes.
    pub discovery_interval: Duration,
    /// How long a node that disappeared is reported as down.
    pub forget_after: Duration,
    /// The site's names for nodes.
    pub node_name_map: Option<PathBuf>,
    /// Which part of an adapter's name is its host's.
    pub hosts: HostRegex,
    /// Which devices of a host are its rails.
    pub rails: RailChoice,
    /// Another exporter of the fabric whose totals are taken over, and the login.
    pub totals_from: Option<(String, Access)>,
    /// The fabric's M_Keys.
    pub m_key_file: Option<PathBuf>,
    /// The VSKeys of devices.
    pub vs_key_file: Option<PathBuf>,
    /// The P_Key of performance management; `None` for the first of the port's table.
    pub p_key: Option<PKey>,
    /// When PortRcvErrorDetails and PortXmitDiscardDetails are read, too.
    pub details: DetailPolicy,
    /// Whether the counters of error correction are read, too.
    pub fec: bool,
    /// How often registers are read; `None` if they are not.
    pub registers: Option<RegisterIntervals>,
    /// Whether narrow counters are cleared before they saturate.
    pub clear_saturated: bool,
    /// Limits of the requests in flight.
    pub pace: SendConfig,
    /// The most requests per minute that read forwarding tables; 0 if none are read.
    pub forwarding_smps_per_minute: u32,
    /// The file that each MAD is written to, and its largest size in bytes.
    pub capture: Option<(PathBuf, u64)>,
    /// Limits of its links.
    pub limits: LimitTable,
    /// The file with maintenance windows.
    pub maintenance_file: Option<PathBuf>,
    /// The file with drained hosts.
    pub drained_hosts_file: Option<PathBuf>,
}

impl FabricSettings {
    /// The counters that are read only if they are enabled.
    pub fn optional_counters(&self) -> OptionalCounters {
        OptionalCounters { details: self.details, fec: self.fec }
    }

    /// Opens the local port, or the first one that can be used.
    pub fn open_port(&self, sysfs: &Path, clock: Clock) -> Result<(UmadPort, Umad), DeviceError> {
        let unsuitable = |hca: &str| {
            if !self.excluded.matches(sysfs, hca) {
                Some(Unsuitable::Excluded)
            } else if is_nvlink_bridge(sysfs, hca) {
                Some(Unsuitable::NvlinkBridge)
            } else {
                None
            }
        };
        Umad::open_first(sysfs, self.port_choice(), self.p_key, clock, &unsuitable, None)
    }

    /// The first option that is set and only counts for MADs.
    fn option_of_mads(&self) -> Option<&'static str> {
        let options = [
            ("hca", self.hca.is_some()),
            ("port", self.port.is_some()),
            ("smi-hca", self.smi_hca.is_some()),
            ("smi-port", self.smi_port.is_some()),
            ("pkey", self.p_key.is_some()),
            ("m-key-file", self.m_key_file.is_some()),
            ("vs-key-file", self.vs_key_file.is_some()),
            ("capture", self.capture.is_some()),
            ("clear-saturated", self.clear_saturated),
            ("totals-from", self.totals_from.is_some()),
        ];
        options.into_iter().find(|(_, is_set)| *is_set).map(|(option, _)| option)
    }

    /// What is set of the local port and of its SMI device.
    pub fn port_choice(&self) -> PortChoice<'_> {
        PortChoice {
            hca: self.hca.as_deref(),
            port: self.port,
            smi_hca: self.smi_hca.as_deref(),
            smi_port: self.smi_port,
        }
    }
}

impl FabricOptions {
    /// Whether an option is set that only one fabric can have.
    pub(super) fn is_of_one_fabric(&self) -> bool {
        let is_of_port = self.hca.is_some() || self.port.is_some();
        let is_of_smi_side = self.smi_hca.is_some() || self.smi_port.is_some();
        self.name.is_some()
            || self.from.is_some()
            || is_of_port
            || is_of_smi_side
            || self.capture.is_some()
    }

    pub(super) fn validate(&self, report: Report<'_>) {
        let second = Duration::from_secs(1);
        if let Some(url) = &self.totals_from
            && let Err(error) = Remote::new(url, &Access::default(), second, second)
        {
            report("totals-from", error);
        }
        if let Some(from) = &self.from
            && let Err(error) = DataFrom::parse(from, Access::default())
        {
            report("from", error);
        }
        if self.name.as_deref() == Some("") {
            report("name", "it must not be empty".into());
        }
        let hosts = self.host_regex.as_ref().map(|pattern| pattern.parse::<HostRegex>());
        if let Some(Err(error)) = hosts {
            report("host-regex", error);
        }
        let rails = self.rails.as_ref().map(|devices| devices.parse::<RailChoice>());
        if let Some(Err(error)) = rails {
            report("rails", error);
        }
        check_minimum("interval", self.interval, second, report);
        check_minimum("discovery-interval", self.discovery_interval, second, report);
        check_minimum("physical-interval", self.physical_interval, second, report);
        check_minimum("module-interval", self.module_interval, second, report);
        check_minimum("environment-interval", self.environment_interval, second, report);
        // The send queue of a port takes 128 MADs by default (ib_mad's send_queue_size); half of the
        // number of transaction ids is more than any fabric needs.
        let max = (MAX_IN_FLIGHT / 2) as u16;
        for (key, value, (min, max)) in [
            ("smp-window", self.smp_window, (1, max)),
            ("gmp-window", self.gmp_window, (1, max)),
            ("smp-lid-window", self.smp_lid_window, (1, max)),
            ("gmp-lid-window", self.gmp_lid_window, (1, max)),
            ("retries", self.retries.map(u16::from), (0, 10)),
            ("sl", self.sl.map(u16::from), (0, 15)),
        ] {
            if let Some(value) = value.filter(|value| !(min..=max).contains(value)) {
                report(key, format!("{value} is not between {min} and {max}"));
            }
        }
        let timeout = self.timeout.map(Duration::from);
        let range = Duration::from_millis(1)..=Duration::from_secs(60);
        if let Some(timeout) = timeout.filter(|timeout| !range.contains(timeout)) {
            let timeout = humantime::format_duration(timeout);
            report("timeout", format!("{timeout} is not between 1ms and 1m"));
        }
    }

    pub(super) fn settings(self, health: HealthOptions) -> FabricSettings {
        let defaults = SendConfig::default();
        let pace = SendConfig {
            smp_window: self.smp_window.unwrap_or(defaults.smp_window),
            gmp_window: self.gmp_window.unwrap_or(defaults.gmp_window),
            smp_lid_window: self.smp_lid_window.unwrap_or(defaults.smp_lid_window),
            gmp_lid_window: self.gmp_lid_window.unwrap_or(defaults.gmp_lid_window),
            timeout: self.timeout.map_or(defaults.timeout, Duration::from),
            retries: self.retries.unwrap_or(defaults.retries),
            max_mads_per_second: self.max_mads_per_second.and_then(NonZeroU32::new),
            sl: self.sl.unwrap_or(defaults.sl),
        };
        let details = match (self.details.unwrap_or(false), seconds_or(self.details_interval, 120))
        {
            (true, _) => DetailPolicy::EachSweep,
            (false, Duration::ZERO) => DetailPolicy::Never,
            (false, interval) => DetailPolicy::Every(interval),
        };
        let reads_registers = !self.no_registers.unwrap_or(false) && self.registers.unwrap_or(true);
        let capture_limit = self.capture_limit.unwrap_or(100);
        FabricSettings {
            name: self.name.unwrap_or_else(|| DEFAULT_FABRIC.into()),
            from: self.from.and_then(|from| {
                let access = Access {
                    ca_file: self.from_ca_file,
                    password_file: self.from_password_file,
                    ..Access::default()
                };
                DataFrom::parse(&from, access).ok()
            }),
            hca: self.hca,
            excluded: DeviceFilter::default(),
            port: self.port,
            smi_hca: self.smi_hca,
            smi_port: self.smi_port,
            interval: seconds_or(self.interval, 15),
            discovery_interval: seconds_or(self.discovery_interval, 300),
            forget_after: seconds_or(self.forget_after, 7 * 24 * 3600),
            node_name_map: self.node_name_map,
            hosts: self.host_regex.and_then(|it| it.parse().ok()).unwrap_or_default(),
            rails: self.rails.and_then(|it| it.parse().ok()).unwrap_or_default(),
            m_key_file: self.m_key_file,
            vs_key_file: self.vs_key_file,
            totals_from: self.totals_from.map(|url| {
                let access = Access {
                    ca_file: self.totals_ca_file,
                    cert_file: self.totals_cert_file,
                    key_file: self.totals_key_file,
                    password_file: self.totals_password_file,
                };
                (url, access)
            }),
            p_key: self.pkey,
            details,
            limits: health.limit_table(),
            maintenance_file: health.maintenance_file,
            drained_hosts_file: health.drained_hosts_file,
            fec: self.fec.unwrap_or(true),
            registers: reads_registers.then(|| RegisterIntervals {
                physical: seconds_or(self.physical_interval, 60),
                module: seconds_or(self.module_interval, 600),
                environment: seconds_or(self.environment_interval, 60),
                lanes: self.lanes.unwrap_or(false),
            }),
            clear_saturated: self.clear_saturated.unwrap_or(false),
            pace,
            forwarding_smps_per_minute: self
                .forwarding_smps_per_minute
                .unwrap_or(SmpBudget::DEFAULT_PER_MINUTE),
            capture: self.capture.map(|path| (path, capture_limit.saturating_mul(MIB))),
        }
    }
}

/// The indices of fabrics that conflict with one before them, and why. Names, ports and captures have to be
/// distinct: one port swept twice is twice the load for the same samples.
pub(super) fn conflicts(fabrics: &[FabricSettings]) -> Vec<(usize, String)> {
    let captured = |fabric: &FabricSettings| fabric.capture.as_ref().map(|(path, _)| path.clone());
    let mut found = Vec::new();
    for (index, fabric) in fabrics.iter().enumerate() {
        let name = &fabric.name;
        if let (Some(from), Some(option)) = (&fabric.from, fabric.option_of_mads()) {
            let problem = format!(
                "fabric {name:?} has from and {option}: no MADs are sent for data from {}: remove {option}",
                from.name()
            );
            found.push((index, problem));
            continue;
        }
        if fabrics.len() > 1 && fabric.hca.is_none() && fabric.from.is_none() {
            let problem = format!("fabric {name:?} has no hca: each of several fabrics needs one");
            found.push((index, problem));
            continue;
        }
        if fabric.smi_hca.is_some() && fabric.hca.is_none() {
            let problem =
                format!("fabric {name:?} has smi-hca but no hca: set the HCA of that SMI device");
            found.push((index, problem));
            continue;
        }
        let conflict = |other: &FabricSettings| {
            let has_same_port =
                other.port == fabric.port || other.port.is_none() || fabric.port.is_none();
            if other.name == *name {
                Some(format!("two fabrics have the name {name:?}"))
            } else if captured(fabric).is_some() && captured(fabric) == captured(other) {
                Some(format!("fabrics {:?} and {name:?} have the same capture file", other.name))
            } else if let (Some(from), Some(others)) = (&fabric.from, &other.from)
                && from.name() == others.name()
            {
                Some(format!("fabrics {:?} and {name:?} have the same source", other.name))
            } else if fabric.from.is_some() || other.from.is_some() {
                None
            } else if other.hca == fabric.hca && has_same_port {
                Some(format!("fabrics {:?} and {name:?} use the same port", other.name))
            } else {
                None
            }
        };
        found.extend(fabrics[..index].iter().find_map(conflict).map(|problem| (index, problem)));
    }
    found
}
