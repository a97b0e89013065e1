//! Who waits for credits, and what is thrown away because it waited too long.
//!
//! InfiniBand loses no packet for want of room: a port sends only what the far end has given
//! credits for. So where less goes out than comes in, the buffers before it fill, and the ports
//! that feed them wait; then those that feed these; up to the senders (tree saturation).
//!
//! - A **slow receiver** gives too few credits: the port that faces it waits, the root of a tree.
//! - An **overloaded link** sends all the time. Its port is busy and never waits; the ports that
//!   feed it do.
//! - A **victim** has a free way but for a port that others make wait: its packets stand in line
//!   behind theirs (head-of-line blocking).
//!
//! A root always has something to send, for more is wanted than it gets rid of: it waits all the
//! time in which it does not send. How long a port upstream waits is, hop by hop, the mean over
//! where its flows go next, by what they want to carry; and never more than the time in which it
//! does not send. Hence the root waits longest, and the wait fades as other traffic mixes in. How
//! much the flows themselves give way is the share of their traffic that is held up. What is
//! simplified: buffers have no size and no virtual lanes, so that a tree is there at once and as a
//! whole; and senders give way together with what they feed. Real senders of many-to-one traffic
//! that never lets up wait longer than its root, each for its small share.

use crate::net::PortId;

use super::routes::Routes;
use super::share::{Shares, sums};

/// A port that carries less than this part of what it can is not full.
const FULL: f64 = 1.0 - 1e-6;
/// A port that waits for more than this share of time begins to discard. In truth a packet is
/// discarded once it has stood at the head of the queue for HOQLife (opensm's defaults: 268 ms
/// before an adapter, 1.07 s elsewhere), which a receiver that takes anything at all seldom
/// lets happen on the average; its pauses do.
const PATIENCE: f64 = 0.5;
/// What a port discards when it waits all the time, of the packets that it should send.
const DISCARDED: f64 = 1e-4;
/// The ports that feed a port that discards do so, too, but get rid of less: each packet thrown
/// away there makes room here.
const DISCARDED_UPSTREAM: f64 = 0.1;
/// Waits come to rest after as many rounds as ways have hops, but where credits wait in a circle.
const ROUNDS: usize = 64;

/// What ports can do, by port.
pub(super) struct Lanes {
    /// What the link carries.
    pub(super) capacity: Vec<f64>,
    /// What the link carries and its far end takes in.
    pub(super) room: Vec<f64>,
}

impl Lanes {
    /// Whether the far end takes in less than the link carries.
    fn slow(&self, port: usize) -> bool {
        self.room[port] < self.capacity[port]
    }

    /// The share of time in which a port that sends so much does not send.
    fn idle(&self, port: usize, sent: f64) -> f64 {
        let capacity = self.capacity[port];
        if capacity > 0.0 { (1.0 - sent / capacity).max(0.0) } else { 0.0 }
    }
}

/// Packets thrown away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Discard {
    /// Whose: the number of the flow.
    pub(super) flow: u32,
    /// At which hop of its way.
    pub(super) hop: usize,
    /// How much, in bytes a second.
    pub(super) bytes: f64,
}

/// How the flows fare among each other.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// By flow, what arrives, in bytes a second.
    pub(super) rates: Vec<f64>,
    /// By port, the share of time; empty if nobody waits.
    pub(super) waiting: Vec<f64>,
    /// What is lost on the way.
    pub(super) discards: Vec<Discard>,
}

/// Lets the flows have what they want as far as it goes.
pub(super) fn settle(routes: &Routes, wants: &[f64], lanes: &Lanes) -> Outcome {
    let shares = Shares::new(routes, wants, &lanes.room);
    if shares.plenty() {
        return Outcome { rates: shares.rates, ..Outcome::default() };
    }
    let crowd = Crowd { routes, wants, lanes, wanted: sums(routes, wants, lanes.room.len()) };
    let first = crowd.pressure(wants, &shares);
    let waiting = crowd.waiting(&first, &crowd.sent(&shares), Root::HeldUp);

    // Each flow is let through only while none of its ports waits.
    let longest = |way: &[PortId]| way.iter().map(|p| waiting[p.0 as usize]).fold(0.0, f64::max);
    let slowed = routes.ways().zip(wants).map(|(way, want)| want * (1.0 - longest(way)));
    let slowed: Vec<f64> = slowed.collect();
    let shares = Shares::new(routes, &slowed, &lanes.room);

    // Where victims now leave enough room for the rest, nothing is held up any more; and where
    // they leave room for others that then fill the next port, something is.
    let mut sent = crowd.sent(&shares);
    let mut pressure = crowd.pressure(&slowed, &shares);
    for (port, pressure) in pressure.iter_mut().enumerate() {
        let full = sent[port] >= lanes.room[port] * FULL;
        *pressure = if full { pressure.max(first[port]) } else { 0.0 };
    }
    let waiting = crowd.waiting(&pressure, &sent, Root::Backlog);
    let discards = crowd.discards(&waiting, &mut sent);
    // What is discarded was sent up to there, in time in which the port then did not wait.
    let waiting = crowd.waiting(&pressure, &sent, Root::Backlog);
    Outcome { rates: shares.rates, waiting, discards }
}

