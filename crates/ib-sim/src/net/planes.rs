//! Planes: the parts of a net between which no packet passes. A switch joins all of its ports; an
//! adapter forwards nothing, and joins none.

use ib_mad::node::NodeKind;

use super::{Net, PortId};

/// By port, the plane that it was built into, named by its lowest port.
pub fn planes(net: &Net) -> Vec<PortId> {
    let mut roots: Vec<u32> = (0..net.ports.len() as u32).collect();
    for node in net.nodes.iter().filter(|node| node.kind == NodeKind::Switch) {
        for port in 1..=u32::from(node.port_count) {
            join(&mut roots, node.first_port, node.first_port + port);
        }
    }
    for port in net.port_ids() {
        if let Some(peer) = net.port(port).cable {
            join(&mut roots, port.0, peer.0);
        }
    }
    (0..roots.len() as u32).map(|port| PortId(root(&mut roots, port))).collect()
}

fn root(roots: &mut [u32], port: u32) -> u32 {
    let mut top = port;
    while roots[top as usize] != top {
        // Halves the way for whoever comes next.
        roots[top as usize] = roots[roots[top as usize] as usize];
        top = roots[top as usize];
    }
    top
}

fn join(roots: &mut [u32], one: u32, other: u32) {
    let (one, other) = (root(roots, one), root(roots, other));
    roots[one.max(other) as usize] = one.min(other);
}
