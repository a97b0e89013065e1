//! What a file says of a fabric, before it is known which files belong together.

use std::collections::BTreeMap;
use std::time::SystemTime;

use ib_mad::fec::Fec;
use ib_mad::node::NodeKind;
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, SpeedSet, Width};
use ib_mad::register::Module;
use ib_mad::vendor::GeneralInfo;
use ib_mad::{Guid, PortNumber};

use crate::counters::Counters;

/// How a file names a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortName {
    /// By the GUID of its node.
    Node(Guid, PortNumber),
    /// By its own GUID, which is its node's GUID on switches.
    Port(Guid, PortNumber),
    /// By its LID, or that of its switch.
    Lid(u16, PortNumber),
}

/// What is known of a node; `None` and empty where a file does not say it.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the other names are those of NodeInfo")]
pub struct NodeRecord {
    pub kind: Option<NodeKind>,
    pub description: String,
    pub port_count: u8,
    pub system_guid: Option<Guid>,
    pub vendor_id: u32,
    pub device_id: u16,
    pub lid: Option<u16>,
    /// Firmware and board.
    pub general: Option<GeneralInfo>,
    /// Temperature of the ASIC in degrees Celsius.
    pub temperature: Option<f64>,
}

/// What is known of a port.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the other names are those of PortInfo")]
pub struct PortRecord {
    pub guid: Option<Guid>,
    pub lid: Option<u16>,
    pub state: Option<PortState>,
    pub physical_state: Option<PhysicalState>,
    pub width: Option<Width>,
    pub speed: Option<Speed>,
    pub widths_supported: u8,
    pub widths_enabled: u8,
    pub speeds_supported: SpeedSet,
    pub speeds_enabled: SpeedSet,
    pub fec: Option<Fec>,
    pub counters: Counters,
    /// Boxed: few files have it.
    pub module: Option<Box<Module>>,
}

/// What a file contains.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// When it was written, if it says so.
    pub taken_at: Option<SystemTime>,
    /// By GUID.
    pub nodes: BTreeMap<Guid, NodeRecord>,
    /// By the name that the file has for the port.
    pub ports: BTreeMap<PortName, PortRecord>,
    /// Cables.
    pub links: Vec<(PortName, PortName)>,
    /// It lists all nodes and cables, so that another such file is another dump.
    pub is_topology: bool,
}

impl NodeRecord {
    /// Adds what another file knows.
    pub fn merge(&mut self, other: NodeRecord) {
        self.kind = self.kind.or(other.kind);
        if self.description.is_empty() {
            self.description = other.description;
        }
        self.port_count = self.port_count.max(other.port_count);
        self.system_guid = self.system_guid.or(other.system_guid);
        if self.device_id == 0 && (other.vendor_id, other.device_id) != (0, 0) {
            (self.vendor_id, self.device_id) = (other.vendor_id, other.device_id);
        }
        self.lid = self.lid.or(other.lid);
        self.general = self.general.take().or(other.general);
        self.temperature = self.temperature.or(other.temperature);
    }
}

impl PortRecord {
    /// Adds what another file, or the other end of the cable, knows.
    pub fn merge(&mut self, other: PortRecord) {
        self.guid = self.guid.or(other.guid);
        self.lid = self.lid.or(other.lid);
        self.state = self.state.or(other.state);
        self.physical_state = self.physical_state.or(other.physical_state);
        self.width = self.width.or(other.width);
        self.speed = self.speed.or(other.speed);
        self.fec = self.fec.or(other.fec);
        if self.widths_supported == 0 {
            (self.widths_supported, self.widths_enabled) =
                (other.widths_supported, other.widths_enabled);
        }
        if self.speeds_supported == SpeedSet::default() {
            (self.speeds_supported, self.speeds_enabled) =
                (other.speeds_supported, other.speeds_enabled);
        }
        self.counters.merge(other.counters);
        self.module = self.module.take().or(other.module);
    }
}

impl Contents {
    /// The record of a node, to add to it.
    pub fn node(&mut self, guid: Guid) -> &mut NodeRecord {
        self.nodes.entry(guid).or_default()
    }

    /// The record of a port, to add to it.
    pub fn port(&mut self, key: PortName) -> &mut PortRecord {
        self.ports.entry(key).or_default()
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.ports.is_empty()
    }

    /// The ports with counters.
    pub fn counted(&self) -> impl Iterator<Item = &PortName> {
        self.ports.iter().filter(|(_, port)| !port.counters.is_empty()).map(|(key, _)| key)
    }
}
