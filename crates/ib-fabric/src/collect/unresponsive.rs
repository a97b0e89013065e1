//! Nodes that do not respond to subnet management: whether an M_Key is the likely cause, which neighbors the next
//! discovery queries again, and which hidden nodes a sweep queries by LID.
//!
//! A node with an M_Key counts a violation for each Get that it drops, may send a trap to the subnet
//! manager, and starts the lease after which it drops its protection (IBTA 1.4, 14.2.4). So neighbors
//! that did not respond last time share a small budget, whether an M_Key is the cause or their agent
//! hangs. New neighbors are queried at once, unless most of them refuse.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::topology::Presence;
use crate::{Fabric, NodeIndex, PortIndex};
use ib_mad::m_key::MKeys;
use ib_mad::node::NodeKind;
use ib_mad::port_state::PortState;
use ib_mad::{Guid, Moment, PortKey};
use ib_umad::RequestError;

use super::discovery::DiscoveryResult;
use super::throttle::ThrottledQueue;

/// Milliseconds per SMP to unresponsive neighbors, in total.
const MS_PER_SMP: u128 = 4_000;
/// 60 SMPs, for twenty neighbors with the default three tries: up to so many are queried each time.
const MAX_BUDGET: u128 = 60 * MS_PER_SMP;

/// Unresponsive neighbors, kept from discovery to discovery.
#[derive(Debug, Default)]
pub struct UnresponsiveNeighbors {
    /// When each was last queried; the earliest moment if never.
    queried: HashMap<PortKey, Moment>,
    current: HashSet<PortKey>,
    /// The part of [`MAX_BUDGET`] that is used up, at the moment of the last discovery.
    spent: u128,
    updated: Moment,
}

/// Why an M_Key is the likely cause of missing responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MKeySuspicion {
    /// The local port does not respond. The kernel passes a directed-route SMP for the local node to
    /// the adapter without IB_MAD_IGNORE_MKEY (handle_outgoing_dr_smp in
    /// drivers/infiniband/core/mad.c), so a protected adapter may drop it.
    LocalPort,
    /// The driver of the local port refuses directed-route SMPs for it: mlx5 and mlx4 pass them to firmware, and what
    /// the firmware rejects or drops is an error of the send, whether an M_Key is the cause or the function may not
    /// use the interface at all (process_mad in drivers/infiniband/hw/mlx5/mad.c).
    LocalDriver,
    /// The local link is active, so the neighbor runs, but no node beyond responds.
    FirstHop,
    /// M_KeyProtectBits of the local port, and no key is known, or a wrong one.
    ProtectBits(u8),
}

impl UnresponsiveNeighbors {
    /// Number of unresponsive neighbors.
    pub fn count(&self) -> usize {
        self.queried.len()
    }

    /// The neighbors that a discovery that begins now must skip, with up to `tries` requests to each.
    pub fn select_skipped(&mut self, now: Moment, tries: u8) -> HashSet<PortKey> {
        self.spent = self.spent.saturating_sub(now.since(self.updated).as_millis());
        self.updated = now;
        let cost = MS_PER_SMP * u128::from(tries.max(1));
        let mut known: Vec<PortKey> = self.queried.keys().copied().collect();
        // Queried longest ago first.
        known.sort_unstable_by_key(|end| (self.queried[end], *end));
        let affordable = (MAX_BUDGET - self.spent) / cost;
        let selected = known.len().min(affordable as usize);
        self.spent += selected as u128 * cost;
        let skipped = known.split_off(selected);
        self.current = known.into_iter().collect();
        skipped.into_iter().collect()
    }

    /// Updates the list with the result of a discovery. Returns new unresponsive neighbors.
    pub fn update(&mut self, found: &DiscoveryResult, now: Moment) -> Vec<PortKey> {
        let is_new = |end: &PortKey| !self.queried.contains_key(end);
        let new = found.unanswered.iter().copied().filter(is_new).collect();
        let mut queried: HashMap<PortKey, Moment> =
            found.unanswered.iter().map(|end| (*end, now)).collect();
        let linked: HashSet<PortKey> =
            found.fabric.links.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let (tried, recovered) = (self.current.len(), self.current.intersection(&linked).count());
        // If most of the queried ones respond again, all may: the next discovery queries them.
        if recovered == 0 || recovered * 2 < tried {
            for end in &found.skipped {
                queried.insert(*end, self.queried.get(end).copied().unwrap_or_default());
            }
        }
        self.queried = queried;
        new
    }
}

