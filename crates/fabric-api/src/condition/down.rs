//! The nodes of a fabric that are down, and which of them only seem to be because another one cuts them off.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};

use display_text::natural_key;
use ib_fabric::{Fabric, NodeIndex, Snapshot};
use ib_mad::Moment;
use ib_mad::node::NodeKind;

use crate::filter::KINDS;
use crate::model::{NodeDown, NodeName};
use crate::view::FabricView;

/// A node that is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DownNode {
    /// The node.
    pub index: NodeIndex,
    /// The beginning of the first sweep that found it down, if that is known.
    pub since: Option<Moment>,
    /// The node that is down and cuts it off; `None` of one that is down by itself.
    pub behind: Option<NodeIndex>,
    /// How many nodes are behind it.
    pub nodes_behind: usize,
    /// See [`Assessment::in_maintenance`](ib_health::Assessment::in_maintenance).
    pub in_maintenance: bool,
}

impl DownNode {
    /// Its model.
    pub fn model(&self, view: FabricView<'_>) -> NodeDown {
        let NodeName { guid, node } = name(view, self.index);
        NodeDown {
            guid,
            node,
            node_type: view.snapshot.fabric.node(self.index).identity.kind.label().into(),
            since: self.since.and_then(|since| view.time(since)),
            behind: self.behind.map(|by| name(view, by)),
            nodes_behind: self.nodes_behind,
            maintenance: self.in_maintenance,
        }
    }
}

/// The GUID and the name of a node.
pub fn name(view: FabricView<'_>, node: NodeIndex) -> NodeName {
    let node = view.snapshot.fabric.node(node);
    NodeName { guid: node.identity.guid.to_string(), node: node.name.clone() }
}

/// The nodes of a fabric that are down, by harm: those that are down by themselves first, switches before others, and
/// those that cut off most before others.
#[derive(Clone, Debug, Default)]
pub struct DownNodes {
    all: Vec<DownNode>,
    places: HashMap<NodeIndex, usize>,
}

impl DownNodes {
    /// Finds them in the latest sweep.
    pub fn find(view: FabricView<'_>) -> Self {
        let FabricView { snapshot, assessment, .. } = view;
        let fabric = &*snapshot.fabric;
        let down: Vec<NodeIndex> =
            fabric.node_indexes().filter(|node| !snapshot.is_up(*node)).collect();
        if down.is_empty() {
            return DownNodes::default();
        }
        let behind = Outage { snapshot, down: &down }.behind();
        let mut counts: HashMap<NodeIndex, usize> = HashMap::new();
        for by in behind.values() {
            *counts.entry(*by).or_default() += 1;
        }
        let node = |index: NodeIndex| DownNode {
            index,
            since: assessment.nodes_down.get(&index).copied(),
            behind: behind.get(&index).copied(),
            nodes_behind: counts.get(&index).copied().unwrap_or(0),
            in_maintenance: assessment.in_maintenance.contains(&index),
        };
        let mut all: Vec<DownNode> = down.into_iter().map(node).collect();
        all.sort_by_cached_key(|it| {
            let node = fabric.node(it.index);
            let kind = KINDS.iter().position(|kind| *kind == node.identity.kind);
            (it.behind.is_some(), kind, Reverse(it.nodes_behind), natural_key(&node.name))
        });
        let places = all.iter().enumerate().map(|(place, it)| (it.index, place)).collect();
        DownNodes { all, places }
    }

    /// All of them, by harm.
    pub fn iter(&self) -> impl Iterator<Item = &DownNode> {
        self.all.iter()
    }

    /// A node, if it is down.
    pub fn get(&self, node: NodeIndex) -> Option<&DownNode> {
        self.places.get(&node).map(|place| &self.all[*place])
    }
}

/// Nodes that are down, and the last known cables between them.
struct Outage<'a> {
    snapshot: &'a Snapshot,
    down: &'a [NodeIndex],
}

