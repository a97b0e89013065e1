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
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::config::Settings;
use ib_mad::clock::Clock;
use rdma_host::model::{Device, HostSnapshot, Port};
use rdma_host::reader::executor::TimeoutExecutor;
use rdma_host::reader::sysfs::Directory;
use rdma_host::reader::{HostReader, ReadOptions};

pub use configuration::Configuration;

/// How long a check may take. On the wire it takes 2.5 s at most, and 1 s for each listen address that is in
/// use; with firmware that hangs, a read of sysfs takes a minute.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub struct DoctorOptions {
    pub configuration: Configuration,
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
}

impl Report {
    /// What to fix first: the first of the worst findings, for later ones may depend on it.
    pub fn first(&self) -> Option<&Finding> {
        let worst = |finding: &&Finding| finding.level == self.worst;
        self.findings.iter().find(worst).filter(|finding| finding.level >= Level::Warn)
    }
}

#[derive(Debug)]
struct Context {
    host: CheckedHost,
    options: DoctorOptions,
}

impl Context {
    fn settings(&self) -> &Settings {
        &self.options.configuration.settings
    }
}

/// What to do about a device whose reads block.
const HUNG_FIRMWARE: &str = "dmesg | grep -i -e mlx -e infiniband   # if firmware hangs: reset the \
                             adapter, or power-cycle the host";

type Check = fn(&Context) -> Vec<Finding>;

/// The checks, in the order in which a host is set up.
const CHECKS: [(Subject, Check); 11] = [
    (Subject::Pci, |context| cards::check(&context.host)),
    (Subject::Modules, |context| cards::check_modules(&context.host)),
    (Subject::Ports, |context| ports::check(&context.host)),
    (Subject::SubnetManager, |context| manager::check(&context.host)),
    (Subject::SubnetManager, |context| {
        let fabrics = &context.settings().fabrics;
        if context.options.offline {
            return manager::not_queried(&context.host, fabrics);
        }
        manager::query(&context.host, fabrics)
    }),
    (Subject::Permissions, |context| permissions::check(&context.host)),
    (Subject::Partitions, |context| {
        permissions::check_partitions(&context.host, &context.settings().fabrics)
    }),
    (Subject::Ipoib, |context| ports::check_ipoib(&context.host)),
    (Subject::Firmware, |context| ports::check_firmware(&context.host)),
    (Subject::Configuration, |context| configuration::check(&context.options.configuration)),
    (Subject::Listener, |context| configuration::check_listeners(context.settings())),
];

pub fn examine(options: DoctorOptions) -> Report {
    let host = CheckedHost::read(&options.configuration.settings, options.dev.clone());
    let has_cards =
        cards::functions(&host).is_some_and(|all| all.iter().any(cards::Function::must_do_rdma));
    let has_rdma = has_cards || !host.devices.is_empty();
    let context = Arc::new(Context { host, options });
    let mut executor = TimeoutExecutor::new(CHECK_TIMEOUT, move |&mut index: &mut usize| {
        CHECKS[index].1(&context)
    });
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
    Report { version: env!("CARGO_PKG_VERSION"), worst, has_rdma, findings }
}

/// What a finding is about, in the order in which a host is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    Pci,
    Modules,
    Ports,
    SubnetManager,
    /// Names and GUIDs of the nodes in the fabric.
    Fabric,
    Permissions,
    Partitions,
    Ipoib,
    Firmware,
    Configuration,
    Listener,
}

impl Subject {
    /// The heading in the table.
    pub fn label(self) -> &'static str {
        match self {
            Subject::Pci => "PCI",
            Subject::Modules => "kernel modules",
            Subject::Ports => "devices and ports",
            Subject::SubnetManager => "subnet manager",
            Subject::Fabric => "fabric",
            Subject::Permissions => "permissions and limits",
            Subject::Partitions => "partitions",
            Subject::Ipoib => "IPoIB",
            Subject::Firmware => "firmware",
            Subject::Configuration => "configuration",
            Subject::Listener => "listener",
        }
    }
}

/// The severity, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As expected.
    Ok,
    /// Nothing to do: not needed here, not visible, or good to know.
    Note,
    /// It works, but incompletely, or slower than it could.
    Warn,
    /// The exporter, or the fabric at this host, does not work.
    Bad,
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

fn ok(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Finding {
    finding(Level::Ok, subject, what, found)
}

fn note(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Finding {
    finding(Level::Note, subject, what, found)
}

fn warn(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Finding {
    finding(Level::Warn, subject, what, found)
}

fn bad(subject: Subject, what: impl Into<String>, found: impl Into<String>) -> Finding {
    finding(Level::Bad, subject, what, found)
}

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

/// The kernel's name of the link layer with LIDs and a subnet manager.
const INFINIBAND: &str = "InfiniBand";

#[derive(Debug)]
struct CheckedHost {
    sysfs: PathBuf,
    procfs: PathBuf,
    dev: PathBuf,
    devices: Vec<Device>,
}

impl CheckedHost {
    /// Reads the devices of a host, except those that the settings exclude: they may be known to hang. A device
    /// that hangs is abandoned after two seconds.
    fn read(settings: &Settings, dev: PathBuf) -> Self {
        let (sysfs, procfs) = (settings.sysfs.clone(), settings.procfs.clone());
        let filter = settings.host.as_ref().map(|host| host.filter.clone()).unwrap_or_default();
        // There is one read only, so no backoff.
        let options = ReadOptions { error_backoff: Duration::ZERO, ethtool: false, cm: false };
        let mut reader = HostReader::new(sysfs.clone(), filter, options, Clock::start());
        let HostSnapshot { devices, .. } = reader.read();
        CheckedHost { sysfs, procfs, dev, devices }
    }

    fn ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.devices.iter().flat_map(|device| device.ports.iter().map(move |port| (device, port)))
    }

    fn infiniband_ports(&self) -> impl Iterator<Item = (&Device, &Port)> {
        self.ports().filter(|(_, port)| is_infiniband(port))
    }

    /// The names in a directory of sysfs; `None` if it does not exist or cannot be read.
    fn names(&self, path: &str) -> Option<Vec<String>> {
        self.directory(path)?.names().ok()
    }

    fn directory(&self, path: &str) -> Option<Directory> {
        Directory::open(&self.sysfs.join(path)).ok()
    }
}

/// Whether it is an InfiniBand port. Kernels before 2.6.37 have no file with the link layer, and other ports of
/// those, of iWARP, have no LID.
fn is_infiniband(port: &Port) -> bool {
    port.link_layer == INFINIBAND || port.link_layer.is_empty() && port.lid.is_some()
}

/// The name of a port in findings: `mlx5_0 port 1`.
fn port_name(device: &Device, port: &Port) -> String {
    format!("{} port {}", device.name, port.number)
}
