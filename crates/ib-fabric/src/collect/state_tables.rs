//! Port states by table: of which ports a sweep need not read PortInfo.
//!
//! SwitchPortStateTable shows the PortStates of 128 ports of a switch in one MAD. It says nothing about widths and
//! speeds, so a port's state counts as the known one only if
//!
//! - the table shows the state that the discovery found, Active, or Down where a cable never was,
//! - PortInfo has confirmed what the discovery found, and neither LinkDowned nor LinkErrorRecovery of either end has
//!   changed since the counters were read before that: a link changes its width and speed only by training again,
//! - and the switch does not announce a change (PortStateChange of SwitchInfo).
//!
//! PortInfo of the others is read in the same sweep: once the table is there, and where counters changed, once these
//! are read. A saturated or missing counter shows no change: then PortInfo is read in each sweep.
//!
//! What none of this shows is found by turns, in which each port's PortInfo is read once in [`TURNS`] sweeps: a link
//! that trained again without a count at either end and was Active again before the sweep (a subnet manager that has
//! it train again at another speed, a switch that was reset together with its neighbor), counters that were cleared and
//! reached the same values, other enabled speeds that are not in use yet, a port that was disabled where no cable is.
//! In a fabric with planes, where each hop of a request is work for a switch's agent, the next discovery finds it.
//!
//! The table of a real switch has not been observed: its layout is that of OpenSM and python-rdma. If a switch refuses
//! the table or does not respond, or if the table has an impossible state or contradicts PortInfo of the same sweep,
//! the switch is asked port by port: in the same sweep, and until a later discovery.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ib_mad::port_state::{PortState, PortStatus};
use ib_mad::smp::SwitchPortStateTable;
use ib_mad::{Guid, PortKey, PortNumber};
use ib_umad::RequestError;

use super::Outcome;
use super::throttle::ThrottledQueue;
use super::unresponsive::MAX_LOST;
use crate::snapshot::PortRead;
use crate::{Fabric, NodeIndex, NodeMap, PortIndex, PortMap};

/// PortInfo of each port is read once in so many sweeps: in five minutes at the default interval, as often as a
/// discovery reads it.
const TURNS: u64 = 20;
/// A table that failed is tried again after as many discoveries at most.
const MAX_SKIPPED: u32 = 64;

/// How often a port's link trained again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Retrains {
    /// The low bits of LinkDowned and LinkErrorRecovery.
    pub downs: u32,
    pub recoveries: u32,
}

/// What is remembered of a port.
#[derive(Clone, Copy, Debug, Default)]
struct PortMemory {
    /// When its counters were last read.
    retrains: Option<Retrains>,
    /// What the discovery found was still true then.
    is_steady: bool,
}

/// A table that failed.
#[derive(Clone, Copy, Debug, Default)]
struct Failure {
    count: u32,
    /// The discoveries before it is tried again.
    skipped: u32,
}

/// What is kept from sweep to sweep.
#[derive(Debug, Default)]
pub(super) struct StateTableCache {
    sweep: u64,
    /// The fabric of the indexes.
    fabric: Arc<Fabric>,
    ports: PortMap<PortMemory>,
    /// Switches whose port 0 announces a table.
    announced: HashSet<Guid>,
    failures: HashMap<Guid, Failure>,
    /// Where the requests to a slow or busy switch begin that is asked port by port: at the first port that there was
    /// no time for.
    first_ports: HashMap<Guid, PortNumber>,
}

impl StateTableCache {
    /// There was a discovery: tables that failed have another chance, each time later.
    pub fn on_discovery(&mut self, fabric: &Fabric) {
        let is_known = |guid: &Guid| fabric.node_by_guid(*guid).is_some();
        self.announced.retain(is_known);
        self.failures.retain(|guid, _| is_known(guid));
        self.first_ports.retain(|guid, _| is_known(guid));
        for failure in self.failures.values_mut() {
            failure.skipped = failure.skipped.saturating_sub(1);
        }
    }

