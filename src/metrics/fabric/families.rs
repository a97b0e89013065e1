//! The families of nodes, ports, links and subnet managers, and what writes the samples of each.

use exposition::{Family, MetricType, Samples};
use fabric_observation::Observation;
use fabric_observation::families::{LINK_INFO, LINK_LABELS, LINK_UP, NODE_UP, PORT_INFO};
use ib_fabric::aggregated_links::AggregatedPort;
use ib_fabric::hardware::{NodeHardware, PortHardware};
use ib_fabric::snapshot::SubnetManager;
use ib_fabric::topology::LinkId;
use ib_fabric::{Node, NodeIndex, PortIndex, PortMap, Snapshot};
use ib_health::bit_errors::{BerWindow, BitErrors};
use ib_health::congestion::{HeldWait, Region, Role};
use ib_health::counter_status::CounterStatus;
use ib_health::outage::{BOUNDS, ExpectedCause};
use ib_health::{LinkAssessment, PortAssessment, Verdict};
use ib_mad::counter::TABLE as COUNTERS;
use ib_mad::moment::Anchor;
use ib_mad::port_state::PortStatus;
use ib_mad::rate::{Speed, Width};
use ib_mad::register::{LANES, Temperatures};
use ib_mad::smp::SmState;
use ib_mad::{Counter, PortKey, Reading};

use crate::metrics::family_table::{families, family};
use crate::metrics::modules::{ModuleItem, write_field};

const NODE_LABELS: &[&str] = &["fabric", "guid"];
const PORT_LABELS: &[&str] = &["fabric", "guid", "port"];
/// The labels of a fan.
const FAN_LABELS: &[&str] = &["fabric", "guid", "fan"];
const LANE_LABELS: &[&str] = &["fabric", "guid", "port", "lane"];
const WINDOW_LABELS: &[&str] = &["fabric", "link", "guid", "port", "window"];
const REGION_LABELS: &[&str] = &["fabric", "root_guid", "root_port"];

/// The labels of the two ends of a link: node GUID, port, name, host and type of the node.
const ENDS: [[&str; 5]; 2] = [
    ["guid", "port", "node", "host", "node_type"],
    ["peer_guid", "peer_port", "peer_node", "peer_host", "peer_node_type"],
];

pub(super) struct NodeItem<'a> {
    pub snapshot: &'a Snapshot,
    pub node: NodeIndex,
    pub in_maintenance: bool,
}

impl<'a> NodeItem<'a> {
    fn is_up(&self) -> bool {
        self.snapshot.is_up(self.node)
    }

    fn hardware(&self) -> Option<&'a NodeHardware> {
        let guid = self.snapshot.fabric.node(self.node).identity.guid;
        self.snapshot.hardware.node(guid)
    }

    /// What it reports, if it is up: measurements of a node that is not are old.
    fn current(&self) -> Option<&'a NodeHardware> {
        self.hardware().filter(|_| self.is_up())
    }
}

pub(in crate::metrics) struct PortItem<'a> {
    pub snapshot: &'a Snapshot,
    pub port: PortIndex,
    /// `None` if the fabric was not evaluated.
    pub assessment: Option<&'a PortAssessment>,
    /// Whether its link went down, came up or retrained since the exporter started.
    pub has_changed: bool,
    /// `None` if the counters were not read, or are not shown: those of a port that never had a cable are all 0, and
    /// a tenth of a fabric's ports has none.
    pub reading: Option<&'a Reading>,
    hardware: Option<&'a PortHardware>,
    /// What its PortInfo says; `None` if that is not known.
    status: Option<&'a PortStatus>,
}

impl<'a> PortItem<'a> {
    /// The last known wait that the port's role in a congestion is inferred from.
    fn held_wait(&self) -> Option<HeldWait> {
        self.assessment.filter(|it| it.role.is_some())?.held_wait
    }

    pub fn new(
        snapshot: &'a Snapshot,
        port: PortIndex,
        assessment: Option<&'a PortAssessment>,
        has_changed: bool,
    ) -> Self {
        let reading = snapshot.reading(port).filter(|reading| {
            let is_used = |counter| reading.get(counter).is_some_and(|total| total > 0);
            snapshot.fabric.port(port).peer.is_some() || Counter::all().any(is_used)
        });
        // Looked up once, and not for each family.
        let hardware = snapshot.hardware.port(snapshot.fabric.port_key(port));
        let status = snapshot.status(port);
        PortItem { snapshot, port, assessment, has_changed, reading, hardware, status }
    }

