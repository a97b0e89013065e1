//! What traffic does to ports: who carries how much, who waits, what gets lost on the way.
//!
//! All of it is a pure function of the fabric and its flows, in means over a second or more: there
//! are no single packets here, no bursts and no chance. [`routes`] says which way a flow goes;
//! `errors`, what it has to send again; `share`, how much of that there is room for; and `wait`,
//! who waits where there is not.

mod errors;
pub mod routes;
mod share;
#[cfg(test)]
mod tests;
mod wait;

use super::net::{Net, PortId};
use routes::Routes;
use wait::{Lanes, Outcome};

/// Traffic from one adapter's port to another's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The port that sends.
    pub from: PortId,
    /// The port that receives.
    pub to: PortId,
    /// What it would carry if nothing held it up, in bytes a second.
    pub offered: f64,
    /// The size of its packets, headers included.
    pub packet: u32,
}

/// The fabric as its traffic finds it. All slices are by [`PortId`].
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// What was built: which port is which node's.
    pub net: &'a Net,
    /// Where each port's cable leads now, if that link carries traffic.
    pub links: &'a [Option<PortId>],
    /// What each port's link carries, in bytes a second each way.
    pub capacity: &'a [f64],
    /// What an adapter takes in through the port, in bytes a second; infinite for a sound one.
    pub intake: &'a [f64],
    /// The bit error ratio of what comes in at the port, behind any forward error correction.
    pub bit_errors: &'a [f64],
}

/// What goes on at a port, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortLoad {
    /// Bytes sent, those of packets that are sent again included.
    pub xmit_bytes: f64,
    /// Packets sent.
    pub xmit_packets: f64,
    /// Bytes received.
    pub rcv_bytes: f64,
    /// Packets received.
    pub rcv_packets: f64,
    /// The share of time, 0 to 1, in which there was something to send and no credit to send it.
    pub waiting: f64,
    /// Packets discarded here because they stood at the head of the queue for too long.
    pub hoq_discards: f64,
    /// Packets discarded here because the way on is down.
    pub inactive_discards: f64,
    /// Packets that came in with an error that this link made.
    pub rcv_errors: f64,
    /// Packets that came in marked bad by an upstream switch.
    pub rcv_remote_physical_errors: f64,
}

/// What the flows do to all ports, by [`PortId`].
#[cfg(test)]
fn load(conditions: &Conditions, flows: &[Flow]) -> Vec<PortLoad> {
    Routed::new(conditions.net, conditions.links, flows).load(conditions)
}

/// Flows with their ways: what stays the same while no link comes or goes.
///
/// A flow from a port to itself, or to one that it has no way to, carries nothing: the subnet
/// manager gives it no path, so that its packets are never sent. Those that are under way when a
/// link fails are whose simulation moves in time: `inactive_discards` is 0 here.
#[derive(Clone, Debug)]
pub struct Routed {
    flows: Vec<Flow>,
    routes: Routes,
    links: Vec<Option<PortId>>,
}

/// More than any port carries, in bytes a second; what a flow offers above it changes nothing.
const MOST: f64 = 1e15;

impl Routed {
    /// Finds the ways of the flows over the present links.
    pub fn new(net: &Net, links: &[Option<PortId>], flows: &[Flow]) -> Routed {
        let pairs: Vec<_> = flows.iter().map(|flow| (flow.from, flow.to)).collect();
        let routes = Routes::new(net, links, &pairs);
        Routed { flows: flows.to_vec(), routes, links: links.to_vec() }
    }

    /// The ways of the flows, by their numbers.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// What the flows do to all ports. The net and the links of the conditions must be those that
    /// the ways were found for; what is read of them here is the rest.
    pub fn load(&self, conditions: &Conditions) -> Vec<PortLoad> {
        let lanes = self.lanes(conditions);
        let (wants, lost) = self.wants(conditions, &lanes);
        let outcome = wait::settle(&self.routes, &wants, &lanes);
        self.tally(conditions, &outcome, &lost)
    }

    /// The port that receives what this one sends.
    fn end(&self, port: PortId) -> Option<PortId> {
        self.links.get(port.0 as usize).copied().flatten()
    }

