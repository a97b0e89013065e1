//! The large part of the exposition: nodes, ports and links of the fabrics, family by family.
//!
//! It is rendered once a sweep, in chunks of things of one kind. Each thing's labels are written once and copied for
//! each family: a million samples take a third of the time of prometheus-client's encoder, and both formats share them.
//! Of the chunks, only those are rendered again that have changed.

pub mod at_risk;
mod families;
mod slice;
pub mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use exposition::{ChunkRenderer, Family, Labels, Rendered};
use fabric_observation::Observation;
use fabric_observation::families::counter_family;
use ib_fabric::PortIndex;
use ib_mad::counter::{Attribute, CounterKind, CounterRow, TABLE};
use ib_mad::{Counter, Guid, PortKey};

use super::family_table::grouped;
use super::modules::MODULES;
use super::selection::{Group, part_of};

pub(super) use families::{COUNTING, Counted, PORT_STATES};
use families::{
    HARDWARE, LIMITS, LINKS, LinkItem, MANAGERS, NODE_HARDWARE, NODES, NodeItem, OUTAGES,
    PORT_INFOS, PORTS, PortItem, RECEIVERS, REGIONS, RegionItem,
};
pub use slice::Slice;
use slice::SliceItems;

/// The families of nodes and ports with their groups, without the counters.
pub fn node_and_port_families() -> impl Iterator<Item = (Family, Group)> {
    let of_nodes = grouped(NODES, Group::Nodes).chain(grouped(NODE_HARDWARE, Group::Hardware));
    let of_ports = grouped(PORT_INFOS, Group::Ports).chain(grouped(HARDWARE, Group::Hardware));
    let (state, rates) = PORT_STATES.split_at(1);
    let of_links = grouped(state, Group::State).chain(grouped(rates, Group::Ports));
    of_nodes.chain(of_ports).chain(grouped(MODULES, Group::Modules)).chain(of_links)
}

/// The families of assessments of nodes, ports and links with their groups.
pub fn findings_families() -> impl Iterator<Item = (Family, Group)> {
    grouped(COUNTING, Group::Counters)
        .chain(grouped(LINKS, Group::Links))
        .chain(at_risk::families())
        .chain(grouped(OUTAGES, Group::Outages))
        .chain(grouped(RECEIVERS, Group::Ber))
        .chain(grouped(LIMITS, Group::Ber))
        .chain(grouped(PORTS, Group::Congestion))
        .chain(grouped(REGIONS, Group::Fabric))
}

/// The families of subnet managers with their group.
pub fn manager_families() -> impl Iterator<Item = (Family, Group)> {
    grouped(MANAGERS, Group::Fabric)
}

/// All families in the order of [`render`] with their groups, then the summaries.
pub(super) fn all_families() -> impl Iterator<Item = (Family, Group)> {
    let counters = TABLE.iter().map(|row| (counter_family(row.counter), counter_group(row)));
    let rendered = node_and_port_families()
        .chain(counters)
        .chain(findings_families())
        .chain(manager_families());
    rendered.chain(summary::families())
}

fn counter_group(row: &CounterRow) -> Group {
    match (row.counter, row.kind) {
        (Counter::XmitData | Counter::RcvData, _) => Group::Traffic,
        (_, CounterKind::Traffic) => Group::Packets,
        _ if row.fields.iter().any(|it| it.attribute == Attribute::PortExtendedSpeedsCounters) => {
            Group::Fec
        }
        _ => Group::Errors,
    }
}

/// Renders the families of the fabrics in slices, a power of two: slice `k` of `n` has the nodes whose part modulo `n`
/// is `k`, their ports and the links of which they are the first end. What did not change since the previous
/// rendering is taken from it, if that has as many slices.
pub fn render(
    observations: &[Arc<Observation>],
    count: usize,
    previous: &[Slice],
) -> (Vec<Slice>, Rendered) {
    let previous = if previous.len() == count { previous } else { &[] };
    let mut slices: Vec<_> = (0..count).map(|index| SliceItems::new(previous.get(index))).collect();
    let mut renderer = ChunkRenderer::default();
    for observation in observations {
        add(&mut slices, observation, &mut renderer);
    }
    let slices = slices.into_iter().map(|items| items.finish(&mut renderer)).collect();
    (slices, renderer.rendered())
}