    /// Moves what is remembered to the indexes of a fabric.
    fn align(&mut self, fabric: &Arc<Fabric>) {
        if Arc::ptr_eq(&self.fabric, fabric) {
            return;
        }
        if !self.fabric.has_same_layout(fabric) {
            let memory = |port| {
                let before = self.fabric.find(fabric.port_key(port));
                before.map_or(PortMemory::default(), |before| self.ports[before])
            };
            self.ports = fabric.port_indexes().map(memory).collect();
        }
        self.fabric = Arc::clone(fabric);
    }

    fn is_trusted(&self, guid: Guid) -> bool {
        self.announced.contains(&guid) && self.failures.get(&guid).is_none_or(|it| it.skipped == 0)
    }
}

/// What the response to a request for a table says.
pub(super) enum Listing {
    /// The states of the ports of this block are known.
    Block(u8),
    /// The ports of the switch are asked one by one.
    Failed,
    /// They are asked one by one already.
    Unused,
}

/// The part of a sweep that reads the tables.
#[derive(Debug)]
pub(super) struct TableSweep<'a> {
    fabric: &'a Fabric,
    cache: &'a mut StateTableCache,
    /// Blocks of tables to read.
    pub queue: ThrottledQueue<(NodeIndex, u8)>,
    /// Switches whose ports are not asked one by one.
    by_table: NodeMap<bool>,
    /// What tables show.
    listed: PortMap<Option<PortState>>,
    /// As counted in this sweep; empty before its counters are read.
    retrains: PortMap<Option<Retrains>>,
    /// Ports that are asked after that.
    late: HashSet<PortIndex>,
    /// Switches that had no time for some ports.
    slow: HashSet<NodeIndex>,
}

/// Whether a port has its turn in a sweep: as many of each switch as of the others.
fn has_turn(fabric: &Fabric, port: PortIndex, sweep: u64) -> bool {
    let key = fabric.port_key(port);
    // Fibonacci hashing: adjacent GUIDs begin at different ports.
    let first = key.guid.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (first + u64::from(key.number) + sweep).is_multiple_of(TURNS)
}

/// Whether nothing has changed of what is known of a port. The LIDs of a switch's other ports are not used.
fn is_same(known: &PortStatus, now: &PortStatus) -> bool {
    let PortStatus { lid, lmc, sm_lid, is_sm, .. } = *now;
    PortStatus { lid, lmc, sm_lid, is_sm, ..*known } == *now
}

impl<'a> TableSweep<'a> {
    pub fn new(fabric: &'a Arc<Fabric>, cache: &'a mut StateTableCache) -> Self {
        cache.align(fabric);
        cache.sweep += 1;
        TableSweep {
            queue: ThrottledQueue::new(VecDeque::new(), MAX_LOST),
            by_table: NodeMap::filled(fabric.nodes.len(), false),
            listed: PortMap::filled(fabric.ports.len(), None),
            retrains: PortMap::default(),
            late: HashSet::new(),
            slow: HashSet::new(),
            fabric,
            cache,
        }
    }

