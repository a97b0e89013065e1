//! Waits for credits, and packets that are discarded because they waited too long.
//!
//! InfiniBand loses no packet for lack of buffers: a port sends only what the peer has given
//! credits for. Where less goes out than comes in, the buffers fill, and the ports that feed them
//! wait; then those that feed these; up to the senders (tree saturation).
//!
//! - A **slow receiver** gives too few credits: the port at its peer waits, the root of a tree.
//! - An **overloaded link** sends all the time. Its port is busy and never waits; the ports that feed it do.
//! - A **victim** flow has a free path but for a port where other flows wait: its packets queue
//!   behind theirs (head-of-line blocking).
//!
//! A root always has packets to send, because the demand is higher than what it can send: it waits
//! all the time in which it does not send. The wait of a port upstream is, hop by hop, the mean
//! over the next hops of its flows, weighted by their demands, and never more than the time in
//! which it does not send. Hence the root waits longest, and the wait fades as other traffic mixes
//! in. The flows are slowed by the fraction of their traffic that is held up.
//!
//! Simplifications: buffers have no size and no virtual lanes, so that a tree forms at once and as
//! a whole; and senders slow down together with what they feed. Real senders of continuous
//! many-to-one traffic wait longer than its root, each for its small share.

use crate::net::PortId;

use super::share::{Shares, sums};

/// A port that carries less than this fraction of its capacity is not full.
const FULL: f64 = 1.0 - 1e-6;
/// A port that waits for more than this fraction of time discards packets. A real one discards a packet that
/// was at the head of the queue for HOQLife (opensm's defaults: 268 ms before an adapter, 1.07 s elsewhere). A
/// receiver that accepts any data seldom causes that on average; its pauses do.
const DISCARD_THRESHOLD: f64 = 0.5;
/// The fraction of packets that a port discards when it waits all the time.
const DISCARDED: f64 = 1e-4;
/// The ports that feed a discarding port discard, too, but less: each discarded packet there frees a buffer here.
const DISCARDED_UPSTREAM: f64 = 0.1;
/// The iteration converges after as many rounds as paths have hops, unless credits wait in a cycle.
const ROUNDS: usize = 64;

/// What ports can send, by port, in bytes a second.
pub(super) struct Capacities {
    pub(super) link: Vec<f64>,
    /// The rate of the link, or the receive rate of its peer, if that is less.
    pub(super) intake: Vec<f64>,
}

impl Capacities {
    /// Whether the peer receives less than the link carries.
    fn is_slow(&self, port: usize) -> bool {
        self.intake[port] < self.link[port]
    }
}

/// What a flow loses at a hop of its path, in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Discard {
    pub(super) flow: usize,
    pub(super) hop: usize,
    pub(super) bytes: f64,
}

/// The rates of all flows and the waits of all ports.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What arrives of each flow, in bytes a second.
    pub(super) rates: Vec<f64>,
    /// The fraction of time that each port waits; empty if none waits.
    pub(super) waiting: Vec<f64>,
    pub(super) discards: Vec<Discard>,
}

/// Assigns rates to the flows: their demands, as far as possible.
pub(super) fn solve(paths: &[Vec<PortId>], demands: &[f64], capacities: &Capacities) -> Outcome {
    let shares = Shares::new(paths, demands, &capacities.intake);
    if shares.held.iter().all(Option::is_none) {
        return Outcome { rates: shares.rates, ..Outcome::default() };
    }
    let demanded = sums(paths, demands, capacities.intake.len());
    let model = WaitModel { paths, demands, capacities, demanded };
    let first = model.pressure(demands, &shares);
    let waiting = model.waiting(&first, &model.sent(&shares), Root::HeldUp);

    // A flow is sent only while none of its ports waits.
    let longest = |path: &[PortId]| path.iter().map(|p| waiting[p.0 as usize]).fold(0.0, f64::max);
    let slowed = paths.iter().zip(demands).map(|(path, demand)| demand * (1.0 - longest(path)));
    let slowed: Vec<f64> = slowed.collect();
    let shares = Shares::new(paths, &slowed, &capacities.intake);

    // Where victims now send less, the rest may fit and is not held up any more; or others may send
    // more, fill the next port, and be held up there.
    let mut sent = model.sent(&shares);
    let mut pressure = model.pressure(&slowed, &shares);
    for (port, pressure) in pressure.iter_mut().enumerate() {
        let full = sent[port] >= capacities.intake[port] * FULL;
        *pressure = if full { pressure.max(first[port]) } else { 0.0 };
    }
    let waiting = model.waiting(&pressure, &sent, Root::Backlog);
    let discards = model.discards(&waiting, &mut sent);
    // Discarded packets were sent up to there, in time in which the ports did not wait.
    let waiting = model.waiting(&pressure, &sent, Root::Backlog);
    Outcome { rates: shares.rates, waiting, discards }
}

