//! A fabric by the names of a scenario: its nodes and ports, its planes, and where its cables are
//! at which time of the timeline.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::time::Duration;

use crate::net::{Net, NodeId, PortId};
use ib_mad::PortNumber;
use ib_mad::node::NodeKind;
use yaml_config::suggestion::{quoted, suggestion};

/// The time of an event, and the number of the entry that it comes from: the order of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventTime {
    pub time: Duration,
    pub entry: usize,
}

#[derive(Debug)]
pub struct FabricIndex<'a> {
    pub net: &'a Net,
    ids: HashMap<&'a str, NodeId>,
    /// The plane of each port, named by its lowest port.
    planes: Vec<PortId>,
    /// The planes that have a host, in the order of the net.
    pub host_planes: BTreeSet<PortId>,
    /// The hosts' ports that have a cable, in the order of the net: of a multi-plane adapter the first one.
    pub host_ports: Vec<PortId>,
    /// The peers that ports get when cables are moved.
    moves: HashMap<PortId, BTreeMap<EventTime, Option<PortId>>>,
}

impl<'a> FabricIndex<'a> {
    pub fn new(net: &'a Net) -> Self {
        let planes = net.planes();
        let is_host = |port: &PortId| net.has_lid(*port) && net.node_of(*port).is_host();
        let host_ports: Vec<PortId> = net.port_ids().filter(is_host).collect();
        let host_planes = host_ports.iter().map(|port| planes[port.0 as usize]).collect();
        let ids = net.node_ids().map(|id| (net.node(id).id.as_str(), id)).collect();
        FabricIndex { net, ids, planes, host_planes, host_ports, moves: HashMap::new() }
    }

    pub fn node(&self, text: &str) -> Result<NodeId, String> {
        self.ids.get(text).copied().ok_or_else(|| {
            let near = suggestion(text, self.net.nodes.iter().map(|node| node.id.as_str()));
            format!("no node {}{near}", quoted(text))
        })
    }

    /// A node and perhaps one of its ports: `leaf-1` or `leaf-1[7]`.
    fn node_or_port(&self, text: &str) -> Result<(NodeId, Option<PortId>), String> {
        // An id may have brackets of its own.
        if let Some(node) = self.ids.get(text) {
            return Ok((*node, None));
        }
        let Some((id, number)) = text.strip_suffix(']').and_then(|text| text.rsplit_once('['))
        else {
            return self.node(text).map(|node| (node, None));
        };
        let node = self.node(id)?;
        let Ok(number) = number.parse::<u64>() else {
            return Err(format!("{} is not a port such as {id}[1]", quoted(text)));
        };
        let of = self.net.node(node);
        // Port 0 only of a switch.
        let port = PortNumber::try_from(number)
            .ok()
            .filter(|number| *number > 0 || of.kind == NodeKind::Switch)
            .and_then(|number| self.net.port_by_number(node, number));
        let missing = || format!("{id} has ports 1 to {}, but no port {number}", of.port_count);
        port.ok_or_else(missing).map(|port| (node, Some(port)))
    }

    /// A port: `leaf-1[7]`, or the id alone of a node with one port.
    pub fn port(&self, text: &str) -> Result<PortId, String> {
        let (node, port) = self.node_or_port(text)?;
        let of = self.net.node(node);
        let only = || self.net.cable_ports(node).next().filter(|_| of.port_count == 1);
        port.or_else(only).ok_or_else(|| {
            format!("port number is missing: {0}[1] to {0}[{1}]", of.id, of.port_count)
        })
    }

    /// A host, and its port if it is named.
    pub fn host(&self, text: &str) -> Result<(NodeId, Option<PortId>), String> {
        let (node, port) = self.node_or_port(text)?;
        let of = self.net.node(node);
        let what = match of.kind {
            NodeKind::Switch => "switch",
            NodeKind::Router => "router",
            _ if of.is_aggregation_node() => "part of a switch",
            NodeKind::Ca | NodeKind::AggregationNode => return Ok((node, port)),
        };
        Err(format!("{} is a {what}, not a host", quoted(text)))
    }

