//! Nodes that the latest discovery did not reach, and which of them a sweep queries by LID.
//!
//! Two causes look the same to a discovery, and need opposite treatment. A switch that forwards while
//! its SMA hangs hides all nodes behind it from directed routes; they respond by LID, and are queried
//! in each sweep. Nodes with an M_Key count each Get as a violation (IBTA 1.4, 14.2.4), and are queried
//! rarely.
//!
//! The responses distinguish them. Nodes that responded last time are queried in each sweep. The others
//! are probed: first those that were not queried yet, switches before hosts, then those that did not
//! respond, the longest ago first. Each response permits one more probe.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet, VecDeque};

use crate::topology::{End, Presence};
use crate::{Fabric, NodeIndex, PortIndex};

/// Maximum number of probes without a response in a sweep. With three tries each and an interval of 15
/// s that is 0.6 SMPs a second to ports that refuse, in addition to 0.25 of discoveries.
pub(super) const MAX_SILENT: usize = 3;

/// Maximum excess of silent over responding nodes, of those that responded last time. Beyond it the
/// others are only probed, from the next sweep on.
const MAX_LOST: usize = 32;

/// A queue of queries with a maximum number of unanswered ones, including those in flight.
#[derive(Debug)]
pub(super) struct ThrottledQueue {
    queue: VecDeque<PortIndex>,
    open: usize,
    allowed: usize,
}

impl ThrottledQueue {
    pub fn new(queue: VecDeque<PortIndex>, allowed: usize) -> Self {
        ThrottledQueue { queue, open: 0, allowed }
    }

    pub fn pop(&mut self) -> Option<PortIndex> {
        let port = if self.open < self.allowed { self.queue.pop_front() } else { None };
        self.open += usize::from(port.is_some());
        port
    }

    pub fn on_response(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    pub fn clear(&mut self) {
        self.queue.clear();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastQuery {
    Response,
    /// No response in the sweep of this number.
    NoResponse(u64),
}

#[derive(Debug, Default)]
pub(super) struct HiddenNodes {
    sweep: u64,
    last: HashMap<End, LastQuery>,
}

fn is_hidden(fabric: &Fabric, node: NodeIndex) -> bool {
    fabric.node(node).presence == Presence::Hidden
}

impl HiddenNodes {
    /// Whether a node responded to its last query by LID.
    pub fn has_responded(&self, fabric: &Fabric, node: NodeIndex) -> bool {
        let mut ends = fabric.ports_of(node).map(|port| fabric.end(port));
        ends.any(|end| self.last.get(&end) == Some(&LastQuery::Response))
    }

    /// Whether a node is expected to respond: the discovery reached it, or it responded by LID.
    pub fn is_expected(&self, fabric: &Fabric, node: NodeIndex) -> bool {
        match fabric.node(node).presence {
            Presence::Found => true,
            Presence::Hidden => self.has_responded(fabric, node),
            Presence::Absent => false,
        }
    }

    /// Forgets nodes that are not hidden any more.
    pub fn retain_hidden(&mut self, fabric: &Fabric) {
        self.last.retain(|(guid, _), _| {
            fabric.node_by_guid(*guid).is_some_and(|node| is_hidden(fabric, node))
        });
    }
}

#[derive(Debug)]
pub(super) struct HiddenSweep<'a> {
    fabric: &'a Fabric,
    nodes: &'a mut HiddenNodes,
    known: ThrottledQueue,
    probes: ThrottledQueue,
}

impl<'a> HiddenSweep<'a> {
    /// The hidden nodes of a fabric; unless `enabled` no node is queried.
    pub fn new(fabric: &'a Fabric, enabled: bool, nodes: &'a mut HiddenNodes) -> Self {
        nodes.sweep += 1;
        let mut ports = Vec::new();
        for node in fabric.node_indexes().filter(|&node| enabled && is_hidden(fabric, node)) {
            // A switch has one LID, a CA one for each port.
            let limit = if fabric.node(node).is_switch() { 1 } else { usize::MAX };
            let reached = fabric.ports_of(node).filter(|&port| fabric.lid_of(port).is_some());
            ports.extend(reached.take(limit));
        }
        let last = |port: PortIndex| nodes.last.get(&fabric.end(port)).copied();
        let (mut known, mut probes): (Vec<PortIndex>, Vec<PortIndex>) =
            ports.into_iter().partition(|&port| last(port) == Some(LastQuery::Response));
        let is_switch = |port: PortIndex| fabric.node_of(port).is_switch();
        known.sort_by_key(|&port| Reverse(is_switch(port)));
        probes.sort_by_key(|&port| match last(port) {
            Some(LastQuery::NoResponse(sweep)) => (sweep, Reverse(is_switch(port))),
            Some(LastQuery::Response) | None => (0, Reverse(is_switch(port))),
        });
        HiddenSweep {
            known: ThrottledQueue::new(known.into(), MAX_LOST),
            probes: ThrottledQueue::new(probes.into(), MAX_SILENT),
            fabric,
            nodes,
        }
    }

    pub fn pop(&mut self) -> Option<PortIndex> {
        self.known.pop().or_else(|| self.probes.pop())
    }

    pub fn record(&mut self, port: PortIndex, has_answered: bool) {
        let now = if has_answered {
            LastQuery::Response
        } else {
            LastQuery::NoResponse(self.nodes.sweep)
        };
        let before = self.nodes.last.insert(self.fabric.end(port), now);
        let was_known = before == Some(LastQuery::Response);
        let queue = if was_known { &mut self.known } else { &mut self.probes };
        if has_answered {
            queue.on_response();
            queue.allowed += 1;
        }
    }

    pub fn nodes(&self) -> &HiddenNodes {
        self.nodes
    }

    /// The hidden nodes that responded to their last query.
    pub fn finish(self) -> HashSet<NodeIndex> {
        // Too many nodes stopped responding: the others probably did, too.
        for port in self.known.queue {
            self.nodes.last.remove(&self.fabric.end(port));
        }
        let hidden = self.fabric.node_indexes().filter(|&node| is_hidden(self.fabric, node));
        hidden.filter(|&node| self.nodes.has_responded(self.fabric, node)).collect()
    }
}