/// While other nodes respond, up to this many unresponsive neighbors do not suggest an M_Key: agents may hang.
const FEW: usize = 3;

/// Whether more than a few neighbors do not respond, and more than half of those of a switch, or of all
/// channel adapters. M_KeyProtectBits of the local port alone say little: with M_Key 0 nothing is
/// checked (IBTA 1.4, 14.2.4.1).
fn is_widespread(found: &DiscoveryResult) -> bool {
    let silent = || found.unanswered.iter().chain(&found.skipped);
    let mut of_node: HashMap<Guid, (usize, usize)> = HashMap::new();
    silent().for_each(|end| of_node.entry(end.guid).or_default().0 += 1);
    for end in found.fabric.links.iter().flat_map(|(a, b)| [a, b]) {
        of_node.entry(end.guid).or_default().1 += 1;
    }
    let local = found.fabric.local_port.map(|port| port.guid);
    let adapters = found.fabric.nodes.iter().map(|node| &node.identity);
    let responding =
        adapters.filter(|node| node.kind == NodeKind::Ca && Some(node.guid) != local).count();
    silent().count() > FEW.max(responding)
        || of_node.values().any(|&(silent, responding)| silent > FEW.max(responding))
}

/// Whether an M_Key is the likely cause of missing responses in a discovery.
pub fn m_key_suspicion(found: &DiscoveryResult, keys: &MKeys) -> Option<MKeySuspicion> {
    match found.local_error {
        None => {}
        Some(RequestError::TimedOut) => return Some(MKeySuspicion::LocalPort),
        Some(RequestError::Unsent) => return Some(MKeySuspicion::LocalDriver),
        Some(_) => return None,
    }
    if found.unanswered.is_empty() && found.skipped.is_empty() {
        return None;
    }
    let own = found.local_port_info?;
    let alone = found.fabric.nodes.len() == 1;
    // With keys most nodes respond: one that does not may just as well hang.
    if own.m_key_protect >= 2 && (alone || keys.is_empty() && is_widespread(found)) {
        return Some(MKeySuspicion::ProtectBits(own.m_key_protect));
    }
    // A link that is not configured by a subnet manager yet is not active: then the cause may be anything.
    (alone && own.state == PortState::Active).then_some(MKeySuspicion::FirstHop)
}

/// Maximum number of probes without a response in a sweep, of nodes that refuse. With three tries each and an interval of
/// 15 s that is 0.6 SMPs a second to ports that refuse, in addition to 0.25 of discoveries.
pub(super) const MAX_SILENT: usize = 3;

/// Maximum excess of unresponsive over responding nodes, of those that responded last time. Beyond it the
/// others are only probed, from the next sweep on.
pub(super) const MAX_LOST: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastQuery {
    Response,
    /// No response in the sweep of this number.
    NoResponse(u64),
}

/// Nodes that the latest discovery did not reach, and which of them a sweep queries by LID.
///
/// Two causes look the same to a discovery, and need opposite treatment. A switch that forwards while its SMA
/// hangs hides all nodes behind it from directed routes; they respond by LID, and are queried in each sweep.
/// Nodes with an M_Key count each Get as a violation (IBTA 1.4, 14.2.4), and are queried rarely.
///
/// The responses distinguish them. Nodes that responded last time are queried in each sweep. The others
/// are probed: first those that were not queried yet, switches before hosts, then those that did not
/// respond, the longest ago first. Each response permits one more probe.
#[derive(Debug, Default)]
pub(super) struct HiddenNodes {
    sweep: u64,
    last: HashMap<PortKey, LastQuery>,
}

fn is_hidden(fabric: &Fabric, node: NodeIndex) -> bool {
    fabric.node(node).presence == Presence::Hidden
}

impl HiddenNodes {
    /// Whether a node responded to its last query by LID.
    pub fn has_responded(&self, fabric: &Fabric, node: NodeIndex) -> bool {
        let mut ends = fabric.ports_of(node).map(|port| fabric.port_key(port));
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
        self.last.retain(|port, _| {
            fabric.node_by_guid(port.guid).is_some_and(|node| is_hidden(fabric, node))
        });
    }
}

