//! Which ports can be reached from a port: the paths of MADs.

use std::collections::VecDeque;

use crate::net::{NodeId, PortId};
use ib_mad::PortNumber;
use ib_mad::node::NodeKind;

use super::Simulation;

/// The number of hops from one port to each port that has a LID; `None` without a path.
#[derive(Clone, Debug, Default)]
pub struct HopCounts {
    hops: Vec<Option<u8>>,
}

impl HopCounts {
    /// The number of hops to a port.
    pub fn to(&self, port: PortId) -> Option<u8> {
        self.hops.get(port.0 as usize).copied().flatten()
    }

    /// Counts the hops from a port over links that are trained; with `active`, over active links
    /// only, which carry more than subnet management.
    pub fn new(simulation: &Simulation, from: PortId, active: bool) -> HopCounts {
        let mut counts = HopCounts { hops: vec![None; simulation.net.ports.len()] };
        let carries = |port: PortId| {
            let state = simulation.port(port);
            state.trained.is_some() && (!active || state.is_active())
        };
        let mut switches = VecDeque::new();
        let start = simulation.net.port(from).node;
        if !simulation.is_on(start) {
            return counts;
        }
        counts.set(from, 0);
        if simulation.net.node(start).kind == NodeKind::Switch {
            switches.push_back((start, 0));
        } else if carries(from) {
            counts.cross(simulation, from, 0, &mut switches);
        }
        while let Some((switch, hops)) = switches.pop_front() {
            for port in simulation.net.cable_ports(switch).filter(|&port| carries(port)) {
                counts.cross(simulation, port, hops, &mut switches);
            }
        }
        counts
    }

    /// Crosses the cable at a port.
    fn cross(
        &mut self,
        simulation: &Simulation,
        egress: PortId,
        hops: u8,
        switches: &mut VecDeque<(NodeId, u8)>,
    ) {
        let Some(there) = simulation.port(egress).cable else { return };
        let hops = hops.saturating_add(1);
        let node = simulation.net.port(there).node;
        let addressed = if simulation.net.node(node).kind == NodeKind::Switch {
            PortId(simulation.net.node(node).first_port)
        } else {
            there
        };
        if self.to(addressed).is_some() {
            return;
        }
        self.set(addressed, hops);
        if addressed != there {
            switches.push_back((node, hops));
        }
    }

    fn set(&mut self, port: PortId, hops: u8) {
        if let Some(place) = self.hops.get_mut(port.0 as usize) {
            *place = Some(hops);
        }
    }
}

/// The port at the end of a directed route; without hops it is the first port itself.
pub fn follow_route(simulation: &Simulation, from: PortId, route: &[PortNumber]) -> Option<PortId> {
    let mut at = from;
    if !simulation.is_on(simulation.net.port(from).node) {
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
