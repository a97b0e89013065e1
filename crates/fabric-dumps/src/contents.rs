//! What one reading of a fabric says, before it is known which files belong together.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use display_text::plural;
use ib_mad::fec::Fec;
use ib_mad::hierarchy::HierarchyInfo;
use ib_mad::node::NodeKind;
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, SpeedSet, Width};
use ib_mad::register::{Module, PhysicalStatistics};
use ib_mad::vendor::GeneralInfo;
use ib_mad::{Guid, PortNumber};

use crate::counters::Counters;
use crate::remark::Remark;

/// How a file names a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeName {
    /// By its GUID.
    Node(Guid),
    /// By its GUID or that of a port: iblinkinfo --line has the one or the other, depending on its version.
    Either(Guid),
    /// By the GUID of one of its ports, which is the node's own on switches, and on some adapters.
    Port(Guid),
    /// By the LID of one of its ports, or of the switch.
    Lid(u16),
}

/// How a file names a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortName {
    /// The node.
    pub node: NodeName,
    /// The number of the port.
    pub number: PortNumber,
}

/// Which of several names of a node is shown, the best last: a switch may have another name for its peers (a
/// node-name-map), and a report of errors may have lost the header of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameRank {
    /// ibqueryerrors.
    #[default]
    Errors,
    /// A line of a peer.
    Peer,
    /// The node's own line or block.
    Own,
    /// NodeDescription as the device sends it: ibnetdiscover, ibdiagnet.
    Device,
}

/// What is known of a node; `None` and empty where a file does not say it.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the other names are those of NodeInfo")]
pub struct NodeRecord {
    pub kind: Option<NodeKind>,
    pub description: String,
    /// Where the description is from.
    pub rank: NameRank,
    pub port_count: u8,
    pub system_guid: Option<Guid>,
    pub vendor_id: u32,
    pub device_id: u16,
    /// Of a switch.
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
    /// LidMaskCount: the port has 2^LMC LIDs.
    pub lmc: u8,
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
    /// Boxed for the same reason.
    pub sample: Option<Box<PortSample>>,
    /// Boxed for the same reason.
    pub hierarchy: Option<Box<HierarchyInfo>>,
}

/// When the counters of a port were read, where a file says it of each port, and what was read with them.
#[derive(Clone, Debug, Default)]
pub struct PortSample {
    /// When that was.
    pub read_at: Option<SystemTime>,
    /// Registers of the physical layer.
    pub physical: Option<PhysicalStatistics>,
}

/// One reading.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// When it was taken, if the file says so.
    pub taken_at: Option<SystemTime>,
    /// The time has no zone: it may be off by half a day.
    pub is_zoneless: bool,
    /// By the name that the file has for the node.
    pub nodes: BTreeMap<NodeName, NodeRecord>,
    /// By the name that the file has for the port.
    pub ports: BTreeMap<PortName, PortRecord>,
    /// Cables.
    pub links: Vec<(PortName, PortName)>,
    /// Two names of one node: the file has its ports in one block.
    pub same: Vec<(NodeName, NodeName)>,
    /// It lists nodes and cables, so that another such file at another time is another dump.
    pub is_topology: bool,
    /// It reports that it checked the fabric, so that it is a reading even if it lists nothing.
    pub is_report: bool,
    /// What a user should know of how it was read.
    pub remarks: Vec<Remark>,
    /// How many remarks there are beyond these.
    pub more_remarks: usize,
}

/// Maximum number of remarks on a reading: a damaged file may cause one for each of its lines.
const MAX_REMARKS: usize = 100;

impl PortName {
    /// A port of a node that is named by its GUID.
    pub fn node(guid: Guid, number: PortNumber) -> PortName {
        PortName { node: NodeName::Node(guid), number }
    }

    /// A port that is named by its own GUID, or by that of its switch.
    pub fn port(guid: Guid, number: PortNumber) -> PortName {
        PortName { node: NodeName::Port(guid), number }
    }

    /// A port that is named by its LID, or by that of its switch.
    pub fn lid(lid: u16, number: PortNumber) -> PortName {
        PortName { node: NodeName::Lid(lid), number }
    }
}

