//! Max-min fair sharing of links that cannot carry all flows.
//!
//! The rates of all flows rise equally until each has its demand or a port on its path is full
//! ("progressive filling"; Bertsekas and Gallager, Data Networks, 6.5.2). That is the result of
//! round-robin arbiters at a single full port. With several full ports arbiters share by input port
//! and not by flow (the "parking lot": the flow that joins last gets most); that is not modeled.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::net::PortId;

/// The relative rounding error of sums of many rates is less than this.
const ROUNDING: f64 = 1e-9;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shares {
    /// By flow, in bytes a second.
    pub(super) rates: Vec<f64>,
    /// By flow: the full port that limits it, if one does.
    pub(super) held: Vec<Option<PortId>>,
}

impl Shares {
    /// Shares the capacity of ports among flows with these demands. Demands have to be finite and
    /// not negative; capacities may be infinite.
    pub(super) fn new(paths: &[Vec<PortId>], demands: &[f64], capacity: &[f64]) -> Shares {
        let mut shares = Shares { rates: demands.to_vec(), held: vec![None; demands.len()] };
        let (mut ports, mut indices) = (Vec::new(), vec![None; capacity.len()]);
        let sums = sums(paths, demands, capacity.len());
        for (port, (&sum, &capacity)) in sums.iter().zip(capacity).enumerate() {
            if sum > capacity * (1.0 + ROUNDING) {
                indices[port] = Some(ports.len());
                let id = PortId(port as u32);
                ports.push(Bottleneck { id, left: capacity, flows: 0, members: Vec::new() });
            }
        }
        // By flow: the bottlenecks on its path.
        let on_path = |path: &Vec<PortId>| -> Vec<usize> {
            path.iter().filter_map(|port| indices[port.0 as usize]).collect()
        };
        let bottlenecks: Vec<Vec<usize>> = paths.iter().map(on_path).collect();
        for (flow, indices) in bottlenecks.iter().enumerate() {
            for &index in indices {
                ports[index].flows += 1;
                ports[index].members.push(flow);
            }
        }
        let set_rate = |ports: &mut [Bottleneck], flow: usize, rate: f64| {
            for &index in &bottlenecks[flow] {
                ports[index].left -= rate;
                ports[index].flows -= 1;
            }
        };
        let mut by_demand: Vec<usize> = (0..demands.len()).collect();
        by_demand.retain(|&flow| !bottlenecks[flow].is_empty());
        by_demand.sort_by(|&a, &b| demands[a].total_cmp(&demands[b]));
        let mut by_demand = by_demand.into_iter().peekable();
        let mut done = vec![false; demands.len()];
        // The bits of floats that are not negative are in the order of the floats. The level of a port only rises as
        // other flows get their rates: an outdated entry is too low, and is updated when its turn comes.
        let entry = |port: &Bottleneck| port.level().map(f64::to_bits);
        let entries = ports.iter().enumerate();
        let mut full: BinaryHeap<Reverse<(u64, usize)>> =
            entries.filter_map(|(index, port)| Some(Reverse((entry(port)?, index)))).collect();
        while let Some(Reverse((bits, index))) = full.pop() {
            let Some(now) = entry(&ports[index]) else { continue };
            if now > bits {
                full.push(Reverse((now, index)));
                continue;
            }
            let level = f64::from_bits(bits);
            while by_demand.next_if(|&flow| done[flow]).is_some() {}
            if let Some(flow) = by_demand.next_if(|&flow| demands[flow] <= level) {
                done[flow] = true;
                set_rate(&mut ports, flow, demands[flow]);
                full.push(Reverse((bits, index)));
                continue;
            }
            for flow in std::mem::take(&mut ports[index].members) {
                if !std::mem::replace(&mut done[flow], true) {
                    shares.rates[flow] = level;
                    shares.held[flow] = Some(ports[index].id);
                    set_rate(&mut ports, flow, level);
                }
            }
        }
        shares
    }
}

/// The sum of the demands at each port.
pub(super) fn sums(paths: &[Vec<PortId>], demands: &[f64], ports: usize) -> Vec<f64> {
    let mut sums = vec![0.0; ports];
    for (path, demand) in paths.iter().zip(demands) {
        for port in path {
            sums[port.0 as usize] += demand;
        }
    }
    sums
}

/// A port that cannot carry all demands.
struct Bottleneck {
    id: PortId,
    /// The capacity that is left for flows without a rate.
    left: f64,
    /// The number of flows without a rate.
    flows: u32,
    /// All flows.
    members: Vec<usize>,
}

impl Bottleneck {
    /// The rate that its flows can rise to; `None` when all of them have a rate.
    fn level(&self) -> Option<f64> {
        // Rounding may leave slightly less than 0.
        let left = if self.left > 0.0 { self.left } else { 0.0 };
        (self.flows > 0).then(|| left / f64::from(self.flows))
    }
}
