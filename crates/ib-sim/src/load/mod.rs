//! The load of ports by traffic: bytes, packets, waits and losses.
//!
//! It is a pure function of the fabric and its flows, in means over a second or more: without
//! single packets, bursts and randomness. [`routes`] finds the path of a flow; `share` how
//! much of it fits with what is retransmitted; and `wait` which ports wait where it does not.

pub(crate) mod forwarding;
pub mod routes;
mod share;
#[cfg(test)]
mod tests;
mod wait;

use super::net::{Net, PortId};
use wait::{Capacities, Outcome};

/// Traffic from one adapter's port to another's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// The port that sends.
    pub from: PortId,
    /// The port that receives.
    pub to: PortId,
    /// What it would carry without any limit, in bytes a second.
    pub offered: f64,
    /// The size of its packets with headers, in bytes.
    pub packet: u32,
}

/// The state of the fabric. All slices are by [`PortId`].
#[derive(Clone, Copy, Debug)]
pub struct Conditions<'a> {
    /// The rate of each port's link, in bytes a second each path.
    pub capacity: &'a [f64],
    /// The receive rate of the adapter at the port, in bytes a second; infinite without a limit.
    pub intake: &'a [f64],
    /// The bit error ratio of received bits, after any forward error correction.
    pub bit_errors: &'a [f64],
}

/// The load of a port, per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortLoad {
    /// Bytes sent, with retransmissions.
    pub xmit_bytes: f64,
    /// Packets sent.
    pub xmit_packets: f64,
    /// Bytes received.
    pub rcv_bytes: f64,
    /// Packets received.
    pub rcv_packets: f64,
    /// The fraction of time with packets to send and without credits to send them.
    pub waiting: f64,
    /// Packets discarded because they were at the head of the queue for too long.
    pub hoq_discards: f64,
    /// Packets received with an error of this link.
    pub rcv_errors: f64,
    /// Packets received that an upstream switch has marked bad.
    pub rcv_remote_physical_errors: f64,
}

/// Flows with their paths, which stay the same until a link changes.
///
/// A flow from a port to itself, or without a path, carries nothing: the subnet manager has no path record for
/// it, so its packets are never sent. Packets in transit when a link fails are not part of this model.
#[derive(Clone, Debug)]
pub struct RoutedFlows {
    flows: Vec<Flow>,
    /// The paths of the flows, empty without a path.
    pub paths: Vec<Vec<PortId>>,
    links: Vec<Option<PortId>>,
}

/// More than any port carries, in bytes a second: what a flow offers above it makes no difference.
const MAX_OFFERED: f64 = 1e15;

impl RoutedFlows {
    /// Finds the paths of the flows over the present links.
    pub fn new(net: &Net, links: &[Option<PortId>], flows: &[Flow]) -> RoutedFlows {
        let pairs: Vec<_> = flows.iter().map(|flow| (flow.from, flow.to)).collect();
        let paths = routes::paths(net, links, &pairs);
        let mut flows = flows.to_vec();
        share_planes(net, &mut flows, &paths);
        RoutedFlows { flows, paths, links: links.to_vec() }
    }

    /// The load of all ports.
    pub fn load(&self, conditions: &Conditions) -> Vec<PortLoad> {
        let capacities = self.capacities(conditions);
        let (demands, lost) = self.demands(conditions, &capacities);
        let outcome = wait::solve(&self.paths, &demands, &capacities);
        self.port_loads(conditions, &outcome, &lost)
    }

    /// The peer of a port.
    fn peer(&self, port: PortId) -> Option<PortId> {
        self.links.get(port.0 as usize).copied().flatten()
    }

    fn capacities(&self, conditions: &Conditions) -> Capacities {
        let ports = 0..self.links.len() as u32;
        let capacity = ports.map(|port| non_negative(conditions.capacity, PortId(port), 0.0));
        let capacity: Vec<f64> = capacity.collect();
        let mut intake = capacity.clone();
        // Only at the ends of paths: a switch accepts what it can forward.
        for port in self.paths.iter().filter_map(|path| path.last()) {
            if let Some(end) = self.peer(*port) {
                let intake = &mut intake[port.0 as usize];
                *intake = non_negative(conditions.intake, end, f64::INFINITY).min(*intake);
            }
        }
        Capacities { link: capacity, intake }
    }

    /// What each flow tries to carry with retransmissions, and the fraction that is lost.
    fn demands(&self, conditions: &Conditions, capacities: &Capacities) -> (Vec<f64>, Vec<f64>) {
        let of = |(flow, path): (&Flow, &Vec<PortId>)| {
            let Some(first) = path.first() else { return (0.0, 0.0) };
            let errors = self.packet_errors(conditions, path, flow.packet);
            let lost = errors.last().map_or(0.0, |(_, last)| last.remote + last.local);
            let offered = if flow.offered > 0.0 { flow.offered.min(MAX_OFFERED) } else { 0.0 };
            let most = capacities.link[first.0 as usize].min(MAX_OFFERED);
            ((offered * retransmission_factor(lost)).min(most), lost)
        };
        self.flows.iter().zip(&self.paths).map(of).unzip()
    }

    /// The errors of a flow's packets at each port that receives them.
    fn packet_errors(
        &self,
        conditions: &Conditions,
        path: &[PortId],
        packet: u32,
    ) -> impl Iterator<Item = (PortId, PacketErrors)> {
        let ends = path.iter().filter_map(|&port| self.peer(port));
        let ratios = ends.clone().map(|end| non_negative(conditions.bit_errors, end, 0.0));
        ends.zip(packet_errors(ratios, packet))
    }

