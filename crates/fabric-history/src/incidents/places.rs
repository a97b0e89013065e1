//! What is known of the nodes and cables that events are about.

use std::collections::{BTreeSet, HashMap};

use crate::model::{Event, FabricState};
use ib_fabric::topology::LinkId;
use ib_mad::{Guid, PortKey};

/// A node.
#[derive(Debug, Default)]
struct Node {
    name: String,
    host: Option<String>,
    is_switch: bool,
    links: BTreeSet<LinkId>,
}

/// The nodes and cables of a fabric, as they were recorded at the ends of a period, and as its events name them.
#[derive(Debug, Default)]
pub struct Places {
    nodes: HashMap<Guid, Node>,
    links: HashMap<PortKey, LinkId>,
}

impl Places {
    /// Adds what a state knows. The state at the end of a period has precedence.
    pub fn learn(&mut self, state: &FabricState) {
        for it in &state.nodes {
            let node = self.nodes.entry(it.guid).or_default();
            node.name.clone_from(&it.name);
            node.host.clone_from(&it.host);
            node.is_switch = it.kind == "switch";
        }
        for cable in &state.cables {
            self.learn_link(cable.link());
        }
    }

    /// Adds what an event knows: names, and both ends of its link.
    pub fn learn_event(&mut self, event: &Event) {
        if let Some(link) = event.link {
            self.learn_link(link);
        }
        if let Some(guid) = event.node.filter(|_| event.port.is_none()) {
            let node = self.nodes.entry(guid).or_default();
            if node.name.is_empty() {
                node.name.clone_from(&event.place);
            }
        }
    }

    fn learn_link(&mut self, link: LinkId) {
        for end in link.ends() {
            self.links.insert(end, link);
            self.nodes.entry(end.guid).or_default().links.insert(link);
        }
    }

    /// The link at a port.
    pub fn link_of(&self, end: PortKey) -> Option<LinkId> {
        self.links.get(&end).copied()
    }

    /// Whether a node is a switch.
    pub fn is_switch(&self, guid: Guid) -> bool {
        self.nodes.get(&guid).is_some_and(|node| node.is_switch)
    }

    /// The name of a node, or its GUID.
    pub fn name(&self, guid: Guid) -> String {
        let name = self.nodes.get(&guid).map(|node| node.name.clone());
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| guid.to_string())
    }

    /// The host of an HCA: without one it is the first word of its name, as drivers name HCAs (`node-7 mlx5_0`).
    pub fn host(&self, guid: Guid) -> Option<String> {
        if self.is_switch(guid) {
            return None;
        }
        let host = self.nodes.get(&guid).and_then(|node| node.host.clone());
        host.or_else(|| self.name(guid).split_whitespace().next().map(str::to_owned))
    }

    /// The links of a node.
    pub fn links_of(&self, guid: Guid) -> impl Iterator<Item = LinkId> {
        self.nodes.get(&guid).into_iter().flat_map(|node| &node.links).copied()
    }

    /// The nodes at the other ends of a node's cables.
    fn neighbors(&self, guid: Guid) -> impl Iterator<Item = Guid> {
        self.links_of(guid).flat_map(LinkId::ends).map(|end| end.guid).filter(move |of| *of != guid)
    }

    /// Whether each cable of a node leads to one of these nodes: it is cut off if all of them are down.
    pub fn is_behind(&self, guid: Guid, down: impl Fn(Guid) -> bool) -> bool {
        let mut neighbors = self.neighbors(guid).peekable();
        neighbors.peek().is_some() && neighbors.all(down)
    }

    /// Whether a cable of a node leads to another one.
    pub fn is_neighbor(&self, guid: Guid, of: Guid) -> bool {
        self.neighbors(guid).any(|neighbor| neighbor == of)
    }
}
