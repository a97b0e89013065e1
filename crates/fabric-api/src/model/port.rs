//! The models of ports in full, in `/api/v1/links/{id}` and `/api/v1/nodes/{guid}`.

use std::collections::BTreeMap;

use ib_mad::counter::LINK_ERRORS;
use ib_mad::node::NodeKind;

use super::common::label_of_port;
use super::{BitErrors, Flow, Label, Learning, Link};

models! {
    /// A link with both ports in full.
    pub struct LinkDetail {
        /// When the fabric's latest sweep ended (RFC 3339).
        pub swept_at: Option<String>,
        /// The link as in `/api/v1/links`.
        #[serde(flatten)]
        pub link: Link,
        /// Expected link downs: reboots and announced maintenance.
        pub expected_link_downs: u32,
        /// Lower bound of the time that the link was down because of these.
        pub expected_down_seconds: f64,
        /// Upper bound of that time: from the last sweep that found the link up to the next one that did.
        pub expected_down_max_seconds: f64,
        /// How often the link retrained without a link down (LinkErrorRecovery): the higher count of both ends.
        pub recoveries: u32,
        /// The two ports, ordered by GUID and port number.
        pub ports: [Port; 2],
    }

    /// The identity of a port.
    pub struct PortName {
        /// NodeGUID of its node.
        pub guid: String,
        /// The name of the node.
        pub node: String,
        /// The host of a channel adapter (`--fabric.host-regex`).
        #[serde(default)]
        pub host: Option<String>,
        /// `ca`, `switch`, `router` or `aggregation_node`.
        pub node_type: Label,
        /// The port number.
        pub port: u8,
        /// What is printed beside the port at the front panel, if the device reports it: `1/19/1`.
        #[serde(default)]
        pub front_panel: Option<String>,
    }

    /// A port with all its data.
    pub struct Port {
        /// The identity of the port.
        #[serde(flatten)]
        pub name: PortName,
        /// Whether its node is up: present and responsive.
        pub up: bool,
        /// PortState: `Active`; null if not known.
        pub state: Option<Label>,
        /// PortPhysicalState: `LinkUp`; null if not known.
        pub physical_state: Option<Label>,
        /// Signaling rate per lane: `NDR`.
        pub speed: Option<Label>,
        /// Width, the number of lanes in use: `4x`.
        pub width: Option<Label>,
        /// Data rate of the link in bytes per second; null while it is down.
        pub rate: Option<u64>,
        /// The highest data rate that both ends support, in bytes per second.
        pub supported_rate: Option<u64>,
        /// The active FEC mode, if the device reports it.
        pub fec: Option<Label>,
        /// The neighbor, or the last known one.
        pub peer: Option<Peer>,
        /// The id of the link.
        pub link: Option<String>,
        /// The verdict of the link; null for a port without a link.
        pub verdict: Option<Label>,
        /// The reasons of the verdict, the worst first.
        pub reasons: Vec<Label>,
        /// When the counters were read (RFC 3339); null if they were not.
        pub read_at: Option<String>,
        /// All counters that were read, by the names and in the units of their metrics.
        pub counters: BTreeMap<Label, u64>,
        /// Counters that were saturated at least once: their totals are lower bounds.
        pub saturated: Vec<Label>,
        /// Counters that are saturated now and have stopped counting.
        pub saturated_now: Vec<Label>,
        /// Counters whose latest value is impossible and was discarded.
        #[serde(default)]
        pub impossible: Vec<Label>,
        /// Number of impossible values so far, of all counters.
        #[serde(default)]
        pub impossible_readings: u32,
        /// How often counters were cleared or reset.
        pub resets: u32,
        /// When the latest clear or reset was detected (RFC 3339).
        pub last_reset: Option<String>,
        /// Seconds between two clears at most, while a tool clears the counters again and again: bit error ratios are
        /// then estimates.
        #[serde(default)]
        pub cleared_every_seconds: Option<f64>,
        /// Link errors: corrupted data (the largest of symbol errors, uncorrectable FEC blocks, local link integrity
        /// errors, and receive errors without packets marked bad upstream), buffer overruns, retrains and link downs; null if
        /// none of these counters was read. A lower bound if `saturated` has one of them.
        pub errors: Option<u64>,
        /// PortXmitDiscards: packets that were not sent; null if not read.
        #[serde(default)]
        pub discards: Option<u64>,
        /// Bit errors received at this port.
        pub bit_errors: BitErrors,
        /// The pre-FEC bit error ratio, if the device reports it.
        pub pre_fec_ber: Option<PreFecBer>,
        /// The bit error ratios that the device computed since its counters were last cleared.
        #[serde(default)]
        pub reported_ber: Option<ReportedBer>,
        /// FEC blocks by bin of the device's histogram; empty without `--fabric.lanes`.
        #[serde(default)]
        pub fec_histogram: Vec<u64>,
        /// Why the link last went down or retrained, as the device reports it.
        #[serde(default)]
        pub link_down_reason: Option<LinkDownReason>,
        /// Why the port has no link, as the device reports it; null while it has one.
        #[serde(default)]
        pub trouble: Option<String>,
        /// The cable or module; null if none is plugged, or the device does not report it.
        #[serde(default)]
        pub module: Option<Module>,
        /// What the port sends; null before the second reading.
        #[serde(default)]
        pub tx: Option<Flow>,
        /// What the port receives.
        #[serde(default)]
        pub rx: Option<Flow>,
        /// How far the observation of the link is, as in `/api/v1/links`.
        #[serde(default)]
        pub learning: Option<Learning>,
        /// The share of time in which the port had data to send but sent none (PortXmitWait); null if that is not
        /// known: the counter was not read twice, is saturated, or was cleared in between.
        pub wait_ratio: Option<f32>,
        /// Whether PortXmitWait is saturated, so that the wait ratio is not known.
        #[serde(default)]
        pub wait_saturated: bool,
        /// Whether the device reports the length of its PortXmitWait tick; if not, the usual length is assumed.
        pub tick_reported: bool,
        /// The role of the port in congestion.
        pub congestion: Option<Congestion>,
    }

    /// Bit error ratios that a device reports.
    pub struct ReportedBer {
        /// Before FEC.
        pub raw: Option<f64>,
        /// After FEC.
        pub effective: Option<f64>,
        /// After FEC and retransmission (PLR).
        pub symbol: Option<f64>,
        /// Errors before FEC by lane, since the device last cleared its counters.
        #[serde(default)]
        pub lane_errors: Vec<u64>,
        /// Seconds since the device last cleared its counters; null if it does not report them.
        #[serde(default)]
        pub since_clear_seconds: Option<u64>,
    }

    /// Why a link went down or retrained.
    pub struct LinkDownReason {
        /// The side that caused it: `local` or `remote`; null if not reported.
        pub side: Option<Label>,
        /// The reason; null if not reported.
        pub reason: Option<String>,
        /// When it was read (RFC 3339).
        pub read_at: Option<String>,
    }

    /// A cable or module.
    pub struct Module {
        /// `active cable`, `optical module`, `passive copper`; empty if not reported.
        pub kind: Label,
        /// `OSFP`; empty if not known.
        pub form_factor: Label,
        /// The vendor.
        pub vendor: String,
        /// The part number.
        pub part_number: String,
        /// The serial number: the same at both ends of a cable.
        pub serial_number: String,
        /// The revision.
        pub revision: String,
        /// The length of a cable.
        pub length_meters: Option<f64>,
        /// The temperature in degrees Celsius, if the module measures it.
        pub temperature: Option<f64>,
        /// The module's own alarm threshold for it.
        pub temperature_alarm: Option<f64>,
        /// The received optical power by lane in dBm, if the module measures it; null without light.
        #[serde(default)]
        pub rx_power: Vec<Option<f64>>,
        /// The transmitted optical power by lane in dBm.
        #[serde(default)]
        pub tx_power: Vec<Option<f64>>,
        /// The module's own low alarm threshold for the received power.
        #[serde(default)]
        pub rx_power_alarm: Option<f64>,
    }

    /// The neighbor of a port.
    pub struct Peer {
        /// The neighbor's port.
        #[serde(flatten)]
        pub name: PortName,
        /// Whether the link is up. If not, this is the last known neighbor.
        pub connected: bool,
    }

    /// The pre-FEC bit error ratio: the ratio of bits that FEC corrected.
    pub struct PreFecBer {
        /// The measured ratio.
        pub ratio: f32,
        /// The maximum ratio.
        pub limit: f32,
        /// When it was last measured (RFC 3339).
        #[serde(default)]
        pub measured_at: Option<String>,
        /// Whether the counter has been saturated since, so that the ratio is not current.
        #[serde(default)]
        pub stale: bool,
        /// The lane that has more of the errors than all others together.
        #[serde(default)]
        pub lane: Option<u8>,
        /// Its share of the errors.
        #[serde(default)]
        pub lane_share: Option<f32>,
    }

    /// The role of a port in congestion.
    pub struct Congestion {
        /// `root` or `victim`.
        pub role: Label,
        /// Of a victim: the root that it waits for.
        pub root: Option<PortName>,
        /// Of a root, the cause: `slow_receiver`, `full_link` or `unknown`.
        pub cause: Option<Label>,
        /// When the wait ratio was last measured (RFC 3339), if it is not known now: the role may be out of date.
        #[serde(default)]
        pub measured_at: Option<String>,
    }
}

impl Port {
    /// Whether its link errors are a lower bound.
    pub fn is_least(&self) -> bool {
        LINK_ERRORS.iter().any(|part| self.saturated.iter().any(|it| it == part.row().metric))
    }
}

impl PortName {
    /// The node's name and the port's number, of a switch also what is printed beside it.
    pub fn label(&self) -> String {
        label_of_port(&self.node, self.port, &self.node_type, self.front_panel.as_deref())
    }

    /// The host, or another node, that a switch has at this port; `None` of a port of a switch.
    pub fn behind(&self) -> Option<&str> {
        let is_edge = self.node_type != NodeKind::Switch.label();
        is_edge.then(|| self.host.as_deref().unwrap_or(&self.node))
    }
}
