//! The models of fabrics in `/api/v1/overview`.

use super::{
    Condition, Host, Label, Learning, Link, NodeDown, PortName, Region, Traffic, Verdicts,
};

models! {
    /// All fabrics and this host, summarized.
    pub struct Overview {
        /// One entry per fabric.
        pub fabrics: Vec<Fabric>,
        /// The RDMA devices of this host; null if the host collector is off.
        pub host: Option<Host>,
        /// Whether a history is recorded (`--history.file`).
        pub recorded: bool,
    }

    /// A fabric, summarized.
    #[cfg_attr(feature = "schema", schemars(rename = "FabricOverview"))]
    pub struct Fabric {
        /// The name of the fabric.
        pub fabric: String,
        /// The configured sweep interval; of data that another program collects, the time between two changes of it if that
        /// is longer.
        pub interval_seconds: f64,
        /// Where its data is from; null if the exporter reads it by MADs.
        #[serde(default)]
        pub source: Option<Source>,
        /// `infiniband` or `nvlink`; null until a switch has told.
        #[serde(default)]
        pub kind: Option<Label>,
        /// The condition: the worst of its nodes and links.
        #[serde(default)]
        pub condition: Condition,
        /// The latest sweep; null before the first one has ended.
        pub sweep: Option<Sweep>,
        /// Number of nodes by type.
        pub nodes: Vec<NodeCount>,
        /// Nodes that are down: absent or unresponsive; by harm: those that are down by themselves first, and switches
        /// first among these. At most ten.
        pub nodes_down: Vec<NodeDown>,
        /// Number of its links by verdict.
        pub verdicts: Verdicts,
        /// Number of links that are not ok by their worst reason: the worst verdict first, of equal ones the most
        /// frequent.
        pub reasons: Vec<ReasonCount>,
        /// The links that are bad or degraded, the worst first. At most ten.
        pub worst_links: Vec<Link>,
        /// How far the links are that only lack time of observation; null if there are none.
        #[serde(default)]
        pub learning: Option<Learning>,
        /// The traffic between the latest two sweeps; null before the second.
        #[serde(default)]
        pub traffic: Option<Traffic>,
        /// Number of congestion regions.
        pub regions: usize,
        /// The largest congestion regions. At most ten.
        pub congestion: Vec<Region>,
        /// The types of devices that run different versions of firmware. At most ten.
        #[serde(default)]
        pub firmware_differences: Vec<FirmwareDifference>,
    }

    /// The source of data that another program collects (`--fabric.from`).
    #[cfg_attr(feature = "schema", schemars(rename = "DataSource"))]
    pub struct Source {
        /// Its addresses, or its directory.
        pub name: String,
        /// The formats of its data; empty before the first.
        pub format: String,
        /// The time between the latest two changes of its data; null before the second.
        pub interval_seconds: Option<f64>,
        /// Why the latest poll had no data, and what to do; null if it had.
        pub problem: Option<String>,
        /// What its data is too rare or too poor for.
        pub limits: Vec<String>,
    }

    /// The devices of one type and board, with different versions of firmware.
    pub struct FirmwareDifference {
        /// The product name of the device, or its DeviceID.
        pub device: String,
        /// PSID: the board.
        pub psid: String,
        /// The versions, the most frequent first.
        pub versions: Vec<FirmwareVersion>,
    }

    /// A version of firmware.
    pub struct FirmwareVersion {
        /// The version.
        pub firmware: String,
        /// Number of nodes that run it.
        pub nodes: usize,
        /// Their names. At most five.
        pub names: Vec<String>,
    }

    /// A reason and the number of links of which it is the worst.
    pub struct ReasonCount {
        /// The reason: the value of the metrics' label `reason`.
        pub reason: Label,
        /// What the reason means.
        pub description: Label,
        /// The verdict of these links.
        pub verdict: Label,
        /// Number of links.
        pub links: usize,
    }

    /// The result of the latest sweep and of the latest discovery.
    pub struct Sweep {
        /// When the sweep ended (RFC 3339).
        pub ended_at: Option<String>,
        /// Duration of the sweep.
        pub seconds: f64,
        /// Number of sweeps since the exporter started.
        pub sweeps: u64,
        /// Ports of which counters were read.
        pub ports_read: usize,
        /// Ports of which a request for counters failed.
        pub ports_failed: usize,
        /// Nodes that were queried and did not respond.
        pub nodes_unresponsive: usize,
        /// Collectors that failed in the latest run: `discovery`, `perfmgt`, `subnet`.
        pub failing: Vec<Label>,
        /// When the latest discovery ended (RFC 3339).
        pub discovered_at: Option<String>,
        /// Failed requests of the latest discovery: parts of the fabric may be missing.
        pub discovery_gaps: u64,
        /// MADs sent since the exporter started.
        pub mads_sent: u64,
        /// MADs that timed out since the exporter started.
        pub mads_timed_out: u64,
        /// The port of the master SM, as last reported.
        pub master_sm: Option<PortName>,
    }

    /// The nodes of a type.
    pub struct NodeCount {
        /// `ca`, `switch`, `router` or `aggregation_node`.
        pub node_type: Label,
        /// Number of nodes.
        pub nodes: usize,
        /// Number of nodes that are down: absent or unresponsive.
        pub down: usize,
    }
}
