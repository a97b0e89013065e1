//! The large part of the exposition: the fabrics' nodes and ports, family by family.
//!
//! Labels are escaped once a port and copied for each family. The writer is our own, for this is
//! nearly all of the text and all of the time: a million samples take it a third of what
//! prometheus-client's encoder takes, and both formats come from one pass.

use std::sync::Arc;

use fabric_observation::Observation;
use fabric_observation::families::{NODE_UP, PORT_INFO};
use ib_fabric::{NodeIndex, PortIndex, Snapshot};
use ib_mad::counter::{TABLE, scaled};

pub use fabric_observation::families::{counter_family, counter_head};

use super::deflated::{Block, BlockWriter};
use super::family::{Family, Head, Kind, push_label};
use super::part::{Part, Place};

const PORT_LABELS: &[&str] = &["fabric", "guid", "port"];

/// A family with one sample a node.
const NODE_INFO: Family = Family {
    name: "infiniband_node_info",
    kind: Kind::Gauge,
    labels: &["fabric", "guid", "node", "node_type", "vendor_id", "device_id", "lid"],
    help: "What a node is and is called, as a series that is always 1.",
};
/// The families that tell a port's state, whoever asked.
pub const PORT_STATES: [Family; 5] = [
    Family {
        name: "infiniband_port_state",
        kind: Kind::Gauge,
        labels: PORT_LABELS,
        help: "PortState: 1 Down, 2 Init, 3 Armed, 4 Active; with a host's kernel 5 ActiveDefer, too.",
    },
    Family {
        name: "infiniband_port_physical_state",
        kind: Kind::Gauge,
        labels: PORT_LABELS,
        help: "PortPhysicalState: 1 Sleep, 2 Polling, 3 Disabled, 4 Training, 5 LinkUp, 6 LinkErrorRecovery, 7 PhyTest.",
    },
    Family {
        name: "infiniband_port_rate_bytes_per_second",
        kind: Kind::Gauge,
        labels: PORT_LABELS,
        help: "Nominal rate of the link at its present width and speed.",
    },
    Family {
        name: "infiniband_port_width_lanes",
        kind: Kind::Gauge,
        labels: PORT_LABELS,
        help: "Lanes that the link runs on.",
    },
    Family {
        name: "infiniband_port_supported_rate_bytes_per_second",
        kind: Kind::Gauge,
        labels: PORT_LABELS,
        help: "The best nominal rate that both ends of the cable can do.",
    },
];

/// What a snapshot says for each of them: a number, if it is known.
type PortValue = fn(&Snapshot, PortIndex) -> Option<u64>;

const PORT_VALUES: [PortValue; PORT_STATES.len()] = [
    |snapshot, port| Some(snapshot.status(port)?.state.into()),
    |snapshot, port| Some(snapshot.status(port)?.physical_state.into()),
    |snapshot, port| snapshot.status(port)?.rate(),
    |snapshot, port| Some(snapshot.status(port)?.width?.lanes().into()),
    |snapshot, port| {
        let peer = snapshot.fabric.port(port).peer?;
        snapshot.status(port)?.best_rate_with(snapshot.status(peer.port)?)
    },
];

/// All families of this part but the counters.
pub fn families() -> impl Iterator<Item = Family> {
    [NODE_INFO, NODE_UP, PORT_INFO].into_iter().chain(PORT_STATES)
}

/// Writes the samples of a family.
type WriteFamily = fn(&Labelled<'_>, &mut BlockWriter);

/// Renders all nodes and ports of the fabrics; families without samples are left out.
pub fn render(observations: &[Arc<Observation>]) -> Vec<Part<Block>> {
    let fabrics: Vec<Labelled<'_>> =
        observations.iter().filter_map(|observation| Labelled::new(observation)).collect();
    let mut writer = BlockWriter::new();
    let mut parts = Vec::new();
    let mut part = |place, head: Head, samples: Block| {
        if !samples.is_empty() {
            parts.push(Part { place, head, samples });
        }
    };
    let whole: [(Family, WriteFamily); 3] = [
        (NODE_INFO, |fabric, writer| fabric.node_info(writer)),
        (NODE_UP, |fabric, writer| fabric.node_up(writer)),
        (PORT_INFO, |fabric, writer| fabric.port_info(writer)),
    ];
    for (index, (family, write)) in whole.into_iter().enumerate() {
        for fabric in &fabrics {
            write(fabric, &mut writer);
        }
        part(Place::Node(index), family.into(), writer.finish());
    }
    for (index, (family, value)) in PORT_STATES.into_iter().zip(PORT_VALUES).enumerate() {
        for fabric in &fabrics {
            fabric.values(&mut writer, family.name, |port| value(fabric.snapshot, port));
        }
        part(Place::State(index), family.into(), writer.finish());
    }
    for row in TABLE {
        let head = counter_head(row.counter);
        let sample = head.sample_name();
        for fabric in &fabrics {
            fabric.values(&mut writer, &sample, |port| {
                let reading = fabric.snapshot.reading(port)?;
                reading.get(row.counter).map(|raw| scaled(raw, row.scale))
            });
        }
        part(Place::Counter(row.counter as usize), head, writer.finish());
    }
    parts
}

/// A fabric's snapshot with the labels of its ports.
struct Labelled<'a> {
    fabric: &'a str,
    snapshot: &'a Snapshot,
    /// Watched ports of nodes that are there.
    ports: Vec<(PortIndex, std::ops::Range<usize>)>,
    /// `{fabric="…",guid="…",port="…"`, port after port.
    labels: Vec<u8>,
}

