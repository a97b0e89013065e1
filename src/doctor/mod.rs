//! Checks the prerequisites of the exporter on this host, in the order in which a host is set up. A finding
//! says what was found, what is expected, and the command that fixes it.
//!
//! Nothing is changed. On the wire four Gets are sent for each fabric, and one discovery, unless the check is
//! offline. What cannot be read without privileges is reported as such; a check that hangs fails alone.

mod cards;
mod checked_host;
mod configuration;
mod fabric;
mod finding;
mod manager;
mod permissions;
mod planes;
mod ports;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::exit::Exit;
pub use checked_host::DoctorOptions;
use checked_host::{CheckedHost, HUNG_FIRMWARE};
use finding::bad;
pub use finding::{Finding, Level, Subject};
use rdma_host::reader::executor::TimeoutExecutor;

/// How long a check may take. On the wire it takes 2.5 s at most, and 1 s for each listen address that is in
/// use; with firmware that hangs, a read of sysfs takes a minute.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

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

type Check = fn(&CheckedHost) -> Vec<Finding>;

/// The checks, in the order in which a host is set up.
const CHECKS: [(Subject, Check); 12] = [
    (Subject::Pci, cards::check),
    (Subject::Modules, cards::check_modules),
    (Subject::Ports, ports::check),
    (Subject::Ports, planes::check),
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
