//! Subnets: their ports, LIDs and subnet managers.

use std::collections::{BTreeMap, HashSet};

use crate::net::{Net, PortId};
use ib_mad::node::NodeKind;
use ib_mad::{Lid, Moment};

/// A subnet: a plane of the fabric with a subnet manager.
#[derive(Clone, Debug)]
pub struct Subnet {
    /// The port of the master subnet manager.
    pub master: PortId,
    /// Its LID, as configured at all ports.
    pub sm_lid: Lid,
    pub next_sweep: Option<Moment>,
    /// Ports of subnet managers that have been the master, and are standby now.
    pub standbys: Vec<PortId>,
    /// All LIDs of each port: as many as its LMC says, one after the other.
    pub lids: BTreeMap<Lid, PortId>,
    /// The ports that get LIDs, with their LMC, in the order of assignment.
    members: Vec<(PortId, u8)>,
}

/// The index of each port's subnet, by the cables as built: that of the first master in the same plane.
pub fn subnet_indices(net: &Net, masters: &[PortId]) -> Vec<Option<u8>> {
    let planes = net.planes();
    let plane_of = |port: PortId| planes[port.0 as usize];
    let subnet = |port| masters.iter().position(|master| plane_of(*master) == plane_of(port));
    net.port_ids().map(|port| subnet(port)?.try_into().ok()).collect()
}

impl Subnet {
    /// A subnet of these ports with LIDs. Those of the file are kept.
    pub fn new(net: &Net, members: impl Iterator<Item = PortId>, master: PortId) -> Self {
        let with_lmc = |port: PortId| (port, net.port(port).lmc);
        let members = members.filter(|&port| net.has_lid(port)).map(with_lmc);
        let mut subnet = Subnet {
            master,
            sm_lid: Lid(0),
            next_sweep: None,
            standbys: Vec::new(),
            lids: BTreeMap::new(),
            members: members.collect(),
        };
        for (port, lmc) in subnet.members.clone() {
            let lid = net.port(port).lid.filter(|lid| lid.is_unicast());
            // Of two ports with one LID the first keeps it.
            if let Some(lid) = lid.filter(|&lid| subnet.is_free(lid, lmc)) {
                subnet.assign(lid, lmc, port);
            }
        }
        subnet.assign_missing();
        subnet
    }

    fn is_free(&self, lid: Lid, lmc: u8) -> bool {
        let last = Lid(lid.0.saturating_add((1 << lmc) - 1));
        last.is_unicast() && self.lids.range(lid..=last).next().is_none()
    }

    fn assign(&mut self, lid: Lid, lmc: u8, port: PortId) {
        self.lids.extend((lid.0..lid.0 + (1 << lmc)).map(|lid| (Lid(lid), port)));
    }

    /// Assigns LIDs to every port without one, the lowest first.
    fn assign_missing(&mut self) {
        let held: HashSet<PortId> = self.lids.values().copied().collect();
        let mut next = 1u16;
        for (port, lmc) in self.members.clone() {
            if held.contains(&port) {
                continue;
            }
            // A port's LIDs are aligned: it ignores their lowest bits.
            let step = 1u16 << lmc;
            next = next.next_multiple_of(step);
            while Lid(next).is_unicast() && !self.is_free(Lid(next), lmc) {
                next += step;
            }
            if Lid(next).is_unicast() {
                self.assign(Lid(next), lmc, port);
            }
        }
    }

    /// Adds a port, with LIDs if it is one that gets them.
    pub fn add_port(&mut self, net: &Net, port: PortId) {
        let is_switch = net.node_of(port).kind == NodeKind::Switch;
        let number = net.port(port).number;
        let end = net.sm_port(port);
        // Another plane of a multi-plane adapter has the LID of the first.
        let is_new = end == port || self.members.iter().all(|(member, _)| *member != end);
        if is_switch == (number == 0) && is_new {
            self.members.push((end, net.port(end).lmc));
            self.assign_missing();
        }
    }

    /// Gives every port another LID, in the opposite order.
    pub fn reassign_lids(&mut self) {
        self.members.reverse();
        self.lids.clear();
        self.assign_missing();
    }
}
