//! `/api/v1/nodes`: the nodes, built from the latest snapshots.

use std::sync::Arc;

use fabric_observation::Observation;
use ib_fabric::NodeIndex;
use ib_fabric::topology::Presence;
use ib_health::Verdict;
use ib_mad::node::NodeKind;
use ib_mad::{Guid, device};

use super::links::with_findings;
use super::model::node::{FabricNodes, Node, NodeDetail, Nodes};
use super::model::{Verdicts, verdict_from};
use super::view::FabricView;
use super::{Filter, ports, selected};

/// The kinds of nodes, in the order in which they are listed.
pub(super) const KINDS: [NodeKind; 4] =
    [NodeKind::Switch, NodeKind::Ca, NodeKind::Router, NodeKind::AggregationNode];

/// The nodes that a filter selects. A fabric name that no fabric has selects nothing.
pub fn nodes(fabrics: &[Arc<Observation>], filter: &Filter) -> Nodes {
    let fabrics = selected(fabrics, filter.fabric.as_deref()).map(|observation| {
        let view = FabricView::new(observation);
        FabricNodes {
            fabric: observation.fabric.clone(),
            swept_at: view.and_then(FabricView::swept_at),
            nodes: view.map(|view| of_kind(observation, view, filter.kind)).unwrap_or_default(),
        }
    });
    Nodes { fabrics: fabrics.collect() }
}

/// The node with this GUID and its ports, from the first of the selected fabrics that has it.
pub fn node_by_guid(
    fabrics: &[Arc<Observation>],
    fabric: Option<&str>,
    guid: Guid,
) -> Option<NodeDetail> {
    let mut views = selected(fabrics, fabric).filter_map(|it| FabricView::new(it));
    views.find_map(|view| {
        let index = view.snapshot.fabric.node_by_guid(guid)?;
        let ports = ports::ports_of(view, index);
        let mut verdicts = Verdicts::default();
        for verdict in ports.iter().filter_map(|port| port.verdict.as_deref()) {
            verdicts.add(verdict_from(verdict).unwrap_or(Verdict::Unknown));
        }
        Some(NodeDetail {
            fabric: view.name.to_owned(),
            swept_at: view.swept_at(),
            node: node(view, index, verdicts),
            ports,
        })
    })
}

fn of_kind(observation: &Observation, view: FabricView<'_>, kind: Option<&str>) -> Vec<Node> {
    let fabric = &view.snapshot.fabric;
    let mut verdicts = vec![Verdicts::default(); fabric.nodes.len()];
    for (cable, assessment) in with_findings(observation) {
        let (near, far) = (fabric.port(cable.0).node, fabric.port(cable.1).node);
        let verdict = assessment.map_or(Verdict::Unknown, |link| link.verdict);
        for node in [Some(near), Some(far).filter(|far| *far != near)].into_iter().flatten() {
            verdicts[node.0 as usize].add(verdict);
        }
    }
    let is_of_kind = |index: &NodeIndex| {
        kind.is_none_or(|kind| fabric.node(*index).identity.kind.label() == kind)
    };
    let nodes = fabric.node_indexes().filter(is_of_kind);
    nodes.map(|index| node(view, index, verdicts[index.0 as usize])).collect()
}

fn node(view: FabricView<'_>, index: NodeIndex, verdicts: Verdicts) -> Node {
    let (snapshot, fabric) = (view.snapshot, &view.snapshot.fabric);
    let node = fabric.node(index);
    let identity = &node.identity;
    let presence = match node.presence {
        Presence::Found => "found",
        Presence::Hidden => "hidden",
        Presence::Absent => "absent",
    };
    Node {
        guid: identity.guid.to_string(),
        system_guid: identity.system_guid.to_string(),
        node: node.name.clone(),
        description: identity.description.clone(),
        node_type: identity.kind.label().into(),
        vendor_id: format!("{:#08x}", identity.vendor_id),
        device_id: identity.device_id,
        device: device::name(identity.vendor_id, identity.device_id).map(Into::into),
        port_count: identity.port_count,
        lid: fabric.ports_of(index).find_map(|port| fabric.lid_of(port)).map(|lid| lid.0),
        up: snapshot.is_up(index),
        presence: presence.into(),
        last_found: view.time(node.last_found),
        tick: snapshot.ticks.get(index.0 as usize).copied().flatten(),
        verdicts,
    }
}
