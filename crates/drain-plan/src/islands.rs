//! Islands: which HCAs and hosts can reach each other.
//!
//! Switches that are connected by links form an island, with all HCAs that have a link to one of them. HCAs do not
//! forward, so an HCA with two ports may be on two islands without joining them. A link between two HCAs is an island
//! of these two. Two HCAs have a path to each other if they are on the same island.

use crate::net::{Net, Node, NodeId};
use crate::outage::Outage;

/// A member (an HCA or a host) is on an island.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stay {
    member: usize,
    island: usize,
}

/// Which members are on which islands.
pub(crate) struct Membership {
    /// The islands of all members: first those of member 0, in ascending order.
    islands: Vec<usize>,
    /// Where the islands of each member begin, and the end.
    starts: Vec<usize>,
    members: Vec<Vec<usize>>,
}

impl Membership {
    fn new(mut stays: Vec<Stay>, member_count: usize, island_count: usize) -> Self {
        stays.sort_unstable();
        stays.dedup();
        let mut starts = vec![0; member_count + 1];
        let mut members = vec![Vec::new(); island_count];
        for stay in &stays {
            starts[stay.member + 1] += 1;
            members[stay.island].push(stay.member);
        }
        for member in 0..member_count {
            starts[member + 1] += starts[member];
        }
        Membership { islands: stays.iter().map(|stay| stay.island).collect(), starts, members }
    }

    /// How many members there are, also those on no island.
    pub(crate) fn member_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The islands of a member, in ascending order.
    pub(crate) fn islands_of(&self, member: usize) -> &[usize] {
        &self.islands[self.starts[member]..self.starts[member + 1]]
    }

    /// The members on an island.
    pub(crate) fn members_of(&self, island: usize) -> &[usize] {
        &self.members[island]
    }
}

/// The islands of hosts that are not drained.
pub(crate) struct Islands {
    /// Members are HCAs, by index of the node.
    pub(crate) hcas: Membership,
    /// Members are hosts.
    pub(crate) hosts: Membership,
}

impl Islands {
    /// Takes time in proportion to the nodes and links, and sorts the links of HCAs.
    pub(crate) fn find(net: &Net, outage: &Outage, drained: &[bool]) -> Self {
        let nodes = net.nodes();
        let host_of = |node: NodeId| match nodes[node.index()] {
            Node::Switch => None,
            Node::Hca(host) => Some(host),
        };
        let carrying = || {
            let links = net.links().iter().enumerate();
            links.filter(|&(index, _)| outage.carries(net, index)).map(|(_, link)| link.ends)
        };
        let mut switches = Unions::new(nodes.len());
        for [first, second] in carrying() {
            if net.is_switch(first) && net.is_switch(second) {
                switches.join(first.index(), second.index());
            }
        }
        let mut numbers = vec![None; nodes.len()];
        let mut count = 0;
        let mut stays_of_hcas = Vec::new();
        let mut stays_of_hosts = Vec::new();
        for [first, second] in carrying() {
            let island = match (host_of(first), host_of(second)) {
                (None, None) => continue,
                (Some(_), Some(_)) => None,
                (None, Some(_)) => Some(switches.root(first.index())),
                (Some(_), None) => Some(switches.root(second.index())),
            };
            // Islands are numbered when the first HCA is met, a link between two HCAs each time.
            let island = match island {
                Some(root) => *numbers[root].get_or_insert_with(|| next(&mut count)),
                None => next(&mut count),
            };
            for end in [first, second] {
                if let Some(host) = host_of(end).filter(|host| !drained[host.index()]) {
                    stays_of_hcas.push(Stay { member: end.index(), island });
                    stays_of_hosts.push(Stay { member: host.index(), island });
                }
            }
        }
        Islands {
            hcas: Membership::new(stays_of_hcas, nodes.len(), count),
            hosts: Membership::new(stays_of_hosts, net.host_count(), count),
        }
    }
}

/// Returns the count before, and counts one more.
fn next(count: &mut usize) -> usize {
    *count += 1;
    *count - 1
}

/// Disjoint sets, joined by links.
struct Unions {
    parents: Vec<usize>,
    sizes: Vec<usize>,
}

impl Unions {
    fn new(count: usize) -> Self {
        Unions { parents: (0..count).collect(), sizes: vec![1; count] }
    }

    fn root(&mut self, mut member: usize) -> usize {
        while self.parents[member] != member {
            self.parents[member] = self.parents[self.parents[member]];
            member = self.parents[member];
        }
        member
    }

    fn join(&mut self, first: usize, second: usize) {
        let (mut small, mut large) = (self.root(first), self.root(second));
        if small == large {
            return;
        }
        if self.sizes[small] > self.sizes[large] {
            (small, large) = (large, small);
        }
        self.parents[small] = large;
        self.sizes[large] += self.sizes[small];
    }
}
