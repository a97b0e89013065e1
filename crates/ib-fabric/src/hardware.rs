//! What devices report of themselves by the [vendor class](ib_mad::vendor): firmware, temperatures, the physical layer
//! of ports, and modules. It is kept from sweep to sweep, and read at intervals of its own.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ib_mad::register::{
    FanLimits, Fans, FecHistogram, LinkDown, Module, PhysicalStatistics, PowerSupplies,
    RegisterQuery,
};
use ib_mad::vendor::GeneralInfo;

use crate::{Fabric, NodeIndex};
use ib_mad::{Guid, Moment, PortKey, PortNumber};

/// The reports of a device's ports, by number. Shared by the snapshots between which none of them changed.
type DevicePorts = Arc<Vec<Option<Arc<PortHardware>>>>;

/// A value, and when it was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadAt<T> {
    /// The value.
    pub value: T,
    /// When the response came in.
    pub at: Moment,
}

/// The reports of a fabric's devices; nothing of those that do not report.
#[derive(Clone, Debug, Default)]
pub struct Hardware {
    /// By node.
    pub nodes: HashMap<Guid, Arc<NodeHardware>>,
    /// By device: all of it is copied once per sweep, and has three copies at times. By port it would take 3.3 MB of
    /// 60,000 ports.
    pub(crate) ports: HashMap<Guid, DevicePorts>,
    /// Whether errors by lane and histograms of FEC are of interest.
    pub has_lanes: bool,
}

impl Hardware {
    /// What a device reports of itself, to change it. A device that has reported nothing yet is added.
    pub(crate) fn node_mut(&mut self, guid: Guid) -> &mut NodeHardware {
        Arc::make_mut(self.nodes.entry(guid).or_default())
    }

    /// What the device reports of a port.
    pub fn port(&self, PortKey { guid, number }: PortKey) -> Option<&PortHardware> {
        self.ports.get(&guid)?.get(usize::from(number))?.as_deref()
    }

    /// The same, to change it. A port that has reported nothing yet is added.
    pub fn port_mut(&mut self, PortKey { guid, number }: PortKey) -> &mut PortHardware {
        let ports = Arc::make_mut(self.ports.entry(guid).or_default());
        let index = usize::from(number);
        if ports.len() <= index {
            ports.reserve_exact(index + 1 - ports.len());
            ports.resize(index + 1, None);
        }
        Arc::make_mut(ports[index].get_or_insert_default())
    }

    /// What devices report of their ports.
    pub fn ports(&self) -> impl Iterator<Item = (PortKey, &PortHardware)> {
        self.ports.iter().flat_map(|(guid, ports)| {
            let numbered = (0..=u8::MAX).zip(ports.iter());
            numbered
                .filter_map(|(number, port)| Some((PortKey::new(*guid, number), port.as_deref()?)))
        })
    }

    /// Forgets all devices but these.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&Guid) -> bool) {
        self.nodes.retain(|guid, _| is_kept(guid));
        self.ports.retain(|guid, _| is_kept(guid));
    }

    /// Forgets what a register reports of a device or, if it is one of ports, of these; of one port, if it is given.
    pub(crate) fn forget(&mut self, guid: Guid, query: RegisterQuery, port: Option<PortNumber>) {
        if query.port().is_some() {
            let ports = self.ports.get_mut(&guid).map(Arc::make_mut);
            for (number, known) in (0..=u8::MAX).zip(ports.into_iter().flatten()) {
                if let Some(known) = known.as_mut().filter(|_| port.is_none_or(|it| it == number)) {
                    Arc::make_mut(known).forget(query);
                }
            }
        } else if let Some(known) = self.nodes.get_mut(&guid) {
            Arc::make_mut(known).forget(query);
        }
    }

    /// What a device reports of itself.
    pub fn node(&self, guid: Guid) -> Option<&NodeHardware> {
        self.nodes.get(&guid).map(|hardware| &**hardware)
    }

    /// The versions of firmware by type of device and board.
    pub fn firmware(&self, fabric: &Fabric) -> Vec<FirmwareVersions> {
        if self.nodes.is_empty() {
            return Vec::new();
        }
        // By what identifies them, as read: a fabric has tens of thousands of nodes, and few types.
        let mut types: HashMap<_, (GeneralInfo, Vec<NodeIndex>)> = HashMap::new();
        for node in fabric.node_indexes() {
            let identity = &fabric.node(node).identity;
            let general = self.node(identity.guid).and_then(|hardware| hardware.general);
            if let Some(ReadAt { value, .. }) = general {
                let device = (identity.vendor_id, identity.device_id);
                let version = (value.extended, value.major, value.minor, value.subminor);
                let of_type = types.entry((device, value.psid, version));
                of_type.or_insert_with(|| (value, Vec::new())).1.push(node);
            }
        }
        let mut found: BTreeMap<_, BTreeMap<String, Vec<NodeIndex>>> = BTreeMap::new();
        for ((device, ..), (value, nodes)) in types {
            let version = value.firmware();
            if !version.is_empty() {
                let versions = found.entry((device, value.board())).or_default();
                versions.entry(version).or_default().extend(nodes);
            }
        }
        let versions = |((device, board), versions)| FirmwareVersions { device, board, versions };
        found.into_iter().map(versions).collect()
    }
}

