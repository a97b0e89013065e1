//! Kernel modules: those that make the devices, and those that let programs at them.
//!
//! What is built into the kernel is in no list of modules, and in `/sys/module` only if it has
//! parameters. So what a module leaves in sysfs speaks for it, too.

use std::collections::BTreeSet;

use procfs::FromRead;

use super::finding::{Finding, Subject};
use super::host::Host;
use super::pci;

const SUBJECT: Subject = Subject::Modules;

/// Whom a module is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// All RDMA.
    All,
    /// InfiniBand alone.
    InfiniBand,
}

/// What its absence costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    /// The fabric cannot be asked.
    Bad,
    /// Something is missing.
    Warn,
    /// Others may miss it.
    Note,
}

/// A module that is none of a card's.
struct Common {
    name: &'static str,
    /// What it leaves in sysfs, loaded or built in.
    trace: &'static str,
    of: For,
    without: Without,
    why: &'static str,
}

const COMMON: [Common; 4] = [
    Common {
        name: "ib_umad",
        trace: "class/infiniband_mad",
        of: For::InfiniBand,
        without: Without::Bad,
        why: "it carries management datagrams, by which the fabric is asked",
    },
    Common {
        name: "ib_uverbs",
        trace: "class/infiniband_verbs",
        of: For::All,
        without: Without::Warn,
        why: "programs reach devices by it, and the exporter hears of their events",
    },
    Common {
        name: "ib_ipoib",
        trace: "module/ib_ipoib",
        of: For::InfiniBand,
        without: Without::Note,
        why: "for IP on the fabric; the exporter does without",
    },
    Common {
        name: "rdma_cm",
        trace: "module/rdma_cm",
        of: For::All,
        without: Without::Note,
        why: "for programs that connect by IP address; the exporter does without",
    },
];

/// The modules that are known to be there.
struct Loaded<'a> {
    host: &'a Host,
    listed: BTreeSet<String>,
}

impl Loaded<'_> {
    fn has(&self, module: &str, trace: &str) -> bool {
        self.listed.contains(module)
            || self.host.directory(&format!("module/{module}")).is_some()
            || !trace.is_empty() && self.host.directory(trace).is_some()
    }
}

/// Loads a module now, and whenever the host starts.
fn loading(module: &str) -> String {
    format!("modprobe {module} && echo {module} > /etc/modules-load.d/{module}.conf")
}

/// Looks at the modules.
pub fn check(host: &Host) -> Vec<Finding> {
    // One that cannot be read, as in a container, leaves sysfs to tell.
    let listed = procfs::KernelModules::from_file(host.procfs.join("modules"))
        .map(|modules| modules.0.into_keys().collect())
        .unwrap_or_default();
    let loaded = Loaded { host, listed };
    let mut findings = of_cards(host, &loaded);
    if host.devices.is_empty() {
        if findings.is_empty() {
            findings.push(Finding::note(SUBJECT, "modules", "none needed without a device"));
        }
        return findings;
    }
    let has_infiniband = host.infiniband_ports().next().is_some();
    findings.extend(COMMON.iter().map(|module| common(module, &loaded, has_infiniband)));
    findings
}

/// The modules that make RDMA devices of the cards that are here.
fn of_cards(host: &Host, loaded: &Loaded<'_>) -> Vec<Finding> {
    let functions = pci::functions(host).unwrap_or_default();
    let mut told = BTreeSet::new();
    let mut findings = Vec::new();
    for function in &functions {
        let Some(driver) = function.bound() else { continue };
        // A plain network card of a driver that some others do RDMA with.
        if function.rdma.is_empty() && !function.must_do_rdma() || !told.insert(driver.rdma) {
            continue;
        }
        let of = format!("the RDMA part of {}", driver.pci);
        let works = functions.iter().any(|other| {
            other.bound().is_some_and(|it| it.rdma == driver.rdma) && !other.rdma.is_empty()
        });
        findings.push(if works || loaded.has(driver.rdma, "") {
            Finding::ok(SUBJECT, driver.rdma, format!("there: {of}"))
        } else {
            Finding::bad(SUBJECT, driver.rdma, format!("not loaded: {of}"))
                .wanted("loaded: without it the card is no RDMA device")
                .mend(loading(driver.rdma))
        });
    }
    findings
}

fn common(module: &Common, loaded: &Loaded<'_>, has_infiniband: bool) -> Finding {
    let Common { name, why, .. } = *module;
    if loaded.has(name, module.trace) {
        return Finding::ok(SUBJECT, name, "there");
    }
    if module.of == For::InfiniBand && !has_infiniband {
        return Finding::ok(SUBJECT, name, "not loaded, and not needed: no InfiniBand port here");
    }
    let found = "not loaded";
    let finding = match module.without {
        Without::Bad => Finding::bad(SUBJECT, name, found),
        Without::Warn => Finding::warn(SUBJECT, name, found),
        Without::Note => Finding::note(SUBJECT, name, found),
    };
    finding.wanted(why).mend(loading(name))
}