impl<'a> Labelled<'a> {
    fn new(observation: &'a Observation) -> Option<Self> {
        let snapshot = observation.snapshot.as_ref()?;
        let mut labelled = Labelled {
            fabric: &observation.fabric,
            snapshot,
            ports: Vec::new(),
            labels: Vec::new(),
        };
        let fabric = &snapshot.fabric;
        let mut of_fabric = Vec::new();
        push_label(&mut of_fabric, b'{', "fabric", &observation.fabric);
        for port in fabric.port_indexes() {
            let node = fabric.node_of(port);
            if !node.present() || !fabric.is_monitored(port) {
                continue;
            }
            let start = labelled.labels.len();
            labelled.labels.extend_from_slice(&of_fabric);
            push_label(&mut labelled.labels, b',', "guid", &node.identity.guid.to_string());
            push_label(&mut labelled.labels, b',', "port", &fabric.port(port).number.to_string());
            labelled.ports.push((port, start..labelled.labels.len()));
        }
        Some(labelled)
    }

    /// Writes a family of numbers.
    fn values(
        &self,
        writer: &mut BlockWriter,
        name: &str,
        value: impl Fn(PortIndex) -> Option<u64>,
    ) {
        let mut digits = itoa::Buffer::new();
        for (port, labels) in &self.ports {
            if let Some(value) = value(*port) {
                let out = writer.buffer();
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(&self.labels[labels.clone()]);
                out.extend_from_slice(b"} ");
                out.extend_from_slice(digits.format(value).as_bytes());
                out.push(b'\n');
                writer.settle();
            }
        }
    }

    fn node_head(&self, out: &mut Vec<u8>, name: &str, node: NodeIndex) {
        out.extend_from_slice(name.as_bytes());
        push_label(out, b'{', "fabric", self.fabric);
        push_label(out, b',', "guid", &self.snapshot.fabric.node(node).identity.guid.to_string());
    }

    fn node_info(&self, writer: &mut BlockWriter) {
        let fabric = &self.snapshot.fabric;
        for index in fabric.node_indexes() {
            let node = fabric.node(index);
            let out = writer.buffer();
            self.node_head(out, NODE_INFO.name, index);
            push_label(out, b',', "node", &node.name);
            push_label(out, b',', "node_type", node.identity.kind.label());
            push_label(out, b',', "vendor_id", &format!("{:#08x}", node.identity.vendor_id));
            push_label(out, b',', "device_id", &node.identity.device_id.to_string());
            if let Some(lid) = fabric.ports_of(index).find_map(|port| fabric.lid_of(port)) {
                push_label(out, b',', "lid", &lid.to_string());
            }
            out.extend_from_slice(b"} 1\n");
            writer.settle();
        }
    }

    fn node_up(&self, writer: &mut BlockWriter) {
        for index in self.snapshot.fabric.node_indexes() {
            let out = writer.buffer();
            self.node_head(out, NODE_UP.name, index);
            out.extend_from_slice(if self.snapshot.is_up(index) { b"} 1\n" } else { b"} 0\n" });
            writer.settle();
        }
    }

    fn port_info(&self, writer: &mut BlockWriter) {
        let fabric = &self.snapshot.fabric;
        for (port, labels) in &self.ports {
            let node = fabric.node_of(*port);
            let out = writer.buffer();
            out.extend_from_slice(PORT_INFO.name.as_bytes());
            out.extend_from_slice(&self.labels[labels.clone()]);
            push_label(out, b',', "node", &node.name);
            push_label(out, b',', "node_type", node.identity.kind.label());
            if let (Some(peer), Some(link)) = (fabric.port(*port).peer, fabric.link_id(*port)) {
                let (guid, number) = fabric.end(peer.port);
                push_label(out, b',', "peer_guid", &guid.to_string());
                push_label(out, b',', "peer_port", &number.to_string());
                push_label(out, b',', "peer_node", &fabric.node_of(peer.port).name);
                push_label(out, b',', "link", &link.to_string());
            }
            let status = self.snapshot.status(*port);
            if let Some(speed) = status.and_then(|status| status.speed) {
                push_label(out, b',', "speed", speed.label());
            }
            if let Some(width) = status.and_then(|status| status.width) {
                push_label(out, b',', "width", width.label());
            }
            out.extend_from_slice(b"} 1\n");
            writer.settle();
        }
    }
}