    /// The module, if one is plugged.
    pub fn module(&self) -> Option<ModuleItem<'a>> {
        let module = self.hardware?.plugged()?;
        let has_details = self.snapshot.hardware.has_lanes;
        Some(ModuleItem { module, lanes: self.lanes(), is_current: self.is_read(), has_details })
    }

    /// Whether the link is up: without it the physical layer is not read.
    fn is_read(&self) -> bool {
        self.status.is_some_and(PortStatus::link_up)
    }

    /// What its device reports of the physical layer.
    fn current(&self) -> Option<&'a PortHardware> {
        self.hardware.filter(|_| self.is_read())
    }

    /// The same, if errors by lane are exported.
    fn details(&self) -> Option<&'a PortHardware> {
        self.current().filter(|_| self.snapshot.hardware.has_lanes)
    }

    /// The number of lanes that the link uses.
    fn lanes(&self) -> usize {
        self.status.and_then(|status| status.width).map_or(LANES, |it| it.lanes().into())
    }

    /// `None` if no counters were read.
    pub fn counted(&self) -> Option<Counted<'a>> {
        let (assessment, _) = self.assessment.zip(self.reading)?;
        Some(Counted { anchor: &self.snapshot.anchor, counting: &assessment.counters })
    }
}

pub(super) struct LinkItem<'a> {
    pub snapshot: &'a Snapshot,
    pub assessment: &'a LinkAssessment,
    /// Of all ports of the fabric.
    pub ports: &'a PortMap<PortAssessment>,
    /// The number of hosts whose packets cross it, if that was read.
    pub hosts_crossing: Option<usize>,
}

impl<'a> LinkItem<'a> {
    fn ends(&self) -> [PortIndex; 2] {
        self.assessment.link.ports()
    }

    /// The bit errors that its ends receive, on all planes.
    fn bit_errors(&self) -> impl Iterator<Item = &'a BitErrors> {
        let of_port = |port: PortIndex| self.ports.get(port).map(|it| &it.bit_errors);
        self.assessment.ports().filter_map(of_port)
    }
}

/// Status of a port's counters, which the fabric or the host collector read.
#[derive(Clone, Copy)]
pub(in crate::metrics) struct Counted<'a> {
    pub anchor: &'a Anchor,
    pub counting: &'a CounterStatus,
}

pub(super) struct RegionItem<'a> {
    pub anchor: &'a Anchor,
    pub region: &'a Region,
}

families! {
    pub(super) NODES: NodeItem<'_>;
    "infiniband_node_info" Gauge
        ["fabric", "guid", "node", "host", "node_type", "vendor_id", "device_id", "lid"]
        "Identity of a node as labels, always 1: name, host (of a channel adapter), type, vendor and device ID, and the LID of its first port that has one."
        => |item, samples| {
            let (fabric, node) = (&item.snapshot.fabric, item.snapshot.fabric.node(item.node));
            write_node(samples, node, "node", "host");
            samples.label("node_type", node.identity.kind.label());
            samples.label("vendor_id", &format!("{:#08x}", node.identity.vendor_id));
            samples.label("device_id", &node.identity.device_id.to_string());
            let lid = fabric.ports_of(item.node).find_map(|port| fabric.lid_of(port));
            samples.label_if_known("lid", lid.map(|lid| lid.to_string()));
            samples.value(1);
        };
    "infiniband_rail_info" Gauge ["fabric", "guid", "host", "rail"]
        "Rail of a host as labels, always 1: an HCA of a host that has several of them. Label rail: the device in the name of the HCA (see --fabric.rails). Joins by guid add host and rail to the metrics of its ports."
        => |item, samples| {
            let node = item.snapshot.fabric.node(item.node);
            if let (Some(host), Some(rail)) = (&node.host, &node.rail) {
                samples.label("host", host).label("rail", rail).value(1);
            }
        };
    NODE_UP => |item, samples| samples.value(item.is_up().into());
    "infiniband_node_maintenance" Gauge NODE_LABELS
        "Always 1, of nodes in maintenance: those that the maintenance file or the drained hosts file names, those all of whose links are in maintenance, such as the hosts of a switch, and HCAs that are down behind ports that an administrator disabled. Absent of all others. Alerts about a node that is down do not fire."
        => |item, samples| if item.in_maintenance {
            samples.value(1);
        };
}

