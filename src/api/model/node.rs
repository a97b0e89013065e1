//! A node, as `/api/v1/nodes` and `/api/v1/nodes/{guid}` tell it.

use serde::{Deserialize, Serialize};

use super::port::Port;
use super::{Verdicts, Word};

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
    pub node_type: Word,
    /// The vendor's id: `0x0002c9`.
    pub vendor_id: String,
    /// The vendor's id of the device.
    pub device_id: u16,
    /// What the device is called, if that is known: `Quantum-2`.
    pub device: Option<Word>,
    /// How many physical ports it has.
    pub port_count: u8,
    /// Its LID; of several ports' LIDs the first.
    pub lid: Option<u16>,
    /// Whether it is there and answers.
    pub up: bool,
    /// Whether the latest discovery found it: `found`; `hidden` behind something that did not answer; or
    /// `absent`.
    pub presence: Word,
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
