//! Cards on the PCI bus: is one there, has it a driver, and is its slot as wide as the card?

use rdma_host::reader::file::Directory;

use super::drivers::{self, Driver};
use super::finding::{Finding, Subject};
use super::host::Host;

const SUBJECT: Subject = Subject::Pci;

/// The classes of PCI: base class and subclass (PCI code and ID assignment specification).
mod class {
    pub const ETHERNET: u32 = 0x0200;
    pub const INFINIBAND: u32 = 0x0207;
    /// Omni-Path's.
    pub const FABRIC: u32 = 0x0208;
    /// "Other network controller": ConnectX-3 that can be either.
    pub const NETWORK: u32 = 0x0280;
    /// InfiniBand as a serial bus: cards up to ConnectX-2.
    pub const INFINIBAND_BUS: u32 = 0x0c06;
    /// All that a card for RDMA can have.
    pub const ALL: [u32; 5] = [ETHERNET, INFINIBAND, FABRIC, NETWORK, INFINIBAND_BUS];
}

/// Drivers that keep a function for somebody else: a guest, or a program.
const LENT: [&str; 3] = ["vfio-pci", "uio_pci_generic", "pci-stub"];

/// A function that does RDMA, or may.
#[derive(Debug)]
pub struct Function {
    address: String,
    class: u32,
    vendor: u16,
    device: u16,
    /// The driver that is bound.
    pub driver: Option<String>,
    /// Its RDMA devices.
    pub rdma: Vec<String>,
    is_virtual: bool,
    /// Lanes and speed: now, and the most that the card can do.
    lanes: Option<(u32, u32)>,
    speeds: Option<(f64, f64)>,
}

impl Function {
    /// A function, if it is of a card that does RDMA or may; `None` for all the rest of the bus.
    fn read(directory: &Directory, address: &str) -> Option<Self> {
        let number = |file| u32::from_str_radix(directory.text(file).strip_prefix("0x")?, 16).ok();
        let class = number("class")? >> 8;
        let id = |file| number(file).and_then(|id| u16::try_from(id).ok());
        let (vendor, device) = (id("vendor")?, id("device")?);
        let pair = |now, most| Some((directory.text(now), directory.text(most)));
        // A function that is asleep, or virtual, says 0 or 255 lanes and "Unknown" (kernel: pci-sysfs.c).
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
            driver: directory.link("driver"),
            rdma: directory.below("infiniband").and_then(|it| it.names()).unwrap_or_default(),
            is_virtual: directory.link("physfn").is_some(),
            lanes,
            speeds,
        };
        let is_network = class::ALL.contains(&class);
        let does_rdma = function.must_do_rdma() || function.bound().is_some();
        (!function.rdma.is_empty() || is_network && does_rdma).then_some(function)
    }

    /// The row of its driver.
    pub fn bound(&self) -> Option<&'static Driver> {
        self.driver.as_deref().and_then(drivers::by_name)
    }

    /// Whether the card is for RDMA, whatever else it does.
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
                // What nobody bound of virtual functions may be meant for guests.
                let finding = if self.is_virtual {
                    Finding::note(SUBJECT, what, unbound)
                } else {
                    Finding::bad(SUBJECT, what, unbound)
                };
                finding.wanted("a driver").mend(mend)
            }
            Some(driver) if LENT.contains(&&**driver) => {
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

    /// What its place costs it.
    fn slot(&self) -> Option<Finding> {
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

    /// All but the function's own number: what sits in one slot has one link.
    fn place(&self) -> &str {
        self.address.rsplit_once('.').map_or(&*self.address, |(place, _)| place)
    }
}

/// The number in `16.0 GT/s PCIe`.
fn transfers(text: &str) -> Option<f64> {
    text.split_once(" GT/s")?.0.parse().ok().filter(|speed: &f64| speed.is_finite())
}

/// The functions that do RDMA or may, by address; `None` where no PCI bus is to be seen.
pub fn functions(host: &Host) -> Option<Vec<Function>> {
    let bus = "bus/pci/devices";
    let function =
        |address: String| Function::read(&host.directory(&format!("{bus}/{address}"))?, &address);
    Some(host.names(bus)?.into_iter().filter_map(function).collect())
}

/// Looks at the bus.
pub fn check(host: &Host) -> Vec<Finding> {
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
    let mut place = None;
    for function in &functions {
        findings.push(function.finding());
        if place != Some(function.place()) {
            place = Some(function.place());
            findings.extend(function.slot());
        }
    }
    findings
}