families! {
    /// What a node reports of its hardware.
    pub(super) NODE_HARDWARE: NodeItem<'_>;
    "infiniband_node_firmware_info" Gauge ["fabric", "guid", "firmware", "psid"]
        "Firmware and board (PSID) of an NVIDIA device as labels, always 1."
        => |item, samples| if let Some(general) = item.hardware().and_then(|it| it.general) {
            samples.label("firmware", &general.value.firmware());
            samples.label("psid", &general.value.board());
            samples.value(1);
        };
    "infiniband_node_uptime_seconds" Gauge NODE_LABELS
        "Time since the last reset of the device, as last reported."
        => |item, samples| {
            let general = item.current().and_then(|it| it.general);
            samples.value_if_known(general.map(|read| read.value.uptime.into()));
        };
    "infiniband_node_temperature_celsius" Gauge NODE_LABELS
        "Temperature of the device's ASIC."
        => |item, samples| {
            let temperature = item.current().and_then(|it| it.temperature);
            samples.float_if_known(temperature.map(|read| read.value));
        };
    "infiniband_node_module_temperature_celsius" Gauge ["fabric", "guid", "module"]
        "Temperature of a module of a switch. Label module: the number that the switch gives the module, from 1 on. Read more often than infiniband_module_temperature_celsius, which is by port. Needs --fabric.lanes."
        => |item, samples| if item.snapshot.hardware.has_lanes
            && let Some(hardware) = item.current()
        {
            for (sensor, read) in &hardware.temperatures {
                let module = sensor + 1 - Temperatures::MODULES;
                samples.label("module", itoa::Buffer::new().format(module)).float(read.value);
            }
        };
    "infiniband_node_power_supply_info" Gauge
        ["fabric", "guid", "number", "part_number", "serial_number"]
        "Power supply of a switch as labels, always 1. The exporter does not export its state, which managed switches report wrongly."
        => |item, samples| if let Some(hardware) = item.current()
            && let Some(read) = &hardware.power_supplies
        {
            for (number, supply) in (1u8..).zip(read.value.supplies()) {
                let Some(supply) = supply else { continue };
                samples.label("number", itoa::Buffer::new().format(number));
                write_field(samples, "part_number", &supply.part_number);
                write_field(samples, "serial_number", &supply.serial_number);
                samples.value(1);
            }
        };
    "infiniband_node_fan_speed_rpm" Gauge FAN_LABELS
        "Speed of a switch's fan in rotations per minute."
        => |item, samples| if let Some(hardware) = item.current() {
            for (fan, read) in &hardware.fan_speeds {
                samples.label("fan", itoa::Buffer::new().format(*fan)).value(read.value.into());
            }
        };
    "infiniband_node_fan_out_of_range" Gauge FAN_LABELS
        "1 if the switch reports that a fan is slower or faster than it should be, 0 otherwise."
        => |item, samples| if let Some(hardware) = item.current()
            && let Some(limits) = hardware.fan_limits
        {
            for fan in hardware.fan_speeds.keys() {
                let is_out = (limits.value.slow | limits.value.fast) >> fan & 1;
                samples.label("fan", itoa::Buffer::new().format(*fan)).value(is_out.into());
            }
        };
}

