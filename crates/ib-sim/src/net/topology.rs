//! Nodes, ports and cables.

use ib_mad::front_panel::AsicName;
use ib_mad::node::NodeKind;
use ib_mad::smp::{is_aggregation_device, is_aggregation_node};
use ib_mad::{Guid, Lid, PortNumber};

use super::plane_port::PlanePort;
use super::rates::Rates;
use crate::device::DeviceModel;

/// The index of a node in [`Net::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// The index of a port in [`Net::ports`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// A node.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of NodeInfo")]
pub struct Node {
    /// Its unique name in the file or generator it comes from.
    pub id: String,
    pub description: String,
    pub kind: NodeKind,
    pub guid: Guid,
    pub system_guid: Guid,
    pub vendor_id: u32,
    pub device_id: u16,
    /// What its agents support.
    pub model: &'static DeviceModel,
    /// The number of physical ports.
    pub port_count: u8,
    /// An enhanced switch port 0: a full endpoint.
    pub enhanced_port0: bool,
    /// Which ASIC of a multi-plane switch it is.
    pub asic: Option<AsicName>,
    /// The [`PortId`] of port 0. Every node has an entry for it, though only a switch has the port.
    pub first_port: u32,
}

impl Node {
    /// Whether it is a host's adapter. An aggregation node is not, though NodeInfo calls it a CA.
    pub fn is_host(&self) -> bool {
        self.kind == NodeKind::Ca && !self.is_aggregation_node()
    }

    /// Whether it is an aggregation node (SHARP): a part of a switch.
    pub fn is_aggregation_node(&self) -> bool {
        self.kind == NodeKind::AggregationNode
            || self.kind == NodeKind::Ca
                && (is_aggregation_device(self.vendor_id, self.device_id)
                    || is_aggregation_node(&self.description, self.vendor_id))
    }
}

/// A port.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are those of PortInfo")]
pub struct Port {
    pub node: NodeId,
    pub number: PortNumber,
    pub guid: Guid,
    /// The peer of its cable.
    pub cable: Option<PortId>,
    /// What is enabled.
    pub rates: Rates,
    /// Its plane, if it is a port of a multi-plane system.
    pub plane: Option<PlanePort>,
    /// Its LID in the file.
    pub lid: Option<Lid>,
    /// The number of low bits of its LIDs that it ignores.
    pub lmc: u8,
}

/// Nodes, ports and cables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Net {
    /// In the order of the file.
    pub nodes: Vec<Node>,
    /// By node, from port 0 on.
    pub ports: Vec<Port>,
}

impl Net {
    /// The node of an id.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The port of an id.
    pub fn port(&self, id: PortId) -> &Port {
        &self.ports[id.0 as usize]
    }

    /// The node that a port belongs to.
    pub fn node_of(&self, port: PortId) -> &Node {
        self.node(self.port(port).node)
    }

    /// A node's port by its number.
    pub fn port_by_number(&self, node: NodeId, number: PortNumber) -> Option<PortId> {
        let of = self.node(node);
        (number <= of.port_count).then(|| PortId(of.first_port + u32::from(number)))
    }

    /// The ports of a node that take cables: from 1 on.
    pub fn cable_ports(&self, node: NodeId) -> impl Iterator<Item = PortId> + use<> {
        let of = self.node(node);
        (of.first_port + 1..=of.first_port + u32::from(of.port_count)).map(PortId)
    }

    /// The port of a subnet manager on a port's node, which stands for all that have its LID: an adapter's own port, of
    /// a multi-plane adapter that of the first plane, or a switch's port 0.
    pub fn sm_port(&self, port: PortId) -> PortId {
        let node = self.node_of(port);
        match node.kind {
            NodeKind::Switch => PortId(node.first_port),
            _ => self.plane_ports(port).next().unwrap_or(port),
        }
    }

    /// Whether a port gets a LID of its own: an adapter's with a cable (the first plane for all), and a switch's port 0.
    pub fn has_lid(&self, port: PortId) -> bool {
        let of = self.port(port);
        match self.node_of(port).kind {
            NodeKind::Switch => of.number == 0,
            NodeKind::Ca | NodeKind::Router | NodeKind::AggregationNode => {
                let mut planes = self.plane_ports(port);
                self.sm_port(port) == port && planes.any(|port| self.port(port).cable.is_some())
            }
        }
    }

    /// Whether the cable between two ports is optical: copper to hosts, active optical cables between switches.
    pub fn is_optical(&self, port: PortId, peer: PortId) -> bool {
        [port, peer].iter().all(|end| self.node_of(*end).kind == NodeKind::Switch)
    }

    /// All node ids.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// All port ids, with those of adapters' port 0.
    pub fn port_ids(&self) -> impl Iterator<Item = PortId> + use<> {
        (0..self.ports.len() as u32).map(PortId)
    }

    /// A port as in scenarios: `leaf-1[7]`, with the node's id.
    pub fn label(&self, port: PortId) -> String {
        format!("{}[{}]", self.node_of(port).id, self.port(port).number)
    }

    /// The separate fabric ("plane" of a fat tree) of each port: the ports between which packets can pass, named by the
    /// lowest of them. A switch joins all of its ports; an adapter forwards nothing, and joins none but the planes of a
    /// multi-plane one, which have one subnet manager.
    pub fn planes(&self) -> Vec<PortId> {
        const UNKNOWN: PortId = PortId(u32::MAX);
        let mut planes = vec![UNKNOWN; self.ports.len()];
        let mut joined = Vec::new();
        for plane in self.port_ids() {
            joined.push(plane);
            while let Some(port) = joined.pop() {
                let known = &mut planes[port.0 as usize];
                if *known != UNKNOWN {
                    continue;
                }
                *known = plane;
                joined.extend(self.port(port).cable);
                let zero = self.sm_port(port);
                if zero != port {
                    joined.push(zero);
                } else if self.node_of(port).kind == NodeKind::Switch {
                    joined.extend(self.cable_ports(self.port(port).node));
                } else {
                    joined.extend(self.plane_ports(port));
                }
            }
        }
        planes
    }
}
