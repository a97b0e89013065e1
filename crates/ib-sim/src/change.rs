//! The changes that a simulation applies to its fabric: what the entries of a scenario's timeline are made of.

use std::time::Duration;

use ib_mad::counter::Counter;
use ib_mad::m_key::MKey;
use ib_mad::rate::{Speed, Width};

use crate::load::Flow;
use crate::net::{NodeId, PortId};

/// A change of the fabric, in terms of its [`Net`](crate::net::Net).
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum FabricChange {
    /// Bits that come in at this port are wrong with this bit error ratio (behind any forward error
    /// correction); 0 ends it.
    CorruptBits { port: PortId, ratio: f64 },
    /// The connector before this port's receiver gets dirty, or is clean again.
    SetDirt { port: PortId, dirt: Option<Dirt> },
    /// The module of this port has this temperature in degrees Celsius; `None` is the usual one.
    SetModuleTemperature { port: PortId, degrees: Option<u8> },
    /// What the module of this port reports of itself.
    SetModuleReport { port: PortId, report: ModuleReport },
    /// An administrator disables this port, or enables it again (PortPhysicalState Disabled).
    SetDisabled { port: PortId, disabled: bool },
    /// The cable at this port is replaced by another one of its kind.
    SwapCable { port: PortId },
    /// How a node responds to requests of registers.
    SetRegisters { node: NodeId, behavior: RegisterBehavior },
    /// How switches respond to requests of SwitchPortStateTable.
    SetStateTable { nodes: Vec<NodeId>, behavior: TableBehavior },
    /// How nodes respond to requests of HierarchyInfo.
    SetFrontPanel { nodes: Vec<NodeId>, behavior: FrontPanelBehavior },
    /// Nodes require this VSKey in requests of the vendor class; 0 is none.
    SetVsKey { nodes: Vec<NodeId>, key: u64 },
    /// The link at this port, seen from either end, loses its signal or gets it back.
    SetSignal { port: PortId, up: bool },
    /// The link at this port loses its signal so briefly that it retrains by itself: a
    /// LinkErrorRecovery, not a LinkDowned.
    Retrain { port: PortId },
    /// The link at this port retrains, no wider and no faster than this; `None` is no limit.
    LimitLink { port: PortId, width: Option<Width>, speed: Option<Speed> },
    /// The adapter receives only this fraction of what its link carries; 1 is all.
    LimitIntake { port: PortId, fraction: f64 },
    /// A node goes off and takes all its links down, or comes on again with counters at zero.
    SetPower { node: NodeId, on: bool },
    /// Another tool clears the counters of these ports.
    ClearCounters { ports: Vec<PortId> },
    /// Another tool sets a counter; the value is in the counter's own units.
    SetCounter { port: PortId, counter: Counter, value: u64 },
    /// A counter grows by this much, as by packets that a healthy fabric discards.
    AddToCounter { port: PortId, counter: Counter, count: u64 },
    /// How a node's agents respond.
    SetAgents { node: NodeId, behavior: AgentBehavior },
    /// The subnet manager protects nodes with an M_Key (0 is none), at this M_KeyProtectBits level.
    SetMKey { nodes: Vec<NodeId>, m_key: MKey, level: u8 },
    /// The subnet manager makes the ports of nodes full or limited members of the default
    /// partition. At the start all are full members.
    SetMembership { nodes: Vec<NodeId>, full: bool },
    /// How MADs are delivered.
    SetDelivery(MadDelivery),
    /// A cable's end is pulled out of one port and plugged into another. If that port has a cable,
    /// the two cables change places.
    MoveCable { from: PortId, to: PortId },
    /// The subnet manager at this port (an adapter's, or a switch's port 0) becomes the master, and
    /// may give every port another LID.
    SetMaster { port: PortId, reassign_lids: bool },
    /// Replaces all flows of this name; none ends them.
    SetTraffic { name: String, flows: Vec<Flow> },
}

/// How a node's agents respond.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AgentBehavior {
    /// Normally.
    #[default]
    Normal,
    /// Not at all; packets are still forwarded.
    Silent,
    /// This much later.
    Delayed(Duration),
    /// To all but this fraction of the requests.
    Lossy(f64),
    /// With the status "busy" to this fraction of the requests.
    Busy(f64),
}

display_text::labeled_enum! {
    /// How a node responds to requests of registers.
    #[derive(Default)]
    pub enum RegisterBehavior {
        #[default]
        Normal, "normal", "As its generation does.";
        Absent, "absent", "GeneralInfo does not announce registers.";
        Refused, "refused", "Each register has status 0x14, unsupported.";
        Slow, "slow", "Pages of modules take five seconds.";
        Hung, "hung", "No response to requests of pages of modules.";
    }
}

display_text::labeled_enum! {
    /// What an optical module reports of itself.
    #[derive(Default)]
    pub enum ModuleReport {
        #[default]
        Normal, "normal", "Values, and the thresholds of its data sheet.";
        NoThresholds, "no-thresholds", "Values, but each threshold is 0, as ibdiagnet shows it: 54C, threshold: 0C.";
        Zero, "zero", "Each value and each threshold is 0, though it is announced.";
    }
}

display_text::labeled_enum! {
    /// How a switch responds to requests of SwitchPortStateTable.
    #[derive(Default)]
    pub enum TableBehavior {
        #[default]
        Normal, "normal", "As its generation does.";
        Absent, "absent", "PortInfo does not announce it.";
        Refused, "refused", "Status 0x0c, unsupported attribute.";
        Hung, "hung", "No response.";
        Zero, "zero", "No port has a state.";
        Wrong, "wrong", "Each port is Active.";
    }
}

display_text::labeled_enum! {
    /// How a node responds to requests of HierarchyInfo: where its ports are at the front panel.
    #[derive(Default)]
    pub enum FrontPanelBehavior {
        #[default]
        Absent, "absent", "PortInfo does not announce it.";
        Normal, "normal", "As its generation does.";
        Blank, "blank", "Each value is N/A.";
        Refused, "refused", "Status 0x0c, unsupported attribute.";
        Hung, "hung", "No response.";
    }
}

/// How MADs are delivered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MadDelivery {
    /// From the request to the response of a neighbor.
    pub round_trip: Duration,
    /// Added for each further hop.
    pub per_hop: Duration,
    /// Up to this much is added at random: responses overtake each other.
    pub jitter: Duration,
    /// The fraction that is lost, of requests and responses together.
    pub loss: f64,
}

/// A change and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedChange {
    /// Time since the start.
    pub at: Duration,
    /// The change.
    pub change: FabricChange,
}

/// A dirty connector: light of one lane gets lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dirt {
    /// The lane, from 0 on.
    pub lane: u8,
    /// The share of its bits that are wrong before error correction.
    pub ratio: f64,
    /// The share of its light that arrives.
    pub light: f64,
}
