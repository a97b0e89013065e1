//! Who gets how much where not all fits: max-min fair sharing.
//!
//! Everybody's rate rises alike until it has what it wants or something on its way is full
//! ("progressive filling"; Bertsekas and Gallager, Data Networks, 6.5.2). That is what round-robin
//! arbiters come to at a single full port. Where many ports are full, arbiters share by input port
//! and not by flow (the "parking lot": who joins last gets the most); that is not modelled.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::net::PortId;

use super::routes::Routes;

/// Sums of many rates differ from what they should be by less than this part of them.
pub(super) const ROUNDING: f64 = 1e-9;

/// What each flow carries.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shares {
    /// By flow, in bytes a second.
    pub(super) rates: Vec<f64>,
    /// By flow: the full port that keeps it from carrying more, if one does.
    pub(super) held: Vec<Option<PortId>>,
}

impl Shares {
    /// Shares out `room`, by port, among flows that want `wants`. All must be finite and not
    /// negative, but for room, of which there may be infinitely much.
    pub(super) fn new(routes: &Routes, wants: &[f64], room: &[f64]) -> Shares {
        let mut shares = Shares { rates: wants.to_vec(), held: vec![None; wants.len()] };
        let mut scarce = Scarce::new(routes, wants, room);
        if !scarce.ports.is_empty() {
            scarce.fill(wants, &mut shares);
        }
        shares
    }

    /// Whether every flow has what it wants.
    pub(super) fn plenty(&self) -> bool {
        self.held.iter().all(Option::is_none)
    }
}

/// What all the flows of a port want together, by port.
pub(super) fn sums(routes: &Routes, wants: &[f64], ports: usize) -> Vec<f64> {
    let mut sums = vec![0.0; ports];
    for (way, want) in routes.ways().zip(wants) {
        for port in way {
            sums[port.0 as usize] += want;
        }
    }
    sums
}

/// A port that cannot carry all that is wanted of it.
struct Port {
    id: PortId,
    /// What the flows that are not settled yet can share.
    left: f64,
    /// How many those are.
    flows: u32,
    members: Vec<u32>,
}

impl Port {
    /// How far the rates of its flows can rise; `None` when all of them are settled.
    fn level(&self) -> Option<f64> {
        // Rounding may leave a little less than nothing.
        let left = if self.left > 0.0 { self.left } else { 0.0 };
        (self.flows > 0).then(|| left / f64::from(self.flows))
    }
}

/// The ports that are scarce, and who shares them; most ports of most fabrics never are.
struct Scarce {
    ports: Vec<Port>,
    /// For each flow that crosses scarce ports: its number, and their places.
    flows: Vec<(u32, Vec<u32>)>,
}

impl Scarce {
    fn new(routes: &Routes, wants: &[f64], room: &[f64]) -> Scarce {
        let mut places = vec![u32::MAX; room.len()];
        let mut ports = Vec::new();
        for (port, (&sum, &room)) in sums(routes, wants, room.len()).iter().zip(room).enumerate() {
            if sum > room * (1.0 + ROUNDING) {
                places[port] = ports.len() as u32;
                let id = PortId(port as u32);
                ports.push(Port { id, left: room, flows: 0, members: Vec::new() });
            }
        }
        let mut scarce = Scarce { ports, flows: Vec::new() };
        if scarce.ports.is_empty() {
            return scarce;
        }
        for (flow, way) in routes.ways().enumerate() {
            let on_way = way.iter().map(|port| places[port.0 as usize]);
            let on_way: Vec<u32> = on_way.filter(|&place| place != u32::MAX).collect();
            if on_way.is_empty() {
                continue;
            }
            for &place in &on_way {
                let port = &mut scarce.ports[place as usize];
                port.flows += 1;
                port.members.push(scarce.flows.len() as u32);
            }
            scarce.flows.push((flow as u32, on_way));
        }
        scarce
    }

    fn fill(&mut self, wants: &[f64], shares: &mut Shares) {
        let want = |flow: u32| wants[flow as usize];
        let mut modest: Vec<usize> = (0..self.flows.len()).collect();
        modest.sort_by(|&a, &b| want(self.flows[a].0).total_cmp(&want(self.flows[b].0)));
        let mut modest = modest.into_iter().peekable();
        let mut settled = vec![false; self.flows.len()];
        // The bits of floats that are not negative are in the order of the floats. What a port's
        // flows can rise to only grows as others settle: an entry that is out of date is too low,
        // and is put right when its turn comes.
        let entry = |port: &Port| port.level().map(f64::to_bits);
        let mut full: BinaryHeap<Reverse<(u64, usize)>> = self
            .ports
            .iter()
            .enumerate()
            .filter_map(|(place, port)| Some(Reverse((entry(port)?, place))))
            .collect();
        while let Some(Reverse((bits, place))) = full.pop() {
            let Some(now) = entry(&self.ports[place]) else { continue };
            if now > bits {
                full.push(Reverse((now, place)));
                continue;
            }
            let level = f64::from_bits(bits);
            while modest.next_if(|&flow| settled[flow]).is_some() {}
            if let Some(flow) = modest.next_if(|&flow| want(self.flows[flow].0) <= level) {
                settled[flow] = true;
                self.settle(flow, want(self.flows[flow].0));
                full.push(Reverse((bits, place)));
                continue;
            }
            for member in std::mem::take(&mut self.ports[place].members) {
                let member = member as usize;
                if !settled[member] {
                    settled[member] = true;
                    let flow = self.flows[member].0 as usize;
                    shares.rates[flow] = level;
                    shares.held[flow] = Some(self.ports[place].id);
                    self.settle(member, level);
                }
            }
        }
    }

    fn settle(&mut self, member: usize, rate: f64) {
        for &place in &self.flows[member].1 {
            let port = &mut self.ports[place as usize];
            port.left -= rate;
            port.flows -= 1;
        }
    }
}