families! {
    /// What a port's device reports of its physical layer.
    pub(super) HARDWARE: PortItem<'_>;
    "infiniband_port_reported_bit_error_ratio" Gauge ["fabric", "guid", "port", "layer"]
        "Bit error ratio that the device computed since its counters were last cleared. Label layer: raw (before FEC), effective (after FEC) or symbol (after FEC and retransmission). Absent if there were no errors since then."
        => |item, samples| if let Some(read) = item.current().and_then(|it| it.physical.as_ref()) {
            let read = &read.value;
            for (layer, ratio) in
                [("raw", read.raw_ber()), ("effective", read.effective_ber()), ("symbol", read.symbol_ber())]
            {
                if let Some(ratio) = ratio.filter(|ratio| *ratio > 0.0) {
                    samples.label("layer", layer).float(ratio);
                }
            }
        };
    "infiniband_port_lane_raw_errors" Counter LANE_LABELS
        "Errors before FEC by lane, as the device counts them: 0 again after a clear or reset. Needs --fabric.lanes."
        => |item, samples| if let Some(read) = item.details().and_then(|it| it.physical.as_ref()) {
            for (lane, errors) in read.value.lane_errors.iter().enumerate().take(item.lanes()) {
                samples.label("lane", itoa::Buffer::new().format(lane)).value(*errors);
            }
        };
    "infiniband_port_fec_bin_blocks" Counter ["fabric", "guid", "port", "bin"]
        "FEC blocks by bin of the device's histogram, as the device counts them: 0 again after a clear or reset. On most links the bin is the number of corrected symbols. Needs --fabric.lanes."
        => |item, samples| if let Some(hardware) = item.details()
            && let Some(read) = &hardware.fec_histogram
        {
            for (bin, blocks) in read.value.blocks.iter().enumerate() {
                samples.label("bin", itoa::Buffer::new().format(bin)).value(*blocks);
            }
        };
    "infiniband_port_link_down_reason_info" Gauge ["fabric", "guid", "port", "side", "reason"]
        "Why the link last went down or retrained, as the device reports it, as labels, always 1. Label side: local or remote. Absent for links that are up and did not change since the exporter started."
        => |item, samples| if let Some(read) = item.hardware.and_then(|it| it.link_down.as_ref())
            && (item.has_changed || !item.is_read())
            && let Some(reason) = read.value.reason()
        {
            samples.label_if_known("side", read.value.side().map(|side| side.label().to_owned()));
            samples.label("reason", &reason).value(1);
        };
}

families! {
    pub(super) PORT_INFOS: PortItem<'_>;
    PORT_INFO => |item, samples| {
        let (fabric, port) = (&item.snapshot.fabric, item.port);
        let node = fabric.node_of(port);
        write_node(samples, node, "node", "host");
        samples.label("node_type", node.identity.kind.label());
        if let Some(panel) = fabric.front_panel(port) {
            samples.label_if_known("front_panel", panel.label());
            samples.label_if_known("cage", panel.cage.map(|cage| cage.to_string()));
        }
        if let Some((AggregatedPort { system, number }, plane)) = fabric.plane_of(port) {
            samples.label("system_guid", &system.to_string());
            samples.label("aggregated_port", itoa::Buffer::new().format(number));
            samples.label("plane", itoa::Buffer::new().format(plane));
        }
        if let (Some(peer), Some(link)) = (fabric.port(port).peer, fabric.link_id(port)) {
            write_port(samples, ["peer_guid", "peer_port"], fabric.port_key(peer.port));
            write_node(samples, fabric.node_of(peer.port), "peer_node", "peer_host");
            write_link(samples, link);
        }
        write_rate(samples, item.status);
        samples.value(1);
    };
}

families! {
    /// The state of a port.
    pub(in crate::metrics) PORT_STATES: PortItem<'_>;
    "infiniband_port_state" Gauge PORT_LABELS
        "PortState: 1 Down, 2 Init, 3 Armed, 4 Active; for ports of this host also 5 ActiveDefer."
        => |item, samples| samples.value_if_known(item.status.map(|status| status.state.code().into()));
    "infiniband_port_physical_state" Gauge PORT_LABELS
        "PortPhysicalState: 1 Sleep, 2 Polling, 3 Disabled, 4 Training, 5 LinkUp, 6 LinkErrorRecovery, 7 PhyTest."
        => |item, samples| samples.value_if_known(item.status.map(|status| status.physical_state.code().into()));
    "infiniband_port_rate_bytes_per_second" Gauge PORT_LABELS
        "Nominal data rate of the link at its active width and speed (LinkWidthActive, LinkSpeedActive)."
        => |item, samples| samples.value_if_known(item.status.and_then(PortStatus::rate));
    "infiniband_port_width_lanes" Gauge PORT_LABELS
        "LinkWidthActive: lanes in use."
        => |item, samples| {
            let width = item.status.and_then(|it| it.width);
            samples.value_if_known(width.map(|width| width.lanes().into()));
        };
}

