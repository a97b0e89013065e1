//! Subnets: which ports can reach each other, their LIDs, and the subnet manager that gave them.

use std::collections::HashSet;

use crate::net::planes::planes;
use crate::net::{Net, PortId};
use ib_mad::Lid;
use ib_mad::node::NodeKind;

/// One subnet: a plane of the fabric.
#[derive(Clone, Debug)]
pub struct Subnet {
    /// The port that the master subnet manager sits at.
    pub master: PortId,
    /// Its LID, as everybody knows it that it has configured.
    pub sm_lid: Lid,
    /// Ports where a subnet manager has been the master, and stands by.
    pub standbys: Vec<PortId>,
    /// Whose a LID is.
    holders: Vec<Option<PortId>>,
    /// The ports that are to have LIDs, with their LMC, in the order in which they get them.
    members: Vec<(PortId, u8)>,
}

/// What belongs to no subnet that is managed.
const NONE: u8 = u8::MAX;

/// Which subnet each port is part of, by the cables as they were built: that of the first of these
/// ports that is in the same plane.
pub fn subnets_of(net: &Net, masters: &[PortId]) -> Vec<u8> {
    let planes = planes(net);
    let plane_of = |port: PortId| planes[port.0 as usize];
    let subnet = |port| masters.iter().position(|master| plane_of(*master) == plane_of(port));
    net.port_ids()
        .map(|port| subnet(port).and_then(|at| at.try_into().ok()).unwrap_or(NONE))
        .collect()
}

impl Subnet {
    /// A subnet of these ports, addressed: a LID that the file gives a port is kept.
    pub fn new(net: &Net, members: impl Iterator<Item = PortId>, master: PortId) -> Self {
        let with_lmc = |port: PortId| (port, net.port(port).lmc);
        let members = members.filter(|&port| net.has_lid(port)).map(with_lmc);
        let mut subnet = Subnet {
            master,
            sm_lid: Lid(0),
            standbys: Vec::new(),
            holders: Vec::new(),
            members: members.collect(),
        };
        for index in 0..subnet.members.len() {
            let (port, lmc) = subnet.members[index];
            let lid = net.port(port).lid.filter(|lid| lid.is_unicast());
            // Of two that claim one LID the first keeps it.
            if let Some(lid) = lid.filter(|&lid| subnet.is_free(lid, lmc)) {
                subnet.give(lid, lmc, port);
            }
        }
        subnet.fill();
        subnet
    }

    /// Whether a port can have the LIDs from this one on, 2^lmc of them.
    fn is_free(&self, lid: Lid, lmc: u8) -> bool {
        let last = Lid(lid.0.saturating_add((1 << lmc) - 1));
        last.is_unicast() && (lid.0..=last.0).all(|lid| self.holder(Lid(lid)).is_none())
    }

    fn give(&mut self, lid: Lid, lmc: u8, port: PortId) {
        let (first, count) = (usize::from(lid.0), 1 << lmc);
        if self.holders.len() < first + count {
            self.holders.resize(first + count, None);
        }
        self.holders[first..first + count].fill(Some(port));
    }

    /// Gives LIDs to every port that has none, the lowest first.
    fn fill(&mut self) {
        let held: HashSet<PortId> = self.holders.iter().flatten().copied().collect();
        let mut next = 1u16;
        for index in 0..self.members.len() {
            let (port, lmc) = self.members[index];
            if held.contains(&port) {
                continue;
            }
            // A port's LIDs are aligned, for it looks at none of their lowest bits.
            let step = 1u16 << lmc;
            next = next.next_multiple_of(step);
            while Lid(next).is_unicast() && !self.is_free(Lid(next), lmc) {
                next += step;
            }
            if Lid(next).is_unicast() {
                self.give(Lid(next), lmc, port);
            }
        }
    }

    /// Takes in a port that was not there before, and has LIDs for it if it is one to have its own.
    pub fn admit(&mut self, net: &Net, port: PortId) {
        let is_switch = net.node_of(port).kind == NodeKind::Switch;
        let number = net.port(port).number;
        if is_switch == (number == 0) {
            self.members.push((port, net.port(port).lmc));
            self.fill();
        }
    }

    /// Gives every port another LID: the ports in the opposite order.
    pub fn readdress(&mut self) {
        self.members.reverse();
        self.holders.clear();
        self.fill();
    }

    /// Whose a LID is.
    pub fn holder(&self, lid: Lid) -> Option<PortId> {
        self.holders.get(usize::from(lid.0)).copied().flatten()
    }

    /// The ports with LIDs, each with the first of its own.
    pub fn lids(&self) -> impl Iterator<Item = (Lid, PortId)> + '_ {
        let mut last = None;
        self.holders.iter().enumerate().filter_map(move |(lid, holder)| {
            let first = *holder != last;
            last = *holder;
            holder.filter(|_| first).map(|port| (Lid(lid as u16), port))
        })
    }

    /// The highest LID that was given.
    pub fn top(&self) -> Lid {
        Lid(self.holders.len().saturating_sub(1) as u16)
    }
}
