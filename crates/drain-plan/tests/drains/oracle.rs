//! The definitions of the crate's documentation, computed slowly: paths by maximum flows between each two HCAs,
//! capacities by all cuts.

use std::collections::BTreeSet;

use drain_plan::{HostId, LinkState, Net, Node, NodeId, Repair, Share};

use crate::random::Groups;

/// A fabric during repairs, as a matrix.
pub(crate) struct Matrix {
    nodes: Vec<Node>,
    /// Between each two nodes, by index.
    links: Vec<Vec<Between>>,
}

#[derive(Clone, Copy, Default)]
struct Between {
    count: u32,
    gbps: u64,
}

impl Matrix {
    pub(crate) fn during(net: &Net, repairs: &[Repair], groups: &Groups) -> Self {
        let repairs: Vec<Repair> = repairs.iter().flat_map(|it| groups.parts(*it)).collect();
        let nodes = net.nodes().to_vec();
        let mut links = vec![vec![Between::default(); nodes.len()]; nodes.len()];
        for (index, link) in net.links().iter().enumerate() {
            let is_out = repairs.iter().any(|repair| match repair {
                Repair::Link(id) => id.index() == index,
                Repair::Node(node) => link.ends.contains(node),
                Repair::Group(_) => unreachable!("they were resolved"),
            });
            let [first, second] = link.ends.map(NodeId::index);
            if is_out || link.state == LinkState::Down || first == second {
                continue;
            }
            for (from, to) in [(first, second), (second, first)] {
                links[from][to].count += 1;
                links[from][to].gbps += u64::from(link.gbps);
            }
        }
        Matrix { nodes, links }
    }

    fn is_switch(&self, node: usize) -> bool {
        self.nodes[node] == Node::Switch
    }

    /// The number of paths that share no link, by augmenting paths. Nodes on the way are switches.
    pub(crate) fn paths(&self, from: usize, to: usize) -> u32 {
        let mut residual: Vec<Vec<u32>> = Vec::new();
        for row in &self.links {
            residual.push(row.iter().map(|between| between.count).collect());
        }
        let mut paths = 0;
        while self.augment(&mut residual, &mut vec![false; self.nodes.len()], from, to) {
            paths += 1;
        }
        paths
    }

    fn augment(&self, residual: &mut [Vec<u32>], seen: &mut [bool], at: usize, to: usize) -> bool {
        if at == to {
            return true;
        }
        seen[at] = true;
        for next in 0..self.nodes.len() {
            let may_enter = next == to || self.is_switch(next);
            if residual[at][next] > 0 && may_enter && !seen[next] {
                residual[at][next] -= 1;
                residual[next][at] += 1;
                if self.augment(residual, seen, next, to) {
                    return true;
                }
                residual[at][next] += 1;
                residual[next][at] -= 1;
            }
        }
        false
    }

    /// Switches with hosts that are not drained.
    pub(crate) fn leaves(&self, drained: &BTreeSet<HostId>) -> Vec<usize> {
        let has_host = |switch: usize| {
            self.nodes.iter().enumerate().any(|(index, node)| match node {
                Node::Hca(host) => self.links[switch][index].count > 0 && !drained.contains(host),
                Node::Switch => false,
            })
        };
        let switches = (0..self.nodes.len()).filter(|&node| self.is_switch(node));
        switches.filter(|&switch| has_host(switch)).collect()
    }

    /// The smallest cut between a leaf and all other leaves, of all cuts.
    pub(crate) fn smallest_cut(&self, leaf: usize, leaves: &[usize]) -> u64 {
        let switches: Vec<usize> =
            (0..self.nodes.len()).filter(|&node| self.is_switch(node)).collect();
        let bit = |node: usize| switches.iter().position(|&switch| switch == node);
        let others = leaves.iter().filter(|&&other| other != leaf);
        let others: usize = others.filter_map(|&other| bit(other)).map(|bit| 1 << bit).sum();
        let own = 1 << bit(leaf).unwrap();
        let cuts =
            (0..1_usize << switches.len()).filter(|side| side & own != 0 && side & others == 0);
        let crossing = |side: usize| {
            let mut gbps = 0;
            for (from, &near) in
                switches.iter().enumerate().filter(|(bit, _)| side & (1 << bit) != 0)
            {
                for (to, &far) in switches.iter().enumerate() {
                    if side & (1 << to) == 0 && from != to {
                        gbps += self.links[near][far].gbps;
                    }
                }
            }
            gbps
        };
        cuts.map(crossing).min().unwrap()
    }