    /// A port for a subnet manager: of a host, or a switch's port 0.
    pub fn sm_location(&self, text: &str) -> Result<(NodeId, Option<PortId>), String> {
        let (node, port) = self.node_or_port(text)?;
        if self.net.node(node).kind != NodeKind::Switch {
            return self.host(text);
        }
        let zero = self.net.port_by_number(node, 0);
        if port.is_some() && port != zero {
            return Err(format!("{}: the SM of a switch is at port 0", quoted(text)));
        }
        Ok((node, zero))
    }

    /// The port of a host or for a subnet manager, or the host's first port with a cable. `None` for a
    /// host's port without a cable.
    pub fn cabled_port(&self, (node, port): (NodeId, Option<PortId>)) -> Option<PortId> {
        match port {
            Some(port) => Some(self.net.sm_port(port)).filter(|port| self.net.has_lid(*port)),
            None => self.host_ports.iter().copied().find(|port| self.net.port(*port).node == node),
        }
    }

    pub fn plane(&self, port: PortId) -> PortId {
        self.planes[port.0 as usize]
    }

    /// The plane that a port was built into; `None` for an adapter's port without a cable.
    pub fn built_plane(&self, port: PortId) -> Option<PortId> {
        let is_switch = self.net.node_of(port).kind == NodeKind::Switch;
        (self.net.port(port).cable.is_some() || is_switch).then(|| self.plane(port))
    }

    /// The hosts' ports with a cable of one plane.
    pub fn host_ports_in(&self, plane: PortId) -> impl Iterator<Item = PortId> + '_ {
        self.host_ports.iter().copied().filter(move |port| self.plane(*port) == plane)
    }

    /// All planes with a host, that of this port first.
    pub fn planes_from(&self, port: PortId) -> Vec<PortId> {
        let first = self.plane(port);
        let others = self.host_planes.iter().copied().filter(|plane| *plane != first);
        std::iter::once(first).chain(others).collect()
    }

    /// A host's port in a plane, of any of its adapters.
    pub fn port_in(&self, plane: PortId, host: NodeId) -> Option<PortId> {
        self.host_ports_in(plane).find(|port| same_host(self.net, self.net.port(*port).node, host))
    }

    /// The port that has this port's place in another plane: the same host's, or else that of the
    /// host with the same position in its plane.
    pub fn counterpart(&self, plane: PortId, port: PortId) -> Option<PortId> {
        if self.plane(port) == plane {
            return Some(port);
        }
        let node = self.net.port(port).node;
        if !self.net.node(node).is_host() {
            return self.host_ports_in(plane).next();
        }
        let before = self.host_ports_in(self.plane(port)).take_while(|host| *host != port).count();
        self.port_in(plane, node)
            .or_else(|| self.host_ports_in(plane).nth(before))
            .or_else(|| self.host_ports_in(plane).next())
    }

    /// The node with all that goes off and on with it: a host has all of its adapters.
    pub fn machine(&self, node: NodeId) -> Vec<NodeId> {
        let is_part = |other: &NodeId| *other == node || same_host(self.net, node, *other);
        self.net.node_ids().filter(is_part).collect()
    }

    /// The other end of the cable at a port just before an event.
    pub fn peer(&self, port: PortId, when: EventTime) -> Option<PortId> {
        let last = self.moves.get(&port).and_then(|moves| moves.range(..when).next_back());
        last.map_or(self.net.port(port).cable, |(_, peer)| *peer)
    }

    /// When the cable in a port is moved next after an event.
    pub fn next_move(&self, port: PortId, when: EventTime) -> Option<EventTime> {
        let later = self.moves.get(&port)?.range((Bound::Excluded(when), Bound::Unbounded));
        later.map(|(when, _)| *when).next()
    }

    /// Plugs the cable at one port into another. Moves have to come in order of time.
    pub fn move_cable(&mut self, from: PortId, to: PortId, when: EventTime) -> Result<(), String> {
        let label = |port| self.net.label(port);
        let Some(far) = self.peer(from, when) else {
            return Err(format!("{} has no cable", label(from)));
        };
        if from == to {
            return Err(format!("the cable is already connected to {}", label(to)));
        }
        if far == to {
            return Err(format!("{} is the other end of the same cable", label(to)));
        }
        if self.net.port(to).number == 0 {
            return Err(format!("{} cannot have a cable", label(to)));
        }
        let other = self.peer(to, when);
        let ends = [(to, Some(far)), (far, Some(to)), (from, other)];
        for (port, peer) in ends.into_iter().chain(other.map(|other| (other, Some(from)))) {
            self.moves.entry(port).or_default().insert(when, peer);
        }
        Ok(())
    }
}