families! {
    pub(super) LINKS: LinkItem<'_>;
    LINK_INFO => |link, samples| {
        let fabric = &link.snapshot.fabric;
        for (labels, port) in ENDS.into_iter().zip(link.ends()) {
            let node = fabric.node_of(port);
            write_port(samples, [labels[0], labels[1]], fabric.port_key(port));
            write_node(samples, node, labels[2], labels[3]);
            samples.label(labels[4], node.identity.kind.label());
        }
        let rate = link.snapshot.link_rate(link.assessment.link);
        samples.label_if_known("speed", rate.speed.map(Speed::label));
        samples.label_if_known("width", rate.width_label());
        samples.value(1);
    };
    "infiniband_link_verdict" Gauge ["fabric", "link", "reason"]
        "Verdict by reason: 0 ok, 1 unknown, 2 watch (degraded), 3 bad. The verdict of the link is max by (fabric, link). Reason none: no reason; recent: an earlier, worse verdict that is held for 5 minutes."
        => |link, samples| {
            let (verdict, reasons) = (link.assessment.verdict, &link.assessment.reasons);
            for (reason, weight) in reasons.iter() {
                samples.label("reason", reason.label());
                // A reason that is too new to count in full must not outweigh the verdict.
                samples.value(weight.min(verdict) as u64);
            }
            if verdict > reasons.verdict() {
                samples.label("reason", "recent").value(verdict as u64);
            } else if reasons.worst().is_none() {
                samples.label("reason", "none").value(verdict as u64);
            }
        };
    "infiniband_link_repair" Gauge ["fabric", "link", "repair"]
        "Repair to try first, as a label, always 1: reseat, swap_cable, swap_transceiver, check_upstream, check_cooling, check_cabling, check_host, or none (the only reason is congestion). Links without a known repair, such as healthy ones, have no series."
        => |link, samples| {
            if let Some(repair) = link.assessment.repair {
                samples.label("repair", repair.label()).value(1);
            }
        };
    "infiniband_link_flaps" Counter LINK_LABELS
        "Flaps: times that the link went down unexpectedly and came up again. Reboots and maintenance are not counted; a link down that both ends count is counted once."
        => |link, samples| samples.value(link.assessment.outages.flaps.into());
    "infiniband_link_hosts_crossing" Gauge LINK_LABELS
        "Hosts that send or receive packets over the link, by the forwarding tables of the switches; of the cable of a host, that host. Only for links that are bad and of which the tables were read (--fabric.forwarding-smps-per-minute): the worst 20 of a fabric. If tables were not read completely, or with adaptive routing, there may be more."
        => |link, samples| {
            samples.value_if_known(link.hosts_crossing.map(|hosts| hosts as u64));
        };
}

