//! Nodes, ports, and the cables between them.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::unique;
use ib_mad::ids::{Guid, Lid, PortNumber};
use ib_mad::label;
use ib_mad::moment::Moment;
use ib_mad::port_state::PortStatus;
use ib_mad::{NodeIdentity, NodeKind, PortRole};

/// Where a node stands in [`Fabric::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// Where a port stands in [`Fabric::ports`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIndex(pub u32);

/// A node of the fabric.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it told of itself.
    pub identity: NodeIdentity,
    /// What people call it: the site's name for it, else its description, else its GUID. Where several
    /// nodes share that, the last digits of its GUID are appended (see [`super::unique`]).
    pub name: String,
    /// Whether the latest discovery found it.
    pub presence: Presence,
    /// When a discovery last found it.
    pub last_found: Moment,
    pub(super) first_port: u32,
    pub(super) port_slots: u32,
}

/// Where a node stands after the latest discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It was found.
    Found,
    /// It was there before, and is behind something that did not answer.
    Hidden,
    /// It is gone, and stays for a while so that its absence can be told.
    Absent,
}

impl Node {
    /// Whether it is there, as far as can be told without asking it.
    pub fn present(&self) -> bool {
        self.presence != Presence::Absent
    }

    /// Its name as it would be if no other node had the same.
    pub fn shared_name(&self) -> &str {
        unique::shared_name(&self.name, self.identity.guid)
    }

    /// Whether people mean it by a name: its own, or the one that it shares with others.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.shared_name() == name
    }

    /// Whether it is a switch.
    pub fn is_switch(&self) -> bool {
        self.identity.kind == NodeKind::Switch
    }
}

/// The other end of a port's cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The port at the other end.
    pub port: PortIndex,
    /// Whether the latest discovery saw it there. If not, this is where the cable led when there
    /// last was a link, which is where a technician has to look.
    pub connected: bool,
}

/// A port of a node.
#[derive(Clone, Debug)]
pub struct Port {
    /// Its node.
    pub node: NodeIndex,
    /// Its number on the node.
    pub number: PortNumber,
    /// PortGUID, where the port has one of its own.
    pub guid: Guid,
    /// What it said when it was last found; `None` where it did not answer, or was not reached.
    pub status: Option<PortStatus>,
    /// What it is for; `None` where it was not asked, or did not answer that.
    pub role: Option<PortRole>,
    /// The other end of its cable, if it ever had one.
    pub peer: Option<Peer>,
}

/// A cable, by its two ends; the first is the one with the lower (GUID, port).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Link(pub PortIndex, pub PortIndex);

/// An end of a cable by the names that outlive a discovery.
pub type End = (Guid, PortNumber);

/// A node that a discovery left out, because another node with the same GUID is in the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateGuid {
    /// The GUID that both have.
    pub guid: Guid,
    /// The port that leads to the node that was left out; `None` where it was met first.
    pub behind: Option<End>,
}

impl DuplicateGuid {
    /// Where the node is that was left out.
    pub fn place(&self, fabric: &Fabric) -> String {
        match self.behind.and_then(|end| fabric.find(end)) {
            Some(port) => {
                let (node, number) = (&fabric.node_of(port).name, fabric.port(port).number);
                format!("behind {}", label::port(node, number))
            }
            None => "at a place that is not known".to_owned(),
        }
    }
}

/// A whole fabric, as the latest discovery saw it and as earlier ones knew it.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    /// All nodes, in the order of their GUIDs.
    pub nodes: Vec<Node>,
    /// All ports, node by node, in the order of their numbers.
    pub ports: Vec<Port>,
    /// Our own port, from which it was discovered; a switch's is its port 0.
    pub home: Option<PortIndex>,
    /// Nodes that are not in it, because another node has their GUID.
    pub duplicates: Vec<DuplicateGuid>,
    pub(super) by_guid: HashMap<Guid, NodeIndex>,
}

