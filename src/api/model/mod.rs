//! The JSON models of the API, used by the server and by clients such as `links --url`. Their doc comments are the
//! descriptions in openapi.json.

/// Declares models with what all of them derive.
macro_rules! models {
    ($($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* })+) => { $(
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        $(#[$meta])*
        pub struct $name { $($fields)* }
    )+ };
}

mod condition;
mod link;
mod node;
mod spares;

use std::borrow::Cow;

use ib_health::Verdict;

pub use condition::*;
pub use link::*;
pub use node::*;
pub use spares::*;

/// What pages call links that only lack time of observation. It is not a verdict.
pub const LEARNING: &str = "learning";

/// The state of a node that is down by itself, and of one that is down because another one cuts it off.
pub const DOWN: &str = "down";
/// See [`DOWN`].
pub const CUT_OFF: &str = "cut_off";

/// A value of a small enumeration; constants are borrowed.
pub type Label = Cow<'static, str>;

models! {
    /// Number of links by verdict.
    #[derive(Copy)]
    #[expect(missing_docs, reason = "the verdicts say it")]
    pub struct Verdicts {
        pub ok: usize,
        pub unknown: usize,
        pub watch: usize,
        pub bad: usize,
        /// How many of the unknown ones only lack time of observation.
        #[serde(default)]
        pub learning: usize,
    }

    /// The nodes, ports, links and devices that match a search by name, GUID or LID, and the links and ports whose
    /// cable or module matches by serial or part number. `/api/v1/history/cable` has former places of a cable.
    pub struct Search {
        /// The text of the search.
        pub query: String,
        /// Number of matches; `hits` lists the best hundred at most.
        pub found: usize,
        /// The matches, best first.
        pub hits: Vec<Hit>,
    }

    /// A match.
    pub struct Hit {
        /// `node`, `port`, `link` or `device`.
        pub kind: Label,
        /// Its fabric; for a device, the fabric of its node, if known.
        pub fabric: String,
        /// Its name.
        pub name: String,
        /// The GUID, or the id of a link.
        pub id: String,
        /// What matched: `name`, `host`, `guid`, `port_guid`, `lid`, `link`, `port`, `serial_number` or `part_number`.
        pub matched: Label,
        /// How well it matched: `exact`, `prefix` or `substring`.
        pub quality: Label,
        /// Its state: of a node `down`, `cut_off` (down behind another node) or the worst verdict of its links; of a
        /// port or link its verdict. `learning` if that is only not known yet. Null for a device or without a link.
        #[serde(default)]
        pub state: Option<Label>,
        /// The path of its page.
        pub page: String,
    }

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
    #[cfg_attr(test, schemars(rename = "FabricOverview"))]
    pub struct Fabric {
        /// The name of the fabric.
        pub fabric: String,
        /// The configured sweep interval.
        pub interval_seconds: f64,
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

    /// The traffic of a fabric.
    pub struct Traffic {
        /// What all hosts and routers send, in bytes per second.
        pub sent: f64,
        /// What they receive.
        pub received: f64,
        /// The directions of links with the highest utilization: in the overview at most ten.
        pub busiest: Vec<BusyLink>,
    }

    /// One direction of a link, and its traffic.
    pub struct BusyLink {
        /// The id of the link.
        pub link: String,
        /// The verdict of the link.
        pub verdict: Label,
        /// How far its observation is, as in `/api/v1/links`.
        #[serde(default)]
        pub learning: Option<Learning>,
        /// The port that sends.
        pub from: PortName,
        /// The port that receives.
        pub to: PortName,
        /// What it sends.
        #[serde(flatten)]
        pub flow: Flow,
        /// The share of time in which it had data to send but sent none (PortXmitWait), if that is known.
        #[serde(default)]
        pub wait_ratio: Option<f32>,
        /// Whether PortXmitWait is saturated, so that the wait ratio is not known.
        #[serde(default)]
        pub wait_saturated: bool,
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

    /// The GUID and the name of a node.
    pub struct NodeName {
        /// NodeGUID.
        pub guid: String,
        /// The name of the node.
        pub node: String,
    }

    /// A congestion region: connected ports that wait, with one or more congestion roots.
    pub struct Region {
        /// The congestion root; of several roots, the one with the highest wait ratio.
        pub root: PortName,
        /// The port at the other end of the root's link, if it has one: at the edge of the fabric that of the host.
        #[serde(default)]
        pub peer: Option<PortName>,
        /// The id of the link of the root, if it has one.
        pub link: Option<String>,
        /// Why the root is one: `slow_receiver`, `full_link` or `unknown`.
        pub cause: Label,
        /// Number of waiting ports.
        pub ports: u32,
        /// Number of roots.
        pub roots: u32,
        /// The highest wait ratio of these ports.
        pub wait_ratio: Option<f32>,
        /// `low`, `medium` or `high`.
        pub level: Label,
        /// When the congestion began (RFC 3339).
        pub since: Option<String>,
        /// When the wait ratio of the root was last measured (RFC 3339), if it is not known now.
        #[serde(default)]
        pub measured_at: Option<String>,
    }

    /// The traffic of all fabrics.
    pub struct Traffics {
        /// One entry per fabric.
        pub fabrics: Vec<FabricTraffic>,
    }

    /// The traffic of a fabric, with its name.
    pub struct FabricTraffic {
        /// The fabric's name.
        pub fabric: String,
        /// When its latest sweep ended (RFC 3339); null before the first.
        pub swept_at: Option<String>,
        /// The traffic between the latest two sweeps; null before the second.
        pub traffic: Option<Traffic>,
    }

    /// The RDMA devices of this host.
    pub struct Host {
        /// When the devices were last read (RFC 3339); null before the first read.
        pub read_at: Option<String>,
        /// The devices, by name.
        pub devices: Vec<Device>,
        /// The devices that disappeared, by name: until they return, or for the time of `--fabric.forget-after`.
        #[serde(default)]
        pub missing: Vec<MissingDevice>,
    }

    /// An RDMA device of this host that disappeared.
    pub struct MissingDevice {
        /// The kernel's name that it had.
        pub device: String,
        /// The node GUID that it had; empty if it could not be read.
        pub guid: String,
        /// When a read found it missing (RFC 3339).
        pub since: Option<String>,
    }

    /// An RDMA device of this host.
    pub struct Device {
        /// The kernel's name of the device: `mlx5_0`.
        pub device: String,
        /// The node GUID of the device, as in its metrics: `0x0000000000000000` if a virtual function was given
        /// none, empty if it could not be read.
        pub guid: String,
        /// `physical`, or why its ports have no cable of their own: the values of the metrics' label `kind`.
        #[serde(default)]
        pub kind: Label,
        /// The vendor's name of the device type.
        pub hca_type: String,
        /// The firmware version.
        pub firmware: String,
        /// Whether the device could be read in time.
        pub readable: bool,
        /// The temperatures that the device measures (hwmon).
        pub temperatures: Vec<Temperature>,
        /// The fabric that has a node with this GUID, if any.
        pub fabric: Option<String>,
        /// The ports of the device.
        pub ports: Vec<DevicePort>,
    }

    /// A temperature of a device of this host.
    pub struct Temperature {
        /// The driver's name of the sensor: `asic`.
        pub sensor: String,
        /// Degrees Celsius.
        pub celsius: f64,
        /// The critical temperature in degrees Celsius, if the driver reports one.
        pub critical_celsius: Option<f64>,
    }

    /// A port of a device of this host.
    pub struct DevicePort {
        /// The port number.
        pub port: u8,
        /// `InfiniBand` or `Ethernet`.
        pub link_layer: String,
        /// As of the device, or `representor`.
        #[serde(default)]
        pub kind: Label,
        /// PortState: `Active`.
        pub state: Label,
        /// PortPhysicalState: `LinkUp`. Ethernet drivers report `Disabled` for each port that is down.
        #[serde(default)]
        pub physical_state: Option<Label>,
        /// Data rate in bytes per second; without meaning while the port is down.
        pub rate: Option<u64>,
        /// The LID, once the subnet manager has assigned one; the last one while the port is down or in Init.
        pub lid: Option<u16>,
        /// Counters that were saturated at least once: their totals are lower bounds.
        #[serde(default)]
        pub saturated: Vec<Label>,
        /// Counters that are saturated now: they have stopped at their maximum.
        #[serde(default)]
        pub saturated_now: Vec<Label>,
        /// The cable or module, if it is read (`--host.modules`).
        pub module: Option<Module>,
        /// The network interfaces of the port.
        pub interfaces: Vec<String>,
        /// The same interfaces with their states.
        #[serde(default)]
        pub netdevs: Vec<Netdev>,
        /// The id of the link, if a fabric has the port.
        pub link: Option<String>,
        /// The fabric of that link: ports of one device may be in different fabrics.
        pub link_fabric: Option<String>,
    }

    /// A network interface of a port of this host.
    pub struct Netdev {
        /// The name of the interface: `ib0`.
        pub netdev: String,
        /// The bond that it is a member of.
        pub bond: Option<String>,
        /// Whether it is set up (`ip link set up`); null if unknown.
        pub administratively_up: Option<bool>,
        /// Whether it has a link; null while it is set down, or if unknown.
        pub carrier: Option<bool>,
        /// The operational state (RFC 2863): `up`, `down`, `lowerlayerdown`.
        pub operstate: String,
    }
}

impl Verdicts {
    /// Counts one more link.
    pub fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Ok => &mut self.ok,
            Verdict::Unknown => &mut self.unknown,
            Verdict::Watch => &mut self.watch,
            Verdict::Bad => &mut self.bad,
        } += 1;
    }

    /// The count of each verdict, the worst first.
    pub fn worst_first(&self) -> [(Verdict, usize); 4] {
        [
            (Verdict::Bad, self.bad),
            (Verdict::Watch, self.watch),
            (Verdict::Unknown, self.unknown),
            (Verdict::Ok, self.ok),
        ]
    }

    /// The count of all links.
    pub fn count(&self) -> usize {
        self.ok + self.unknown + self.watch + self.bad
    }

    /// Those of some verdicts; all if there are none.
    #[must_use]
    pub fn only(self, verdicts: &[Verdict]) -> Verdicts {
        let of = |verdict, count| {
            if verdicts.is_empty() || verdicts.contains(&verdict) { count } else { 0 }
        };
        Verdicts {
            ok: of(Verdict::Ok, self.ok),
            unknown: of(Verdict::Unknown, self.unknown),
            watch: of(Verdict::Watch, self.watch),
            bad: of(Verdict::Bad, self.bad),
            learning: of(Verdict::Unknown, self.learning),
        }
    }

    /// The worst verdict; `None` without links.
    pub fn worst(&self) -> Option<Verdict> {
        let mut worst_first = self.worst_first().into_iter();
        worst_first.find(|(_, count)| *count > 0).map(|(verdict, _)| verdict)
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Verdicts) -> Verdicts {
        Verdicts {
            ok: self.ok + other.ok,
            unknown: self.unknown + other.unknown,
            watch: self.watch + other.watch,
            bad: self.bad + other.bad,
            learning: self.learning + other.learning,
        }
    }

    /// The counts as pages show them, the worst first: those that only lack time are not called unknown.
    pub fn shown(&self) -> [(&'static str, usize); 5] {
        [
            (Verdict::Bad.label(), self.bad),
            (Verdict::Watch.label(), self.watch),
            (Verdict::Unknown.label(), self.unknown.saturating_sub(self.learning)),
            (LEARNING, self.learning),
            (Verdict::Ok.label(), self.ok),
        ]
    }

    /// The first of these that occurs.
    pub fn worst_shown(&self) -> Option<&'static str> {
        self.shown().into_iter().find(|(_, count)| *count > 0).map(|(label, _)| label)
    }
}