families! {
    /// When links changed, and for how long they were down.
    pub(super) OUTAGES: LinkItem<'_>;
    LINK_UP => |link, samples| samples.value_if_known(link.assessment.up.map(u64::from));
    "infiniband_link_verdict_timestamp_seconds" Gauge LINK_LABELS
        "Unix time when the link got its present verdict."
        => |link, samples| {
            samples.seconds(link.snapshot.anchor.unix_seconds_of(link.assessment.since));
        };
    "infiniband_link_expected_outages" Counter ["fabric", "link", "cause"]
        "Expected link downs, by cause: reboot (a node at one end restarted) or maintenance (the maintenance file or the drained hosts file names the link or a node at its ends). Absent for a cause until it first occurs."
        => |link, samples| {
            for cause in ExpectedCause::ALL {
                let count = link.assessment.outages.expected[cause as usize];
                samples.label("cause", cause.label());
                samples.value_if_known((count > 0).then_some(count.into()));
            }
        };
    "infiniband_link_down_seconds" Counter LINK_LABELS
        "Lower bound of the time that flaps kept the link down: from the first to the last sweep that saw it down. Added when the link is up again and both ends have been read."
        => |link, samples| samples.seconds(link.assessment.outages.down.least.as_secs_f64());
    "infiniband_link_down_max_seconds" Counter LINK_LABELS
        "Upper bound of the time that flaps kept the link down: from the last sweep before the flap to the first one after it. A flap between two sweeps adds one interval."
        => |link, samples| samples.seconds(link.assessment.outages.down.most.as_secs_f64());
    "infiniband_link_expected_down_seconds" Counter LINK_LABELS
        "Lower bound of the time that expected outages kept the link down: from the first to the last sweep that saw it down. Absent if there were none."
        => |link, samples| {
            let down = link.assessment.outages.expected_down.least;
            if !down.is_zero() {
                samples.seconds(down.as_secs_f64());
            }
        };
    "infiniband_link_recoveries" Counter LINK_LABELS
        "Retrainings without a link down (LinkErrorRecoveryCounter), at the end that counted more."
        => |link, samples| samples.value(link.assessment.outages.recoveries.into());
    "infiniband_link_last_change_timestamp_seconds" Gauge LINK_LABELS
        "Unix time when the link last went down or came up. Absent if it never did."
        => |link, samples| {
            if let Some(last) = link.assessment.outages.last_change {
                samples.seconds(link.snapshot.anchor.unix_seconds_of(last));
            }
        };
    "infiniband_link_outage_seconds" Histogram LINK_LABELS
        "Durations of the link's flaps, each as the midpoint between its lower and upper bound. Flaps that no sweep saw, and that only LinkDownedCounter shows, are not included."
        => |link, samples| {
            let outages = &link.assessment.outages;
            let all: u64 = outages.lengths.iter().copied().map(u64::from).sum();
            if all == 0 {
                return;
            }
            let mut up_to = 0;
            for (bound, length) in BOUNDS.iter().zip(outages.lengths) {
                up_to += u64::from(length);
                samples.suffix("_bucket");
                // OpenMetrics wants a float to look like one.
                samples.label("le", &format!("{bound:?}")).value(up_to);
            }
            samples.suffix("_bucket").label("le", "+Inf").value(all);
            samples.suffix("_sum").seconds(outages.lengths_sum.as_secs_f64());
            samples.suffix("_count").value(all);
        };
}

families! {
    /// Status of counters, of fabrics and of the host.
    pub(in crate::metrics) COUNTING: Counted<'_>;
    "infiniband_port_saturated_counters" Gauge ["fabric", "guid", "port", "counter"]
        "1 while a counter is saturated (its field has reached its maximum), 0 after it was cleared. From the first saturation on, its total is a lower bound. Absent for counters that never saturated."
        => |counted, samples| {
            let counting = counted.counting;
            if counting.ever_saturated.is_empty() {
                return;
            }
            for row in COUNTERS.iter().filter(|row| counting.ever_saturated.contains(row.counter)) {
                samples.label("counter", row.metric);
                samples.value(counting.saturated_now.contains(row.counter).into());
            }
        };
    "infiniband_port_impossible_readings" Counter PORT_LABELS
        "Counter values of the port that were rejected as impossible: 2^63 or more, or more than the link can carry since the previous read. Absent if there were none."
        => |counted, samples| {
            let times = u64::from(counted.counting.impossible_readings);
            samples.value_if_known((times > 0).then_some(times));
        };
    "infiniband_port_counters_reset" Counter PORT_LABELS
        "Times that the counters of the port started from zero: a tool cleared them, or the device restarted. Absent if there were none."
        => |counted, samples| {
            let resets = u64::from(counted.counting.resets);
            samples.value_if_known((resets > 0).then_some(resets));
        };
    "infiniband_port_counters_reset_timestamp_seconds" Gauge PORT_LABELS
        "Unix time of the latest counter reset of the port. Absent if there was none."
        => |counted, samples| {
            if let Some(last) = counted.counting.last_reset {
                samples.seconds(counted.anchor.unix_seconds_of(last));
            }
        };
}

/// The windows that are exposed; that of seconds is for the verdict alone.
const WINDOWS: [BerWindow; 2] = [BerWindow::Short, BerWindow::Long];

families! {
    pub(super) RECEIVERS: BitErrors;
    "infiniband_link_bit_error_ratio" Gauge WINDOW_LABELS
        "Bit error ratio (after FEC) of the bits received at this port, over the window. Label window: 12m or 125m. Absent until the window is long enough for a result."
        => |errors, samples| {
            for window in WINDOWS {
                let ratio = errors.ratio(window);
                samples.label("window", window.label()).float_if_known(ratio);
            }
        };
    "infiniband_link_pre_fec_bit_error_ratio" Gauge ["fabric", "link", "guid", "port"]
        "Pre-FEC bit error ratio of the bits received at this port: between the latest two reads of its registers or, if these are not read, over the latest 2 to 4 minutes of its FEC counters. Absent while the FEC counters are saturated (reason counter_saturated); pages and API then show the last known ratio."
        => |errors, samples| {
            samples.float_if_known(errors.pre_fec.filter(|it| !it.stale).map(|it| it.ratio));
        };
}