    /// The ports of a node in the order in which they are asked one by one: those first that there was no time for.
    pub fn in_turn(&self, node: NodeIndex) -> impl Iterator<Item = PortIndex> + use<'a> {
        let fabric = self.fabric;
        let first = self.cache.first_ports.get(&fabric.node(node).identity.guid);
        let place = |first: &PortNumber| {
            fabric.ports_of(node).position(|port| fabric.port(port).number == *first)
        };
        let at = first.and_then(place).unwrap_or(0);
        fabric.ports_of(node).skip(at).chain(fabric.ports_of(node).take(at))
    }

    /// A switch was so slow, or busy for so long, that there was no time for a port.
    pub fn on_slow(&mut self, port: PortIndex) {
        let PortKey { guid, number } = self.fabric.port_key(port);
        if number != 0 && self.slow.insert(self.fabric.port(port).node) {
            self.cache.first_ports.insert(guid, number);
        }
    }

    /// Queues the table of a switch, if it has one. Returns whether it does.
    pub fn ask(&mut self, node: NodeIndex) -> bool {
        let is_trusted = self.cache.is_trusted(self.fabric.node(node).identity.guid);
        if is_trusted {
            self.by_table[node] = true;
            self.queue.queue.push_back((node, 0));
        }
        is_trusted
    }

    /// The blocks of the tables that are queued.
    pub fn max_mads(&self) -> usize {
        let blocks = |&(node, _): &(NodeIndex, u8)| usize::from(self.last_block(node)) + 1;
        self.queue.queue.iter().map(blocks).sum()
    }

    /// The blocks of a switch's table, if it is asked for.
    pub fn blocks_of(&self, node: NodeIndex) -> usize {
        let is_trusted = self.cache.is_trusted(self.fabric.node(node).identity.guid);
        if is_trusted { usize::from(self.last_block(node)) + 1 } else { 0 }
    }

    fn last_block(&self, node: NodeIndex) -> u8 {
        SwitchPortStateTable::block_of(self.fabric.node(node).identity.port_count)
    }

    /// Port 0 of a switch says whether there is a table.
    pub fn on_announcement(&mut self, guid: Guid, is_announced: bool) {
        if is_announced {
            self.cache.announced.insert(guid);
        } else {
            self.cache.announced.remove(&guid);
        }
    }

    pub fn on_outcome(&mut self, node: NodeIndex, block: u8, outcome: Outcome<'_>) -> Listing {
        if super::has_responded(&outcome) {
            self.queue.permit_more();
        }
        if !self.by_table[node] {
            return Listing::Unused;
        }
        match outcome {
            Ok(mad) if self.list(node, block, &SwitchPortStateTable::decode(mad)) => {
                if block < self.last_block(node) {
                    self.queue.queue.push_back((node, block + 1));
                }
                return Listing::Block(block);
            }
            Ok(_) => self.fail(node, "it has impossible states"),
            // It may have been lost on the way.
            Err(RequestError::TimedOut) => {
                let guid = self.fabric.node(node).identity.guid;
                self.cache.failures.entry(guid).or_default().skipped = 1;
            }
            Err(RequestError::Status(_)) => self.fail(node, "it is refused"),
            Err(_) => {}
        }
        self.by_table[node] = false;
        Listing::Failed
    }

    /// Takes the states of a block; `false` if a port of it has none that is possible.
    fn list(&mut self, node: NodeIndex, block: u8, table: &SwitchPortStateTable) -> bool {
        let fabric = self.fabric;
        let number = |port: &PortIndex| fabric.port(*port).number;
        let is_listed = |port: &PortIndex| is_in_block(number(port), block);
        let ports = || fabric.ports_of(node).filter(is_listed);
        let is_possible = |port| (1..=4).contains(&table.state(number(&port)).code());
        if !ports().all(is_possible) {
            return false;
        }
        for port in ports() {
            self.listed[port] = Some(table.state(number(&port)));
        }
        true
    }

    /// The table of a switch is not used any more, for a reason that is the same next time.
    fn fail(&mut self, node: NodeIndex, reason: &str) {
        let about = self.fabric.node(node);
        let failure = self.cache.failures.entry(about.identity.guid).or_default();
        failure.count = failure.count.saturating_add(1);
        failure.skipped = 1 << failure.count.min(MAX_SKIPPED.ilog2());
        if failure.count == 1 {
            tracing::info!(
                switch = %about.name,
                guid = %about.identity.guid,
                "table of port states not used, {reason}: each port is asked (logged once)"
            );
        }
    }

    /// The switches whose tables are not asked any more: too many did not respond.
    pub fn give_up(&mut self) -> Vec<NodeIndex> {
        if !self.queue.is_exhausted() {
            return Vec::new();
        }
        let rest: Vec<NodeIndex> = self.queue.queue.drain(..).map(|(node, _)| node).collect();
        for &node in &rest {
            self.by_table[node] = false;
        }
        rest
    }

    /// The ports of a switch are asked one by one from now on. Returns whether they were not.
    pub fn leave(&mut self, node: NodeIndex) -> bool {
        std::mem::replace(&mut self.by_table[node], false)
    }

    /// Takes the state of a port that PortInfo shows. Returns whether the table showed another one.
    pub fn contradicts(&mut self, port: PortIndex, state: PortState) -> bool {
        let node = self.fabric.port(port).node;
        let listed =
            self.listed[port].filter(|_| self.by_table[node] && !self.late.contains(&port));
        let is_other = listed.is_some_and(|listed| listed != state);
        if is_other {
            self.fail(node, "PortInfo shows another state, or a port changed between the two");
        }
        is_other
    }

    /// What is known of a port without its PortInfo.
    pub fn known(&self, port: PortIndex) -> Option<PortStatus> {
        let here = self.fabric.port(port);
        let (listed, known) = (self.listed[port]?, here.status?);
        let may_be_skipped = match listed {
            PortState::Active => known.link_up(),
            PortState::Down => here.peer.is_none() && !known.link_up(),
            _ => false,
        };
        let is_known = may_be_skipped
            && known.state == listed
            && self.cache.ports[port].is_steady
            && (self.fabric.routes.is_directed() || !has_turn(self.fabric, port, self.cache.sweep));
        is_known.then_some(known)
    }

    /// Takes what the counters of this sweep show, if any switch has a table.
    pub fn set_retrains(&mut self, retrains: impl Fn(PortIndex) -> Option<Retrains>) {
        // By directed route the announcements of the first sweep come after this.
        if !self.cache.announced.is_empty() || self.fabric.routes.is_directed() {
            self.retrains = self.fabric.port_indexes().map(retrains).collect();
        }
    }

    /// Whether a link may have trained again since the last sweep.
    fn has_retrained(&self, port: PortIndex) -> bool {
        let counts = |port| Some((self.cache.ports[port].retrains?, self.retrains[port]?));
        let has_changed = |(before, now): (Retrains, Retrains)| before != now;
        let peer = self.fabric.port(port).connected_peer().and_then(counts);
        counts(port).is_none_or(has_changed) || peer.is_some_and(has_changed)
    }

    /// Whether PortInfo of a port whose state is known must be read after all.
    pub fn is_late(&mut self, port: PortIndex) -> bool {
        let has_link = self.fabric.port(port).status.is_some_and(|known| known.link_up());
        let is_late = has_link && !self.retrains.is_empty() && self.has_retrained(port);
        if is_late {
            self.late.insert(port);
        }
        is_late
    }

    /// Remembers the ports: of those that `is_valid` excludes nothing is known.
    pub fn finish(self, statuses: &PortMap<PortRead>, is_valid: impl Fn(PortIndex) -> bool) {
        if self.retrains.is_empty() {
            return;
        }
        let is_steady = |port: PortIndex| {
            let (PortRead::Ok(now), Some(known)) = (&statuses[port], self.fabric.port(port).status)
            else {
                return false;
            };
            // PortInfo of the late ones was read after the counters, of the others maybe before.
            let is_late = self.late.contains(&port) && self.retrains[port].is_some();
            is_same(&known, now) && (!now.link_up() || is_late || !self.has_retrained(port))
        };
        let memory = |port| PortMemory {
            retrains: if is_valid(port) {
                self.retrains[port].or(self.cache.ports[port].retrains)
            } else {
                None
            },
            is_steady: is_valid(port) && is_steady(port),
        };
        let ports = self.fabric.port_indexes().map(memory).collect();
        self.cache.ports = ports;
    }
}

/// Whether a block has the state of a port. That of port 0, which has no cable, is not used.
pub(super) fn is_in_block(number: PortNumber, block: u8) -> bool {
    number != 0 && SwitchPortStateTable::block_of(number) == block
}
