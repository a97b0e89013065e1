//! RDMA adapters on the PCI bus: their drivers, the width and speed of their slots, and the kernel modules that
//! create RDMA devices and give programs access to them.
//!
//! A module that is built into the kernel is in no list of modules, and in `/sys/module` only if it has
//! parameters. So a directory that a module creates in sysfs counts as well.

use std::collections::BTreeSet;

use procfs::FromRead;
use rdma_host::model::Device;
use rdma_host::reader::sysfs::Directory;

use super::Subject::{Modules, Pci};
use super::checked_host::{CheckedHost, NO_DEVICE};
use super::finding::{Finding, Level, bad, finding, note, ok, warn};

/// A driver of a PCI function.
#[derive(Clone, Copy)]
pub struct Driver {
    /// Its name on the PCI bus.
    pci: &'static str,
    /// The module that creates the RDMA devices; the same if the driver does.
    rdma: &'static str,
    /// Whether all of its cards have RDMA; other drivers have plain network cards, too.
    always: bool,
}

/// The rows of a kind in `cards.tsv`.
fn rows(kind: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let rows = include_str!("cards.tsv").lines();
    let cells = rows.map(|row| row.split('\t').collect::<Vec<_>>());
    cells.filter(move |cells| cells.first().is_some_and(|first| *first == kind))
}

/// The driver with this name on the PCI bus.
fn driver(name: &str) -> Option<Driver> {
    rows("driver").find_map(|row| match row[..] {
        [_, pci, rdma, which] if pci == name => Some(Driver { pci, rdma, always: which == "all" }),
        _ => None,
    })
}

fn hex(text: &str) -> Option<u16> {
    u16::from_str_radix(text, 16).ok()
}

/// The module of the card with these ids, if it is for RDMA alone.
fn module_of(vendor: u16, device: u16) -> Option<&'static str> {
    rows("card").find_map(|row| match row[..] {
        [_, of, from, to, module] => {
            let is_it = hex(of)? == vendor && (hex(from)?..=hex(to)?).contains(&device);
            is_it.then_some(module)
        }
        _ => None,
    })
}

fn maker(vendor: u16) -> &'static str {
    let name = rows("maker").find_map(|row| match row[..] {
        [_, of, name] => (hex(of)? == vendor).then_some(name),
        _ => None,
    });
    name.unwrap_or("vendor")
}

/// PCI classes: base class and subclass (PCI code and ID assignment specification).
mod class {
    pub const ETHERNET: u32 = 0x0200;
    pub const INFINIBAND: u32 = 0x0207;
    /// Omni-Path's.
    pub const FABRIC: u32 = 0x0208;
    /// "Other network controller": ConnectX-3 that can be either.
    pub const NETWORK: u32 = 0x0280;
    /// InfiniBand as a serial bus: cards up to ConnectX-2.
    pub const INFINIBAND_BUS: u32 = 0x0c06;
    pub const ALL: [u32; 5] = [ETHERNET, INFINIBAND, FABRIC, NETWORK, INFINIBAND_BUS];
}

/// Drivers that reserve a function for a guest or a program.
const PASSTHROUGH: [&str; 3] = ["vfio-pci", "uio_pci_generic", "pci-stub"];

/// A PCI function with RDMA, or of a driver with RDMA.
#[derive(Debug)]
pub struct Function {
    address: String,
    class: u32,
    vendor: u16,
    device: u16,
    pub driver: Option<String>,
    pub rdma: Vec<String>,
    is_virtual: bool,
    /// Lanes and speed (GT/s): the current ones, and those that the card supports.
    lanes: Option<[u32; 2]>,
    speeds: Option<[f64; 2]>,
}