#[derive(Debug)]
pub(super) struct HiddenSweep<'a> {
    fabric: &'a Fabric,
    pub nodes: &'a mut HiddenNodes,
    known: ThrottledQueue<PortIndex>,
    probes: ThrottledQueue<PortIndex>,
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
        let last = |port: PortIndex| nodes.last.get(&fabric.port_key(port)).copied();
        let (mut known, mut probes): (Vec<PortIndex>, Vec<PortIndex>) =
            ports.into_iter().partition(|&port| last(port) == Some(LastQuery::Response));
        let is_switch = |port: PortIndex| fabric.node_of(port).is_switch();
        known.sort_by_key(|&port| Reverse(is_switch(port)));
        probes.sort_by_key(|&port| {
            let last = if let Some(LastQuery::NoResponse(sweep)) = last(port) { sweep } else { 0 };
            (last, Reverse(is_switch(port)))
        });
        HiddenSweep {
            known: ThrottledQueue::new(known.into(), MAX_LOST),
            probes: ThrottledQueue::new(probes.into(), MAX_SILENT),
            fabric,
            nodes,
        }
    }

    /// The most MADs that hidden nodes cause: one each, and if they respond those of a node that was found, with two
    /// blocks of a table. Both ends of their links may be queried, and again if one of them changed.
    pub fn max_mads(&self) -> usize {
        let ports = self.known.queue.iter().chain(&self.probes.queue);
        let nodes = ports.map(|&port| self.fabric.port(port).node);
        nodes.map(|node| 5 + 2 * self.fabric.ports_of(node).count()).sum()
    }

    pub fn pop(&mut self) -> Option<PortIndex> {
        self.known.pop().or_else(|| self.probes.pop())
    }

    /// The transport did not send the request to a node, which may as well respond.
    pub fn on_unsent(&mut self, port: PortIndex) {
        let last = self.nodes.last.get(&self.fabric.port_key(port));
        let was_known = last == Some(&LastQuery::Response);
        let queue = if was_known { &mut self.known } else { &mut self.probes };
        queue.on_response();
    }

    pub fn record(&mut self, port: PortIndex, has_answered: bool) {
        let HiddenNodes { sweep, last } = self.nodes;
        let now = if has_answered { LastQuery::Response } else { LastQuery::NoResponse(*sweep) };
        let before = last.insert(self.fabric.port_key(port), now);
        let was_known = before == Some(LastQuery::Response);
        let queue = if was_known { &mut self.known } else { &mut self.probes };
        if has_answered {
            queue.permit_more();
        }
    }

    /// The hidden nodes that responded to their last query.
    pub fn finish(self) -> HashSet<NodeIndex> {
        // Too many nodes stopped responding: the others probably did, too. A sweep that was broken off says nothing.
        if self.known.is_exhausted() {
            for port in self.known.queue {
                self.nodes.last.remove(&self.fabric.port_key(port));
            }
        }
        let hidden = self.fabric.node_indexes().filter(|&node| is_hidden(self.fabric, node));
        hidden.filter(|&node| self.nodes.has_responded(self.fabric, node)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::found as node;
    use ib_mad::port_info::PortInfo;

    fn found(unanswered: Vec<PortKey>, skipped: Vec<PortKey>) -> DiscoveryResult {
        DiscoveryResult { unanswered, skipped, ..DiscoveryResult::default() }
    }

    fn at(seconds: u64) -> Moment {
        Moment::default() + Duration::from_secs(seconds)
    }

    #[test]
    fn unresponsive_neighbors_rotate_within_budget() {
        let mut unanswered = UnresponsiveNeighbors::default();
        let ends = |count: u64| {
            (0..count).map(|guid| PortKey::new(Guid(guid), 1)).collect::<Vec<PortKey>>()
        };
        assert_eq!(unanswered.update(&found(ends(20), vec![]), at(0)).len(), 20, "all are new");
        assert!(unanswered.select_skipped(at(300), 3).is_empty(), "20 times 3 is the burst");
        assert!(unanswered.update(&found(ends(20), vec![]), at(300)).is_empty());

        // 500: the budget is for 20 each 5 minutes, and within an hour 240 of them had a turn.
        let mut unanswered = UnresponsiveNeighbors::default();
        unanswered.update(&found(ends(500), vec![]), at(0));
        let mut turns: HashMap<PortKey, u32> = HashMap::new();
        for discovery in 1..=12 {
            let now = at(discovery * 300);
            let skipped = unanswered.select_skipped(now, 3);
            assert_eq!(skipped.len(), 480);
            let (skipped, queried): (Vec<PortKey>, Vec<PortKey>) =
                ends(500).into_iter().partition(|end| skipped.contains(end));
            for end in &queried {
                *turns.entry(*end).or_default() += 1;
            }
            unanswered.update(&found(queried, skipped), now);
        }
        assert_eq!((turns.len(), turns.values().max()), (240, Some(&1)));
        // Discoveries in a row do not get more.
        let queried: usize = (1..=30)
            .map(|more| 500 - unanswered.select_skipped(at(3600 + more * 10), 3).len())
            .sum();
        assert!(queried <= 20 + 25, "{queried}");
    }

    #[test]
    fn recovery_retries_all_unresponsive_neighbors() {
        let mut unanswered = UnresponsiveNeighbors::default();
        let ends: Vec<PortKey> = (0..500).map(|guid| PortKey::new(Guid(guid), 1)).collect();
        unanswered.update(&found(ends.clone(), vec![]), at(0));
        let skipped = unanswered.select_skipped(at(300), 3);
        let (skipped, queried): (Vec<PortKey>, Vec<PortKey>) =
            ends.into_iter().partition(|end| skipped.contains(end));
        let mut answered = found(vec![], skipped);
        answered.fabric.links =
            queried.iter().map(|end| (*end, PortKey::new(Guid(end.guid.0 + 1000), 1))).collect();
        unanswered.update(&answered, at(300));
        assert!(unanswered.select_skipped(at(315), 3).is_empty());
    }

    /// A switch with GUID 1 and hosts from 100 on, of which the first is our own; what of the switch's
    /// ports does not answer; our own M_KeyProtectBits.
    fn protected(hosts: u64, unanswered: u64, level: u8) -> DiscoveryResult {
        let silent = (1..=unanswered).map(|port| PortKey::new(Guid(1), 200 + port as u8)).collect();
        let mut found = found(silent, vec![]);
        let own =
            PortInfo { state: PortState::Active, m_key_protect: level, ..PortInfo::default() };
        found.local_port_info = Some(own);
        found.fabric.local_port = Some(PortKey::new(Guid(100), 1));
        found.fabric.nodes = (100..100 + hosts).map(|guid| node(guid, NodeKind::Ca, 1)).collect();
        if hosts > 1 {
            found.fabric.nodes.push(node(1, NodeKind::Switch, 64));
            let port =
                |host: u64| (PortKey::new(Guid(1), host as u8), PortKey::new(Guid(100 + host), 1));
            found.fabric.links = (0..hosts).map(port).collect();
        }
        found
    }

    #[test]
    fn few_silent_neighbors_do_not_suggest_m_key() {
        let none = MKeys::default();
        let key = MKeys::parse("0x1234").unwrap();
        for (hosts, unanswered, level, keys, suspected) in [
            (24, 1, 2, &none, None),
            (24, 3, 3, &none, None),
            // Of a switch with 24 other neighbors that answer.
            (24, 20, 2, &none, None),
            (4, 3, 2, &none, None),
            (4, 20, 2, &none, Some(MKeySuspicion::ProtectBits(2))),
            (4, 20, 2, &key, None),
            (4, 20, 1, &none, None),
            (1, 1, 2, &none, Some(MKeySuspicion::ProtectBits(2))),
            (1, 1, 3, &key, Some(MKeySuspicion::ProtectBits(3))),
            (1, 1, 0, &none, Some(MKeySuspicion::FirstHop)),
        ] {
            let found = protected(hosts, unanswered, level);
            assert_eq!(m_key_suspicion(&found, keys), suspected, "{hosts} {unanswered} {level}");
        }
        // All neighbors of one switch, among many adapters elsewhere.
        let mut leaf = protected(24, 5, 2);
        leaf.unanswered.iter_mut().for_each(|end| end.guid = Guid(2));
        assert_eq!(m_key_suspicion(&leaf, &none), Some(MKeySuspicion::ProtectBits(2)));
    }

    #[test]
    fn local_port_timeout_suggests_m_key() {
        let none = MKeys::default();
        for (failure, suspected) in [
            (RequestError::TimedOut, Some(MKeySuspicion::LocalPort)),
            (RequestError::Busy, None),
            (RequestError::Status(0x0c), None),
            (RequestError::Unsent, Some(MKeySuspicion::LocalDriver)),
        ] {
            let mut found = found(vec![], vec![]);
            found.local_error = Some(failure);
            assert_eq!(m_key_suspicion(&found, &none), suspected, "{failure}");
        }
    }

    #[test]
    fn responsive_neighbor_is_forgotten() {
        let mut unanswered = UnresponsiveNeighbors::default();
        let end = PortKey::new(Guid(1), 1);
        unanswered.update(&found(vec![end], vec![]), at(0));
        unanswered.update(&found(vec![], vec![]), at(15));
        assert_eq!(unanswered.count(), 0);
        assert_eq!(unanswered.update(&found(vec![end], vec![]), at(30)), [end], "it is new again");
    }
}