families! {
    /// What does not change while a link stays up: one series for both ends.
    pub(super) LIMITS: LinkItem<'_>;
    "infiniband_link_bit_error_ratio_limit" Gauge LINK_LABELS
        "Limit of infiniband_link_bit_error_ratio for this link. A link is bad once its errors exceed the limit by more than chance explains."
        => |link, samples| {
            let limits = link.bit_errors().map(|it| it.limit).filter(|limit| *limit > 0.0);
            samples.float_if_known(limits.reduce(f32::min));
        };
    "infiniband_link_pre_fec_bit_error_ratio_limit" Gauge LINK_LABELS
        "Limit of infiniband_link_pre_fec_bit_error_ratio for this link."
        => |link, samples| {
            let limits = link.bit_errors().filter_map(|it| it.pre_fec).map(|it| it.limit);
            samples.float_if_known(limits.reduce(f32::min));
        };
    "infiniband_link_supported_rate_bytes_per_second" Gauge LINK_LABELS
        "Highest nominal data rate that both ends of the link support; of a link of several planes (XDR), the sum."
        => |link, samples| {
            let best = |plane: &LinkAssessment| {
                let [one, other] = plane.link.ports().map(|port| link.snapshot.status(port));
                one?.best_rate_with(other?)
            };
            samples.value_if_known(link.assessment.plane_links().filter_map(best).reduce(u64::saturating_add));
        };
}

families! {
    pub(super) PORTS: PortItem<'_>;
    "infiniband_port_transmit_wait_ratio" Gauge ["fabric", "guid", "port", "tick"]
        "PortXmitWait as a share of time (0 to 1) between the two latest reads: the port had data to send but sent none. Label tick: origin of the tick length, device (reported) or assumed. Absent while that is not known: while PortXmitWait is saturated (then infiniband_port_saturated_counters{counter=\"transmit_wait_ticks\"} is 1, and congestion cannot be judged at this port), and after a clear or a reset until the next read."
        => |port, samples| {
            if let Some(wait) = port.reading.and(port.assessment).and_then(|it| it.wait) {
                samples.label("tick", if wait.tick_reported { "device" } else { "assumed" });
                samples.float(wait.share);
            }
        };
    "infiniband_port_transmit_wait_held_ratio" Gauge PORT_LABELS
        "The last known infiniband_port_transmit_wait_ratio of a port with a role in congestion whose present one is not known: for 15 minutes while PortXmitWait is saturated, for 5 minutes after a clear, a reset or a failed read, and for one sweep after a link down. The role of the port in congestion is inferred from it."
        => |port, samples| {
            samples.float_if_known(port.held_wait().map(|it| it.share));
        };
    "infiniband_port_transmit_wait_held_timestamp_seconds" Gauge PORT_LABELS
        "Unix time when infiniband_port_transmit_wait_held_ratio was measured."
        => |port, samples| {
            if let Some(held) = port.held_wait() {
                samples.seconds(port.snapshot.anchor.unix_seconds_of(held.at));
            }
        };
    "infiniband_port_congestion" Gauge ["fabric", "guid", "port", "role", "root_guid", "root_port"]
        "Role of a port in congestion, always 1: root (the congestion starts here: slow receiver or fully utilized link) or victim (it waits because of that root). Also inferred from infiniband_port_transmit_wait_held_ratio."
        => |port, samples| {
            let (role, root) = match port.assessment.and_then(|it| it.role) {
                Some(Role::Root(_)) => ("root", port.port),
                Some(Role::Victim { of }) => ("victim", of),
                None => return,
            };
            samples.label("role", role);
            write_port(samples, ["root_guid", "root_port"], port.snapshot.fabric.port_key(root));
            samples.value(1);
        };
}

