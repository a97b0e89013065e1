//! Scenarios: the actions on a fabric, and their times.
//!
//! A [`Scenario`] is read from YAML. [`Scenario::resolve`] builds its fabric and applies each entry
//! of the timeline to it: names become ports, cables are followed as they move, and effects that
//! overlap are put in order. The result, a [`ResolvedScenario`], names nothing that does not exist.
//! `docs/dev/scenarios.md` is the reference of the file.

mod file;
mod index;
mod link_entries;
mod node_entries;
mod resolve;
mod source;
#[cfg(test)]
mod tests;
mod timeline;
mod value;

use std::time::Duration;

use ib_mad::counter::Counter;
use ib_mad::m_key::MKey;
use ib_mad::rate::{Speed, Width};

use super::load::Flow;
use super::net::{Net, NodeId, PortId};
use super::simulation::Dirt;

pub use file::ENTRIES;
pub use source::{FabricSource, MAX_TOPOLOGY_BYTES, Overrides, Scenario, ScenarioError};

/// A change of the fabric, in terms of its [`Net`].
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the variants describe their fields")]
pub enum Action {
    /// Bits that come in at this port are wrong with this bit error ratio (behind any forward error
    /// correction); 0 ends it.
    CorruptBits { port: PortId, ratio: f64 },
    /// The connector before this port's receiver gets dirty, or is clean again.
    SetDirt { port: PortId, dirt: Option<Dirt> },
    /// The module of this port has this temperature in degrees Celsius; `None` is the usual one.
    SetModuleTemperature { port: PortId, degrees: Option<u8> },
    /// The cable at this port is replaced by another one of its kind.
    SwapCable { port: PortId },
    /// How a node responds to requests of registers.
    SetRegisters { node: NodeId, behavior: RegisterBehavior },
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

/// An action and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedAction {
    /// Time since the start.
    pub at: Duration,
    /// The action.
    pub action: Action,
}

/// The exporter's own host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnHost {
    /// The ports of all its adapters that have a cable.
    pub ports: Vec<PortId>,
    /// The name of a RoCE device, which is in no fabric.
    pub roce: Option<String>,
    /// From when on this device pauses its switch most of the time.
    pub pfc_storm: Option<Duration>,
}

/// A scenario on its fabric: all that a simulation needs.
#[derive(Clone, Debug)]
pub struct ResolvedScenario {
    /// The fabric at the start.
    pub net: Net,
    /// The ports that the exporter sends from, one for each plane.
    pub local_ports: Vec<PortId>,
    /// The ports of the master subnet managers, one for each plane.
    pub sm_ports: Vec<PortId>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// How MADs are delivered at the start.
    pub delivery: MadDelivery,
    /// The actions, in order of time. Traffic from the start is an action at 0.
    pub actions: Vec<TimedAction>,
    /// What the exporter's own host is like, if its devices are read, too.
    pub own_host: Option<OwnHost>,
    /// A sentence for each entry of the timeline, with its time.
    pub descriptions: Vec<(Duration, String)>,
}