/// Whether two adapters are in one host: on one card, or with one host's name before the device's
/// in the description, as Linux writes it (`node1 mlx5_0`).
fn same_host(net: &Net, one: NodeId, other: NodeId) -> bool {
    let (one, other) = (net.node(one), net.node(other));
    let name = host_name(&one.description);
    one.is_host()
        && other.is_host()
        && (one.guid == other.guid
            || (one.system_guid.0 != 0 && one.system_guid == other.system_guid)
            || (name.is_some() && name == host_name(&other.description)))
}

fn host_name(description: &str) -> Option<&str> {
    let (host, device) = description.split_once(' ')?;
    let is_device = !device.contains(' ') && device.ends_with(|last: char| last.is_ascii_digit());
    is_device.then_some(host)
}

#[cfg(test)]
mod tests {
    use super::super::tests::net;
    use super::*;

    const TWO_PLANES: &str = "{fat-tree: {hosts: 4, radix: 4, down: 2, up: 2, planes: 2}}";

    #[test]
    fn names_are_looked_up() {
        let net = net("{fat-tree: {hosts: 4, radix: 4, down: 2, up: 2}}");
        let index = FabricIndex::new(&net);
        assert_eq!(net.label(index.port("leaf-0-1[3]").unwrap()), "leaf-0-1[3]");
        assert_eq!(net.label(index.port("host-3").unwrap()), "host-3[1]");
        assert!(index.host("host-3").unwrap().1.is_none());
        assert_eq!(
            index.sm_location("leaf-0-1").unwrap(),
            index.sm_location("leaf-0-1[0]").unwrap()
        );
        for (error, says) in [
            (index.port("leaf-0-1").err(), "port number is missing: leaf-0-1[1] to leaf-0-1[4]"),
            (index.port("leaf-0-1[5]").err(), "leaf-0-1 has ports 1 to 4, but no port 5"),
            (index.port("leaf-0-1[260]").err(), "but no port 260"),
            (index.port("host-1[0]").err(), "host-1 has ports 1 to 1, but no port 0"),
            (
                index.port("leaf-0-1[-1]").err(),
                "\"leaf-0-1[-1]\" is not a port such as leaf-0-1[1]",
            ),
            (index.port("leaf-0-1[]").err(), "is not a port such as"),
            (index.port("leaf-1[1]").err(), "no node \"leaf-1\" (did you mean \"leaf-0-1\"?)"),
            (index.port("[").err(), "no node \"[\""),
            (index.port("]").err(), "no node \"]\""),
            (index.host("leaf-0-1").err(), "is a switch, not a host"),
            (index.sm_location("leaf-0-1[1]").err(), "the SM of a switch is at port 0"),
        ] {
            let error = error.unwrap();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn adapters_of_one_host_are_matched() {
        let mut net = net(TWO_PLANES);
        let of = |net: &Net, one: &str, other: &str| {
            let index = FabricIndex::new(net);
            same_host(net, index.node(one).unwrap(), index.node(other).unwrap())
        };
        assert!(
            of(&net, "host-1-mlx5_0", "host-1-mlx5_1")
                && of(&net, "host-1-mlx5_0", "host-1-mlx5_0")
        );
        assert!(!of(&net, "host-1-mlx5_0", "host-2-mlx5_0"));
        assert!(!of(&net, "p0-leaf-0-1", "p0-leaf-0-1"));
        // Many files have the vendor's words here, and no host's name.
        for node in &mut net.nodes {
            node.description = "MT4129 ConnectX7 Mellanox Technologies".into();
        }
        assert!(!of(&net, "host-1-mlx5_0", "host-1-mlx5_1"));
    }

    #[test]
    fn planes_are_separate_without_a_common_switch() {
        let net = net(TWO_PLANES);
        let index = FabricIndex::new(&net);
        let port = |text| index.port(text).unwrap();
        assert_eq!(index.plane(port("host-0-mlx5_0")), index.plane(port("p0-spine-0[1]")));
        assert_ne!(index.plane(port("host-0-mlx5_0")), index.plane(port("host-0-mlx5_1")));
        let both = index.planes_from(port("host-2-mlx5_1"));
        assert_eq!(both, [index.plane(port("host-0-mlx5_1")), index.plane(port("host-0-mlx5_0"))]);
        let there = index.counterpart(both[1], port("host-2-mlx5_1")).unwrap();
        assert_eq!(net.label(there), "host-2-mlx5_0[1]");
        let zero = net.port_by_number(index.node("p1-leaf-0-0").unwrap(), 0).unwrap();
        assert_eq!(index.counterpart(both[0], zero), Some(zero));
        assert_eq!(index.counterpart(both[1], zero), Some(port("host-0-mlx5_0")));
    }

    #[test]
    fn counterpart_without_a_host_name_is_by_position() {
        let mut net = net(TWO_PLANES);
        for node in &mut net.nodes {
            node.description = "HCA".into();
        }
        let index = FabricIndex::new(&net);
        let (here, there) =
            (index.port("host-2-mlx5_0").unwrap(), index.port("host-2-mlx5_1").unwrap());
        assert_eq!(index.counterpart(index.plane(there), here), Some(there));
    }

    #[test]
    fn back_to_back_hosts_are_one_plane() {
        let net = net("{back-to-back: {}}");
        let index = FabricIndex::new(&net);
        assert_eq!(index.host_ports.len(), 2);
        assert_eq!(index.planes_from(index.host_ports[1]).len(), 1);
    }

    #[test]
    fn cables_are_where_they_were_plugged_last() {
        let net = net("{fat-tree: {hosts: 6}}");
        let mut index = FabricIndex::new(&net);
        let names = FabricIndex::new(&net);
        let port = |text| names.port(text).unwrap();
        let at = |secs, entry| EventTime { time: Duration::from_secs(secs), entry };
        let peer = |index: &FabricIndex, text, when| {
            index.peer(port(text), when).map(|port| net.label(port))
        };
        let is = |text: &str| Some(text.to_owned());
        // Into a free port, and then with one that has a cable.
        index.move_cable(port("leaf-0-0[1]"), port("leaf-0-0[8]"), at(10, 0)).unwrap();
        index.move_cable(port("leaf-0-0[8]"), port("leaf-0-0[2]"), at(20, 1)).unwrap();
        for (text, when, expected) in [
            ("leaf-0-0[1]", at(10, 0), is("host-0[1]")),
            ("leaf-0-0[1]", at(10, 1), None),
            ("leaf-0-0[8]", at(11, 0), is("host-0[1]")),
            ("host-0", at(11, 0), is("leaf-0-0[8]")),
            ("host-0", at(21, 0), is("leaf-0-0[2]")),
            ("host-1", at(21, 0), is("leaf-0-0[8]")),
            ("leaf-0-0[2]", at(21, 0), is("host-0[1]")),
            ("leaf-0-0[3]", at(21, 0), is("host-2[1]")),
        ] {
            assert_eq!(peer(&index, text, when), expected, "{text} at {when:?}");
        }
        for (from, to, says) in [
            ("leaf-0-0[1]", "leaf-0-0[3]", "leaf-0-0[1] has no cable"),
            ("leaf-0-0[3]", "leaf-0-0[3]", "already"),
            ("leaf-0-0[3]", "host-2", "the other end of the same cable"),
            ("leaf-0-0[3]", "leaf-0-0[0]", "leaf-0-0[0] cannot have a cable"),
        ] {
            let error = index.move_cable(port(from), port(to), at(30, 2)).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
