//! Nodes, ports, the links between them, and the levels of a tree.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use ib_mad::ids::port_label_with;
use ib_mad::ids::{Guid, Lid, PortNumber};
use ib_mad::moment::Moment;
use ib_mad::port_state::PortStatus;
use ib_mad::{FrontPanel, NodeIdentity, NodeKind, PortKey, PortRole};
use thiserror::Error;

use super::aggregated_links::{AggregatedLink, AggregatedLinks, AggregatedPort, system_of};
use super::backoff::Backoff;
use super::fabric_kind::FabricKind;
use super::front_panels::FrontPanels;
pub use super::link::Link;
use super::ring_gap::RingGap;
use super::routes::SwitchRoutes;
use super::unique_names::shared_name;
use crate::{NodeIndex, NodeMap, PortIndex, PortMap};

/// A node of the fabric.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its properties.
    pub identity: NodeIdentity,
    /// Display name: the site's name, else the description, else the GUID. If several nodes share it,
    /// the last digits of the GUID are appended.
    pub name: String,
    /// The host that it is in: the whole name or a part of it, without appended digits (see [`super::hosts`]).
    /// `None` of all but channel adapters.
    pub host: Option<String>,
    /// The rail of its host that it is; `None` unless the host has several (see [`super::rails`]).
    pub rail: Option<String>,
    /// Result of the latest discovery.
    pub presence: Presence,
    /// Time of the last discovery that found it.
    pub last_found: Moment,
    pub(super) first_port: u32,
    pub(super) port_slots: u32,
}

/// Whether the latest discovery found a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other name says it")]
pub enum Presence {
    Found,
    /// Found before, and now behind a node that did not respond.
    Hidden,
    /// Not found any more; kept for a while so that its absence is reported.
    Absent,
}

impl Node {
    /// Whether it is found or hidden.
    pub fn present(&self) -> bool {
        self.presence != Presence::Absent
    }

    /// The name without appended GUID digits.
    pub fn shared_name(&self) -> &str {
        shared_name(&self.name, self.identity.guid)
    }

    /// Its name, the one that it may share with other nodes, and that of its host.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [&*self.name, self.shared_name()].into_iter().chain(self.host.as_deref())
    }

    /// Whether it has this name, unique or shared with other nodes, or is in the host of this name.
    pub fn has_name(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// Whether it has this name or GUID.
    pub fn is_called(&self, name: &str) -> bool {
        self.has_name(name) || name.parse() == Ok(self.identity.guid)
    }

    /// Whether it is a switch.
    pub fn is_switch(&self) -> bool {
        self.identity.kind == NodeKind::Switch
    }
}

/// The other end of a port's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the other name says it")]
pub struct Peer {
    pub port: PortIndex,
    /// Whether the latest discovery found the link. If not, the cable last led to this port.
    pub connected: bool,
}

/// A port of a node.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Port {
    pub node: NodeIndex,
    pub number: PortNumber,
    /// PortGUID, if the port has its own.
    pub guid: Guid,
    /// State at the last discovery; `None` if it did not respond or was not reached.
    pub status: Option<PortStatus>,
    /// Role; `None` if it was not queried or did not respond.
    pub role: Option<PortRole>,
    /// The other end of its link, now or before.
    pub peer: Option<Peer>,
}

impl Port {
    /// The other end of its link, if the latest discovery found it.
    pub fn connected_peer(&self) -> Option<PortIndex> {
        self.peer.filter(|peer| peer.connected).map(|peer| peer.port)
    }
}

/// A node that a discovery left out, because another node has the same GUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuplicateGuid {
    /// The shared GUID.
    pub guid: Guid,
    /// The port that leads to the omitted node; `None` if unknown.
    pub behind: Option<PortKey>,
}

impl DuplicateGuid {
    /// Where the omitted node is, as text.
    pub fn location(&self, fabric: &Fabric) -> String {
        let Some(port) = self.behind.and_then(|end| fabric.find(end)) else {
            return "at an unknown location".to_owned();
        };
        format!("behind {}", fabric.port_label(port))
    }
}