/// The versions of firmware on the devices of one type and board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirmwareVersions {
    /// VendorID and DeviceID.
    pub device: (u32, u16),
    /// PSID: a board of another vendor has its own firmware.
    pub board: String,
    /// The nodes by version.
    pub versions: BTreeMap<String, Vec<NodeIndex>>,
}

/// What a device reports of itself.
#[derive(Clone, Debug, Default)]
pub struct NodeHardware {
    /// Firmware, board, uptime and capabilities.
    pub general: Option<ReadAt<GeneralInfo>>,
    /// Temperature of the ASIC in degrees Celsius.
    pub temperature: Option<ReadAt<f64>>,
    /// Which fans it has.
    pub fans: Option<ReadAt<Fans>>,
    /// The speed of its fans, in rotations per minute, by number.
    pub fan_speeds: BTreeMap<u8, ReadAt<u16>>,
    /// Which fans are out of range.
    pub fan_limits: Option<ReadAt<FanLimits>>,
    /// The temperatures of sensors in degrees Celsius: those of modules are numbered from
    /// [`MODULES`](ib_mad::register::Temperatures::MODULES) on.
    pub temperatures: BTreeMap<u16, ReadAt<f64>>,
    /// Its power supplies.
    pub power_supplies: Option<Box<ReadAt<PowerSupplies>>>,
}

impl NodeHardware {
    fn forget(&mut self, query: RegisterQuery) {
        match query {
            RegisterQuery::Temperature(_) => self.temperature = None,
            RegisterQuery::Fans => {
                self.fans = None;
                self.fan_speeds.clear();
            }
            RegisterQuery::FanSpeed(fan) => drop(self.fan_speeds.remove(&fan)),
            RegisterQuery::FanLimits => self.fan_limits = None,
            RegisterQuery::Temperatures { first, count } => {
                let last = first.saturating_add(count.into());
                self.temperatures.retain(|sensor, _| !(first..last).contains(sensor));
            }
            RegisterQuery::PowerSupplies => self.power_supplies = None,
            RegisterQuery::PhysicalStatistics(_)
            | RegisterQuery::FecHistogram(_)
            | RegisterQuery::Troubleshooting(_)
            | RegisterQuery::Module(_)
            | RegisterQuery::LinkDown(_) => {}
        }
    }
}

/// What a device reports of a port.
#[derive(Clone, Debug, Default)]
pub struct PortHardware {
    /// Bits, errors and bit error ratios; see [`PhysicalStatistics`].
    ///
    /// Shared with what compares it with the next reading.
    pub physical: Option<Arc<ReadAt<PhysicalStatistics>>>,
    /// Blocks by corrected symbols, if that is read ([`Hardware::has_lanes`]).
    pub fec_histogram: Option<Box<ReadAt<FecHistogram>>>,
    /// The cable or module that is plugged.
    ///
    /// Shared, because all else of a port is read more often.
    pub module: Option<Arc<ReadAt<Module>>>,
    /// Why its link last went down or recovered.
    pub link_down: Option<Box<ReadAt<LinkDown>>>,
    /// How often it had gone down or recovered when that was read: it is read again when the number changes.
    pub link_downs: u64,
    /// Why it has no link, in the codes of [`trouble`](ib_mad::register::trouble); read while it has none.
    pub trouble: Option<Box<ReadAt<u16>>>,
}

impl PortHardware {
    fn forget(&mut self, query: RegisterQuery) {
        match query {
            RegisterQuery::Module(_) => self.module = None,
            RegisterQuery::PhysicalStatistics(_) => self.physical = None,
            RegisterQuery::FecHistogram(_) => self.fec_histogram = None,
            RegisterQuery::LinkDown(_) => self.link_down = None,
            RegisterQuery::Troubleshooting(_) => self.trouble = None,
            RegisterQuery::Temperature(_)
            | RegisterQuery::Temperatures { .. }
            | RegisterQuery::Fans
            | RegisterQuery::FanSpeed(_)
            | RegisterQuery::FanLimits
            | RegisterQuery::PowerSupplies => {}
        }
    }

    /// The cable or module, if one is plugged.
    pub fn plugged(&self) -> Option<&Module> {
        self.module.as_ref().map(|read| &read.value).filter(|module| module.is_plugged())
    }
}