impl NodeRecord {
    /// A node of a kind with a name.
    pub fn named(kind: Option<NodeKind>, description: String, rank: NameRank) -> NodeRecord {
        NodeRecord { kind, description, rank, ..NodeRecord::default() }
    }

    /// Adds what another line or file knows.
    pub fn merge(&mut self, other: NodeRecord) {
        self.kind = self.kind.or(other.kind);
        let is_better = self.description.is_empty() || other.rank > self.rank;
        if is_better && !other.description.is_empty() {
            (self.description, self.rank) = (other.description, other.rank);
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
    /// When its counters were read, if a file says it of each port.
    pub fn read_at(&self) -> Option<SystemTime> {
        self.sample.as_ref().and_then(|sample| sample.read_at)
    }

    /// Adds what another line or file, or the other end of the cable, knows.
    pub fn merge(&mut self, other: PortRecord) {
        self.guid = self.guid.or(other.guid);
        self.lid = self.lid.or(other.lid);
        self.lmc = self.lmc.max(other.lmc);
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
        self.sample = self.sample.take().or(other.sample);
        self.module = self.module.take().or(other.module);
        self.hierarchy = self.hierarchy.take().or(other.hierarchy);
    }
}

/// How far the times of rows may be ahead: a clock in another time zone is less.
const MAX_AHEAD: Duration = Duration::from_secs(86_400);

/// What was ignored of the times of ports.
#[derive(Debug)]
pub struct IgnoredTimes {
    /// The latest of the others.
    pub latest: SystemTime,
    /// What to say of it.
    pub remark: Remark,
}

/// Ignores the times of ports that are more than a day ahead: one damaged row would make all others old. `None` if there
/// are none, or if all are ahead: then it is the clock of the source, by which all of them can be compared.
pub fn ignore_times_ahead<Name>(
    ports: &mut BTreeMap<Name, PortRecord>,
    now: SystemTime,
) -> Option<IgnoredTimes> {
    let limit = now.checked_add(MAX_AHEAD)?;
    let times = ports.values().filter_map(PortRecord::read_at);
    let latest = times.filter(|at| *at <= limit).max()?;
    let mut ignored = 0;
    for sample in ports.values_mut().filter_map(|port| port.sample.as_mut()) {
        if sample.read_at.is_some_and(|at| at > limit) {
            sample.read_at = None;
            ignored += 1;
        }
    }
    let what = format!("{} more than a day ahead ignored", plural(ignored, "time"));
    (ignored > 0).then(|| IgnoredTimes { latest, remark: Remark::unused(0, what) })
}

impl Contents {
    /// Ignores times of single ports that are more than a day ahead.
    pub fn ignore_times_ahead(&mut self, now: SystemTime) {
        if let Some(ignored) = ignore_times_ahead(&mut self.ports, now) {
            self.taken_at = Some(ignored.latest);
            self.remark(ignored.remark);
        }
    }

    /// The record of a node, to add to it.
    pub fn node(&mut self, name: NodeName) -> &mut NodeRecord {
        self.nodes.entry(name).or_default()
    }

    /// The record of a port, to add to it.
    pub fn port(&mut self, name: PortName) -> &mut PortRecord {
        self.ports.entry(name).or_default()
    }

    /// Adds a remark.
    pub fn remark(&mut self, remark: Remark) {
        if self.remarks.len() < MAX_REMARKS {
            self.remarks.push(remark);
        } else {
            self.more_remarks += 1;
        }
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.ports.is_empty() && !self.is_report
    }

    /// Whether a port has counters.
    pub fn has_counters(&self) -> bool {
        self.ports.values().any(|port| !port.counters.is_empty())
    }

    /// Nodes, ports and cables only.
    #[must_use]
    pub fn without_counters(&self) -> Contents {
        let mut topology = Contents { remarks: Vec::new(), ..self.clone() };
        for port in topology.ports.values_mut() {
            port.counters = Counters::default();
            port.sample = None;
        }
        topology
    }
}
