//! The planes of a scenario: which there are, and who is where in each.

use std::collections::HashMap;

use super::places::same_host;
use crate::net::planes::planes;
use crate::net::{Net, NodeId, PortId};
use ib_mad::node::NodeKind;

/// The planes of a net.
#[derive(Debug)]
pub(super) struct Planes<'a> {
    net: &'a Net,
    /// By port: the lowest port that it can be reached from, which names its plane.
    root: Vec<PortId>,
    /// The planes that have a host, in the order of the net.
    with_hosts: Vec<PortId>,
    /// The hosts' ports that have a cable, in the order of the net.
    hosts: Vec<PortId>,
}

impl<'a> Planes<'a> {
    pub(super) fn new(net: &'a Net) -> Planes<'a> {
        let root = planes(net);
        let is_host =
            |port: &PortId| net.port(*port).cable.is_some() && net.node_of(*port).is_host();
        let hosts: Vec<PortId> = net.port_ids().filter(is_host).collect();
        let mut with_hosts: Vec<PortId> = hosts.iter().map(|port| root[port.0 as usize]).collect();
        with_hosts.sort_unstable();
        with_hosts.dedup();
        Planes { net, root, with_hosts, hosts }
    }

    /// The plane of a port.
    pub(super) fn of(&self, port: PortId) -> PortId {
        self.root[port.0 as usize]
    }

    /// The plane that a port was built into: none, if it is an adapter's without a cable.
    pub(super) fn built(&self, port: PortId) -> Option<PortId> {
        let (of, node) = (self.net.port(port), self.net.node_of(port));
        (of.cable.is_some() || node.kind == NodeKind::Switch).then(|| self.of(port))
    }

    /// How many planes have a host.
    pub(super) fn count(&self) -> usize {
        self.with_hosts.len()
    }

    /// How many LIDs the plane needs that needs most: one for a switch, and one for each port of an
    /// adapter that has a cable.
    pub(super) fn most_lids(&self) -> usize {
        let mut lids: HashMap<PortId, usize> = HashMap::new();
        for port in self.net.port_ids().filter(|port| self.net.has_lid(*port)) {
            *lids.entry(self.of(port)).or_default() += 1;
        }
        lids.into_values().max().unwrap_or_default()
    }

    /// The hosts' ports that have a cable, of all planes.
    pub(super) fn hosts(&self) -> &[PortId] {
        &self.hosts
    }

    /// Those of one plane.
    pub(super) fn hosts_of(&self, plane: PortId) -> impl Iterator<Item = PortId> + '_ {
        self.hosts.iter().copied().filter(move |port| self.of(*port) == plane)
    }

    /// All planes that have a host, that of this port first.
    pub(super) fn from(&self, port: PortId) -> Vec<PortId> {
        let first = self.of(port);
        let others = self.with_hosts.iter().copied().filter(|plane| *plane != first);
        std::iter::once(first).chain(others).collect()
    }

    /// The port of this host in a plane, through whichever of its adapters.
    pub(super) fn port_in(&self, plane: PortId, host: NodeId) -> Option<PortId> {
        self.hosts_of(plane).find(|port| same_host(self.net, self.net.port(*port).node, host))
    }

    /// What is in a plane what this port is in its own: the same host's, or else the one that is as
    /// many hosts from the first.
    pub(super) fn counterpart(&self, plane: PortId, port: PortId) -> Option<PortId> {
        if self.of(port) == plane {
            return Some(port);
        }
        let node = self.net.port(port).node;
        if !self.net.node(node).is_host() {
            return self.hosts_of(plane).next();
        }
        let before = self.hosts_of(self.of(port)).take_while(|host| *host != port).count();
        self.port_in(plane, node)
            .or_else(|| self.hosts_of(plane).nth(before))
            .or_else(|| self.hosts_of(plane).next())
    }
}

#[cfg(test)]
mod tests {
    use super::super::places::Places;
    use super::super::tests::net;
    use super::*;

    #[test]
    fn planes_are_what_no_switch_connects() {
        let net = net("{fat-tree: {hosts: 4, radix: 4, down: 2, up: 2, planes: 2}}");
        let (planes, names) = (Planes::new(&net), Places::new(&net));
        let port = |text| names.port(text).unwrap();
        assert_eq!(planes.of(port("host-0-mlx5_0")), planes.of(port("p0-spine-0[1]")));
        assert_ne!(planes.of(port("host-0-mlx5_0")), planes.of(port("host-0-mlx5_1")));
        let both = planes.from(port("host-2-mlx5_1"));
        assert_eq!(both, [planes.of(port("host-0-mlx5_1")), planes.of(port("host-0-mlx5_0"))]);
        let there = planes.counterpart(both[1], port("host-2-mlx5_1")).unwrap();
        assert_eq!(net.label(there), "host-2-mlx5_0[1]");
        let zero = net.port_of(names.node("p1-leaf-0-0").unwrap(), 0).unwrap();
        assert_eq!(planes.counterpart(both[0], zero), Some(zero));
        assert_eq!(planes.counterpart(both[1], zero), Some(port("host-0-mlx5_0")));
    }

    #[test]
    fn a_host_without_a_known_other_adapter_is_found_by_its_place() {
        let mut net = net("{fat-tree: {hosts: 4, radix: 4, down: 2, up: 2, planes: 2}}");
        for node in &mut net.nodes {
            node.description = "HCA".into();
        }
        let (planes, names) = (Planes::new(&net), Places::new(&net));
        let (here, there) =
            (names.port("host-2-mlx5_0").unwrap(), names.port("host-2-mlx5_1").unwrap());
        assert_eq!(planes.counterpart(planes.of(there), here), Some(there));
    }

    #[test]
    fn two_hosts_and_a_cable_are_a_plane() {
        let net = net("{back-to-back: {}}");
        let planes = Planes::new(&net);
        assert_eq!(planes.hosts().len(), 2);
        assert_eq!(planes.from(planes.hosts()[1]).len(), 1);
    }
}
