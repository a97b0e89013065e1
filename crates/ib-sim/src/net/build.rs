//! Builds a net: nodes with all their ports, cables with both ends.

use std::collections::HashMap;

use ib_mad::node::NodeKind;
use ib_mad::{Guid, PortNumber};

use super::rates::Rates;
use super::topology::{Net, Node, NodeId, Port, PortId};

/// The longest id that ibsim keeps. It cuts longer ones, so that two may become one.
pub const LONGEST_ID: usize = 64;

/// The longest module prefix that ibsim accepts.
pub const LONGEST_PREFIX: usize = 20;

/// The most ports of a node: port number 255 means all ports (IBTA 1.4, 16.1.3.2).
pub const MOST_PORTS: u8 = 254;

/// The most ports of a net: several times those of the largest fabrics, at a few hundred bytes
/// each. Without a limit a file of a few hundred kilobytes could take all memory.
const MOST_PORTS_OF_NET: usize = 1 << 20;

/// A net under construction.
#[derive(Clone, Debug, Default)]
pub struct NetBuilder {
    pub net: Net,
    by_id: HashMap<String, NodeId>,
    by_guid: HashMap<Guid, NodeId>,
}

impl NetBuilder {
    /// Adds a node with its ports; its `first_port` is set here. `port_guid` is that of a switch's ports, if
    /// it is not the node's.
    pub fn add(
        &mut self,
        mut node: Node,
        rates: Rates,
        port_guid: Option<Guid>,
    ) -> Result<NodeId, String> {
        let Node { id, guid, port_count, .. } = &node;
        if !is_good_id(id) {
            return Err(format!(
                "bad node id \"{}\": an id has 1 to {LONGEST_ID} bytes, no control characters, no \
                 quotes, no \"@\", and no \"#\" except one after a module prefix of at most \
                 {LONGEST_PREFIX} bytes",
                id.escape_default()
            ));
        }
        if !(1..=MOST_PORTS).contains(port_count) {
            return Err(bad_port_count(id, (*port_count).into()));
        }
        if self.by_id.contains_key(id) {
            return Err(format!("duplicate node \"{id}\""));
        }
        if let Some(other) = self.by_guid.get(guid) {
            let other = &self.net.node(*other).id;
            return Err(format!("node \"{id}\" has the GUID {guid} of node \"{other}\""));
        }
        let first_port = self.net.ports.len();
        if first_port + usize::from(*port_count) + 1 > MOST_PORTS_OF_NET {
            return Err(format!("the net has more than {MOST_PORTS_OF_NET} ports"));
        }
        let node_id = NodeId(self.net.nodes.len() as u32);
        self.net.ports.extend((0..=*port_count).map(|number| Port {
            node: node_id,
            number,
            guid: port_guid.unwrap_or(default_guid(node.kind, *guid, number)),
            cable: None,
            rates,
            plane: None,
            lid: None,
            lmc: 0,
        }));
        self.by_id.insert(id.clone(), node_id);
        self.by_guid.insert(*guid, node_id);
        node.first_port = first_port as u32;
        self.net.nodes.push(node);
        Ok(node_id)
    }

    pub fn find(&self, id: &str) -> Option<NodeId> {
        self.by_id.get(id).copied()
    }

    /// A node's port that takes a cable.
    pub fn cable_port(&self, node: NodeId, number: u64) -> Result<PortId, String> {
        let known = PortNumber::try_from(number).ok().filter(|number| *number != 0);
        known.and_then(|number| self.net.port_by_number(node, number)).ok_or_else(|| {
            let Node { id, port_count, .. } = self.net.node(node);
            format!(
                "node \"{id}\" has no port {number} for a cable; its ports are 1 to {port_count}"
            )
        })
    }

    /// Which of two ports has a cable to a third one, and this one.
    pub fn taken(&self, port: PortId, peer: PortId) -> Option<(PortId, PortId)> {
        let other_cable = |(end, wanted)| {
            let cable = self.net.port(end).cable.filter(|cable| *cable != wanted);
            cable.map(|cable| (end, cable))
        };
        [(port, peer), (peer, port)].into_iter().find_map(other_cable)
    }

    /// Connects two ports. To repeat that is no error: files have a cable at both ends.
    pub fn cable(&mut self, port: PortId, peer: PortId) -> Result<(), String> {
        let label = |port| self.net.label(port);
        if port == peer {
            return Err(format!("{} cannot be connected to itself", label(port)));
        }
        if let Some((taken, by)) = self.taken(port, peer) {
            let [port, peer, taken, by] = [port, peer, taken, by].map(label);
            return Err(format!(
                "{port} cannot be connected to {peer}: {taken} is already connected to {by}"
            ));
        }
        self.port_mut(port).cable = Some(peer);
        self.port_mut(peer).cable = Some(port);
        Ok(())
    }

