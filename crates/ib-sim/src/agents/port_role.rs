//! Roles of ports: whether a cable leads from them.

use ib_mad::device::QUANTUM_3;
use ib_mad::node::{NodeKind, PortRole};

use crate::net::{Net, PortId};

/// The role of a port of a Quantum-3: cables between the ASICs of one system are FNM, and an
/// internal router is behind the ports at the front panel.
pub(super) fn role(net: &Net, port: PortId) -> PortRole {
    let node = net.node_of(port);
    let Some(peer) = net.port(port).cable.map(|peer| net.node_of(peer)) else {
        return PortRole::Cable;
    };
    let same_system = peer.system_guid == node.system_guid && peer.guid != node.guid;
    match (node.device_id, peer.kind) {
        (QUANTUM_3, NodeKind::Switch) if same_system => PortRole::Fnm,
        (QUANTUM_3, NodeKind::Router) if net.front_port(port).is_none() => PortRole::Router,
        (QUANTUM_3, _) if peer.is_aggregation_node() => PortRole::Other,
        _ => PortRole::Cable,
    }
}