/// How long the root of a tree waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    /// The share of its traffic that is held up: by so much its flows give way.
    HeldUp,
    /// All the time in which it does not send: so long it is seen to wait.
    Backlog,
}

struct Crowd<'a> {
    routes: &'a Routes,
    wants: &'a [f64],
    lanes: &'a Lanes,
    /// What all flows want of each port.
    wanted: Vec<f64>,
}

impl Crowd<'_> {
    fn sent(&self, shares: &Shares) -> Vec<f64> {
        sums(self.routes, &shares.rates, self.wanted.len())
    }

    /// By port, the share of what wants to pass it that it holds up itself.
    fn pressure(&self, wants: &[f64], shares: &Shares) -> Vec<f64> {
        let mut held = vec![0.0; self.wanted.len()];
        for ((want, rate), port) in wants.iter().zip(&shares.rates).zip(&shares.held) {
            if let Some(port) = port {
                held[port.0 as usize] += want - rate;
            }
        }
        for (held, sent) in held.iter_mut().zip(self.sent(shares)) {
            *held = if *held > 0.0 { *held / (*held + sent) } else { 0.0 };
        }
        held
    }

    /// The share of time that each port waits.
    fn waiting(&self, pressure: &[f64], sent: &[f64], root: Root) -> Vec<f64> {
        let slow = |port: usize| self.lanes.slow(port) && pressure[port] > 0.0;
        let idle = |port: usize| self.lanes.idle(port, sent[port]);
        let ports = 0..self.wanted.len();
        let of_root = |port: usize| match root {
            Root::HeldUp => pressure[port].min(idle(port)),
            Root::Backlog => idle(port),
        };
        let roots = ports.clone().map(|port| if slow(port) { of_root(port) } else { 0.0 });
        let mut waiting: Vec<f64> = roots.collect();
        let mut held = vec![0.0; waiting.len()];
        for _ in 0..ROUNDS {
            held.fill(0.0);
            for (way, want) in self.routes.ways().zip(self.wants) {
                for (port, next) in way.iter().zip(way.iter().skip(1)) {
                    let next = next.0 as usize;
                    let busy = if slow(next) { 0.0 } else { pressure[next] };
                    held[port.0 as usize] += want * waiting[next].max(busy);
                }
            }
            let mut at_rest = true;
            for port in ports.clone() {
                if held[port] > 0.0 && !slow(port) {
                    let now = (held[port] / self.wanted[port]).min(idle(port));
                    at_rest &= (now - waiting[port]).abs() < 1e-9;
                    waiting[port] = now;
                }
            }
            if at_rest {
                break;
            }
        }
        waiting
    }

    /// What slow receivers make the switches before them discard; what that adds to the traffic of
    /// the ports further up is added to `sent`. An overloaded link makes nobody discard: its queue
    /// moves.
    fn discards(&self, waiting: &[f64], sent: &mut [f64]) -> Vec<Discard> {
        let mut discards = Vec::new();
        for (flow, way) in self.routes.ways().enumerate() {
            let Some(root) = way.last().map(|port| port.0 as usize) else { continue };
            if !self.lanes.slow(root) {
                continue;
            }
            // Hop 0 is an adapter's own port, which has no HOQLife.
            for (back, part) in [(1, 1.0), (2, DISCARDED_UPSTREAM)] {
                let Some(hop) = way.len().checked_sub(back).filter(|&hop| hop > 0) else { break };
                let port = way[hop].0 as usize;
                let beyond = (waiting[port] - PATIENCE) / (1.0 - PATIENCE);
                if beyond <= 0.0 {
                    break;
                }
                // However many want to, not more can be there than the link carries.
                let here =
                    self.wants[flow] * (self.lanes.capacity[port] / self.wanted[port]).min(1.0);
                let free = way[..hop].iter().map(|p| p.0 as usize);
                let free = free.map(|p| self.lanes.capacity[p] - sent[p]).fold(f64::MAX, f64::min);
                let bytes = (here * DISCARDED * part * beyond).min(free);
                if bytes > 0.0 {
                    way[..hop].iter().for_each(|p| sent[p.0 as usize] += bytes);
                    discards.push(Discard { flow: flow as u32, hop, bytes });
                }
            }
        }
        discards
    }
}