impl Function {
    /// Reads a function; `None` if it is not of an RDMA card.
    fn read(directory: &Directory, address: &str) -> Option<Self> {
        let number = |file| u32::from_str_radix(directory.text(file).strip_prefix("0x")?, 16).ok();
        let class = number("class")? >> 8;
        let id = |file| number(file).and_then(|id| u16::try_from(id).ok());
        let (vendor, device) = (id("vendor")?, id("device")?);
        // A function that is asleep, or virtual, has 0 or 255 lanes and the speed "Unknown" (kernel: pci-sysfs.c).
        let lanes = |file| {
            directory.text(file).parse::<u32>().ok().filter(|lanes| (1..=32).contains(lanes))
        };
        let speed = |file| {
            // As in `16.0 GT/s PCIe`.
            let speed = directory.text(file).split_once(" GT/s")?.0.parse().ok();
            speed.filter(|speed: &f64| speed.is_finite())
        };
        let function = Function {
            address: address.to_owned(),
            class,
            vendor,
            device,
            driver: directory.link_target("driver"),
            rdma: directory.open_below("infiniband").and_then(|it| it.names()).unwrap_or_default(),
            is_virtual: directory.link_target("physfn").is_some(),
            lanes: lanes("current_link_width").zip(lanes("max_link_width")).map(Into::into),
            speeds: speed("current_link_speed").zip(speed("max_link_speed")).map(Into::into),
        };
        let is_network = class::ALL.contains(&class);
        let does_rdma = function.must_do_rdma() || function.bound().is_some();
        (!function.rdma.is_empty() || is_network && does_rdma).then_some(function)
    }

    /// Its driver, if it is known.
    pub fn bound(&self) -> Option<Driver> {
        self.driver.as_deref().and_then(driver)
    }

    /// Whether the card always has RDMA.
    pub fn must_do_rdma(&self) -> bool {
        matches!(self.class, class::INFINIBAND | class::FABRIC | class::INFINIBAND_BUS)
            || module_of(self.vendor, self.device).is_some()
            || self.bound().is_some_and(|driver| driver.always)
    }

    fn title(&self) -> String {
        let kind = match self.class {
            class::INFINIBAND | class::INFINIBAND_BUS => "InfiniBand",
            class::FABRIC => "fabric",
            class::NETWORK => "network",
            _ => "Ethernet",
        };
        let maker = maker(self.vendor);
        let part = if self.is_virtual { ", virtual function" } else { "" };
        format!("{maker} {:04x}:{:04x}, {kind}{part}", self.vendor, self.device)
    }

    fn finding(&self, host: &CheckedHost) -> Finding {
        let (what, title) = (self.address.as_str(), self.title());
        let Some(driver) = &self.driver else {
            // A virtual function without a driver may be meant for a guest.
            let level = if self.is_virtual { Level::Note } else { Level::Bad };
            let fix = module_of(self.vendor, self.device).map_or_else(
                || format!("lspci -k -s {what}   # load the kernel module listed: modprobe"),
                |module| format!("modprobe {module}   # if that fails: dmesg | grep {what}"),
            );
            return finding(level, Pci, what, format!("{title}: no driver bound"))
                .expected("a driver bound to the adapter")
                .fix(fix);
        };
        if PASSTHROUGH.contains(&&**driver) {
            return note(Pci, what, format!("{title}: bound to {driver}, reserved for a guest"));
        }
        let title = format!("{title}, {driver}");
        if !self.rdma.is_empty() {
            ok(Pci, what, format!("{title}: {}", self.rdma.join(", ")))
        } else if let Some(device) = self.served_by(host) {
            ok(Pci, what, format!("{title}: served by {device}"))
        } else if self.must_do_rdma() {
            warn(Pci, what, format!("{title}: no RDMA device created"))
                .expected("a device in /sys/class/infiniband")
                .fix(format!("dmesg | grep {what}   # fix \"kernel modules\" below first"))
        } else {
            let found = "no RDMA device; some adapters of this driver support RDMA";
            note(Pci, what, format!("{title}: {found}"))
        }
    }

