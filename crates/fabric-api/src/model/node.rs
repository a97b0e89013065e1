//! The models of `/api/v1/nodes`, `/api/v1/modules` and `/api/v1/totals`.

use std::collections::BTreeMap;

use super::{
    Condition, Label, Module, NodeName, PartSum, Port, PortName, Rail, ReportedBer, Spare, Verdicts,
};

models! {
    /// The nodes of all fabrics.
    pub struct Nodes {
        /// One entry per fabric.
        pub fabrics: Vec<FabricNodes>,
    }

    /// The nodes of a fabric.
    pub struct FabricNodes {
        /// The fabric's name.
        pub fabric: String,
        /// When its latest sweep ended (RFC 3339); null before the first.
        pub swept_at: Option<String>,
        /// The condition of the whole fabric.
        #[serde(default)]
        pub condition: Condition,
        /// The nodes that the query selects, ordered by GUID.
        pub nodes: Vec<Node>,
    }

    /// A fan.
    pub struct Fan {
        /// Its number.
        pub number: u8,
        /// Its speed in rotations per minute.
        pub rpm: u16,
        /// Whether the switch reports that it is slower or faster than it should be.
        pub out_of_range: bool,
    }

    /// A node.
    pub struct Node {
        /// NodeGUID.
        pub guid: String,
        /// SystemImageGUID: the same for the nodes of one chassis or one card.
        pub system_guid: String,
        /// The name of the node.
        pub node: String,
        /// The host of a channel adapter (`--fabric.host-regex`).
        #[serde(default)]
        pub host: Option<String>,
        /// The rail of its host that it is (`--fabric.rails`): the device in its name; null unless the host has
        /// several.
        #[serde(default)]
        pub rail: Option<String>,
        /// NodeDescription as the node reports it; unprintable characters are replaced.
        pub description: String,
        /// `ca`, `switch`, `router` or `aggregation_node`.
        pub node_type: Label,
        /// VendorID: `0x0002c9`.
        pub vendor_id: String,
        /// DeviceID.
        pub device_id: u16,
        /// The product name of the device, if known: `Quantum-2`.
        pub device: Option<Label>,
        /// Number of physical ports.
        pub port_count: u8,
        /// The LID; of several ports the first.
        pub lid: Option<u16>,
        /// Whether it is up: present and responsive.
        pub up: bool,
        /// While it is down: the beginning of the first sweep that found it down (RFC 3339).
        #[serde(default)]
        pub down_since: Option<String>,
        /// While it is down: the node that is down and cuts it off; null if it is down by itself.
        #[serde(default)]
        pub behind: Option<NodeName>,
        /// While it is down: number of nodes behind it.
        #[serde(default)]
        pub nodes_behind: usize,
        /// Whether the site names it as drained (`--health.drained-hosts-file`) or in maintenance
        /// (`--health.maintenance-file`) now: no job has to keep its paths. False for the hosts of a switch in maintenance.
        #[serde(default)]
        pub drained: bool,
        /// The result of the latest discovery: `found`, `hidden` (behind an unresponsive node) or `absent`.
        pub presence: Label,
        /// When a discovery last found it (RFC 3339).
        pub last_found: Option<String>,
        /// Tick of PortSamplesControl: a PortXmitWait tick is this + 1 symbol times; null if not reported.
        pub tick: Option<u8>,
        /// The version of the firmware, if the device reports it.
        #[serde(default)]
        pub firmware: Option<String>,
        /// PSID: the board.
        #[serde(default)]
        pub psid: Option<String>,
        /// Seconds from the last reset of the device to the latest report.
        #[serde(default)]
        pub uptime_seconds: Option<u32>,
        /// The fans of a switch, if it reports them.
        #[serde(default)]
        pub fans: Vec<Fan>,
        /// The temperature of the ASIC in degrees Celsius.
        #[serde(default)]
        pub temperature: Option<f64>,
        /// The worst verdict of its links; `unknown` if it has none.
        #[serde(default)]
        pub verdict: Label,
        /// Number of its links by verdict.
        pub verdicts: Verdicts,
    }

    /// A node with its ports.
    pub struct NodeDetail {
        /// The fabric of the node.
        pub fabric: String,
        /// When the fabric's latest sweep ended (RFC 3339).
        pub swept_at: Option<String>,
        /// The node.
        #[serde(flatten)]
        pub node: Node,
        /// The ports, by number; port 0 of a switch only if it is an endpoint.
        pub ports: Vec<Port>,
        /// The rails of its host, by name; empty if the node is no rail.
        #[serde(default)]
        pub rails: Vec<Rail>,
    }

    /// The cables and modules of all fabrics.
    pub struct Modules {
        /// One entry per fabric.
        pub fabrics: Vec<FabricModules>,
    }

    /// The cables and modules of a fabric.
    pub struct FabricModules {
        /// The fabric's name.
        pub fabric: String,
        /// When its latest sweep ended (RFC 3339); null before the first.
        pub swept_at: Option<String>,
        /// The ports that report one, ordered by node name and port. A cable is listed at both ends.
        pub modules: Vec<PortModule>,
        /// The spares that the present advice needs, by part number; with `node`, for the links of that node.
        #[serde(default)]
        pub spares: Vec<Spare>,
        /// These modules by part number, the worst first.
        #[serde(default)]
        pub parts: Vec<PartSum>,
    }

    /// The cable or module of a port.
    pub struct PortModule {
        /// The identity of the port.
        #[serde(flatten)]
        pub name: PortName,
        /// The ID of its link.
        pub link: Option<String>,
        /// The verdict of its link, or `learning`.
        #[serde(default)]
        pub verdict: Option<Label>,
        /// The cable or module.
        #[serde(flatten)]
        pub module: Module,
        /// The bit error ratios that the device reports.
        pub reported_ber: Option<ReportedBer>,
    }

    /// What counters had counted before their last reset.
    pub struct Totals {
        /// One entry per fabric.
        pub fabrics: Vec<FabricTotals>,
    }

    /// The ports of a fabric whose counters were ever reset.
    pub struct FabricTotals {
        /// The fabric's name.
        pub fabric: String,
        /// The ports.
        pub ports: Vec<PortTotals>,
    }

    /// A port whose counters were reset.
    pub struct PortTotals {
        /// NodeGUID of its node.
        pub guid: String,
        /// The port number.
        pub port: u8,
        /// The time since its counters were last read.
        pub read_seconds_ago: f64,
        /// By counter, in the units of the device: what it had counted before its last reset, and what the device showed in
        /// the latest sweep; null if it was not read. The sum of both is the total.
        pub counters: BTreeMap<Label, (u64, Option<u64>)>,
    }
}