impl Outage<'_> {
    fn fabric(&self) -> &Fabric {
        &self.snapshot.fabric
    }

    fn neighbors(&self, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
        let fabric = self.fabric();
        let peers = fabric.ports_of(node).filter_map(|port| fabric.port(port).peer);
        peers.map(|peer| fabric.port(peer.port).node)
    }

    /// Packets pass through switches and routers, not through channel adapters.
    fn forwards(&self, node: NodeIndex) -> bool {
        matches!(self.fabric().node(node).identity.kind, NodeKind::Switch | NodeKind::Router)
    }

    /// Whether a neighbor that is up leads to the node: we would reach it if it worked.
    fn is_reachable(&self, node: NodeIndex) -> bool {
        let fabric = self.fabric();
        let local = fabric.local_port.map(|port| fabric.port(port).node);
        let leads =
            |by: NodeIndex| self.snapshot.is_up(by) && (self.forwards(by) || Some(by) == local);
        let mut neighbors = self.neighbors(node).peekable();
        neighbors.peek().is_none() || neighbors.any(leads)
    }

    /// The nodes that are cut off, and by which other one: the nearest that is down by itself.
    fn behind(&self) -> HashMap<NodeIndex, NodeIndex> {
        let mut roots: HashMap<NodeIndex, NodeIndex> = HashMap::new();
        let is_seed: [&dyn Fn(NodeIndex) -> bool; 3] = [
            &|node| self.is_reachable(node),
            // No known path leads to these at all: the switches among them cut off the others.
            &|node| self.forwards(node),
            &|_| true,
        ];
        for is_seed in is_seed {
            let seeds = self.down.iter().copied().filter(|node| is_seed(*node));
            let mut queue: VecDeque<NodeIndex> =
                seeds.filter(|node| !roots.contains_key(node)).collect();
            for seed in &queue {
                roots.insert(*seed, *seed);
            }
            while let Some(node) = queue.pop_front() {
                let root = roots[&node];
                if !self.forwards(node) {
                    continue;
                }
                for next in self.neighbors(node).filter(|next| !self.snapshot.is_up(*next)) {
                    roots.entry(next).or_insert_with(|| {
                        queue.push_back(next);
                        root
                    });
                }
            }
        }
        roots.retain(|node, root| node != root);
        roots
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use fabric_observation::Observation;
    use ib_fabric::testing::{end, fabric, found};
    use ib_mad::moment::Anchor;

    /// A tree: spines 1 and 2, leaves 11 and 12, hosts 21 and 22 at leaf 11, 23 at leaf 12, and 24 at both leaves.
    fn tree() -> Snapshot {
        let node = |guid: u64| {
            let kind = if guid < 20 { NodeKind::Switch } else { NodeKind::Ca };
            found(guid, kind, if kind == NodeKind::Switch { 6 } else { 2 })
        };
        let nodes = [1, 2, 11, 12, 21, 22, 23, 24].map(node).to_vec();
        let cables = [
            ((1, 1), (11, 1)),
            ((1, 2), (12, 1)),
            ((2, 1), (11, 2)),
            ((2, 2), (12, 2)),
            ((11, 3), (21, 1)),
            ((11, 4), (22, 1)),
            ((12, 3), (23, 1)),
            ((11, 5), (24, 1)),
            ((12, 4), (24, 2)),
        ];
        let cables: Vec<_> = cables.iter().map(|(a, b)| (end(a.0, a.1), end(b.0, b.1))).collect();
        let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
        Snapshot::blank(Arc::new(fabric(nodes, &cables, None)), anchor)
    }

    /// The nodes that are down, in their order, each with the one that it is behind: `21<11`.
    fn shown(down: &[u64]) -> Vec<String> {
        let mut snapshot = tree();
        for (node, silent) in snapshot.fabric.nodes.iter().zip(&mut snapshot.silent) {
            *silent = down.contains(&node.identity.guid.0);
        }
        let observation = Observation { snapshot: Some(snapshot.into()), ..Observation::default() };
        let view = FabricView::new(&observation).unwrap();
        let guid = |node: NodeIndex| view.snapshot.fabric.node(node).identity.guid.0;
        let text = |it: &DownNode| match it.behind {
            Some(by) => format!("{}<{}", guid(it.index), guid(by)),
            None => guid(it.index).to_string(),
        };
        DownNodes::find(view).iter().map(text).collect()
    }

    #[test]
    fn nodes_without_another_path_are_behind_the_one_that_is_down() {
        for (down, wanted) in [
            (&[][..], &[][..]),
            (&[21], &["21"]),
            (&[11], &["11"]),
            // Switches come before the hosts behind them, whatever their GUIDs.
            (&[11, 21, 22], &["11", "21<11", "22<11"]),
            // Host 24 has another leaf: it is down by itself.
            (&[11, 21, 22, 24], &["11", "24", "21<11", "22<11"]),
            (&[11, 12, 23, 24], &["11", "12", "23<12", "24<11"]),
            // A leaf behind both spines, and its hosts, which are not reached through host 24.
            (&[1, 2, 11, 21, 22], &["1", "2", "11<1", "21<1", "22<1"]),
            // The most harm first.
            (&[12, 11, 21, 22, 23], &["11", "12", "21<11", "22<11", "23<12"]),
        ] {
            assert_eq!(shown(down), wanted, "{down:?}");
        }
    }

    #[test]
    fn where_nothing_is_up_switches_cut_off_hosts() {
        let all = shown(&[1, 2, 11, 12, 21, 22, 23, 24]);
        assert_eq!(all, ["11", "12", "1", "2", "21<11", "22<11", "23<12", "24<11"]);
    }
}
