//! Checks the prerequisites of the exporter on this host, in the order in which a host is set up. A finding
//! says what was found, what is expected, and the command that fixes it.
//!
//! Nothing is changed. On the wire four Gets are sent for each fabric, and one discovery, unless the check is
//! offline. What cannot be read without privileges is reported as such; a check that hangs fails alone.

mod cards;
mod configuration;
mod fabric;
mod manager;
mod permissions;
mod ports;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use crate::config::Settings;
use crate::exit::Exit;
use process_clock::Clock;
use rdma_host::model::{Device, HostSnapshot, Port};
use rdma_host::reader::executor::TimeoutExecutor;
use rdma_host::reader::sysfs::Directory;
use rdma_host::reader::{DeviceSource, HostReader, ReadOptions};

/// How long a check may take. On the wire it takes 2.5 s at most, and 1 s for each listen address that is in
/// use; with firmware that hangs, a read of sysfs takes a minute.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct DoctorOptions {
    /// What `serve` would run with; the flags and defaults, if the file cannot be used.
    pub settings: Settings,
    pub file: Option<PathBuf>,
    /// Why the file cannot be used.
    pub problem: Option<String>,
    pub dev: PathBuf,
    /// Whether to send nothing on the wire.
    pub offline: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub version: &'static str,
    pub worst: Level,
    /// Whether there is any RDMA device or card.
    pub has_rdma: bool,
    /// The findings, by subject.
    pub findings: Vec<Finding>,
    /// What to fix first: the first of the worst findings, for later ones may depend on it.
    pub first: Option<Finding>,
    pub exit_code: u8,
}

/// What to do about a device whose reads block.
const HUNG_FIRMWARE: &str = "dmesg | grep -i -e mlx -e infiniband   # if firmware hangs: reset the \
                             adapter, or power-cycle the host";

type Check = fn(&CheckedHost) -> Vec<Finding>;

/// The checks, in the order in which a host is set up.
const CHECKS: [(Subject, Check); 11] = [
    (Subject::Pci, cards::check),
    (Subject::Modules, cards::check_modules),
    (Subject::Ports, ports::check),
    (Subject::SubnetManager, manager::check),
    (Subject::SubnetManager, manager::query),
    (Subject::Permissions, permissions::check),
    (Subject::Partitions, permissions::check_partitions),
    (Subject::Ipoib, ports::check_ipoib),
    (Subject::Firmware, ports::check_firmware),
    (Subject::Configuration, configuration::check),
    (Subject::Listener, configuration::check_listeners),
];

pub fn examine(options: DoctorOptions) -> Report {
    let host = CheckedHost::read(options);
    let has_cards =
        cards::functions(&host).is_some_and(|all| all.iter().any(cards::Function::must_do_rdma));
    let has_rdma = has_cards || !host.devices.is_empty();
    let check = move |&mut index: &mut usize| CHECKS[index].1(&host);
    let mut executor = TimeoutExecutor::new(CHECK_TIMEOUT, check);
    let mut results: BTreeMap<usize, _> =
        executor.run((0..CHECKS.len()).collect()).into_iter().collect();
    let result = |(index, (subject, _)): (usize, &(Subject, Check))| match results.remove(&index) {
        Some(Ok(findings)) => findings,
        Some(Err(panic)) => {
            let found = format!("the check panicked, a bug in fabric-exporter: {panic}");
            let fix = "report it with the output of `fabric-exporter doctor --json`";
            vec![bad(*subject, "all", found).fix(fix)]
        }
        None => {
            let found = format!(
                "the check timed out after {CHECK_TIMEOUT:?}: reading a file or device blocks"
            );
            let expected = format!("reads finish within {CHECK_TIMEOUT:?}");
            vec![bad(*subject, "all", found).expected(expected).fix(HUNG_FIRMWARE)]
        }
    };
    let mut findings: Vec<Finding> = CHECKS.iter().enumerate().flat_map(result).collect();
    findings.sort_by_key(|finding| finding.subject);
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    let to_fix = |finding: &&Finding| finding.level == worst && worst >= Level::Warn;
    let first = findings.iter().find(to_fix).cloned();
    let exit_code = match worst {
        _ if !has_rdma => Exit::NoDevice as u8,
        Level::Ok | Level::Note => 0,
        Level::Warn => Exit::Degraded as u8,
        Level::Bad => Exit::Broken as u8,
    };
    Report { version: env!("CARGO_PKG_VERSION"), worst, has_rdma, findings, first, exit_code }
}

display_text::labeled_enum! {
    /// What a finding is about, in the order in which a host is set up; with its heading in the table.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Subject {
        Pci, "PCI", "Adapters and their slots.";
        Modules, "kernel modules", "The kernel's drivers.";
        Ports, "devices and ports", "RDMA devices and the links of their ports.";
        SubnetManager, "subnet manager", "Whether a subnet manager responds.";
        Fabric, "fabric", "Names and GUIDs of the nodes in the fabric.";
        Permissions, "permissions and limits", "Device files, and limits of the process.";
        Partitions, "partitions", "The P_Keys of ports.";
        Ipoib, "IPoIB", "IP over InfiniBand.";
        Firmware, "firmware", "The firmware of devices.";
        Configuration, "configuration", "The exporter's own settings and files.";
        Listener, "listener", "The listen addresses.";
    }
}

display_text::labeled_enum! {
    /// The severity, the worst last; with its mark in the table.
    #[derive(PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Level {
        Ok, "ok", "As expected.";
        Note, "--", "Nothing to do: not needed here, not visible, or good to know.";
        Warn, " !", "It works, but incompletely, or slower than it could.";
        Bad, "!!", "The exporter, or the fabric at this host, does not work.";
    }
}

