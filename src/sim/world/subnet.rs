//! Subnets: which ports can reach each other, their LIDs, and the subnet manager that gave them.

use std::collections::VecDeque;

use crate::fabric::Lid;
use crate::fabric::topology::NodeKind;
use crate::sim::net::{Net, PortId};

/// One subnet: a plane of the fabric.
#[derive(Clone, Debug)]
pub struct Subnet {
    /// The port that the master subnet manager sits at.
    pub master: PortId,
    /// How often a master has taken over, the first included; SMInfo's ActCount starts at each.
    pub takeovers: u32,
    /// Ports where a subnet manager has been the master, and stands by.
    pub standbys: Vec<PortId>,
    /// Whose a LID is.
    holders: Vec<Option<PortId>>,
    /// Which LIDs each port with a LID got, in the order of ports.
    members: Vec<PortId>,
}

/// The ports that have LIDs of their own: an adapter's that has ever had a cable, and a switch's
/// port 0.
fn addressed(net: &Net, port: PortId) -> bool {
    let is_switch = net.node_of(port).kind == NodeKind::Switch;
    match (is_switch, net.port(port).number) {
        (true, number) => number == 0,
        (false, 0) => false,
        (false, _) => net.port(port).cable.is_some(),
    }
}

/// Which subnet each port is part of, by the cables as they were built: 0 for what is reached from
/// the first port given, and so on; what none of them reaches gets numbers of its own.
pub fn planes(net: &Net, seats: &[PortId]) -> Vec<u8> {
    const NONE: u8 = u8::MAX;
    let mut plane = vec![NONE; net.ports.len()];
    for (number, &seat) in seats.iter().enumerate() {
        let number = number.min(usize::from(NONE) - 1) as u8;
        let mut queue = VecDeque::from([seat]);
        while let Some(port) = queue.pop_front() {
            if plane[port.0 as usize] != NONE {
                continue;
            }
            plane[port.0 as usize] = number;
            queue.extend(net.port(port).cable);
            // A switch joins all of its ports; an adapter none.
            if net.node_of(port).kind == NodeKind::Switch {
                let node = net.port(port).node;
                queue.extend(net.port_of(node, 0));
                queue.extend(net.plugs_of(node));
            }
        }
    }
    plane
}

impl Subnet {
    /// A subnet of these ports, addressed: a LID that the file gives a port is kept.
    pub fn new(net: &Net, members: impl Iterator<Item = PortId>, master: PortId) -> Self {
        let members: Vec<PortId> = members.filter(|&port| addressed(net, port)).collect();
        let mut subnet =
            Subnet { master, takeovers: 1, standbys: Vec::new(), holders: Vec::new(), members };
        let kept: Vec<(Lid, PortId)> = subnet
            .members
            .iter()
            .filter_map(|&port| Some((net.port(port).lid.filter(|lid| lid.is_unicast())?, port)))
            .collect();
        for (lid, port) in kept {
            let place = subnet.place(lid);
            // Of two that claim one LID the first keeps it.
            place.get_or_insert(port);
        }
        subnet.fill();
        subnet
    }

    fn place(&mut self, lid: Lid) -> &mut Option<PortId> {
        let at = usize::from(lid.0);
        if self.holders.len() <= at {
            self.holders.resize(at + 1, None);
        }
        &mut self.holders[at]
    }

    /// Gives a LID to every port that has none, the lowest first. There are 49,151 of them; ports
    /// that are too many stay without.
    fn fill(&mut self) {
        let held: std::collections::HashSet<PortId> =
            self.holders.iter().flatten().copied().collect();
        let mut next = 1;
        for index in 0..self.members.len() {
            let port = self.members[index];
            if held.contains(&port) {
                continue;
            }
            while self.holder(Lid(next)).is_some() {
                next += 1;
            }
            if Lid(next).is_unicast() {
                *self.place(Lid(next)) = Some(port);
            }
        }
    }

    /// Takes in a port that was not there before, and gives it a LID if it is one to have its own
    /// and there is one left.
    pub fn admit(&mut self, net: &Net, port: PortId) -> Option<Lid> {
        let is_switch = net.node_of(port).kind == NodeKind::Switch;
        let number = net.port(port).number;
        if is_switch != (number == 0) || self.members.contains(&port) {
            return None;
        }
        self.members.push(port);
        self.fill();
        self.lids().find(|(_, holder)| *holder == port).map(|(lid, _)| lid)
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

    /// All LIDs and whose they are.
    pub fn lids(&self) -> impl Iterator<Item = (Lid, PortId)> + '_ {
        self.holders
            .iter()
            .enumerate()
            .filter_map(|(lid, holder)| Some((Lid(lid as u16), (*holder)?)))
    }

    /// The highest LID that was given.
    pub fn top(&self) -> Lid {
        Lid(self.holders.len().saturating_sub(1) as u16)
    }
}
