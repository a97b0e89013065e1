//! Nodes that the latest discovery could not reach, and which of them a sweep asks by LID.
//!
//! Two causes look the same to a discovery, and need the opposite. A switch that forwards while its own
//! SMA hangs hides everything behind it from directed routes; all of that answers by LID, and is to be
//! asked in each sweep. Nodes that an M_Key protects count each Get as a violation (IBTA 1.4, 14.2.4),
//! and are to be asked rarely.
//!
//! The answers tell which it is. Nodes that answered the last time are asked in each sweep. The others
//! are probed: first those that were not asked yet, switches before hosts, then those that were
//! silent, the one asked longest ago first. Each answer permits one more probe; a silent node does not.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};

use crate::topology::{End, Presence};
use crate::{Fabric, NodeIndex, PortIndex};

/// So many probes may time out in a sweep, and one more for each that is answered. With three tries
/// each and an interval of 15 s that is 0.6 SMPs a second to ports that refuse, beside the 0.25 of
/// discoveries.
pub(super) const MOST_SILENT: usize = 3;

/// So many more of the nodes that answered the last time may be silent than answer. After that the rest
/// is probed from the next sweep on.
const MOST_LOST: usize = 32;

/// Questions of which only so many may be without an answer. One in flight counts as such.
#[derive(Debug)]
pub(super) struct Throttled {
    queue: VecDeque<PortIndex>,
    open: usize,
    allowed: usize,
}

impl Throttled {
    pub fn new(queue: VecDeque<PortIndex>, allowed: usize) -> Self {
        Throttled { queue, open: 0, allowed }
    }

    /// The next port to ask, if one may be asked now.
    pub fn next(&mut self) -> Option<PortIndex> {
        let port = if self.open < self.allowed { self.queue.pop_front() } else { None };
        self.open += usize::from(port.is_some());
        port
    }

    /// A question was answered.
    pub fn answered(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Asks no more.
    pub fn stop(&mut self) {
        self.queue.clear();
    }
}

/// What a port did when its node was last asked by LID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Answered,
    /// It was silent in the sweep of this number.
    Silent(u64),
}

/// What is remembered of hidden nodes from sweep to sweep.
#[derive(Debug, Default)]
pub(super) struct HiddenNodes {
    sweep: u64,
    last: HashMap<End, Last>,
}

fn is_hidden(fabric: &Fabric, node: NodeIndex) -> bool {
    fabric.node(node).presence == Presence::Hidden
}

impl HiddenNodes {
    /// Whether a node answered by LID when it was last asked.
    pub fn answered(&self, fabric: &Fabric, node: NodeIndex) -> bool {
        let mut ends = fabric.ports_of(node).map(|port| fabric.end(port));
        ends.any(|end| self.last.get(&end) == Some(&Last::Answered))
    }

    /// Whether a node can be expected to answer: the discovery reached it, or it answered by LID.
    pub fn is_expected(&self, fabric: &Fabric, node: NodeIndex) -> bool {
        match fabric.node(node).presence {
            Presence::Found => true,
            Presence::Hidden => self.answered(fabric, node),
            Presence::Absent => false,
        }
    }

    /// Forgets nodes that a new discovery reached, or took for gone.
    pub fn keep_hidden(&mut self, fabric: &Fabric) {
        self.last.retain(|(guid, _), _| {
            fabric.node_by_guid(*guid).is_some_and(|node| is_hidden(fabric, node))
        });
    }
}

/// The hidden nodes of one sweep.
#[derive(Debug)]
pub(super) struct HiddenSweep<'a> {
    fabric: &'a Fabric,
    nodes: &'a mut HiddenNodes,
    known: Throttled,
    probes: Throttled,
}

impl<'a> HiddenSweep<'a> {
    /// Of a fabric; with `wanted` false no node is asked.
    pub fn new(fabric: &'a Fabric, wanted: bool, nodes: &'a mut HiddenNodes) -> Self {
        nodes.sweep += 1;
        let mut ports = Vec::new();
        for node in fabric.node_indexes().filter(|&node| wanted && is_hidden(fabric, node)) {
            // A switch has one LID, and a CA one for each port.
            let one = if fabric.node(node).is_switch() { 1 } else { usize::MAX };
            let reached = fabric.ports_of(node).filter(|&port| fabric.lid_of(port).is_some());
            ports.extend(reached.take(one));
        }
        let last = |port: PortIndex| nodes.last.get(&fabric.end(port)).copied();
        let (mut known, mut probes): (Vec<PortIndex>, Vec<PortIndex>) =
            ports.into_iter().partition(|&port| last(port) == Some(Last::Answered));
        let is_switch = |port: PortIndex| fabric.node_of(port).is_switch();
        known.sort_by_key(|&port| Reverse(is_switch(port)));
        probes.sort_by_key(|&port| match last(port) {
            Some(Last::Silent(sweep)) => (sweep, Reverse(is_switch(port))),
            Some(Last::Answered) | None => (0, Reverse(is_switch(port))),
        });
        HiddenSweep {
            known: Throttled::new(known.into(), MOST_LOST),
            probes: Throttled::new(probes.into(), MOST_SILENT),
            fabric,
            nodes,
        }
    }

    /// The next port whose node is to be asked for its NodeInfo, if one may be asked now.
    pub fn next(&mut self) -> Option<PortIndex> {
        self.known.next().or_else(|| self.probes.next())
    }

    /// A port that was asked did or did not answer.
    pub fn finished(&mut self, port: PortIndex, has_answered: bool) {
        let now = if has_answered { Last::Answered } else { Last::Silent(self.nodes.sweep) };
        let before = self.nodes.last.insert(self.fabric.end(port), now);
        let was_known = before == Some(Last::Answered);
        let of = if was_known { &mut self.known } else { &mut self.probes };
        if has_answered {
            of.answered();
            of.allowed += 1;
        }
    }

    /// What is remembered of them.
    pub fn nodes(&self) -> &HiddenNodes {
        self.nodes
    }

    /// The hidden nodes that answered when they were last asked.
    pub fn finish(self) -> HashSet<NodeIndex> {
        // So many of those that answered were silent that the rest is likely to be silent as well.
        for port in self.known.queue {
            self.nodes.last.remove(&self.fabric.end(port));
        }
        let hidden = self.fabric.node_indexes().filter(|&node| is_hidden(self.fabric, node));
        hidden.filter(|&node| self.nodes.answered(self.fabric, node)).collect()
    }
}