impl Fabric {
    /// A node by its index.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index.0 as usize]
    }

    /// A port by its index.
    pub fn port(&self, index: PortIndex) -> &Port {
        &self.ports[index.0 as usize]
    }

    /// The node that a port belongs to.
    pub fn node_of(&self, port: PortIndex) -> &Node {
        self.node(self.port(port).node)
    }

    /// The node with this GUID.
    pub fn node_by_guid(&self, guid: Guid) -> Option<NodeIndex> {
        self.by_guid.get(&guid).copied()
    }

    /// Whether another node with this GUID was left out.
    pub fn has_duplicate(&self, guid: Guid) -> bool {
        self.duplicates.iter().any(|duplicate| duplicate.guid == guid)
    }

    /// All node indexes.
    pub fn node_indexes(&self) -> impl Iterator<Item = NodeIndex> + use<> {
        (0..self.nodes.len() as u32).map(NodeIndex)
    }

    /// All port indexes.
    pub fn port_indexes(&self) -> impl Iterator<Item = PortIndex> + use<> {
        (0..self.ports.len() as u32).map(PortIndex)
    }

    /// A node's ports, in the order of their numbers; a switch's begin with its port 0.
    pub fn ports_of(&self, node: NodeIndex) -> impl Iterator<Item = PortIndex> + use<> {
        let node = self.node(node);
        (node.first_port..node.first_port + node.port_slots).map(PortIndex)
    }

    /// The port with this name.
    pub fn find(&self, (guid, number): End) -> Option<PortIndex> {
        let node = self.node_by_guid(guid)?;
        let nth = number.checked_sub(self.node(node).identity.first_port())?;
        self.ports_of(node).nth(usize::from(nth))
    }

    /// Whether another fabric has the same ports, each in the same place.
    pub fn has_the_places_of(&self, other: &Fabric) -> bool {
        let places = |node: &Node| (node.identity.guid, node.first_port, node.port_slots);
        self.nodes.len() == other.nodes.len()
            && self.nodes.iter().map(places).eq(other.nodes.iter().map(places))
    }

    /// A port's name.
    pub fn end(&self, port: PortIndex) -> End {
        (self.node_of(port).identity.guid, self.port(port).number)
    }

    /// The cables, connected or remembered, each once.
    pub fn links(&self) -> impl Iterator<Item = Link> + '_ {
        // Ports stand in the order of (GUID, number), so the lower index is the lower end. A
        // cable from a port to itself (a loopback plug) is one, too.
        self.port_indexes().filter_map(|port| {
            let peer = self.port(port).peer?.port;
            (port <= peer).then_some(Link(port, peer))
        })
    }

    /// The LID by which a port's node is asked about it: a CA's ports have their own, a switch has
    /// one for all of them.
    pub fn lid_of(&self, port: PortIndex) -> Option<Lid> {
        let node = self.node_of(port);
        let holder = if node.is_switch() { PortIndex(node.first_port) } else { port };
        self.port(holder).status.map(|status| status.lid).filter(|lid| lid.is_unicast())
    }

    /// Whether a port is one of those that carry the fabric: all but a switch's port 0, unless
    /// that is an endpoint of its own.
    pub fn is_watched(&self, port: PortIndex) -> bool {
        let node = self.node_of(port);
        self.port(port).number != 0 || node.identity.enhanced_port0
    }

    /// Whether a link is inside a switch, by what either of its ports says.
    pub fn is_internal(&self, link: Link) -> bool {
        [link.0, link.1].iter().any(|port| self.port(*port).role.is_some_and(PortRole::is_internal))
    }

    /// The stable id of the cable at a port: both of its ends, the lower first.
    pub fn link_id(&self, port: PortIndex) -> Option<LinkId> {
        let peer = self.port(port).peer?.port;
        let (low, high) = if port <= peer { (port, peer) } else { (peer, port) };
        Some(LinkId(self.end(low), self.end(high)))
    }
}

/// A cable's name in metrics, events and pages: `0x…:5-0x…:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub End, pub End);

impl LinkId {
    /// The id of a cable between two ports, whichever is named first.
    pub fn between(a: End, b: End) -> Self {
        if a <= b { LinkId(a, b) } else { LinkId(b, a) }
    }

    /// Both ends, the lower first.
    pub fn ends(self) -> [End; 2] {
        [self.0, self.1]
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LinkId((guid_a, port_a), (guid_b, port_b)) = self;
        write!(f, "{guid_a}:{port_a}-{guid_b}:{port_b}")
    }
}

/// Not a cable's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a link's id such as 0x00aa000000000001:5-0x00aa000000000002:1")]
pub struct NoLinkId;

impl FromStr for LinkId {
    type Err = NoLinkId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let end = |text: &str| {
            let (guid, number) = text.rsplit_once(':')?;
            Some((guid.parse().ok()?, number.parse().ok()?))
        };
        let (a, b) = text.split_once('-').ok_or(NoLinkId)?;
        Ok(LinkId::between(end(a).ok_or(NoLinkId)?, end(b).ok_or(NoLinkId)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{end, fabric, found};
    use ib_mad::NodeKind;

    #[test]
    fn ports_are_found_by_name_and_answer_by_the_right_lid() {
        let fabric = fabric(
            vec![found(9, NodeKind::Switch, 2), found(3, NodeKind::Ca, 2)],
            &[(end(9, 1), end(3, 2))],
            None,
        );
        assert_eq!(fabric.ports.len(), 3 + 2, "a switch has a port 0, a CA has none");
        let switch_port = fabric.find(end(9, 1)).unwrap();
        let ca_port = fabric.find(end(3, 2)).unwrap();
        assert_eq!(fabric.lid_of(switch_port), Some(Lid(9)));
        assert_eq!(fabric.lid_of(ca_port), Some(Lid(3)));
        assert_eq!(fabric.port(ca_port).peer, Some(Peer { port: switch_port, connected: true }));
        assert_eq!(fabric.link_id(switch_port), fabric.link_id(ca_port));
        assert_eq!(
            fabric.link_id(ca_port).unwrap().to_string(),
            "0x0000000000000003:2-0x0000000000000009:1"
        );
        assert_eq!(fabric.links().count(), 1);
        assert!(fabric.find(end(3, 0)).is_none());
        assert!(!fabric.is_watched(fabric.find(end(9, 0)).unwrap()));
    }
}