/// The result of a check of one item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub subject: Subject,
    /// The item: `mlx5_0 port 1`, `ib_umad`.
    pub what: String,
    pub level: Level,
    pub found: String,
    /// What is expected and why; `None` if the expectation is met.
    pub expected: Option<String>,
    /// The command or setting that fixes it.
    pub fix: Option<String>,
}

/// A finding without advice.
fn finding(
    level: Level,
    subject: Subject,
    what: impl Into<String>,
    found: impl Into<String>,
) -> Finding {
    let (what, found) = (what.into(), found.into());
    Finding { subject, what, level, found, expected: None, fix: None }
}

macro_rules! findings_of_level {
    ($($name:ident: $level:ident,)+) => {$(
        fn $name(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Finding {
            finding(Level::$level, subject, what, found)
        }
    )+};
}

findings_of_level! { ok: Ok, note: Note, warn: Warn, bad: Bad, }

impl Finding {
    #[must_use]
    pub fn expected(self, expected: impl Into<String>) -> Self {
        Finding { expected: Some(expected.into()), ..self }
    }

    #[must_use]
    pub fn fix(self, fix: impl Into<String>) -> Self {
        Finding { fix: Some(fix.into()), ..self }
    }
}

/// A list with at most `max` items: `a, b, 3 more`.
fn shortened(mut items: Vec<String>, max: usize) -> String {
    let more = items.len().saturating_sub(max);
    items.truncate(max);
    if more > 0 {
        items.push(format!("{more} more"));
    }
    items.join(", ")
}

/// Values with the items that have them: `2044: ib0 ib1; 4092: ib2`.
fn grouped<V: Display>(names_by_value: &BTreeMap<V, Vec<&str>>) -> String {
    let groups =
        names_by_value.iter().map(|(value, names)| format!("{value}: {}", names.join(" ")));
    groups.collect::<Vec<_>>().join("; ")
}

/// What is found where only a device could be checked.
const NO_DEVICE: &str = "not checked: no RDMA device";

/// What is found where only a sweep could need something.
const NO_SWEEP: &str = "not needed: no fabric is swept, so the exporter sends no MADs";

/// The host, and what to check on it.
#[derive(Debug)]
struct CheckedHost {
    options: DoctorOptions,
    devices: Vec<Device>,
    /// How many devices the settings exclude.
    excluded: usize,
}

impl CheckedHost {
    /// Reads the devices of the host, except those that the settings exclude: they may be known to hang. A device
    /// that hangs is abandoned after 5 s, a file that hangs after 2 s.
    fn read(options: DoctorOptions) -> Self {
        let Settings { host, sysfs, .. } = &options.settings;
        let filter = host.as_ref().map(|host| host.filter.clone()).unwrap_or_default();
        // There is one read only, so no backoff.
        let read = ReadOptions {
            error_backoff: Duration::ZERO,
            ethtool: false,
            cm: false,
            modules: false,
        };
        let mut reader = HostReader::new(sysfs.clone(), filter, read, Clock::start());
        let HostSnapshot { devices, excluded, .. } = reader.read();
        CheckedHost { options, devices, excluded }
    }

    fn settings(&self) -> &Settings {
        &self.options.settings
    }

    /// Whether the exporter would send MADs, and not only read this host's own devices.
    fn sweeps(&self) -> bool {
        !self.settings().fabrics.is_empty()
    }

    /// Whether the exporter would receive the events of devices.
    fn receives_events(&self) -> bool {
        self.settings().host.as_ref().is_some_and(|host| host.events)
    }

    fn ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.devices.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)))
    }

    fn infiniband_ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.ports().filter(|(_, port)| is_infiniband(port))
    }

    fn has_infiniband(&self) -> bool {
        self.infiniband_ports().next().is_some()
    }

    /// The ports from which a fabric can be swept, as far as their kind says.
    fn fabric_ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.infiniband_ports().filter(|(_, port)| port.kind.has_cable())
    }

    /// The finding of a check of InfiniBand ports on a host without one.
    fn without_ports(&self, subject: Subject) -> Finding {
        if self.devices.is_empty() {
            note(subject, "ports", NO_DEVICE)
        } else {
            ok(subject, "ports", "not needed: this host has no InfiniBand port")
        }
    }

    /// The names in a directory of sysfs; `None` if it does not exist or cannot be read.
    fn names(&self, path: &str) -> Option<Vec<String>> {
        self.directory(path)?.names().ok()
    }

    fn directory(&self, path: &str) -> Option<Directory> {
        Directory::open(&self.settings().sysfs.join(path)).ok()
    }
}

/// Whether it is an InfiniBand port. Kernels before 2.6.37 have no file with the link layer, and other ports of
/// those, of iWARP, have no LID.
fn is_infiniband(port: &Port) -> bool {
    port.link_layer == "InfiniBand" || port.link_layer.is_empty() && port.lid.is_some()
}

/// The name of a port in findings: `mlx5_0 port 1`.
fn port_name(device: &Device, port: &Port) -> String {
    format!("{} port {}", device.name, port.number)
}

#[cfg(test)]
impl CheckedHost {
    /// A host with these devices, and the default settings.
    fn with(devices: Vec<Device>) -> Self {
        let settings = Settings::load(crate::config::options::Options::default(), None).unwrap();
        let dev = "/nowhere".into();
        let options = DoctorOptions { settings, file: None, problem: None, dev, offline: false };
        CheckedHost { options, devices, excluded: 0 }
    }
}
