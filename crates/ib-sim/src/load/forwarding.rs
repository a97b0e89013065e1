//! The linear forwarding tables of switches: of each destination the port that leads along the paths of
//! [`routes`](super::routes).
//!
//! A table has an entry for each LID. The lowest LID of a port takes the path of the flows to that port; with an LMC each
//! further one counts as the next destination, so that it may take another path of the same length.
//!
//! In a multi-plane fabric all ports of an adapter have one LID. A switch sends to the port in its own plane; if that
//! has no link, over the ring between the ASICs of a switch to another plane. Only over the ring it reaches the switches
//! of other planes. A switch with all planes of its ports (prism) has one entry for the four ports to an adapter: that of
//! the first plane. Real ones spread packets over the planes, which no public source describes.

use std::collections::HashMap;

use crate::net::{Net, NodeId, PortId};
use ib_mad::PortNumber;
use ib_mad::node::NodeKind;

use super::routes::{ShortestPaths, SwitchGraph, destination_numbers, peer};

/// The links that a path may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Links {
    /// Those that carry traffic.
    Traffic,
    /// These and the rings between the ASICs of switches.
    All,
}

/// The tables of all switches over the present links, computed for each destination when it is first needed.
#[derive(Clone, Debug)]
pub(crate) struct ForwardingTables {
    links: Vec<Option<PortId>>,
    traffic: SwitchGraph,
    all: SwitchGraph,
    /// The number of each port as a destination.
    numbers: Vec<u64>,
    /// By the switch at the end of the paths. For 1,152 leaves of 2,880 switches they take 70 MB, if all are needed.
    trees: HashMap<(Links, u32), ShortestPaths>,
}

impl ForwardingTables {
    /// The tables over these links: the peer of each port, by [`PortId`], if the link is active.
    pub(crate) fn new(net: &Net, links: Vec<Option<PortId>>) -> Self {
        let is_traffic =
            |port: PortId| peer(&links, port).is_some_and(|far| !net.is_fnm_link(port, far));
        ForwardingTables {
            traffic: SwitchGraph::new(net, &links, is_traffic),
            all: SwitchGraph::new(net, &links, |_| true),
            numbers: destination_numbers(net),
            trees: HashMap::new(),
            links,
        }
    }

    /// The port by which a switch sends what is for the LID of a port, the `nth` of its LIDs from 0 on; 0 for its own
    /// LID, `None` without a path. `to` is the port that [stands for all](Net::sm_port) with its LID.
    pub(crate) fn egress(
        &mut self,
        net: &Net,
        switch: NodeId,
        to: PortId,
        nth: u16,
    ) -> Option<PortNumber> {
        if net.port(to).node == switch {
            return Some(0);
        }
        let port = if net.node_of(to).kind == NodeKind::Switch {
            self.egress_to_switch(net, switch, to, nth)
        } else {
            self.egress_to_adapter(net, switch, to, nth)
        };
        port.map(|port| net.port(port).number)
    }

    fn egress_to_switch(
        &mut self,
        net: &Net,
        from: NodeId,
        to: PortId,
        nth: u16,
    ) -> Option<PortId> {
        [Links::Traffic, Links::All]
            .into_iter()
            .find_map(|links| self.next(net, links, from, to, to, nth))
    }

    fn egress_to_adapter(
        &mut self,
        net: &Net,
        from: NodeId,
        to: PortId,
        nth: u16,
    ) -> Option<PortId> {
        for links in [Links::Traffic, Links::All] {
            let mut nearest: Option<(u32, PortId, PortId)> = None;
            for end in net.plane_ports(to) {
                let Some(last) = peer(&self.links, end) else { continue };
                if net.port(last).node == from {
                    return Some(last);
                }
                let Some(distance) = self.distance(net, links, from, last) else { continue };
                if nearest.is_none_or(|(known, ..)| distance < known) {
                    nearest = Some((distance, end, last));
                }
            }
            if let Some((_, end, last)) = nearest {
                return self.next(net, links, from, last, end, nth);
            }
        }
        None
    }

    /// The number of cables from a switch to that of a port.
    fn distance(&mut self, net: &Net, links: Links, from: NodeId, leaf: PortId) -> Option<u32> {
        let (graph, tree) = self.tree(links, leaf)?;
        tree.distance(graph.switch_at(first_port(net, from))?)
    }

    /// The port from a switch to that of the port `leaf`, for the destination `end`.
    fn next(
        &mut self,
        net: &Net,
        links: Links,
        from: NodeId,
        leaf: PortId,
        end: PortId,
        nth: u16,
    ) -> Option<PortId> {
        let number = self.numbers[end.0 as usize] + u64::from(nth);
        let (graph, tree) = self.tree(links, leaf)?;
        let at = graph.switch_at(first_port(net, from))?;
        tree.next(graph, at, number).map(|cable| cable.port)
    }

    /// The paths to the switch of a port, with their graph; `None` if the port is no switch's.
    fn tree(&mut self, links: Links, port: PortId) -> Option<(&SwitchGraph, &ShortestPaths)> {
        let graph = match links {
            Links::Traffic => &self.traffic,
            Links::All => &self.all,
        };
        let root = graph.switch_at(port)?;
        let tree: &ShortestPaths =
            self.trees.entry((links, root)).or_insert_with(|| ShortestPaths::new(graph, root));
        Some((graph, tree))
    }
}

fn first_port(net: &Net, node: NodeId) -> PortId {
    PortId(net.node(node).first_port)
}
