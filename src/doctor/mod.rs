//! What this host needs for the exporter to work, in the order in which people set it up: what was
//! found, what is wanted, and what mends it.
//!
//! Nothing is changed. On the wire four questions are asked, and the fabric is walked through once, if
//! that is wanted. What cannot be seen without rights is said not to be seen; what hangs costs its own
//! subject alone.

mod drivers;
pub mod finding;
mod firmware;
mod host;
mod identity;
mod ipoib;
mod listener;
mod manager;
mod modules;
mod own;
mod partitions;
mod pci;
mod permissions;
mod ports;
mod standby;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use rdma_host::reader::patience::{Panicked, Patience};

use finding::{Finding, Level, Subject};
use host::Host;
pub use own::Own;

/// How long a subject may take. On the wire it is 2.5 s at the most, and 1 s for each address whose
/// port somebody has; firmware that hangs keeps a file of sysfs for a minute.
const LIMIT: Duration = Duration::from_secs(5);

/// What is to be looked at.
#[derive(Clone, Debug)]
pub struct Order {
    /// The exporter's settings.
    pub own: Own,
    /// Where the device files are.
    pub dev: PathBuf,
    /// Whether nothing may be asked on the wire.
    pub offline: bool,
}

/// All that was found.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The exporter's version.
    pub version: &'static str,
    /// The worst of all findings.
    pub worst: Level,
    /// Whether there is any RDMA device or card.
    pub has_rdma: bool,
    /// The findings, subject by subject.
    pub findings: Vec<Finding>,
}

impl Report {
    /// What to mend first: of the worst findings the first one, for what comes later may need it.
    pub fn first(&self) -> Option<&Finding> {
        let worst = |finding: &&Finding| finding.level == self.worst;
        self.findings.iter().find(worst).filter(|finding| finding.level >= Level::Warn)
    }
}

/// What the checks go by.
#[derive(Debug)]
struct Seen {
    host: Host,
    order: Order,
}

/// Looks at one thing.
type Check = fn(&Seen) -> Vec<Finding>;

/// In the order in which people set a host up.
const CHECKS: [(Subject, Check); 11] = [
    (Subject::Pci, |seen| pci::check(&seen.host)),
    (Subject::Modules, |seen| modules::check(&seen.host)),
    (Subject::Ports, |seen| ports::check(&seen.host)),
    (Subject::SubnetManager, |seen| manager::check(&seen.host)),
    (Subject::SubnetManager, asked),
    (Subject::Permissions, |seen| permissions::check(&seen.host)),
    (Subject::Partitions, |seen| partitions::check(&seen.host, &seen.order.own.settings.fabrics)),
    (Subject::Ipoib, |seen| ipoib::check(&seen.host)),
    (Subject::Firmware, |seen| firmware::check(&seen.host)),
    (Subject::Configuration, |seen| own::check(&seen.order.own)),
    (Subject::Listener, |seen| {
        let settings = &seen.order.own.settings;
        if settings.systemd_socket {
            return vec![listener::handed_over()];
        }
        listener::check(&settings.listen, &settings.telemetry_path)
    }),
];

/// The subnet manager, by asking it.
fn asked(seen: &Seen) -> Vec<Finding> {
    let fabrics = &seen.order.own.settings.fabrics;
    if seen.order.offline && !fabrics.is_empty() {
        let found = "not asked on the wire, as --offline says";
        return vec![Finding::note(Subject::SubnetManager, "fabric", found)];
    }
    manager::ask(&seen.host, fabrics)
}

/// Looks at everything.
pub fn examine(order: Order) -> Report {
    let host = Host::look(&order.own.settings, order.dev.clone());
    let has_cards =
        pci::functions(&host).is_some_and(|all| all.iter().any(pci::Function::must_do_rdma));
    let has_rdma = has_cards || !host.devices.is_empty();
    let seen = Arc::new(Seen { host, order });
    let mut patience = Patience::new(LIMIT, move |check: &mut (usize, Check)| (check.1)(&seen));
    let checks = CHECKS.iter().enumerate().map(|(place, (_, check))| (place, *check)).collect();
    let mut done: Vec<Option<Vec<Finding>>> = vec![None; CHECKS.len()];
    for ((place, _), findings) in patience.run(checks) {
        if let Some((slot, (subject, _))) = done.get_mut(place).zip(CHECKS.get(place)) {
            *slot = Some(findings.unwrap_or_else(|panic| vec![broken(*subject, &panic)]));
        }
    }
    let told = CHECKS
        .iter()
        .zip(done)
        .flat_map(|((subject, _), findings)| findings.unwrap_or_else(|| vec![hung(*subject)]));
    let mut findings: Vec<Finding> = told.collect();
    findings.sort_by_key(|finding| finding.subject);
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    Report { version: env!("CARGO_PKG_VERSION"), worst, has_rdma, findings }
}

/// A check that panicked.
fn broken(subject: Subject, panic: &Panicked) -> Finding {
    let found = format!("could not be looked at: a bug in this program: {panic}");
    Finding::bad(subject, "all", found).mend("report it, with what this host has")
}

fn hung(subject: Subject) -> Finding {
    let found = format!("could not be looked at within {LIMIT:?}: a file or a device hangs");
    Finding::bad(subject, "all", found)
        .wanted("a kernel that answers")
        .mend("dmesg | tail -50   # a firmware that hangs wants a reset, or a cold start")
}