    /// What `leaf` sends over one switch to other leaves, or directly.
    pub(crate) fn straight_flow(&self, leaf: usize, leaves: &[usize]) -> u64 {
        let to_leaves = |from: usize| {
            let others = leaves.iter().filter(|&&other| other != leaf);
            others.map(|&other| self.links[from][other].gbps).sum::<u64>()
        };
        let above = (0..self.nodes.len()).filter(|it| self.is_switch(*it) && !leaves.contains(it));
        to_leaves(leaf) + above.map(|it| self.links[leaf][it].gbps.min(to_leaves(it))).sum::<u64>()
    }
}

/// Between each two members (hosts or HCAs) of different hosts that are not drained: whether there is a path.
pub(crate) type Paths = Vec<Vec<bool>>;

/// Members are HCAs, by index of the node.
pub(crate) fn paths_of_hcas(matrix: &Matrix, drained: &BTreeSet<HostId>) -> Paths {
    let undrained = |node: usize| match matrix.nodes[node] {
        Node::Hca(host) if !drained.contains(&host) => Some(host),
        Node::Hca(_) | Node::Switch => None,
    };
    let count = matrix.nodes.len();
    let mut paths = vec![vec![false; count]; count];
    let pairs = (0..count).flat_map(|first| (0..first).map(move |second| (first, second)));
    for (first, second) in pairs {
        if let (Some(one), Some(other)) = (undrained(first), undrained(second)) {
            let connected = one != other && matrix.paths(first, second) >= 1;
            paths[first][second] = connected;
            paths[second][first] = connected;
        }
    }
    paths
}

/// Members are hosts, by index.
pub(crate) fn paths_of_hosts(net: &Net, of_hcas: &Paths) -> Paths {
    let mut paths = vec![vec![false; net.host_count()]; net.host_count()];
    for (first, one) in net.nodes().iter().enumerate() {
        for (second, other) in net.nodes().iter().enumerate() {
            if let (Node::Hca(one), Node::Hca(other)) = (one, other) {
                paths[one.index()][other.index()] |= of_hcas[first][second];
            }
        }
    }
    paths
}

/// A member that is named, and the numbers of others that it loses and keeps.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) member: usize,
    pub(crate) lost: usize,
    pub(crate) kept: usize,
}

/// The members to name: of each pair that loses its last path, the one that keeps fewer.
pub(crate) fn named(before: &Paths, after: &Paths) -> Vec<Named> {
    let kept = |member: usize| after[member].iter().filter(|&&path| path).count();
    let mut named = Vec::new();
    for member in 0..before.len() {
        let lost = (0..before.len()).filter(|&it| before[member][it] && !after[member][it]);
        let lost: Vec<usize> = lost.collect();
        if lost.iter().any(|&other| kept(other) >= kept(member)) {
            named.push(Named { member, lost: lost.len(), kept: kept(member) });
        }
    }
    named
}

/// Whether some pair of hosts loses its last path.
pub(crate) fn cuts(before: &Paths, after: &Paths) -> bool {
    before.iter().flatten().zip(after.iter().flatten()).any(|(before, after)| *before && !after)
}

/// A leaf during repairs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LeafFlow {
    pub(crate) node: usize,
    pub(crate) before: u64,
    pub(crate) after: u64,
}

/// All leaves. A leaf under repair is judged as if it were on.
pub(crate) fn flows(
    net: &Net,
    repairs: &[Repair],
    groups: &Groups,
    drained: &BTreeSet<HostId>,
) -> Vec<LeafFlow> {
    let matrix = Matrix::during(net, &[], groups);
    let leaves = matrix.leaves(drained);
    let mut flows = Vec::new();
    for &leaf in &leaves {
        let is_own = |part: Repair| matches!(part, Repair::Node(node) if node.index() == leaf);
        let others = repairs.iter().filter(|it| !groups.parts(**it).into_iter().any(is_own));
        let during = Matrix::during(net, &others.copied().collect::<Vec<_>>(), groups);
        flows.push(LeafFlow {
            node: leaf,
            before: matrix.smallest_cut(leaf, &leaves),
            after: during.smallest_cut(leaf, &leaves),
        });
    }
    flows
}

/// Whether repairs are safe together.
pub(crate) fn is_safe(
    net: &Net,
    repairs: &[Repair],
    groups: &Groups,
    drained: &BTreeSet<HostId>,
    min_capacity: Share,
) -> bool {
    let paths = |repairs: &[Repair]| {
        paths_of_hosts(net, &paths_of_hcas(&Matrix::during(net, repairs, groups), drained))
    };
    !cuts(&paths(&[]), &paths(repairs))
        && flows(net, repairs, groups, drained)
            .iter()
            .all(|flow| flow.after as f64 >= min_capacity.get() * flow.before as f64)
}
