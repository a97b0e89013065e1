//! The swept fabrics in the form in which the history has them: a page need not read from the file what is in memory.

use fabric_history::model::{Cable, FabricState, Node, Port};
use fabric_observation::{Observation, SharedState};
use ib_fabric::PortIndex;
use ib_mad::PortKey;

use crate::link_row::LinkRow;
use crate::view::FabricView;

/// The states of all fabrics that were swept.
pub fn history_states(state: &SharedState) -> Vec<FabricState> {
    let views = state
        .fabrics
        .iter()
        .filter_map(|observation| Some((&**observation, FabricView::new(observation)?)));
    views.map(|(observation, view)| fabric_state(observation, view)).collect()
}

fn fabric_state(observation: &Observation, view: FabricView<'_>) -> FabricState {
    let (snapshot, fabric) = (view.snapshot, &view.snapshot.fabric);
    let node = |index| {
        let node = fabric.node(index);
        let (guid, kind) = (node.identity.guid, node.identity.kind.label().to_owned());
        let (name, host) = (node.name.clone(), node.host.clone());
        Node { guid, name, host, kind, up: snapshot.is_up(index) }
    };
    let end = |port: PortIndex| {
        let (PortKey { guid, number }, node) = (fabric.port_key(port), fabric.node_of(port));
        let (name, host) = (node.name.clone(), node.host.clone());
        Port { fabric: observation.fabric.clone(), guid, port: number, node: name, host }
    };
    let cable = |link: LinkRow<'_>| {
        let mut ends = link.ports().map(end);
        ends.sort_by_key(Port::end);
        let up = link.assessment.and_then(|it| it.up);
        Cable { ends, up, verdict: link.verdict(), rate: None }
    };
    let mut nodes: Vec<Node> = fabric.node_indexes().map(node).collect();
    nodes.sort_by_key(|node| node.guid);
    let mut cables: Vec<Cable> = view.links().map(cable).collect();
    cables.sort_by_key(Cable::link);
    let at = snapshot.anchor.wall_of(snapshot.began);
    FabricState { fabric: observation.fabric.clone(), at, nodes, cables }
}