/// A fabric, from the latest discovery and what is remembered of earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    /// All nodes, ordered by GUID.
    pub nodes: NodeMap<Node>,
    /// All ports, by node and port number.
    pub ports: PortMap<Port>,
    /// The local port, from which the fabric was discovered; of a switch, port 0.
    pub local_port: Option<PortIndex>,
    /// Nodes that were left out, because another node has their GUID.
    pub duplicates: Vec<DuplicateGuid>,
    /// The front-panel names of the ports that report one.
    pub front_panels: Arc<FrontPanels>,
    /// Directed routes to its switches, if it has planes.
    pub routes: Arc<SwitchRoutes>,
    /// `None` until a switch has told.
    pub kind: Option<FabricKind>,
    /// When switches are asked for it again, if none told.
    pub(super) kind_backoff: Backoff,
    /// The links of several planes.
    pub aggregated_links: Arc<AggregatedLinks>,
    /// Where the rings between the nodes of multi-plane switches lack a link.
    pub ring_gaps: Arc<[RingGap]>,
    pub(super) by_guid: HashMap<Guid, NodeIndex>,
}

impl Fabric {
    /// A node by its index.
    pub fn node(&self, index: NodeIndex) -> &Node {
        &self.nodes[index]
    }

    /// A port by its index.
    pub fn port(&self, index: PortIndex) -> &Port {
        &self.ports[index]
    }

    /// The node that a port belongs to.
    pub fn node_of(&self, port: PortIndex) -> &Node {
        self.node(self.port(port).node)
    }

    /// The node with this GUID.
    pub fn node_by_guid(&self, guid: Guid) -> Option<NodeIndex> {
        self.by_guid.get(&guid).copied()
    }

    /// Whether the node with this GUID is found or hidden.
    pub fn is_present(&self, guid: Guid) -> bool {
        self.node_by_guid(guid).is_some_and(|node| self.node(node).present())
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

    /// A node's ports, by port number; those of a switch begin with port 0.
    pub fn ports_of(&self, node: NodeIndex) -> impl Iterator<Item = PortIndex> + use<> {
        let node = self.node(node);
        (node.first_port..node.first_port + node.port_slots).map(PortIndex)
    }

    /// The port with this GUID and number.
    pub fn find(&self, PortKey { guid, number }: PortKey) -> Option<PortIndex> {
        let node = self.node_by_guid(guid)?;
        let nth = number.checked_sub(self.node(node).identity.first_port())?;
        self.ports_of(node).nth(usize::from(nth))
    }

    /// Whether another fabric has the same ports with the same indexes.
    pub fn has_same_layout(&self, other: &Fabric) -> bool {
        let layout = |node: &Node| (node.identity.guid, node.first_port, node.port_slots);
        self.nodes.iter().map(layout).eq(other.nodes.iter().map(layout))
    }

    /// The identity of a port that stays the same across discoveries.
    pub fn port_key(&self, port: PortIndex) -> PortKey {
        PortKey::new(self.node_of(port).identity.guid, self.port(port).number)
    }

    /// Where a port is at the front panel of its device, if the device reports it.
    pub fn front_panel(&self, port: PortIndex) -> Option<&FrontPanel> {
        self.front_panels.get(self.port_key(port))
    }

    /// A port by its node's name and its number: `leaf-1 port 37`; of a switch also by what is printed beside it:
    /// `leaf-1 port 37 (1/19/1)`.
    pub fn port_label(&self, port: PortIndex) -> String {
        let node = self.node_of(port);
        let panel = self.front_panel(port).filter(|_| node.is_switch()).and_then(FrontPanel::label);
        port_label_with(&node.name, self.port(port).number, panel.as_deref())
    }

    /// The links of the subnet, connected or remembered, each once: of a link of several planes, each plane.
    pub fn links(&self) -> impl Iterator<Item = Link> + '_ {
        // Ports are ordered by (GUID, number): the lower index is the lower end. A loopback plug counts, too.
        self.port_indexes().filter_map(|port| {
            let peer = self.port(port).peer?.port;
            (port <= peer).then_some(Link { low: port, high: peer })
        })
    }