    /// The device of another function that serves the port of this one, too: mlx5 has one device for the ports of a
    /// bond (kernel: drivers/net/ethernet/mellanox/mlx5/core/lag), and can have one with both ports of an adapter.
    /// The interface tells; it may be in another network namespace, or without an address.
    fn served_by<'a>(&self, host: &'a CheckedHost) -> Option<&'a str> {
        if self.is_virtual || self.driver.as_deref() != Some("mlx5_core") {
            return None;
        }
        let serves = |device: &&Device| {
            let mut netdevs = device.ports.iter().flat_map(|port| &port.netdevs);
            let serves_several = device.ports.len() > 1 || device.name.contains("_bond_");
            netdevs.any(|netdev| netdev.bus_address.as_deref() == Some(&*self.address))
                || serves_several && slot(&device.info.bus_address) == slot(&self.address)
        };
        host.devices.iter().find(serves).map(|device| &*device.name)
    }

    /// A slot with fewer lanes, or a lower speed, than the card.
    fn check_slot(&self) -> Option<Finding> {
        let is_narrow = self.lanes.is_some_and(|[now, most]| now < most);
        let is_slow = self.speeds.is_some_and(|[now, most]| now < most);
        if self.is_virtual || !is_narrow && !is_slow {
            return None;
        }
        let [now, most] = [0, 1].map(|index| {
            let lanes = self.lanes.map(|lanes| format!("x{}", lanes[index]));
            let speed = self.speeds.map(|speeds| format!("{} GT/s", speeds[index]));
            lanes.into_iter().chain(speed).collect::<Vec<_>>().join(" at ")
        });
        let fix = format!(
            "lspci -vv -s {}   # compare LnkCap and LnkSta; then power off and reseat the adapter, or \
             use a slot with full width and speed",
            self.address
        );
        let expected = format!("{most}, the adapter's maximum; a slower slot causes congestion");
        let found = format!("PCIe link is {now}");
        Some(warn(Pci, &self.address, found).expected(expected).fix(fix))
    }
}

/// The address without the function number: all functions of a slot share one link.
fn slot(address: &str) -> &str {
    address.rsplit_once('.').map_or(address, |(slot, _)| slot)
}

/// The RDMA functions, by address; `None` if no PCI bus is visible.
pub fn functions(host: &CheckedHost) -> Option<Vec<Function>> {
    let bus = "bus/pci/devices";
    let function =
        |address: String| Function::read(&host.directory(&format!("{bus}/{address}"))?, &address);
    Some(host.names(bus)?.into_iter().filter_map(function).collect())
}

pub fn check(host: &CheckedHost) -> Vec<Finding> {
    let Some(functions) = functions(host) else {
        let place = host.settings().sysfs.join("bus/pci/devices");
        let found =
            format!("{} does not exist: a container, or a host without PCI", place.display());
        return vec![note(Pci, "bus", found)];
    };
    if !functions.iter().any(Function::must_do_rdma) && host.devices.is_empty() {
        let fix = "lspci -nn   # if it does not list the HCA: reseat it; in a virtual machine, pass \
                   the HCA or a virtual function through";
        let none =
            bad(Pci, "adapters", "no InfiniBand or RoCE adapter").expected("an HCA").fix(fix);
        return functions.iter().map(|it| it.finding(host)).chain([none]).collect();
    }
    if functions.is_empty() {
        return vec![note(Pci, "adapters", "none: the RDMA devices are software")];
    }
    let mut findings = Vec::new();
    let mut last_slot = None;
    for function in &functions {
        findings.push(function.finding(host));
        let slot = slot(&function.address);
        if last_slot.replace(slot) != Some(slot) {
            findings.extend(function.check_slot());
        }
    }
    findings
}

/// The command that loads a module now and at each boot.
fn load_command(module: &str) -> String {
    format!("modprobe {module} && echo {module} > /etc/modules-load.d/{module}.conf")
}

pub fn check_modules(host: &CheckedHost) -> Vec<Finding> {
    // If it cannot be read, as in a container, only sysfs counts.
    let list = host.settings().procfs.join("modules");
    let listed: BTreeSet<String> = procfs::KernelModules::from_file(list)
        .map(|modules| modules.0.into_keys().collect())
        .unwrap_or_default();
    // Whether a module is loaded or built in.
    let has = |module: &str, trace: &str| {
        listed.contains(module)
            || host.directory(&format!("module/{module}")).is_some()
            || !trace.is_empty() && host.directory(trace).is_some()
    };
    let mut findings = check_card_modules(host, has);
    if !host.devices.is_empty() {
        findings.extend(rows("module").filter_map(|row| check_common(host, &row, has)));
    } else if findings.is_empty() {
        findings.push(note(Modules, "modules", NO_DEVICE));
    }
    findings
}