families! {
    pub(super) REGIONS: RegionItem<'_>;
    "infiniband_congestion_region_ports" Gauge ["fabric", "root_guid", "root_port", "level"]
        "Number of ports in a congestion region (neighboring ports that wait at the same time). Labels root_guid and root_port: its root; if it has several, the one that waits most. Label level, by the highest infiniband_port_transmit_wait_ratio in the region: low (below 15%), medium (below 25%), high."
        => |item, samples| {
            samples.label("level", item.region.level.label()).value(item.region.ports.into());
        };
    "infiniband_congestion_region_wait_ratio" Gauge REGION_LABELS
        "Highest share of time (0 to 1) that a port of the congestion region waits."
        => |item, samples| samples.float(item.region.share);
    "infiniband_congestion_region_start_timestamp_seconds" Gauge REGION_LABELS
        "Unix time when the congestion region formed."
        => |item, samples| samples.seconds(item.anchor.unix_seconds_of(item.region.since));
}

// The metric is the number of the verdict.
const _: () = assert!(Verdict::Ok as u64 == 0 && Verdict::Bad as u64 == 3);

families! {
    pub(super) MANAGERS: &Observation;
    "infiniband_subnet_managers" Gauge ["fabric", "state"]
        "Subnet managers that responded in the latest sweep, by SMState: master, standby, discovering or not_active. Absent if none could be queried."
        => |observation, samples| {
            if let Some(managers) = managers(observation) {
                for state in SmState::ALL.into_iter().rev() {
                    samples.label("state", state.label());
                    samples.value(managers.iter().filter(|it| it.state == state).count() as u64);
                }
            }
        };
    "infiniband_subnet_manager_state" Gauge PORT_LABELS
        "SMInfo SMState of the subnet manager at a port: 0 not active, 1 discovering, 2 standby, 3 master."
        => |observation, samples| each(observation, samples, |it| it.state as u64);
    "infiniband_subnet_manager_priority" Gauge PORT_LABELS
        "SMInfo Priority of the subnet manager at a port, 0 to 15. The highest becomes master; at equal priority, the lowest port GUID."
        => |observation, samples| each(observation, samples, |it| it.priority.into());
    "infiniband_subnet_manager_activity" Counter PORT_LABELS
        "SMInfo ActCount of the subnet manager at a port (32 bits). It increases while the subnet manager works and stalls when it hangs."
        => |observation, samples| each(observation, samples, |it| it.act_count.into());
    "infiniband_subnet_manager_changes" Counter ["fabric"]
        "Times that another subnet manager became master."
        => |observation, samples| samples.value(observation.stats.mastership.changes);
}

/// Writes the name of a node and its host.
fn write_node(samples: &mut Samples<'_>, node: &Node, name: &'static str, host: &'static str) {
    samples.label(name, &node.name);
    samples.label_if_known(host, node.host.as_deref());
}

/// Writes a port by GUID and number.
fn write_port(samples: &mut Samples<'_>, names: [&str; 2], PortKey { guid, number }: PortKey) {
    samples.label_from(names[0], &guid.0.to_ne_bytes(), || guid.to_string());
    samples.label_from(names[1], &[number], || number.to_string());
}

fn write_link(samples: &mut Samples<'_>, link: LinkId) {
    let mut bytes = [0; 18];
    for (bytes, PortKey { guid, number }) in
        bytes.as_chunks_mut::<9>().0.iter_mut().zip(link.ends())
    {
        bytes[..8].copy_from_slice(&guid.0.to_ne_bytes());
        bytes[8] = number;
    }
    samples.label_from("link", &bytes, || link.to_string());
}

fn write_rate(samples: &mut Samples<'_>, status: Option<&PortStatus>) {
    samples.label_if_known("speed", status.and_then(|it| it.speed).map(Speed::label));
    samples.label_if_known("width", status.and_then(|it| it.width).map(Width::label));
}

fn managers(observation: &Observation) -> Option<&[SubnetManager]> {
    observation.snapshot.as_ref()?.managers.as_deref()
}

/// Writes a number of each subnet manager that responded.
fn each(
    observation: &Observation,
    samples: &mut Samples<'_>,
    value: impl Fn(&SubnetManager) -> u64,
) {
    let Some(snapshot) = &observation.snapshot else { return };
    for manager in managers(observation).unwrap_or_default() {
        write_port(samples, ["guid", "port"], snapshot.fabric.port_key(manager.port));
        samples.value(value(manager));
    }
}
