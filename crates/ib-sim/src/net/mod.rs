//! A net: nodes and the cables between them, as they were built and before anything happens.
//!
//! It comes from a [`mod@file`] or has one of the known [`shapes`]; both use the builder in [`build`].
//! [`mod@write`] gives it to ibsim.

pub mod build;
pub mod file;
pub mod planes;
pub mod rates;
pub mod shapes;
pub mod write;

use ib_mad::node::NodeKind;
use ib_mad::rate::SpeedSet;
use ib_mad::smp::{is_aggregation_device, is_aggregation_node};
use ib_mad::{Guid, Lid, PortNumber};

use super::device::Model;

/// Where a node stands in [`Net::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// Where a port stands in [`Net::ports`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name in the file or generator it comes from: unique.
    pub id: String,
    /// NodeDescription.
    pub description: String,
    /// What it is.
    pub kind: NodeKind,
    /// NodeGUID.
    pub guid: Guid,
    /// SystemImageGUID.
    pub system_guid: Guid,
    /// VendorID.
    pub vendor_id: u32,
    /// DeviceID.
    pub device_id: u16,
    /// What its agents can do.
    pub model: &'static Model,
    /// NumPorts: of physical ports.
    pub port_count: u8,
    /// A switch whose port 0 is a full endpoint.
    pub enhanced_port0: bool,
    /// Where its port 0 stands; every node has a place for one, though only a switch has one.
    pub first_port: u32,
}

impl Node {
    /// Whether it is a host's adapter: an aggregation node is none, though NodeInfo calls it a CA.
    pub fn is_host(&self) -> bool {
        self.kind == NodeKind::Ca && !self.is_aggregation_node()
    }

    /// Whether it is the part of a switch that calls itself one.
    pub fn is_aggregation_node(&self) -> bool {
        self.kind == NodeKind::AggregationNode
            || self.kind == NodeKind::Ca
                && (is_aggregation_device(self.vendor_id, self.device_id)
                    || is_aggregation_node(&self.description, self.vendor_id))
    }
}

/// A port.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Its node.
    pub node: NodeId,
    /// Its number on the node.
    pub number: PortNumber,
    /// PortGUID.
    pub guid: Guid,
    /// The other end of its cable.
    pub cable: Option<PortId>,
    /// LinkWidthEnabled, a mask of codes.
    pub widths: u8,
    /// The speeds that are enabled.
    pub speeds: SpeedSet,
    /// The LID that the file gives it.
    pub lid: Option<Lid>,
    /// LID mask count.
    pub lmc: u8,
}

/// Nodes, ports and cables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Net {
    /// All nodes, in the order of the file.
    pub nodes: Vec<Node>,
    /// All ports, node by node, from each node's port 0 on.
    pub ports: Vec<Port>,
}

impl Net {
    /// A node by its id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// A port by its id.
    pub fn port(&self, id: PortId) -> &Port {
        &self.ports[id.0 as usize]
    }

    /// The node that a port belongs to.
    pub fn node_of(&self, port: PortId) -> &Node {
        self.node(self.port(port).node)
    }

    /// A node's port by its number, if it has one of that number.
    pub fn port_of(&self, node: NodeId, number: PortNumber) -> Option<PortId> {
        let of = self.node(node);
        (number <= of.port_count).then(|| PortId(of.first_port + u32::from(number)))
    }

    /// The ports of a node that cables can be plugged into: from 1 on.
    pub fn plugs_of(&self, node: NodeId) -> impl Iterator<Item = PortId> + use<> {
        let of = self.node(node);
        (of.first_port + 1..=of.first_port + u32::from(of.port_count)).map(PortId)
    }

    /// Where a subnet manager of a port's node sits: at an adapter's port, or at a switch's port 0.
    pub fn manager_seat(&self, port: PortId) -> PortId {
        let node = self.node_of(port);
        if node.kind == NodeKind::Switch { PortId(node.first_port) } else { port }
    }

    /// Whether a port was built to have a LID of its own: an adapter's with a cable, and a switch's
    /// port 0.
    pub fn has_lid(&self, port: PortId) -> bool {
        let of = self.port(port);
        match self.node_of(port).kind {
            NodeKind::Switch => of.number == 0,
            _ => of.cable.is_some(),
        }
    }

    /// All node ids.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// All port ids, the places of adapters' port 0 among them.
    pub fn port_ids(&self) -> impl Iterator<Item = PortId> + use<> {
        (0..self.ports.len() as u32).map(PortId)
    }

    /// A port as people write it: `leaf-1[7]`, with the node's id.
    pub fn label(&self, port: PortId) -> String {
        format!("{}[{}]", self.node_of(port).id, self.port(port).number)
    }
}
