//! The models of nodes, in `/api/v1/nodes`, and of how they are wired, in `/api/v1/topology`.

use serde::{Deserialize, Serialize};

use super::{Label, Port, Verdicts};

/// The nodes of all fabrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Nodes {
    /// Fabric by fabric.
    pub fabrics: Vec<FabricNodes>,
}

/// The nodes of a fabric.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FabricNodes {
    /// The fabric's name.
    pub fabric: String,
    /// When its latest sweep ended (RFC 3339); null before the first.
    pub swept_at: Option<String>,
    /// Its nodes by GUID, or those of them that were asked for.
    pub nodes: Vec<Node>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Node {
    /// NodeGUID.
    pub guid: String,
    /// SystemImageGUID: the same for the nodes of one chassis or one card.
    pub system_guid: String,
    /// What people call it.
    pub node: String,
    /// The description it tells, made readable.
    pub description: String,
    /// `ca`, `switch`, `router` or `aggregation_node`.
    pub node_type: Label,
    /// The vendor's id: `0x0002c9`.
    pub vendor_id: String,
    /// The vendor's id of the device.
    pub device_id: u16,
    /// What the device is called, if that is known: `Quantum-2`.
    pub device: Option<Label>,
    /// How many physical ports it has.
    pub port_count: u8,
    /// Its LID; of several ports' LIDs the first.
    pub lid: Option<u16>,
    /// Whether it is there and answers.
    pub up: bool,
    /// Whether the latest discovery found it: `found`; `hidden` behind something that did not answer; or
    /// `absent`.
    pub presence: Label,
    /// When a discovery last found it (RFC 3339).
    pub last_found: Option<String>,
    /// Tick of PortSamplesControl: a tick of waiting is this + 1 symbol times; null where it does not tell.
    pub tick: Option<u8>,
    /// How many of its cables have which verdict.
    pub verdicts: Verdicts,
}

/// A node with its ports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeDetail {
    /// The fabric that it is in.
    pub fabric: String,
    /// When the fabric's latest sweep ended (RFC 3339).
    pub swept_at: Option<String>,
    /// The node.
    #[serde(flatten)]
    pub node: Node,
    /// Its ports in the order of their numbers; of a switch's port 0 only if that is an endpoint.
    pub ports: Vec<Port>,
}

/// How all fabrics are wired.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Topologies {
    /// Fabric by fabric.
    pub fabrics: Vec<Topology>,
}

/// How a fabric is wired: its switches, and what is between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Topology {
    /// The fabric's name.
    pub fabric: String,
    /// When its latest sweep ended (RFC 3339); null before the first.
    pub swept_at: Option<String>,
    /// Its switches, the lowest level first, those of a group together.
    pub switches: Vec<Switch>,
    /// The cables between two switches, as one; `a` is the lower switch, or the earlier.
    pub bundles: Vec<Bundle>,
    /// Hosts and routers that no switch is between.
    pub apart: Vec<SwitchlessPair>,
}

/// A switch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Switch {
    /// Its GUID.
    pub guid: String,
    /// What people call it.
    pub node: String,
    /// Whether it is there and answers.
    pub up: bool,
    /// How far it is from the hosts: 1 has hosts itself. Null of a switch from which no way leads to a
    /// switch with hosts.
    pub level: Option<u8>,
    /// Switches of a level that belong together (a pod, a plane, a group of a Dragonfly+) have the same
    /// number.
    pub group: usize,
    /// How many hosts and routers it has.
    pub hosts: usize,
    /// How many of the cables to them have which verdict.
    pub to_hosts: Verdicts,
    /// How many cables lead to switches of a higher level.
    pub up_links: usize,
    /// How many lead to switches of its own level.
    pub side_links: usize,
    /// How many lead to switches of a lower level.
    pub down_links: usize,
    /// The worst of all its cables; null if it has none.
    pub worst: Option<Label>,
    /// The cables to hosts that are `watch` or `bad`, at most eight, the worst first.
    pub host_suspects: Vec<Suspect>,
    /// Congestion on the cables to its hosts.
    #[serde(default)]
    pub host_congestion: CongestionCounts,
    /// Congestion on all of its cables.
    #[serde(default)]
    pub congestion: CongestionCounts,
}

/// How congested some cables are: their ports that wait to send for at least 5 % of the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Congested"))]
pub struct CongestionCounts {
    /// Cables with a congestion root at one of their ends: where a congestion starts.
    pub roots: usize,
    /// Cables with a victim at one of their ends, which waits for a root elsewhere, and no root.
    pub victims: usize,
    /// The greatest share of time that one of their ports waits; null where none is a root or a victim.
    pub most_wait: Option<f32>,
}

impl CongestionCounts {
    /// The sum of both.
    #[must_use]
    pub fn and(&self, other: &CongestionCounts) -> CongestionCounts {
        let waits = [self.most_wait, other.most_wait];
        CongestionCounts {
            roots: self.roots + other.roots,
            victims: self.victims + other.victims,
            most_wait: waits.into_iter().flatten().reduce(f32::max),
        }
    }

    /// Whether any link is congested.
    pub fn is_any(&self) -> bool {
        self.roots + self.victims > 0
    }
}

/// All cables between two switches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bundle {
    /// The place of one of them in the list of switches.
    pub a: usize,
    /// The place of the other.
    pub b: usize,
    /// How many cables have which verdict.
    pub verdicts: Verdicts,
    /// Those that are `watch` or `bad`, at most eight, the worst first.
    pub suspects: Vec<Suspect>,
    /// Congestion on them.
    #[serde(default)]
    pub congestion: CongestionCounts,
}

/// A cable that is `watch` or `bad`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Suspect {
    /// Its id.
    pub link: String,
    /// As people call it.
    pub place: String,
    /// What it comes to.
    pub verdict: Label,
}

/// Two nodes with a cable, and no switch between them; or one without any cable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Apart"))]
pub struct SwitchlessPair {
    /// The nodes' GUIDs and names.
    pub nodes: Vec<(String, String)>,
    /// The cable's id.
    pub link: Option<String>,
    /// What the cable comes to.
    pub verdict: Option<Label>,
}