/// How the wait of a tree's root is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    /// The fraction of its traffic that is held up: its flows are slowed by it.
    HeldUp,
    /// All the time in which it does not send: the wait that it counts.
    Backlog,
}

struct WaitModel<'a> {
    paths: &'a [Vec<PortId>],
    demands: &'a [f64],
    capacities: &'a Capacities,
    /// The demand of all flows at each port.
    demanded: Vec<f64>,
}

impl WaitModel<'_> {
    fn sent(&self, shares: &Shares) -> Vec<f64> {
        sums(self.paths, &shares.rates, self.demanded.len())
    }

    /// The fraction of the traffic at each port that the port itself holds up.
    fn pressure(&self, demands: &[f64], shares: &Shares) -> Vec<f64> {
        let mut held = vec![0.0; self.demanded.len()];
        for ((demand, rate), port) in demands.iter().zip(&shares.rates).zip(&shares.held) {
            if let Some(port) = port {
                held[port.0 as usize] += demand - rate;
            }
        }
        for (held, sent) in held.iter_mut().zip(self.sent(shares)) {
            *held = if *held > 0.0 { *held / (*held + sent) } else { 0.0 };
        }
        held
    }

    /// The fraction of time that each port waits.
    fn waiting(&self, pressure: &[f64], sent: &[f64], root: Root) -> Vec<f64> {
        let slow = |port: usize| self.capacities.is_slow(port) && pressure[port] > 0.0;
        // The fraction of time in which it does not send.
        let idle = |port: usize| match self.capacities.link[port] {
            capacity if capacity > 0.0 => (1.0 - sent[port] / capacity).max(0.0),
            _ => 0.0,
        };
        let ports = 0..self.demanded.len();
        let of_root = |port: usize| match root {
            Root::HeldUp => pressure[port].min(idle(port)),
            Root::Backlog => idle(port),
        };
        let roots = ports.clone().map(|port| if slow(port) { of_root(port) } else { 0.0 });
        let mut waiting: Vec<f64> = roots.collect();
        let mut held = vec![0.0; waiting.len()];
        for _ in 0..ROUNDS {
            held.fill(0.0);
            for (path, demand) in self.paths.iter().zip(self.demands) {
                for (port, next) in path.iter().zip(path.iter().skip(1)) {
                    let next = next.0 as usize;
                    let busy = if slow(next) { 0.0 } else { pressure[next] };
                    held[port.0 as usize] += demand * waiting[next].max(busy);
                }
            }
            let mut has_converged = true;
            for port in ports.clone() {
                if held[port] > 0.0 && !slow(port) {
                    let now = (held[port] / self.demanded[port]).min(idle(port));
                    has_converged &= (now - waiting[port]).abs() < 1e-9;
                    waiting[port] = now;
                }
            }
            if has_converged {
                break;
            }
        }
        waiting
    }

    /// What switches before slow receivers discard. The traffic of discarded packets further up is
    /// added to `sent`. An overloaded link causes no discards: its queue moves.
    fn discards(&self, waiting: &[f64], sent: &mut [f64]) -> Vec<Discard> {
        let mut discards = Vec::new();
        for (flow, path) in self.paths.iter().enumerate() {
            let Some(root) = path.last().map(|port| port.0 as usize) else { continue };
            if !self.capacities.is_slow(root) {
                continue;
            }
            // Hop 0 is an adapter's own port, which has no HOQLife.
            for (back, factor) in [(1, 1.0), (2, DISCARDED_UPSTREAM)] {
                let Some(hop) = path.len().checked_sub(back).filter(|&hop| hop > 0) else { break };
                let port = path[hop].0 as usize;
                let excess = (waiting[port] - DISCARD_THRESHOLD) / (1.0 - DISCARD_THRESHOLD);
                if excess <= 0.0 {
                    break;
                }
                // Not more than the link carries.
                let here = self.demands[flow]
                    * (self.capacities.link[port] / self.demanded[port]).min(1.0);
                let free = path[..hop].iter().map(|p| p.0 as usize);
                let free = free.map(|p| self.capacities.link[p] - sent[p]).fold(f64::MAX, f64::min);
                let bytes = (here * DISCARDED * factor * excess).min(free);
                if bytes > 0.0 {
                    path[..hop].iter().for_each(|p| sent[p.0 as usize] += bytes);
                    discards.push(Discard { flow, hop, bytes });
                }
            }
        }
        discards
    }
}
