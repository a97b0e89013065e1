//! Planes of XDR fabrics: which ports are planes of one aggregated port.
//!
//! Sources: opensm/osm_planarized.h and ibdm/Fabric.h of NVIDIA (public with GPL and BSD headers). In a switch like the
//! Q3400 each of four nodes with one SystemImageGUID is a plane, and port n of each is a plane of aggregated port n.
//! In a prism switch one node has all planes of its ports: 4k + 1 to 4k + 4 are those of aggregated port k + 1. The
//! ports of a multi-plane adapter have one PortGUID and one LID.

use std::collections::HashMap;

use ib_mad::Guid;
use ib_mad::front_panel::AsicName;
use ib_mad::hierarchy::template;
use ib_mad::node::NodeKind;

use super::plane_port::PlanePort;
use super::topology::{Net, NodeId, PortId};

/// The most planes of a port.
pub const PLANES: u8 = 4;
/// The ports of a Q3400 that have cages, two in each.
pub const FRONT_PORTS: u8 = 144;
/// The ports of each node of a Q3400 that lead to the next one and to the one before: FNM, a ring.
pub const FNM_PORTS: [u8; 2] = [145, 146];
/// The port FNM1 at the front panel. Its number is an assumption, as are those of the two ports after it.
pub const FNM1_PORT: u8 = 147;
/// The port to the aggregation node.
pub const AGGREGATION_PORT: u8 = 148;
/// The port to the internal router.
pub const ROUTER_PORT: u8 = 149;
/// The ports of a prism switch at the front panel: so many have numbers below 255, with four planes each.
pub const PRISM_PORTS: u8 = 60;

impl Net {
    /// Whether any port is a plane.
    pub fn is_multi_plane(&self) -> bool {
        self.ports.iter().any(|port| port.plane.is_some())
    }

    /// The ports of the multi-plane adapter of a port, one for each plane; of another port only itself.
    pub fn plane_ports(&self, port: PortId) -> impl Iterator<Item = PortId> + Clone + use<> {
        let node = self.node_of(port);
        let is_plane = self.port(port).plane.is_some() && node.kind == NodeKind::Ca;
        let (first, last) = if is_plane {
            (node.first_port + 1, node.first_port + u32::from(node.port_count))
        } else {
            (port.0, port.0)
        };
        (first..=last).map(PortId)
    }

    /// Whether a link between two ports is one of the FNM ring in a switch: it carries management only.
    pub fn is_fnm_link(&self, one: PortId, other: PortId) -> bool {
        let (a, b) = (self.node_of(one), self.node_of(other));
        let are_asics = a.asic.is_some() && b.asic.is_some();
        are_asics && a.system_guid == b.system_guid && a.guid != b.guid
    }

    /// The number of a port at the front panel of an XDR switch; `None` of an internal port and of FNM1.
    pub fn front_port(&self, port: PortId) -> Option<u8> {
        let number = self.port(port).number;
        let is_prism = matches!(self.node_of(port).asic, Some(AsicName::A | AsicName::B));
        let front = if is_prism { number.div_ceil(PLANES) } else { number };
        let most = if is_prism { PRISM_PORTS } else { FRONT_PORTS };
        (1..=most).contains(&front).then_some(front)
    }

    /// The number of the cable in each port, the same at both ends: the planes of an aggregated port share one.
    pub fn cable_numbers(&self) -> Vec<u32> {
        let mut first: HashMap<(Guid, u8), PortId> = HashMap::new();
        let mut of_port = Vec::with_capacity(self.ports.len());
        for id in self.port_ids() {
            let (port, node) = (self.port(id), self.node_of(id));
            let system = if node.kind == NodeKind::Switch { node.system_guid } else { node.guid };
            let known = port.plane.map(|it| *first.entry((system, it.aggregated)).or_insert(id));
            of_port.push(known.unwrap_or(id).0);
        }
        let number = |id: PortId| {
            let own = of_port[id.0 as usize];
            self.port(id).cable.map_or(own, |far| own.min(of_port[far.0 as usize]))
        };
        self.port_ids().map(number).collect()
    }
}

/// Finds the planes of adapters whose ports share a PortGUID, and of switches of several nodes. The planes of prism
/// switches cannot be found so: nothing in a file tells them.
pub(super) fn find_planes(net: &mut Net) {
    let mut systems: HashMap<Guid, Vec<NodeId>> = HashMap::new();
    for id in net.node_ids() {
        let node = net.node(id);
        match node.model.hierarchy {
            template::XDR_ADAPTER => find_adapter_planes(net, id),
            template::XDR_SWITCH => systems.entry(node.system_guid).or_default().push(id),
            _ => {}
        }
    }
    for mut nodes in systems.into_values() {
        if !(2..=usize::from(PLANES)).contains(&nodes.len()) {
            continue;
        }
        nodes.sort_by_key(|id| net.node(*id).guid);
        let planes = nodes.len() as u8;
        for (plane, id) in (1..).zip(nodes) {
            net.nodes[id.0 as usize].asic = AsicName::from_discriminant(u32::from(plane));
            for port in net.cable_ports(id) {
                let number = net.port(port).number;
                if number <= FRONT_PORTS || number == FNM1_PORT {
                    let place = PlanePort { aggregated: number, plane, planes };
                    net.ports[port.0 as usize].plane = Some(place);
                }
            }
        }
    }
}

/// An adapter with two ports of one PortGUID is multi-plane: all its ports have that GUID, also those that a file
/// does not list.
fn find_adapter_planes(net: &mut Net, id: NodeId) {
    let guids: Vec<Guid> = net.cable_ports(id).map(|port| net.port(port).guid).collect();
    let shared = |guid: &&Guid| guids.iter().filter(|other| other == guid).count() > 1;
    let Some(&guid) = guids.iter().find(shared).filter(|_| guids.len() <= usize::from(PLANES))
    else {
        return;
    };
    let planes = guids.len() as u8;
    for (plane, port) in (1..).zip(net.cable_ports(id)) {
        let port = &mut net.ports[port.0 as usize];
        (port.guid, port.plane) = (guid, Some(PlanePort { aggregated: 1, plane, planes }));
    }
}
