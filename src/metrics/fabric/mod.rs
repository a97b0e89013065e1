//! The large part of the exposition: nodes, ports and links of the fabrics, family by family.
//!
//! It is rendered once a sweep. Each item's labels are written once and copied for each family: a million
//! samples take a third of the time of prometheus-client's encoder, and both formats share them.

mod links;
mod ports;
pub mod subnet;
pub mod summary;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use exposition::{
    Block, BlockWriter, Family, Header, Labelled, Labels, Part, Parts, Samples, gauge,
};
use fabric_observation::Observation;
use fabric_observation::families::{NODE_UP, PORT_INFO, counter_header};
use ib_fabric::{NodeIndex, PortIndex, Snapshot};
use ib_health::PortAssessment;
use ib_mad::counter::{TABLE, scaled};
use ib_mad::rate::{Speed, Width};

use links::{LINKS, LinkItem};
use ports::{DIRECTIONS, JudgedPort, PORTS, REGIONS, RegionItem};

pub(super) use ports::{COUNTING, Counted};

const PORT_LABELS: &[&str] = &["fabric", "guid", "port"];

type WriteNode = fn(&NodeItem<'_>, &mut Samples<'_>);

const NODES: &[(Family, WriteNode)] = &[
    gauge(
        "infiniband_node_info",
        &["fabric", "guid", "node", "node_type", "vendor_id", "device_id", "lid"],
        "What a node is and is called, as a series that is always 1.",
        |item, samples| {
            let (fabric, node) = (&item.snapshot.fabric, item.snapshot.fabric.node(item.node));
            samples.label("node", &node.name);
            samples.label("node_type", node.identity.kind.label());
            samples.label("vendor_id", &format!("{:#08x}", node.identity.vendor_id));
            samples.label("device_id", &node.identity.device_id.to_string());
            let lid = fabric.ports_of(item.node).find_map(|port| fabric.lid_of(port));
            samples.label_if_known("lid", lid.map(|lid| lid.to_string()));
            samples.value(1);
        },
    ),
    (NODE_UP, |item, samples| samples.value(item.snapshot.is_up(item.node).into())),
];

type WritePort = fn(&PortItem<'_>, &mut Samples<'_>);

const PORT_INFOS: &[(Family, WritePort)] = &[(PORT_INFO, |item, samples| {
    let (fabric, port) = (&item.snapshot.fabric, item.port);
    let node = fabric.node_of(port);
    samples.label("node", &node.name);
    samples.label("node_type", node.identity.kind.label());
    if let (Some(peer), Some(link)) = (fabric.port(port).peer, fabric.link_id(port)) {
        let (guid, number) = fabric.end(peer.port);
        samples.label("peer_guid", &guid.to_string());
        samples.label("peer_port", itoa::Buffer::new().format(number));
        samples.label("peer_node", &fabric.node_of(peer.port).name);
        samples.label("link", &link.to_string());
    }
    let status = item.snapshot.status(port);
    samples.label_if_known("speed", status.and_then(|it| it.speed).map(Speed::label));
    samples.label_if_known("width", status.and_then(|it| it.width).map(Width::label));
    samples.value(1);
})];

/// The families of a port's state, which the host has, too.
pub const PORT_STATES: [Family; 5] = [
    Family::gauge(
        "infiniband_port_state",
        PORT_LABELS,
        "PortState: 1 Down, 2 Init, 3 Armed, 4 Active; with a host's kernel 5 ActiveDefer, too.",
    ),
    Family::gauge(
        "infiniband_port_physical_state",
        PORT_LABELS,
        "PortPhysicalState: 1 Sleep, 2 Polling, 3 Disabled, 4 Training, 5 LinkUp, 6 LinkErrorRecovery, 7 PhyTest.",
    ),
    Family::gauge(
        "infiniband_port_rate_bytes_per_second",
        PORT_LABELS,
        "Nominal rate of the link at its present width and speed.",
    ),
    Family::gauge("infiniband_port_width_lanes", PORT_LABELS, "Lanes that the link runs on."),
    Family::gauge(
        "infiniband_port_supported_rate_bytes_per_second",
        PORT_LABELS,
        "The best nominal rate that both ends of the cable can do.",
    ),
];

/// The value of each of them in a snapshot, if it is known.
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

fn names<T>(table: &[(Family, T)]) -> impl Iterator<Item = Family> {
    table.iter().map(|(family, _)| *family)
}

/// The families of nodes and ports, without the counters.
pub fn families() -> impl Iterator<Item = Family> {
    names(NODES).chain(names(PORT_INFOS)).chain(PORT_STATES)
}

/// The families of assessments of nodes, ports and links.
pub fn findings_families() -> impl Iterator<Item = Family> {
    let of_links = names(COUNTING).chain(names(LINKS)).chain(names(DIRECTIONS));
    of_links.chain(names(PORTS)).chain(names(REGIONS))
}

