//! Who can be reached from where: the ways that MADs take.

use std::collections::VecDeque;

use crate::net::PortId;
use ib_mad::PortNumber;
use ib_mad::node::NodeKind;

use super::World;

/// How many hops it is to each port that has a LID, from one port; `None` where no way leads.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    hops: Vec<Option<u8>>,
}

impl Reach {
    /// How far a port is.
    pub fn hops(&self, port: PortId) -> Option<u8> {
        self.hops.get(port.0 as usize).copied().flatten()
    }

    /// Walks from a port over links that have trained; with `active`, over those alone that carry
    /// more than subnet management.
    pub fn from(world: &World, seat: PortId, active: bool) -> Reach {
        let mut reach = Reach { hops: vec![None; world.net.ports.len()] };
        let carries = |port: PortId| {
            let state = world.port(port);
            state.trained.is_some() && (!active || state.is_active())
        };
        let mut switches = VecDeque::new();
        let start = world.net.port(seat).node;
        if !world.is_on(start) {
            return reach;
        }
        reach.set(seat, 0);
        if world.net.node(start).kind == NodeKind::Switch {
            switches.push_back((start, 0));
        } else if carries(seat) {
            reach.arrive(world, seat, 0, &mut switches);
        }
        while let Some((switch, hops)) = switches.pop_front() {
            for port in world.net.plugs_of(switch).filter(|&port| carries(port)) {
                reach.arrive(world, port, hops, &mut switches);
            }
        }
        reach
    }

    /// Crosses the cable at a port, into whoever is there.
    fn arrive(
        &mut self,
        world: &World,
        egress: PortId,
        hops: u8,
        switches: &mut VecDeque<(crate::net::NodeId, u8)>,
    ) {
        let Some(there) = world.port(egress).cable else { return };
        let hops = hops.saturating_add(1);
        let node = world.net.port(there).node;
        let known_as = if world.net.node(node).kind == NodeKind::Switch {
            PortId(world.net.node(node).first_port)
        } else {
            there
        };
        if self.hops(known_as).is_some() {
            return;
        }
        self.set(known_as, hops);
        if known_as != there {
            switches.push_back((node, hops));
        }
    }

    fn set(&mut self, port: PortId, hops: u8) {
        if let Some(place) = self.hops.get_mut(port.0 as usize) {
            *place = Some(hops);
        }
    }
}

/// Where a directed route leads: the port that it comes in by. A route of no hops stays at home.
pub fn follow(world: &World, seat: PortId, route: &[PortNumber]) -> Option<PortId> {
    let mut at = seat;
    if !world.is_on(world.net.port(seat).node) {
        return None;
    }
    for (hop, &egress) in route.iter().enumerate() {
        let node = world.net.port(at).node;
        let is_switch = world.net.node(node).kind == NodeKind::Switch;
        // Nothing is forwarded by an adapter, and out of our own leads its own port alone.
        let leads_on = is_switch || (hop == 0 && egress == world.net.port(seat).number);
        let egress = world.net.port_of(node, egress).filter(|_| leads_on && egress != 0)?;
        world.port(egress).trained?;
        at = world.port(egress).cable?;
    }
    Some(at)
}
