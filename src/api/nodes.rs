//! `/api/v1/nodes`: what is there, put together from a board.

use std::sync::Arc;

use fabric_history::query::Query;
use fabric_observation::Observation;
use ib_fabric::NodeIndex;
use ib_fabric::topology::Presence;
use ib_health::Verdict;
use ib_mad::node::NodeKind;
use ib_mad::{Guid, device};

use super::links::Of;
use super::model::Verdicts;
use super::model::node::{FabricNodes, Node, NodeDetail, Nodes};
use super::ports;

/// Which nodes are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Those of this fabric.
    pub fabric: Option<String>,
    /// Those of this kind: `switch`, `ca`, `router` or `aggregation_node`.
    pub kind: Option<&'static str>,
}

impl Ask {
    /// Reads an address; the error names the parameter that is wrong.
    pub(super) fn read(pairs: &[(String, String)]) -> Result<Self, String> {
        let query = Query::new(pairs, &["fabric", "kind"])?;
        let labels = KINDS.map(NodeKind::label);
        let kind = query.read("kind", |label| {
            let known = labels.into_iter().find(|known| *known == label);
            known.ok_or_else(|| format!("must be one of: {}", labels.join(", ")))
        })?;
        Ok(Ask { fabric: query.optional("fabric")?.map(str::to_owned), kind })
    }
}

/// Kinds of nodes, in the order in which one speaks of them.
pub(super) const KINDS: [NodeKind; 4] =
    [NodeKind::Switch, NodeKind::Ca, NodeKind::Router, NodeKind::AggregationNode];

/// What is known of the nodes that are asked for. No fabric may have the name that is.
pub fn nodes(fabrics: &[Arc<Observation>], ask: &Ask) -> Nodes {
    let wanted = |name: &str| ask.fabric.as_deref().is_none_or(|wanted| wanted == name);
    let fabrics = fabrics.iter().filter(|observation| wanted(&observation.fabric));
    let told = fabrics.map(|observation| {
        let of = Of::new(observation);
        FabricNodes {
            fabric: observation.fabric.clone(),
            swept_at: of.and_then(|of| of.time(of.snapshot.ended)),
            nodes: of.map(|of| of_kind(of, ask.kind)).unwrap_or_default(),
        }
    });
    Nodes { fabrics: told.collect() }
}

/// A node by its GUID, with its ports, in a fabric.
pub fn node(of: Of<'_>, guid: Guid) -> Option<NodeDetail> {
    let index = of.snapshot.fabric.node_by_guid(guid)?;
    let ports = ports::ports_of(of, index);
    let mut verdicts = Verdicts::default();
    for verdict in ports.iter().filter_map(|port| port.verdict.as_deref()) {
        let known = Verdict::ALL.into_iter().find(|known| known.label() == verdict);
        verdicts.add(known.unwrap_or(Verdict::Unknown));
    }
    Some(NodeDetail {
        fabric: of.name.to_owned(),
        swept_at: of.time(of.snapshot.ended),
        node: Node { verdicts, ..one(of, index) },
        ports,
    })
}

fn of_kind(of: Of<'_>, kind: Option<&str>) -> Vec<Node> {
    let fabric = &of.snapshot.fabric;
    let mut verdicts = vec![Verdicts::default(); fabric.nodes.len()];
    let judged = of.assessment.links.iter().map(Some).chain(std::iter::repeat(None));
    for (cable, judged) in fabric.links().zip(judged) {
        let (near, far) = (fabric.port(cable.0).node, fabric.port(cable.1).node);
        let verdict = judged.map_or(Verdict::Unknown, |judged| judged.verdict);
        for node in [Some(near), Some(far).filter(|far| *far != near)].into_iter().flatten() {
            verdicts[node.0 as usize].add(verdict);
        }
    }
    let of_kind = |index: &NodeIndex| {
        kind.is_none_or(|kind| fabric.node(*index).identity.kind.label() == kind)
    };
    let told = fabric.node_indexes().filter(of_kind);
    told.map(|index| Node { verdicts: verdicts[index.0 as usize], ..one(of, index) }).collect()
}

fn one(of: Of<'_>, index: NodeIndex) -> Node {
    let (snapshot, fabric) = (of.snapshot, &of.snapshot.fabric);
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
        last_found: of.time(node.last_found),
        tick: snapshot.ticks.get(index.0 as usize).copied().flatten(),
        verdicts: Verdicts::default(),
    }
}