/// The headers of all families in the order of [`render`].
pub(super) fn headers() -> impl Iterator<Item = Header> {
    let counters = TABLE.iter().map(|row| counter_header(row.counter));
    let assessment = findings_families().chain(subnet::families());
    families().map(Header::from).chain(counters).chain(assessment.map(Header::from))
}

/// Renders the families of the fabrics.
pub fn render(observations: &[Arc<Observation>]) -> Vec<Part<Block>> {
    let mut items = FabricItems::default();
    for observation in observations {
        items.add(observation);
    }
    let mut parts = Parts::<BlockWriter>::default();
    parts.each(NODES, &items.nodes);
    parts.each(PORT_INFOS, &items.ports);
    for (family, value) in PORT_STATES.into_iter().zip(PORT_VALUES) {
        parts.numbers(family, &items.ports, |item| value(item.snapshot, item.port));
    }
    for row in TABLE {
        parts.numbers(counter_header(row.counter), &items.ports, |item| {
            let raw = item.snapshot.reading(item.port)?.get(row.counter);
            raw.map(|raw| scaled(raw, row.scale))
        });
    }
    parts.each_of(COUNTING, &items.ports, PortItem::counted);
    parts.each(LINKS, &items.links);
    parts.each(DIRECTIONS, &items.directions);
    parts.each_of(PORTS, &items.ports, PortItem::judged);
    parts.each(REGIONS, &items.regions);
    parts.each(subnet::FAMILIES, &items.fabrics);
    parts.finish()
}

struct NodeItem<'a> {
    snapshot: &'a Snapshot,
    node: NodeIndex,
}

struct PortItem<'a> {
    snapshot: &'a Snapshot,
    port: PortIndex,
    /// `None` if the fabric was not evaluated.
    assessment: Option<&'a PortAssessment>,
}

impl<'a> PortItem<'a> {
    fn judged(&self) -> Option<JudgedPort<'a>> {
        let (fabric, port, assessment) = (&self.snapshot.fabric, self.port, self.assessment?);
        Some(JudgedPort { fabric, port, assessment })
    }

    /// `None` if no counters were read.
    fn counted(&self) -> Option<Counted<'a>> {
        let (assessment, _) = self.assessment.zip(self.snapshot.reading(self.port))?;
        Some(Counted { anchor: &self.snapshot.anchor, counting: &assessment.counters })
    }
}

/// All items of the fabrics, by kind.
#[derive(Default)]
struct FabricItems<'a> {
    fabrics: Labelled<&'a Observation>,
    nodes: Labelled<NodeItem<'a>>,
    /// Monitored ports of nodes that are present.
    ports: Labelled<PortItem<'a>>,
    links: Labelled<LinkItem<'a>>,
    /// Links by the port that receives.
    directions: Labelled<JudgedPort<'a>>,
    regions: Labelled<RegionItem<'a>>,
}

impl<'a> FabricItems<'a> {
    fn add(&mut self, observation: &'a Observation) {
        let name = &observation.fabric;
        self.fabrics.push(observation, |labels| {
            labels.push("fabric", name);
        });
        let Some(snapshot) = &observation.snapshot else { return };
        let (fabric, assessment) = (&snapshot.fabric, &observation.assessment);
        for node in fabric.node_indexes() {
            self.nodes.push(NodeItem { snapshot, node }, |labels| {
                let guid = fabric.node(node).identity.guid;
                labels.push("fabric", name).push("guid", &guid.to_string());
            });
        }
        let item = |port: PortIndex| {
            let is_shown = fabric.node_of(port).present() && fabric.is_monitored(port);
            let assessment = assessment.ports.get(port.0 as usize);
            is_shown.then_some(PortItem { snapshot, port, assessment })
        };
        let push_end = |labels: &mut Labels<'_>, names: [&str; 2], port| {
            let (guid, number) = fabric.end(port);
            labels.push(names[0], &guid.to_string());
            labels.push(names[1], itoa::Buffer::new().format(number));
        };
        for item in fabric.port_indexes().filter_map(item) {
            let port = item.port;
            self.ports.push(item, |labels| {
                labels.push("fabric", name);
                push_end(labels, ["guid", "port"], port);
            });
        }
        for assessment in &assessment.links {
            let link = assessment.link;
            let push_link = |labels: &mut Labels<'_>| {
                labels.push("fabric", name);
                if let Some(link) = fabric.link_id(link.0) {
                    labels.push("link", &link.to_string());
                }
            };
            self.links.push(LinkItem { snapshot, assessment }, push_link);
            // A loopback plug has one direction.
            let far = Some(link.1).filter(|far| *far != link.0);
            for receiver in [Some(link.0), far].into_iter().flatten() {
                let Some(judged) = item(receiver).and_then(|item| item.judged()) else { continue };
                self.directions.push(judged, |labels| {
                    push_link(labels);
                    push_end(labels, ["guid", "port"], receiver);
                });
            }
        }
        for region in &assessment.regions {
            self.regions.push(RegionItem { anchor: &snapshot.anchor, region }, |labels| {
                labels.push("fabric", name);
                push_end(labels, ["root_guid", "root_port"], region.root);
            });
        }
    }
}
