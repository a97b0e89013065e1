//! Switches, the capacities between them, and leaves: the network in which maximum flows are computed.

use std::collections::HashMap;

use crate::net::{LinkState, Net, Node, NodeId};
use crate::outage::Outage;

/// A switch with a usable link to an HCA of a host that is not drained.
pub(crate) struct Leaf {
    pub(crate) node: NodeId,
    /// Index among the switches.
    pub(crate) switch: usize,
}

/// All usable links between two switches together.
struct Trunk {
    /// Two different indexes of switches.
    ends: [usize; 2],
}

/// A trunk, as one of its switches sees it.
#[derive(Clone, Copy)]
pub(crate) struct Hop {
    pub(crate) peer: usize,
    pub(crate) trunk: usize,
    /// Whether it leads from the trunk's first end to its second.
    pub(crate) is_forward: bool,
}

/// The switches and trunks of a net before repairs.
pub(crate) struct SwitchGraph {
    /// In the order of the net.
    pub(crate) leaves: Vec<Leaf>,
    /// By switch.
    is_leaf: Vec<bool>,
    /// By switch. Those of a leaf lead to all neighbors, those of another switch only to switches that are no leaves:
    /// flow that reaches a leaf has arrived, so its trunks to leaves are one sum in [`Capacities`].
    hops: Vec<Vec<Hop>>,
    trunks: Vec<Trunk>,
    /// By link: those between two different switches that are usable.
    trunk_of: Vec<Option<usize>>,
    full: Capacities,
}

/// Capacities in Gb/s.
#[derive(Clone)]
pub(crate) struct Capacities {
    /// By trunk.
    pub(crate) trunks: Vec<u64>,
    /// By switch: the sum of its trunks to leaves, 0 for a leaf.
    pub(crate) to_leaves: Vec<u64>,
}

impl SwitchGraph {
    /// `drained`: by host.
    pub(crate) fn new(net: &Net, drained: &[bool]) -> Self {
        let mut switch_of = vec![None; net.nodes().len()];
        let mut leaves = Vec::new();
        let mut is_leaf = Vec::new();
        for (node, _) in net.node_ids().filter(|&(_, kind)| kind == Node::Switch) {
            let switch = is_leaf.len();
            switch_of[node.index()] = Some(switch);
            is_leaf.push(hosts_at(net, node).any(|host| !drained[host]));
            if is_leaf[switch] {
                leaves.push(Leaf { node, switch });
            }
        }
        let switch_count = is_leaf.len();
        let mut graph = SwitchGraph {
            leaves,
            is_leaf,
            hops: vec![Vec::new(); switch_count],
            trunks: Vec::new(),
            trunk_of: vec![None; net.links().len()],
            full: Capacities { trunks: Vec::new(), to_leaves: vec![0; switch_count] },
        };
        let mut trunk_between = HashMap::new();
        for (index, link) in net.links().iter().enumerate() {
            let [Some(first), Some(second)] = link.ends.map(|end| switch_of[end.index()]) else {
                continue;
            };
            // Traffic through a loopback plug returns to its switch.
            if first == second || link.state != LinkState::Usable {
                continue;
            }
            let ends = [first.min(second), first.max(second)];
            let trunk = *trunk_between.entry(ends).or_insert_with(|| graph.add_trunk(ends));
            graph.trunk_of[index] = Some(trunk);
            graph.full.trunks[trunk] += u64::from(link.gbps);
            if let Some(switch) = graph.next_to_leaf(trunk) {
                graph.full.to_leaves[switch] += u64::from(link.gbps);
            }
        }
        graph
    }

    fn add_trunk(&mut self, ends: [usize; 2]) -> usize {
        let trunk = self.trunks.len();
        let [first, second] = ends;
        for (from, peer, is_forward) in [(first, second, true), (second, first, false)] {
            if self.is_leaf[from] || !self.is_leaf[peer] {
                self.hops[from].push(Hop { peer, trunk, is_forward });
            }
        }
        self.trunks.push(Trunk { ends });
        self.full.trunks.push(0);
        trunk
    }

    /// The end of a trunk that is no leaf, if the other end is one.
    fn next_to_leaf(&self, trunk: usize) -> Option<usize> {
        let [first, second] = self.trunks[trunk].ends;
        match (self.is_leaf[first], self.is_leaf[second]) {
            (false, true) => Some(first),
            (true, false) => Some(second),
            (true, true) | (false, false) => None,
        }
    }

    pub(crate) fn switch_count(&self) -> usize {
        self.is_leaf.len()
    }

    pub(crate) fn is_leaf(&self, switch: usize) -> bool {
        self.is_leaf[switch]
    }

    /// The trunks of a leaf; of another switch, those to switches that are no leaves.
    pub(crate) fn hops(&self, switch: usize) -> &[Hop] {
        &self.hops[switch]
    }

    /// Before repairs.
    pub(crate) fn full(&self) -> &Capacities {
        &self.full
    }

    /// Without the links that are out of service.
    pub(crate) fn without(&self, net: &Net, outage: &Outage) -> Capacities {
        let mut left = self.full.clone();
        for &link in outage.links() {
            if let Some(trunk) = self.trunk_of[link] {
                let gbps = u64::from(net.links()[link].gbps);
                left.trunks[trunk] -= gbps;
                if let Some(switch) = self.next_to_leaf(trunk) {
                    left.to_leaves[switch] -= gbps;
                }
            }
        }
        left
    }
}

/// Indexes of the hosts with a usable link to this switch, one for each link.
fn hosts_at(net: &Net, switch: NodeId) -> impl Iterator<Item = usize> {
    let links = net.links_of(switch).iter().map(|link| net.links()[link.index()]);
    let ends = links.filter(|link| link.state == LinkState::Usable).flat_map(|link| link.ends);
    ends.filter_map(|end| match net.nodes()[end.index()] {
        Node::Hca(host) => Some(host.index()),
        Node::Switch => None,
    })
}