/// The modules that create the RDMA devices of the cards of this host.
fn check_card_modules(host: &CheckedHost, has: impl Fn(&str, &str) -> bool) -> Vec<Finding> {
    let functions = functions(host).unwrap_or_default();
    let mut checked = BTreeSet::new();
    let mut findings = Vec::new();
    for function in &functions {
        let Some(driver) = function.bound() else { continue };
        // A network card without RDMA whose driver has cards with RDMA.
        if function.rdma.is_empty() && !function.must_do_rdma() || !checked.insert(driver.rdma) {
            continue;
        }
        let of = format!("the RDMA driver of {} adapters", driver.pci);
        let works = functions.iter().any(|other| {
            other.bound().is_some_and(|it| it.rdma == driver.rdma) && !other.rdma.is_empty()
        });
        findings.push(if works || has(driver.rdma, "") {
            ok(Modules, driver.rdma, format!("loaded or built in: {of}"))
        } else {
            bad(Modules, driver.rdma, format!("not loaded: {of}"))
                .expected("loaded; without it the adapter has no RDMA device")
                .fix(load_command(driver.rdma))
        });
    }
    findings
}

/// A module that is not of a card, by its row.
fn check_common(
    host: &CheckedHost,
    row: &[&str],
    has: impl Fn(&str, &str) -> bool,
) -> Option<Finding> {
    let [_, name, trace, who, if_missing, why] = *row else { return None };
    if has(name, trace) {
        return Some(ok(Modules, name, "loaded or built in"));
    }
    let why_not = match who {
        "infiniband" | "sweep" if !host.has_infiniband() => {
            Some("this host has no InfiniBand port")
        }
        "sweep" if !host.sweeps() => Some("no fabric is swept"),
        "events" if !host.receives_events() => Some("device events are off"),
        _ => None,
    };
    if let Some(why_not) = why_not {
        return Some(ok(Modules, name, format!("not loaded, not needed: {why_not}")));
    }
    let level = match if_missing {
        "bad" => Level::Bad,
        "warn" => Level::Warn,
        _ => Level::Note,
    };
    Some(finding(level, Modules, name, "not loaded").expected(why).fix(load_command(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_give_module_of_card() {
        for (vendor, device, module) in [
            (0x15b3, 0x1003, Some("mlx4_core")),
            (0x15b3, 0x6282, Some("ib_mthca")),
            (0x15b3, 0x673c, Some("mlx4_core")),
            (0x15b3, 0x1021, Some("mlx5_core")),
            (0x8086, 0x24f0, Some("hfi1")),
            (0x8086, 0x1592, None),
            (0x1d0f, 0xefa1, Some("efa")),
            (0x1d0f, 0xec20, None),
        ] {
            assert_eq!(module_of(vendor, device), module, "{device:#x}");
        }
    }

    #[test]
    fn each_row_of_the_table_is_valid() {
        for line in include_str!("cards.tsv").lines().filter(|line| !line.starts_with('#')) {
            let row: Vec<&str> = line.split('\t').collect();
            let is_valid = match row[..] {
                ["driver", pci, rdma, "all" | "some"] => !pci.is_empty() && !rdma.is_empty(),
                ["card", vendor, from, to, module] => {
                    [vendor, from, to].iter().all(|id| id.len() == 4 && hex(id).is_some())
                        && hex(from) <= hex(to)
                        && driver(module).is_some_and(|driver| driver.always)
                }
                [
                    "module",
                    _,
                    trace,
                    "sweep" | "infiniband" | "events" | "all",
                    "bad" | "warn" | "note",
                    why,
                ] => trace.contains('/') && !why.is_empty(),
                ["maker", vendor, name] => hex(vendor).is_some() && !name.is_empty(),
                _ => false,
            };
            assert!(is_valid, "{line:?}");
        }
        assert_eq!(maker(0x15b3), "NVIDIA (Mellanox)");
        assert_eq!(maker(1), "vendor");
        assert_eq!(
            driver("ice").map(|driver| (driver.rdma, driver.always)),
            Some(("irdma", false))
        );
    }
}
