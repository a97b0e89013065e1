//! What `/api/v1/overview` says: each fabric at a glance, and this host's own devices.

use serde::{Deserialize, Serialize};

use super::port::PortName;
use super::{Link, Verdicts, Word};

/// Everything at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Overview {
    /// Fabric by fabric.
    pub fabrics: Vec<Fabric>,
    /// This host's own devices; null where they are not watched.
    pub host: Option<Host>,
    /// Whether what is seen is recorded.
    pub recorded: bool,
}

/// A fabric at a glance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "FabricOverview"))]
pub struct Fabric {
    /// Its name.
    pub fabric: String,
    /// From one sweep to the next, as it is meant to be.
    pub interval_seconds: f64,
    /// The latest sweep; null before the first.
    pub sweep: Option<Sweep>,
    /// Its nodes, kind by kind.
    pub nodes: Vec<NodeCount>,
    /// Some of those that are not up.
    pub not_up: Vec<NodeName>,
    /// How many of its cables have which verdict.
    pub verdicts: Verdicts,
    /// What keeps cables from being ok, by the gravest reason of each, the most frequent first.
    pub reasons: Vec<Counted>,
    /// Some of those that are bad or to be watched, the worst first.
    pub worst: Vec<Link>,
    /// How many regions of it are congested.
    pub regions: usize,
    /// Some of them, the largest first.
    pub congestion: Vec<Region>,
}

/// A reason, and how often it is the gravest of a cable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Counted {
    /// The reason, as metrics have it.
    pub reason: Word,
    /// What it means, in a sentence.
    pub what: Word,
    /// The verdict that it brings them.
    pub verdict: Word,
    /// How many cables have it.
    pub links: usize,
}

/// How a sweep went, and what was known before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sweep {
    /// When it ended (RFC 3339).
    pub ended_at: Option<String>,
    /// How long it took.
    pub seconds: f64,
    /// How many there were since the exporter began.
    pub sweeps: u64,
    /// Ports that told counters.
    pub ports_read: usize,
    /// Ports that did not tell all that they were asked for.
    pub ports_failed: usize,
    /// Nodes that were asked and did not answer.
    pub nodes_silent: usize,
    /// Parts of the work that failed the last time: `discovery`, `perfmgt`, `subnet`.
    pub failing: Vec<Word>,
    /// When the latest discovery ended (RFC 3339).
    pub discovered_at: Option<String>,
    /// Questions of it that stayed open.
    pub discovery_gaps: u64,
    /// MADs that were sent since the exporter began.
    pub mads_sent: u64,
    /// Those of them that were not answered in time.
    pub mads_timed_out: u64,
    /// Where the subnet's master sits, as it was heard last.
    pub master: Option<PortName>,
}

/// The nodes of a kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeCount {
    /// `ca`, `switch`, `router` or `aggregation_node`.
    pub node_type: Word,
    /// How many there are.
    pub nodes: usize,
    /// How many of them are gone or do not answer.
    pub not_up: usize,
}

/// A node's names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeName {
    /// Its GUID.
    pub guid: String,
    /// What people call it.
    pub node: String,
}

/// Ports that wait together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Region {
    /// The port that they wait for, or the one of several that waits most.
    pub root: PortName,
    /// The id of its cable, if it has one.
    pub link: Option<String>,
    /// What makes it one: `slow_receiver`, `full_link` or `unknown`.
    pub cause: Word,
    /// How many ports wait.
    pub ports: u32,
    /// How many roots there are.
    pub roots: u32,
    /// The greatest share of time that one of them waits.
    pub wait_ratio: Option<f32>,
    /// `low`, `medium` or `high`.
    pub level: Word,
    /// Since when (RFC 3339).
    pub since: Option<String>,
}

/// This host's own devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Host {
    /// When they were looked at last (RFC 3339); null before the first time.
    pub read_at: Option<String>,
    /// The devices, by name.
    pub devices: Vec<Device>,
}

/// A device of this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Device {
    /// The kernel's name for it.
    pub device: String,
    /// Its node GUID.
    pub guid: String,
    /// The vendor's type of it.
    pub hca_type: String,
    /// Its firmware's version.
    pub firmware: String,
    /// Whether it could be read in time.
    pub answers: bool,
    /// The fabric that has a node with its GUID, if one has.
    pub node_in: Option<String>,
    /// Its ports.
    pub ports: Vec<DevicePort>,
}

/// A port of a device of this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DevicePort {
    /// Its number.
    pub port: u8,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: String,
    /// Its state.
    pub state: Word,
    /// What it carries, in bytes a second.
    pub rate: Option<u64>,
    /// Its LID, once it has one.
    pub lid: Option<u16>,
    /// Its network interfaces.
    pub interfaces: Vec<String>,
    /// The id of its cable, where a fabric knows it.
    pub link: Option<String>,
    /// The fabric that does: ports of one device may be in several.
    pub link_in: Option<String>,
}