/// Adds what a fabric has to the slices; what belongs to no node, to the first.
fn add<'a>(
    slices: &mut [SliceItems<'a>],
    observation: &'a Observation,
    renderer: &mut ChunkRenderer,
) {
    let name = &observation.fabric;
    let count = slices.len();
    let slice_of = |guid: Guid| part_of(guid) % count;
    slices[0].fabrics.push(renderer, observation, |labels| {
        labels.push("fabric", name);
    });
    let Some(snapshot) = &observation.snapshot else { return };
    let (fabric, assessment) = (&snapshot.fabric, &observation.assessment);
    let ports = &assessment.ports;
    for node in fabric.node_indexes() {
        let guid = fabric.node(node).identity.guid;
        let in_maintenance = assessment.in_maintenance.contains(&node);
        let item = NodeItem { snapshot, node, in_maintenance };
        slices[slice_of(guid)].nodes.push(renderer, item, |labels| {
            labels.push("fabric", name).push("guid", &guid.to_string());
        });
    }
    let mut changed = BTreeSet::new();
    for link in &assessment.links {
        if link.outages.last_change.is_some() || link.outages.recoveries > 0 {
            changed.extend(link.ports());
        }
    }
    let is_shown = |port: PortIndex| fabric.node_of(port).present() && fabric.is_monitored(port);
    let push_end = |labels: &mut Labels<'_>, names: [&str; 2], port| {
        let PortKey { guid, number } = fabric.port_key(port);
        labels.push(names[0], &guid.to_string());
        labels.push(names[1], itoa::Buffer::new().format(number));
    };
    for port in fabric.port_indexes().filter(|port| is_shown(*port)) {
        let item = PortItem::new(snapshot, port, ports.get(port), changed.contains(&port));
        slices[slice_of(fabric.port_key(port).guid)].ports.push(renderer, item, |labels| {
            labels.push("fabric", name);
            push_end(labels, ["guid", "port"], port);
        });
    }
    // Made once for three kinds of things, in one place.
    let mut id = String::new();
    for assessment in &assessment.links {
        let link = assessment.link;
        id.clear();
        let mut hosts_crossing = None;
        if let Some(link) = fabric.link_id(link.low) {
            // Writing to a string does not fail.
            let _ = write!(id, "{link}");
            hosts_crossing = observation.crossing.get(&link).map(|found| found.hosts().len());
        }
        let push_link = |labels: &mut Labels<'_>| {
            labels.push("fabric", name).push_if_any("link", &id);
        };
        let slice = &mut slices[slice_of(fabric.port_key(link.low).guid)];
        slice.links.push(
            renderer,
            LinkItem { snapshot, assessment, ports, hosts_crossing },
            push_link,
        );
        // A loopback plug has one direction.
        let receivers = assessment
            .plane_links()
            .map(|plane| plane.link)
            .flat_map(|link| [Some(link.low), Some(link.high).filter(|far| *far != link.low)]);
        for receiver in receivers.flatten() {
            let Some(found) = ports.get(receiver).filter(|_| is_shown(receiver)) else {
                continue;
            };
            slice.directions.push(renderer, &found.bit_errors, |labels| {
                push_link(labels);
                push_end(labels, ["guid", "port"], receiver);
            });
        }
    }
    for region in &assessment.regions {
        let item = RegionItem { anchor: &snapshot.anchor, region };
        slices[0].regions.push(renderer, item, |labels| {
            labels.push("fabric", name);
            push_end(labels, ["root_guid", "root_port"], region.root);
        });
    }
}
