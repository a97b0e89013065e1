//! Which ports MADs reach, and by how many hops.

use std::collections::VecDeque;

use crate::net::PortId;
use ib_mad::PortNumber;
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortState;

use super::state::Simulation;

/// The number of hops from one port to each port that has a LID; `None` without a path.
#[derive(Clone, Debug, Default)]
pub struct HopCounts(Vec<Option<u8>>);

impl HopCounts {
    pub fn to(&self, port: PortId) -> Option<u8> {
        self.0.get(port.0 as usize).copied().flatten()
    }

    /// Counts the hops from a port over links that are trained; with `active`, over active links
    /// only, which carry more than subnet management.
    pub fn new(simulation: &Simulation, from: PortId, active: bool) -> HopCounts {
        let net = &simulation.net;
        let mut counts = vec![None; net.ports.len()];
        let start = net.port(from).node;
        if !simulation.node(start).on {
            return HopCounts(counts);
        }
        counts[from.0 as usize] = Some(0);
        counts[net.sm_port(from).0 as usize] = Some(0);
        // The ports that packets leave by, the nearest first.
        let mut egress = VecDeque::new();
        if net.node(start).kind == NodeKind::Switch {
            egress.extend(net.cable_ports(start).map(|port| (port, 0u8)));
        } else {
            // A multi-plane adapter sends by any of its planes.
            egress.extend(net.plane_ports(from).map(|port| (port, 0)));
        }
        while let Some((port, hops)) = egress.pop_front() {
            let state = simulation.port(port);
            let carries = state.trained.is_some() && (!active || state.state == PortState::Active);
            let Some(there) = state.cable.filter(|_| carries) else { continue };
            let (addressed, hops) = (net.sm_port(there), hops.saturating_add(1));
            let known = &mut counts[addressed.0 as usize];
            if known.is_some() {
                continue;
            }
            *known = Some(hops);
            // An adapter forwards nothing.
            if net.node_of(there).kind == NodeKind::Switch {
                egress.extend(net.cable_ports(net.port(there).node).map(|port| (port, hops)));
            }
        }
        HopCounts(counts)
    }
}

/// The port at the end of a directed route; without hops it is the first port itself.
pub fn follow_route(simulation: &Simulation, from: PortId, route: &[PortNumber]) -> Option<PortId> {
    let mut at = from;
    if !simulation.node(simulation.net.port(from).node).on {
        return None;
    }
    for (hop, &egress) in route.iter().enumerate() {
        let node = simulation.net.port(at).node;
        let is_switch = simulation.net.node(node).kind == NodeKind::Switch;
        // An adapter forwards nothing; the first hop leaves it by its own port.
        let forwards = is_switch || (hop == 0 && egress == simulation.net.port(from).number);
        let egress =
            simulation.net.port_by_number(node, egress).filter(|_| forwards && egress != 0)?;
        simulation.port(egress).trained?;
        at = simulation.port(egress).cable?;
    }
    Some(at)
}