    /// The links that are judged and shown: of a link of several planes only the lowest plane, in whose place it
    /// stands.
    pub fn whole_links(&self) -> impl Iterator<Item = Link> + '_ {
        self.links().filter(|link| self.whole_link(*link) == *link)
    }

    /// The link that is judged and shown for a link of the subnet: itself, or that in whose place the whole one stands.
    pub fn whole_link(&self, link: Link) -> Link {
        self.aggregated_link(link.low).map_or(link, AggregatedLink::lead)
    }

    /// The port of several planes that a port is one of, and which.
    pub fn plane_of(&self, port: PortIndex) -> Option<(AggregatedPort, u8)> {
        if self.aggregated_links.is_empty() {
            return None;
        }
        if let Some(panel) = self.front_panel(port) {
            let system = system_of(&self.node_of(port).identity);
            return Some((AggregatedPort { system, number: panel.aggregated_port? }, panel.plane?));
        }
        let link = self.aggregated_links.of(port)?;
        let plane = link.planes.iter().find(|plane| plane.ports.contains(&port))?;
        Some((link.ends[usize::from(plane.ports[1] == port)], plane.plane))
    }

    /// The link of several planes that a port belongs to.
    pub fn aggregated_link(&self, port: PortIndex) -> Option<&AggregatedLink> {
        self.aggregated_links.of(port)
    }

    /// The port with the LID, GUID and M_Key for queries about a port: itself of a CA, port 0 of a switch.
    pub fn management_port(&self, port: PortIndex) -> PortIndex {
        let node = self.node_of(port);
        if node.is_switch() { PortIndex(node.first_port) } else { port }
    }

    /// The LID for queries about a port.
    pub fn lid_of(&self, port: PortIndex) -> Option<Lid> {
        let status = self.port(self.management_port(port)).status;
        status.map(|status| status.lid).filter(|lid| lid.is_unicast())
    }

    /// Whether the nodes that are in a later fabric, too, have the same LIDs there, if they have any.
    pub fn has_same_lids(&self, later: &Fabric) -> bool {
        let is_same = |port: PortIndex| {
            let Some(now) = later.find(self.port_key(port)) else { return true };
            // A host that has just come up has none yet.
            let lids = self.lid_of(port).zip(later.lid_of(now));
            !self.node_of(port).present()
                || !later.node_of(now).present()
                || lids.is_none_or(|(before, after)| before == after)
        };
        self.port_indexes().all(is_same)
    }

    /// Forgets the LIDs of nodes that the discovery did not reach: they may be other nodes' now.
    pub fn forget_unreached_lids(&mut self) {
        let nodes = &self.nodes;
        let is_unreached = |port: &&mut Port| nodes[port.node].presence != Presence::Found;
        for port in self.ports.iter_mut().filter(is_unreached) {
            if let Some(status) = &mut port.status {
                status.lid = Lid(0);
            }
        }
    }

    /// The largest LMC of a port; subnet managers give the same to all, or 0.
    pub fn largest_lmc(&self) -> u8 {
        let own = |port: &PortIndex| self.management_port(*port) == *port;
        let statuses = self.port_indexes().filter(own).filter_map(|port| self.port(port).status);
        statuses.map(|status| status.lmc).max().unwrap_or(0)
    }

    /// Whether a port is monitored: all but port 0 of a switch, unless that is an enhanced port 0.
    pub fn is_monitored(&self, port: PortIndex) -> bool {
        let node = self.node_of(port);
        self.port(port).number != 0 || node.identity.enhanced_port0
    }

    /// Whether a link is inside a switch, by the role of either port.
    pub fn is_internal(&self, link: Link) -> bool {
        link.ports().into_iter().any(|port| self.port(port).role.is_some_and(PortRole::is_internal))
    }

    /// Whether a link is a part of the ring between the nodes of a multi-plane switch.
    pub fn is_ring(&self, link: Link) -> bool {
        link.ports().into_iter().any(|port| self.port(port).role == Some(PortRole::Fnm))
    }

    /// The stable id of a port's link. All planes of a link have that of the lowest.
    pub fn link_id(&self, port: PortIndex) -> Option<LinkId> {
        let lead = self.aggregated_link(port).map_or(port, |link| link.lead().low);
        self.plane_link_id(lead)
    }

    /// The stable id of the link of the subnet at a port.
    pub fn plane_link_id(&self, port: PortIndex) -> Option<LinkId> {
        let peer = self.port(port).peer?.port;
        Some(LinkId::between(self.port_key(port), self.port_key(peer)))
    }
}