    pub fn port_mut(&mut self, id: PortId) -> &mut Port {
        &mut self.net.ports[id.0 as usize]
    }
}

/// The problem of a node without ports, or with more than there are numbers.
pub fn bad_port_count(id: &str, ports: u64) -> String {
    format!("node \"{id}\" has {ports} ports; it must have 1 to {MOST_PORTS}")
}

/// The GUID of a port without one of its own. A switch has one for all ports.
pub(super) fn default_guid(kind: NodeKind, node: Guid, number: PortNumber) -> Guid {
    if kind == NodeKind::Switch { node } else { Guid(node.0.wrapping_add(number.into())) }
}

fn is_good_id(id: &str) -> bool {
    let (prefix, base) = id.split_once('#').unwrap_or(("none", id));
    let bad = |c: char| c.is_control() || matches!(c, '"' | '@' | '#');
    id.len() <= LONGEST_ID
        && (1..=LONGEST_PREFIX).contains(&prefix.len())
        && !base.is_empty()
        && !prefix.chars().chain(base.chars()).any(bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DeviceModel;

    fn add(builder: &mut NetBuilder, node: Node) -> Result<NodeId, String> {
        builder.add(node, Rates::default(), None)
    }

    fn node(id: &str, kind: NodeKind, guid: u64, port_count: u8) -> Node {
        Node {
            id: id.to_owned(),
            description: id.to_owned(),
            kind,
            guid: Guid(guid),
            system_guid: Guid(guid),
            vendor_id: 0,
            device_id: 0,
            model: DeviceModel::for_device(kind, 0),
            port_count,
            enhanced_port0: false,
            asic: None,
            first_port: 0,
        }
    }

    #[test]
    fn ports_are_indexed_by_number_with_their_guids() {
        let mut builder = NetBuilder::default();
        let switch = add(&mut builder, node("s", NodeKind::Switch, 0x10, 3)).unwrap();
        let host = add(&mut builder, node("h", NodeKind::Ca, 0x20, 2)).unwrap();
        assert_eq!((builder.find("h"), builder.find("x")), (Some(host), None));
        builder
            .cable(builder.cable_port(switch, 3).unwrap(), builder.cable_port(host, 2).unwrap())
            .unwrap();
        let net = builder.net;
        let guids = |node| {
            let of: &Node = net.node(node);
            (0..=of.port_count)
                .map(|n| net.port(net.port_by_number(node, n).unwrap()).guid.0)
                .collect::<Vec<_>>()
        };
        assert_eq!((guids(switch), guids(host)), (vec![0x10; 4], vec![0x20, 0x21, 0x22]));
        let end = net.port_by_number(host, 2).unwrap();
        let peer = net.port(end).cable.unwrap();
        assert_eq!((net.label(peer), net.port(peer).cable), ("s[3]".to_owned(), Some(end)));
    }

    #[test]
    fn invalid_nodes_and_cables_are_refused() {
        let mut builder = NetBuilder::default();
        let a = add(&mut builder, node("a", NodeKind::Switch, 1, 2)).unwrap();
        let b = add(&mut builder, node("b", NodeKind::Switch, 2, 2)).unwrap();
        for (new, says) in [
            (node("a", NodeKind::Ca, 3, 1), "duplicate node \"a\""),
            (node("c", NodeKind::Ca, 2, 1), "node \"c\" has the GUID 0x0000000000000002"),
            (node("c", NodeKind::Ca, 3, 0), "has 0 ports"),
            (node("c", NodeKind::Ca, 3, 255), "has 255 ports"),
            (node("", NodeKind::Ca, 3, 1), "bad node id \"\""),
            (node("a\nb", NodeKind::Ca, 3, 1), "bad node id \"a\\nb\""),
            (node("#b", NodeKind::Ca, 3, 1), "bad node id \"#b\""),
            (node(&"x".repeat(65), NodeKind::Ca, 3, 1), "bad node id"),
        ] {
            let error = add(&mut builder, new).unwrap_err();
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
        assert_eq!(
            builder.cable_port(a, 0).unwrap_err(),
            "node \"a\" has no port 0 for a cable; its ports are 1 to 2"
        );
        let port = |node, number| builder.cable_port(node, number).unwrap();
        let (a1, a2, b1, b2) = (port(a, 1), port(a, 2), port(b, 1), port(b, 2));
        assert_eq!(builder.cable(a1, b1), Ok(()));
        assert_eq!(builder.cable(b1, a1), Ok(()));
        assert_eq!(
            builder.cable(a2, b1).unwrap_err(),
            "a[2] cannot be connected to b[1]: b[1] is already connected to a[1]"
        );
        assert_eq!(builder.cable(b2, b2).unwrap_err(), "b[2] cannot be connected to itself");
    }
}
