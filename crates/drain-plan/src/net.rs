//! The fabric as this crate sees it: switches, HCAs of hosts, links; and repairs of them.

use thiserror::Error;

macro_rules! index_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(usize);

        impl $name {
            /// How many of its kind were added to the net before.
            pub fn index(self) -> usize {
                self.0
            }

            /// For results that were computed by index.
            #[allow(dead_code, reason = "not needed of each kind")]
            pub(crate) fn at(index: usize) -> Self {
                $name(index)
            }
        }
    };
}

index_type!(
    /// A host of one [`Net`], from [`Net::add_host`].
    HostId
);
index_type!(
    /// A switch or HCA of one [`Net`], from [`Net::add_switch`] or [`Net::add_hca`].
    NodeId
);
index_type!(
    /// A link of one [`Net`], from [`Net::add_link`].
    LinkId
);

index_type!(
    /// Links and nodes of one [`Net`] that are repaired together, from [`Net::add_group`].
    GroupId
);

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Forwards traffic.
    Switch,
    /// Sends and receives the traffic of this host, and forwards none.
    Hca(HostId),
}

/// Whether a link carries traffic before the repairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// It carries traffic up to its capacity.
    Usable,
    /// It carries nothing: down, disabled, or not in state Active.
    Down,
}

/// A link between two ports. Several links may have the same two nodes; the two nodes of a loopback plug are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its two nodes, in any order.
    pub ends: [NodeId; 2],
    /// Capacity in each direction, in Gb/s.
    pub gbps: u32,
    /// Whether it carries traffic before the repairs.
    pub state: LinkState,
}

impl Link {
    /// A link that carries traffic.
    pub fn usable(ends: [NodeId; 2], gbps: u32) -> Self {
        Link { ends, gbps, state: LinkState::Usable }
    }

    /// A link that is down.
    pub fn down(ends: [NodeId; 2], gbps: u32) -> Self {
        Link { ends, gbps, state: LinkState::Down }
    }
}

/// What is out of service during a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repair {
    /// One link: its cable is pulled.
    Link(LinkId),
    /// All links of a node: it is powered off.
    Node(NodeId),
    /// Several links and nodes that cannot be repaired one by one: a cable that is a link of each plane, a switch with a
    /// node for each plane, a host with several HCAs.
    Group(GroupId),
}

/// An id that was made by another net, and that this net does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum UnknownPart {
    /// No such host.
    #[error("the net has no host {}", .0.index())]
    Host(HostId),
    /// No such node.
    #[error("the net has no node {}", .0.index())]
    Node(NodeId),
    /// No such link.
    #[error("the net has no link {}", .0.index())]
    Link(LinkId),
    /// No such group.
    #[error("the net has no group {}", .0.index())]
    Group(GroupId),
}

/// Links and nodes that are repaired together.
#[derive(Clone, Debug)]
struct Group {
    links: Vec<LinkId>,
    nodes: Vec<NodeId>,
}

/// A fabric, or several that share hosts: rails and planes may be separate.
#[derive(Clone, Debug, Default)]
pub struct Net {
    hosts: usize,
    nodes: Vec<Node>,
    links: Vec<Link>,
    /// By node.
    links_of: Vec<Vec<LinkId>>,
    groups: Vec<Group>,
}

impl Net {
    /// Adds a host without HCAs.
    pub fn add_host(&mut self) -> HostId {
        self.hosts += 1;
        HostId(self.hosts - 1)
    }

    /// Adds a switch without links.
    pub fn add_switch(&mut self) -> NodeId {
        self.add_node(Node::Switch)
    }

    /// Adds an HCA without links to a host. A host may have several.
    pub fn add_hca(&mut self, host: HostId) -> Result<NodeId, UnknownPart> {
        self.check_host(host)?;
        Ok(self.add_node(Node::Hca(host)))
    }

    fn add_node(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.links_of.push(Vec::new());
        NodeId(self.nodes.len() - 1)
    }

    /// Adds a link between two nodes of this net.
    pub fn add_link(&mut self, link: Link) -> Result<LinkId, UnknownPart> {
        for end in link.ends {
            self.check_node(end)?;
        }
        let id = LinkId(self.links.len());
        let [first, second] = link.ends;
        self.links_of[first.0].push(id);
        if second != first {
            self.links_of[second.0].push(id);
        }
        self.links.push(link);
        Ok(id)
    }

    /// Adds links and nodes of this net that are repaired together. A group without any is a repair that takes nothing.
    pub fn add_group(
        &mut self,
        links: &[LinkId],
        nodes: &[NodeId],
    ) -> Result<GroupId, UnknownPart> {
        for &link in links {
            self.check_link(link)?;
        }
        for &node in nodes {
            self.check_node(node)?;
        }
        self.groups.push(Group { links: links.to_vec(), nodes: nodes.to_vec() });
        Ok(GroupId(self.groups.len() - 1))
    }

    /// The number of hosts.
    pub fn host_count(&self) -> usize {
        self.hosts
    }

    /// All nodes, by [`NodeId::index`].
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All links, by [`LinkId::index`].
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The links of a node, also those that are down; empty if the net does not have the node.
    pub fn links_of(&self, node: NodeId) -> &[LinkId] {
        self.links_of.get(node.0).map_or(&[], Vec::as_slice)
    }

    /// All hosts.
    pub fn host_ids(&self) -> impl Iterator<Item = HostId> {
        (0..self.hosts).map(HostId)
    }

    /// All nodes with their ids.
    pub fn node_ids(&self) -> impl Iterator<Item = (NodeId, Node)> {
        self.nodes.iter().enumerate().map(|(index, &node)| (NodeId(index), node))
    }

    pub(crate) fn is_switch(&self, node: NodeId) -> bool {
        matches!(self.nodes.get(node.0), Some(Node::Switch))
    }

    pub(crate) fn check_host(&self, host: HostId) -> Result<(), UnknownPart> {
        if host.0 < self.hosts { Ok(()) } else { Err(UnknownPart::Host(host)) }
    }

    fn check_node(&self, node: NodeId) -> Result<(), UnknownPart> {
        if node.0 < self.nodes.len() { Ok(()) } else { Err(UnknownPart::Node(node)) }
    }

    fn check_link(&self, link: LinkId) -> Result<(), UnknownPart> {
        if link.0 < self.links.len() { Ok(()) } else { Err(UnknownPart::Link(link)) }
    }

    pub(crate) fn check_repair(&self, repair: Repair) -> Result<(), UnknownPart> {
        match repair {
            Repair::Node(node) => self.check_node(node),
            Repair::Link(link) => self.check_link(link),
            Repair::Group(group) if group.0 < self.groups.len() => Ok(()),
            Repair::Group(group) => Err(UnknownPart::Group(group)),
        }
    }

    /// The links whose cables a repair pulls. The repair is in the net.
    pub(crate) fn pulled<'a>(&'a self, repair: &'a Repair) -> &'a [LinkId] {
        match repair {
            Repair::Link(link) => std::slice::from_ref(link),
            Repair::Node(_) => &[],
            Repair::Group(group) => &self.groups[group.0].links,
        }
    }

    /// The nodes that a repair powers off. The repair is in the net.
    pub(crate) fn powered_off<'a>(&'a self, repair: &'a Repair) -> &'a [NodeId] {
        match repair {
            Repair::Link(_) => &[],
            Repair::Node(node) => std::slice::from_ref(node),
            Repair::Group(group) => &self.groups[group.0].nodes,
        }
    }
}