    fn lanes(&self, conditions: &Conditions) -> Lanes {
        let ports = 0..self.links.len() as u32;
        let capacity = ports.map(|port| at_least_0(conditions.capacity, PortId(port), 0.0));
        let capacity: Vec<f64> = capacity.collect();
        let mut room = capacity.clone();
        // Only where ways end: a switch takes in whatever it can pass on.
        for port in self.routes.ways().filter_map(<[PortId]>::last) {
            if let Some(end) = self.end(*port) {
                let room = &mut room[port.0 as usize];
                *room = at_least_0(conditions.intake, end, f64::INFINITY).min(*room);
            }
        }
        Lanes { capacity, room }
    }

    /// By flow, what it tries to carry with all that is sent again, and the share that is lost.
    fn wants(&self, conditions: &Conditions, lanes: &Lanes) -> (Vec<f64>, Vec<f64>) {
        let of = |(flow, way): (&Flow, &[PortId])| {
            let Some(first) = way.first() else { return (0.0, 0.0) };
            let damages = self.damages(conditions, way, flow.packet);
            let lost = damages.last().map_or(0.0, |(_, last)| last.marked + last.spoilt);
            let offered = if flow.offered > 0.0 { flow.offered.min(MOST) } else { 0.0 };
            let most = lanes.capacity[first.0 as usize].min(MOST);
            ((offered * errors::growth(lost)).min(most), lost)
        };
        self.flows.iter().zip(self.routes.ways()).map(of).unzip()
    }

    /// The damage to a flow's packets at each port that receives them.
    fn damages(
        &self,
        conditions: &Conditions,
        way: &[PortId],
        packet: u32,
    ) -> impl Iterator<Item = (PortId, errors::Damage)> {
        let ends = way.iter().filter_map(|&port| self.end(port));
        let ratios = ends.clone().map(|end| at_least_0(conditions.bit_errors, end, 0.0));
        ends.zip(errors::damages(ratios, packet))
    }

    fn tally(&self, conditions: &Conditions, outcome: &Outcome, lost: &[f64]) -> Vec<PortLoad> {
        let mut loads = vec![PortLoad::default(); self.links.len()];
        for (load, waiting) in loads.iter_mut().zip(&outcome.waiting) {
            load.waiting = *waiting;
        }
        for (flow, way) in self.routes.ways().enumerate() {
            let (packet, rate) = (self.flows[flow].packet, outcome.rates[flow]);
            self.carry(&mut loads, way, rate, packet);
            if lost[flow] > 0.0 {
                let packets = rate / packet_bytes(packet);
                for (end, damage) in self.damages(conditions, way, packet) {
                    let load = &mut loads[end.0 as usize];
                    load.rcv_errors += packets * damage.spoilt;
                    load.rcv_remote_physical_errors += packets * damage.marked;
                }
            }
        }
        for discard in &outcome.discards {
            let Some(way) = self.routes.way(discard.flow as usize) else { continue };
            let packet = self.flows[discard.flow as usize].packet;
            self.carry(&mut loads, &way[..discard.hop], discard.bytes, packet);
            loads[way[discard.hop].0 as usize].hoq_discards += discard.bytes / packet_bytes(packet);
        }
        loads
    }

    /// Adds to what the ports of a way send, and those at the far ends receive.
    fn carry(&self, loads: &mut [PortLoad], way: &[PortId], bytes: f64, packet: u32) {
        let packets = bytes / packet_bytes(packet);
        for &port in way {
            let load = &mut loads[port.0 as usize];
            load.xmit_bytes += bytes;
            load.xmit_packets += packets;
            if let Some(end) = self.end(port) {
                let load = &mut loads[end.0 as usize];
                load.rcv_bytes += bytes;
                load.rcv_packets += packets;
            }
        }
    }
}

/// The size of a packet: at least a byte, so that there is a number of them.
fn packet_bytes(packet: u32) -> f64 {
    f64::from(packet.max(1))
}

/// A port's value that must be a number from 0 on: `missing` if there is none.
fn at_least_0(values: &[f64], port: PortId, missing: f64) -> f64 {
    let value = values.get(port.0 as usize).copied().unwrap_or(missing);
    if value.is_nan() { missing } else { value.max(0.0) }
}