/// Stable id of a link in metrics, events and pages, the lower end first: `0x…:5-0x…:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId {
    /// The lower end.
    pub low: PortKey,
    /// The higher end.
    pub high: PortKey,
}

impl LinkId {
    /// The id of the link between two ports, in any order.
    pub fn between(a: PortKey, b: PortKey) -> Self {
        LinkId { low: a.min(b), high: a.max(b) }
    }

    /// Both ends, the lower first.
    pub fn ends(self) -> [PortKey; 2] {
        [self.low, self.high]
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.low, self.high)
    }
}

/// Not a link ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a link ID such as 0x00aa000000000001:5-0x00aa000000000002:1")]
pub struct InvalidLinkId;

impl FromStr for LinkId {
    type Err = InvalidLinkId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let end = |text: &str| text.parse().map_err(|_| InvalidLinkId);
        let (a, b) = text.split_once('-').ok_or(InvalidLinkId)?;
        Ok(LinkId::between(end(a)?, end(b)?))
    }
}

/// A switch is a leaf if at least one in this many of its cables leads to a host. So a single storage
/// server or subnet manager host does not make a spine switch a leaf.
const HOSTS_OF_A_LEAF: u32 = 8;

/// The level of switches that are not connected to a leaf.
const NO_LEVEL: u8 = u8::MAX;

/// Distance of each node from the nearest host: 0 is a host, 1 a leaf. In a torus or a Dragonfly all
/// switches are leaves, without up and down between them.
#[derive(Clone, Debug)]
pub struct Levels(NodeMap<u8>);

impl Levels {
    /// Computes the levels. Remembered cables count, too: a leaf stays a leaf while its hosts are off.
    pub fn compute(fabric: &Fabric) -> Levels {
        let mut levels = NodeMap::filled(fabric.nodes.len(), NO_LEVEL);
        let mut queue = VecDeque::new();
        for node in fabric.node_indexes() {
            if !fabric.node(node).is_switch() {
                levels[node] = 0;
            } else if is_leaf(fabric, node) {
                levels[node] = 1;
                queue.push_back(node);
            }
        }
        while let Some(node) = queue.pop_front() {
            let level = (levels[node] + 1).min(NO_LEVEL - 1);
            for far in neighbors(fabric, node) {
                let far_level = &mut levels[far];
                if *far_level == NO_LEVEL {
                    *far_level = level;
                    queue.push_back(far);
                }
            }
        }
        Levels(levels)
    }

    /// A node's level; `None` if it is not connected to a leaf.
    pub fn level(&self, node: NodeIndex) -> Option<u8> {
        self.0.get(node).copied().filter(|level| *level != NO_LEVEL)
    }

    /// Whether the hop from one node to another leads up the tree.
    pub fn rises(&self, from: NodeIndex, to: NodeIndex) -> bool {
        self.0[from] < self.0[to]
    }
}

/// The nodes at the other ends of a node's cables, connected or remembered.
fn neighbors(fabric: &Fabric, node: NodeIndex) -> impl Iterator<Item = NodeIndex> + '_ {
    let peers = fabric.ports_of(node).filter_map(|port| fabric.port(port).peer);
    peers.map(|peer| fabric.port(peer.port).node)
}

fn is_leaf(fabric: &Fabric, node: NodeIndex) -> bool {
    let (mut hosts, mut all) = (0, 0);
    for far in neighbors(fabric, node) {
        hosts += u32::from(fabric.node(far).identity.kind == NodeKind::Ca);
        all += 1;
    }
    hosts > 0 && hosts * HOSTS_OF_A_LEAF >= all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{end, fabric, found};
    use ib_mad::NodeKind;

    #[test]
    fn port_lookup_and_lid_of_switch_and_ca() {
        let fabric = fabric(
            vec![found(9, NodeKind::Switch, 2), found(3, NodeKind::Ca, 2)],
            &[(end(9, 1), end(3, 2))],
            None,
        );
        assert_eq!(fabric.ports.len(), 3 + 2, "a switch has port 0, a CA does not");
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
        assert!(!fabric.is_monitored(fabric.find(end(9, 0)).unwrap()));
    }
}
