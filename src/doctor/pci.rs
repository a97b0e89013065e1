//! RDMA cards on the PCI bus: their drivers, and the width and speed of their slots.

use rdma_host::reader::sysfs::Directory;

use super::drivers::{self, Driver};
use super::finding::{Finding, Subject};
use super::host::CheckedHost;

const SUBJECT: Subject = Subject::Pci;

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
    /// The classes that an RDMA card can have.
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
    /// The driver that is bound to it.
    pub driver: Option<String>,
    /// Its RDMA devices.
    pub rdma: Vec<String>,
    is_virtual: bool,
    /// Lanes and speed (GT/s): the current ones, and those that the card supports.
    lanes: Option<(u32, u32)>,
    speeds: Option<(f64, f64)>,
}

impl Function {
    /// Reads a function; `None` if it is not of an RDMA card.
    fn read(directory: &Directory, address: &str) -> Option<Self> {
        let number = |file| u32::from_str_radix(directory.text(file).strip_prefix("0x")?, 16).ok();
        let class = number("class")? >> 8;
        let id = |file| number(file).and_then(|id| u16::try_from(id).ok());
        let (vendor, device) = (id("vendor")?, id("device")?);
        let pair = |now, most| Some((directory.text(now), directory.text(most)));
        // A function that is asleep, or virtual, has 0 or 255 lanes and the speed "Unknown" (kernel:
        // pci-sysfs.c).
        let lanes = pair("current_link_width", "max_link_width")
            .and_then(|(now, most)| Some((now.parse().ok()?, most.parse().ok()?)))
            .filter(|(now, most)| (1..=32).contains(now) && (1..=32).contains(most));
        let speeds = pair("current_link_speed", "max_link_speed")
            .and_then(|(now, most)| Some((transfers(&now)?, transfers(&most)?)));
        let function = Function {
            address: address.to_owned(),
            class,
            vendor,
            device,
            driver: directory.link_target("driver"),
            rdma: directory.open_below("infiniband").and_then(|it| it.names()).unwrap_or_default(),
            is_virtual: directory.link_target("physfn").is_some(),
            lanes,
            speeds,
        };
        let is_network = class::ALL.contains(&class);
        let does_rdma = function.must_do_rdma() || function.bound().is_some();
        (!function.rdma.is_empty() || is_network && does_rdma).then_some(function)
    }

    /// Its driver, if it is known.
    pub fn bound(&self) -> Option<&'static Driver> {
        self.driver.as_deref().and_then(drivers::by_name)
    }

    /// Whether the card always has RDMA.
    pub fn must_do_rdma(&self) -> bool {
        matches!(self.class, class::INFINIBAND | class::FABRIC | class::INFINIBAND_BUS)
            || drivers::by_ids(self.vendor, self.device).is_some()
            || self.bound().is_some_and(|driver| driver.always)
    }

    fn title(&self) -> String {
        let kind = match self.class {
            class::INFINIBAND | class::INFINIBAND_BUS => "InfiniBand",
            class::FABRIC => "fabric",
            class::NETWORK => "network",
            _ => "Ethernet",
        };
        let maker = drivers::maker(self.vendor);
        let part = if self.is_virtual { ", a virtual function" } else { "" };
        format!("{maker} {:04x}:{:04x}, {kind}{part}", self.vendor, self.device)
    }

    fn finding(&self) -> Finding {
        let (what, title) = (self.address.as_str(), self.title());
        match &self.driver {
            None => {
                let unbound = format!("{title}: no driver has it");
                let module = drivers::by_ids(self.vendor, self.device).map(|card| card.module);
                let mend = module.map_or_else(
                    || format!("lspci -k -s {what}   # and load the module that it names"),
                    |module| format!("modprobe {module}   # if that fails: dmesg | grep {what}"),
                );
                // A virtual function without a driver may be meant for a guest.
                let finding = if self.is_virtual {
                    Finding::note(SUBJECT, what, unbound)
                } else {
                    Finding::bad(SUBJECT, what, unbound)
                };
                finding.wanted("a driver").mend(mend)
            }
            Some(driver) if PASSTHROUGH.contains(&&**driver) => {
                Finding::note(SUBJECT, what, format!("{title}: {driver} keeps it for a guest"))
            }
            Some(driver) if !self.rdma.is_empty() => {
                let devices = self.rdma.join(", ");
                Finding::ok(SUBJECT, what, format!("{title}, {driver}: {devices}"))
            }
            Some(driver) if self.must_do_rdma() => {
                let found = format!("{title}, {driver}: has made no RDMA device");
                Finding::warn(SUBJECT, what, found)
                    .wanted("a device in /sys/class/infiniband")
                    .mend(format!("dmesg | grep {what}   # after the kernel modules below"))
            }
            Some(driver) => Finding::note(
                SUBJECT,
                what,
                format!("{title}, {driver}: no RDMA device; some cards of this driver do RDMA"),
            ),
        }
    }

    /// A slot with fewer lanes, or a lower speed, than the card.
    fn check_slot(&self) -> Option<Finding> {
        let narrow = self.lanes.filter(|(now, most)| now < most);
        let slow = self.speeds.filter(|(now, most)| now < most);
        if self.is_virtual || narrow.is_none() && slow.is_none() {
            return None;
        }
        let (now, most) = match (self.lanes, self.speeds) {
            (Some(lanes), Some(speeds)) => (
                format!("x{} at {} GT/s", lanes.0, speeds.0),
                format!("x{} at {} GT/s", lanes.1, speeds.1),
            ),
            (Some(lanes), None) => (format!("x{}", lanes.0), format!("x{}", lanes.1)),
            (None, speeds) => {
                let (now, most) = speeds?;
                (format!("{now} GT/s"), format!("{most} GT/s"))
            }
        };
        let advice = "power off, reseat the card or put it in a slot that has it all";
        Some(
            Finding::warn(SUBJECT, &self.address, format!("its PCIe link runs {now}"))
                .wanted(format!("{most}, which the card can do: else the host holds the link up"))
                .mend(format!("{advice}; lspci -vv -s {} shows LnkCap and LnkSta", self.address)),
        )
    }

    /// The address without the function number: all functions of a slot share one link.
    fn slot(&self) -> &str {
        self.address.rsplit_once('.').map_or(&*self.address, |(slot, _)| slot)
    }
}

/// The speed in `16.0 GT/s PCIe`.
fn transfers(text: &str) -> Option<f64> {
    text.split_once(" GT/s")?.0.parse().ok().filter(|speed: &f64| speed.is_finite())
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
        let place = host.sysfs.join("bus/pci/devices");
        let found = format!("no PCI bus in {}: a container, or a host without", place.display());
        return vec![Finding::note(SUBJECT, "bus", found)];
    };
    if !functions.iter().any(Function::must_do_rdma) && host.devices.is_empty() {
        let mut findings: Vec<Finding> = functions.iter().map(Function::finding).collect();
        findings.push(
            Finding::bad(SUBJECT, "cards", "no card for InfiniBand or RoCE")
                .wanted("an HCA, or a host that has one")
                .mend("lspci -nn   # shows all cards that the host sees"),
        );
        return findings;
    }
    if functions.is_empty() {
        return vec![Finding::note(SUBJECT, "cards", "none: the RDMA devices here are software")];
    }
    let mut findings = Vec::new();
    let mut slot = None;
    for function in &functions {
        findings.push(function.finding());
        if slot != Some(function.slot()) {
            slot = Some(function.slot());
            findings.extend(function.check_slot());
        }
    }
    findings
}