    fn port_loads(
        &self,
        conditions: &Conditions,
        outcome: &Outcome,
        lost: &[f64],
    ) -> Vec<PortLoad> {
        let mut loads = vec![PortLoad::default(); self.links.len()];
        for (load, waiting) in loads.iter_mut().zip(&outcome.waiting) {
            load.waiting = *waiting;
        }
        for (flow, path) in self.paths.iter().enumerate() {
            let (packet, rate) = (self.flows[flow].packet, outcome.rates[flow]);
            self.add_traffic(&mut loads, path, rate, packet);
            if lost[flow] > 0.0 {
                let packets = rate / packet_bytes(packet);
                for (end, errors) in self.packet_errors(conditions, path, packet) {
                    let load = &mut loads[end.0 as usize];
                    load.rcv_errors += packets * errors.local;
                    load.rcv_remote_physical_errors += packets * errors.remote;
                }
            }
        }
        for discard in &outcome.discards {
            let (path, packet) = (&self.paths[discard.flow], self.flows[discard.flow].packet);
            self.add_traffic(&mut loads, &path[..discard.hop], discard.bytes, packet);
            loads[path[discard.hop].0 as usize].hoq_discards +=
                discard.bytes / packet_bytes(packet);
        }
        loads
    }

    /// Adds to what the ports of a path send, and their peers receive.
    fn add_traffic(&self, loads: &mut [PortLoad], path: &[PortId], bytes: f64, packet: u32) {
        let packets = bytes / packet_bytes(packet);
        for &port in path {
            let load = &mut loads[port.0 as usize];
            load.xmit_bytes += bytes;
            load.xmit_packets += packets;
            if let Some(end) = self.peer(port) {
                let load = &mut loads[end.0 as usize];
                load.rcv_bytes += bytes;
                load.rcv_packets += packets;
            }
        }
    }
}

/// A multi-plane adapter sends to another one by the planes that have a path, and these carry the share of the others.
fn share_planes(net: &Net, flows: &mut [Flow], paths: &[Vec<PortId>]) {
    let mut first = 0;
    let is_known = |port: PortId| (port.0 as usize) < net.ports.len();
    let end = |port: PortId| if is_known(port) { net.sm_port(port) } else { port };
    let ends = |flow: &Flow| (end(flow.from), end(flow.to));
    for planes in flows.chunk_by_mut(|a, b| ends(a) == ends(b)) {
        let paths = &paths[first..first + planes.len()];
        first += planes.len();
        let is_open = |path: &&Vec<PortId>| !path.is_empty();
        let open = paths.iter().filter(is_open).count();
        if open == 0 || open == planes.len() {
            continue;
        }
        let offered: f64 = planes.iter().map(|flow| flow.offered).sum();
        for (flow, path) in planes.iter_mut().zip(paths) {
            flow.offered = if path.is_empty() { 0.0 } else { offered / open as f64 };
        }
    }
}

/// The size of a packet: at least a byte, to divide by it.
fn packet_bytes(packet: u32) -> f64 {
    f64::from(packet.max(1))
}

/// A port's value, which has to be a number and not negative; `missing` if there is none.
fn non_negative(values: &[f64], port: PortId, missing: f64) -> f64 {
    let value = values.get(port.0 as usize).copied().unwrap_or(missing);
    if value.is_nan() { missing } else { value.max(0.0) }
}

/// The packets in transit after a lost one, which are sent again with it: the reliable transport
/// goes back to the lost packet (IBTA 1.4, 9.7). 16 packets of 4 KiB are what a 100 Gb/s link
/// carries in 5 µs, the round trip of a message in a fabric under load.
const OUTSTANDING: f64 = 16.0;
/// Retransmissions are at most as much as the other traffic. With more losses a sender waits for
/// its timeouts (4.096 µs × 2^14 = 67 ms with common settings), and does not send more.
const MAX_RETRANSMISSION: f64 = 1.0;

/// The probability that a packet of this size has a bit error.
fn error_probability(bit_errors: f64, bytes: u32) -> f64 {
    // 1 − (1 − b)^(8n); the plain formula loses all digits below b = 1e-16, as good cables have.
    if bit_errors > 0.0 {
        -(f64::from(bytes) * 8.0 * (-bit_errors.min(1.0)).ln_1p()).exp_m1()
    } else {
        0.0
    }
}

/// The fractions of a flow's packets with errors at one hop.
///
/// Switches cut through: they forward the head of a packet before its end, with the checksum, arrives. The
/// switch that finds an error marks the end bad (EBP), so that all further ports count a remote physical error,
/// down to the destination, which drops the packet. A packet with two errors counts once.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PacketErrors {
    /// Packets that were marked bad before.
    remote: f64,
    /// Packets that this link corrupts.
    local: f64,
}

/// The errors at each hop of a path, by the bit error ratios of the receiving ports.
fn packet_errors(
    bit_errors: impl Iterator<Item = f64>,
    bytes: u32,
) -> impl Iterator<Item = PacketErrors> {
    bit_errors.scan(0.0, move |remote, ratio| {
        let local = (1.0 - *remote) * error_probability(ratio, bytes);
        let errors = PacketErrors { remote: *remote, local };
        *remote += local;
        Some(errors)
    })
}

/// The factor by which a sender sends more when this fraction of its packets is lost.
fn retransmission_factor(lost: f64) -> f64 {
    1.0 + (lost * OUTSTANDING).min(MAX_RETRANSMISSION)
}
