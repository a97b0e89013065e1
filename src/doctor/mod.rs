//! Checks the prerequisites of the exporter on this host, in the order in which a host is set up. A finding
//! says what was found, what is expected, and the command that fixes it.
//!
//! Nothing is changed. On the wire four Gets are sent for each fabric, and one discovery, unless the check is
//! offline. What cannot be read without privileges is reported as such; a check that hangs fails alone.

mod configuration;
mod devices;
mod drivers;
pub mod finding;
mod host;
mod identity;
mod ipoib;
mod listener;
mod manager;
mod modules;
mod partitions;
mod pci;
mod permissions;
mod standby;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use rdma_host::reader::executor::{Panicked, TimeoutExecutor};

pub use configuration::Configuration;
use finding::{Finding, Level, Subject};
use host::CheckedHost;

/// How long a check may take. On the wire it takes 2.5 s at most, and 1 s for each listen address that is in
/// use; with firmware that hangs, a read of sysfs takes a minute.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// What to check.
#[derive(Clone, Debug)]
pub struct DoctorOptions {
    /// The exporter's settings.
    pub configuration: Configuration,
    /// Where the device files are.
    pub dev: PathBuf,
    /// Whether to send nothing on the wire.
    pub offline: bool,
}

/// The results of all checks.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The exporter's version.
    pub version: &'static str,
    /// The worst level of all findings.
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

/// The input of the checks.
#[derive(Debug)]
struct Context {
    host: CheckedHost,
    options: DoctorOptions,
}

type Check = fn(&Context) -> Vec<Finding>;

/// The checks, in the order in which a host is set up.
const CHECKS: [(Subject, Check); 11] = [
    (Subject::Pci, |context| pci::check(&context.host)),
    (Subject::Modules, |context| modules::check(&context.host)),
    (Subject::Ports, |context| devices::check(&context.host)),
    (Subject::SubnetManager, |context| manager::check(&context.host)),
    (Subject::SubnetManager, query_managers),
    (Subject::Permissions, |context| permissions::check(&context.host)),
    (Subject::Partitions, |context| {
        partitions::check(&context.host, &context.options.configuration.settings.fabrics)
    }),
    (Subject::Ipoib, |context| ipoib::check(&context.host)),
    (Subject::Firmware, |context| devices::check_firmware(&context.host)),
    (Subject::Configuration, |context| configuration::check(&context.options.configuration)),
    (Subject::Listener, |context| {
        let settings = &context.options.configuration.settings;
        if settings.systemd_socket {
            return vec![listener::systemd_socket()];
        }
        listener::check(&settings.listen, &settings.telemetry_path)
    }),
];

/// Queries the subnet manager of each fabric.
fn query_managers(context: &Context) -> Vec<Finding> {
    let fabrics = &context.options.configuration.settings.fabrics;
    if context.options.offline && !fabrics.is_empty() {
        let found = "not asked on the wire, as --offline says";
        return vec![Finding::note(Subject::SubnetManager, "fabric", found)];
    }
    manager::query(&context.host, fabrics)
}

/// Runs all checks.
pub fn examine(options: DoctorOptions) -> Report {
    let host = CheckedHost::read(&options.configuration.settings, options.dev.clone());
    let has_cards =
        pci::functions(&host).is_some_and(|all| all.iter().any(pci::Function::must_do_rdma));
    let has_rdma = has_cards || !host.devices.is_empty();
    let context = Arc::new(Context { host, options });
    let mut executor = TimeoutExecutor::new(CHECK_TIMEOUT, move |&mut index: &mut usize| {
        CHECKS[index].1(&context)
    });
    let mut results: BTreeMap<usize, _> =
        executor.run((0..CHECKS.len()).collect()).into_iter().collect();
    let result = |(index, (subject, _)): (usize, &(Subject, Check))| match results.remove(&index) {
        Some(Ok(findings)) => findings,
        Some(Err(panic)) => vec![panicked(*subject, &panic)],
        None => vec![timed_out(*subject)],
    };
    let mut findings: Vec<Finding> = CHECKS.iter().enumerate().flat_map(result).collect();
    findings.sort_by_key(|finding| finding.subject);
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    Report { version: env!("CARGO_PKG_VERSION"), worst, has_rdma, findings }
}

fn panicked(subject: Subject, panic: &Panicked) -> Finding {
    let found = format!("could not be looked at: a bug in this program: {panic}");
    Finding::bad(subject, "all", found).mend("report it, with what this host has")
}

fn timed_out(subject: Subject) -> Finding {
    let found =
        format!("could not be looked at within {CHECK_TIMEOUT:?}: a file or a device hangs");
    Finding::bad(subject, "all", found)
        .wanted("a kernel that answers")
        .mend("dmesg | tail -50   # a firmware that hangs wants a reset, or a cold start")
}
