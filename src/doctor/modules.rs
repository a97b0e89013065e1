//! Kernel modules: those that create the devices, and those that programs use them by.
//!
//! A module that is built into the kernel is in no list of modules, and in `/sys/module` only if it has
//! parameters. So a directory that a module creates in sysfs counts as well.

use std::collections::BTreeSet;

use procfs::FromRead;

use super::finding::{Finding, Level, Subject};
use super::host::CheckedHost;
use super::pci;

const SUBJECT: Subject = Subject::Modules;

/// A module that is not of a card.
struct CommonModule {
    name: &'static str,
    /// A directory of sysfs that it creates, loaded or built in.
    trace: &'static str,
    infiniband_only: bool,
    if_missing: Level,
    why: &'static str,
}

const COMMON: [CommonModule; 4] = [
    CommonModule {
        name: "ib_umad",
        trace: "class/infiniband_mad",
        infiniband_only: true,
        if_missing: Level::Bad,
        why: "it carries management datagrams, by which the fabric is asked",
    },
    CommonModule {
        name: "ib_uverbs",
        trace: "class/infiniband_verbs",
        infiniband_only: false,
        if_missing: Level::Warn,
        why: "programs reach devices by it, and the exporter hears of their events",
    },
    CommonModule {
        name: "ib_ipoib",
        trace: "module/ib_ipoib",
        infiniband_only: true,
        if_missing: Level::Note,
        why: "for IP on the fabric; the exporter does without",
    },
    CommonModule {
        name: "rdma_cm",
        trace: "module/rdma_cm",
        infiniband_only: false,
        if_missing: Level::Note,
        why: "for programs that connect by IP address; the exporter does without",
    },
];

/// The modules that are loaded or built in.
struct Loaded<'a> {
    host: &'a CheckedHost,
    listed: BTreeSet<String>,
}

impl Loaded<'_> {
    fn has(&self, module: &str, trace: &str) -> bool {
        self.listed.contains(module)
            || self.host.directory(&format!("module/{module}")).is_some()
            || !trace.is_empty() && self.host.directory(trace).is_some()
    }
}

/// The command that loads a module now and at each boot.
fn load_command(module: &str) -> String {
    format!("modprobe {module} && echo {module} > /etc/modules-load.d/{module}.conf")
}

pub fn check(host: &CheckedHost) -> Vec<Finding> {
    // If it cannot be read, as in a container, only sysfs counts.
    let listed = procfs::KernelModules::from_file(host.procfs.join("modules"))
        .map(|modules| modules.0.into_keys().collect())
        .unwrap_or_default();
    let loaded = Loaded { host, listed };
    let mut findings = check_card_modules(host, &loaded);
    if host.devices.is_empty() {
        if findings.is_empty() {
            findings.push(Finding::note(SUBJECT, "modules", "none needed without a device"));
        }
        return findings;
    }
    let has_infiniband = host.infiniband_ports().next().is_some();
    findings.extend(COMMON.iter().map(|module| check_common(module, &loaded, has_infiniband)));
    findings
}

/// The modules that create the RDMA devices of the cards of this host.
fn check_card_modules(host: &CheckedHost, loaded: &Loaded<'_>) -> Vec<Finding> {
    let functions = pci::functions(host).unwrap_or_default();
    let mut checked = BTreeSet::new();
    let mut findings = Vec::new();
    for function in &functions {
        let Some(driver) = function.bound() else { continue };
        // A network card without RDMA whose driver has cards with RDMA.
        if function.rdma.is_empty() && !function.must_do_rdma() || !checked.insert(driver.rdma) {
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
                .mend(load_command(driver.rdma))
        });
    }
    findings
}

fn check_common(module: &CommonModule, loaded: &Loaded<'_>, has_infiniband: bool) -> Finding {
    let CommonModule { name, why, .. } = *module;
    if loaded.has(name, module.trace) {
        return Finding::ok(SUBJECT, name, "there");
    }
    if module.infiniband_only && !has_infiniband {
        return Finding::ok(SUBJECT, name, "not loaded, and not needed: no InfiniBand port here");
    }
    let finding = Finding::new(module.if_missing, SUBJECT, name, "not loaded");
    finding.wanted(why).mend(load_command(name))
}
