//! Whether LIDs still belong to the nodes that the discovery found there.
//!
//! A counter names no device: if the subnet manager gives the LID of a host to another one, what is read by it looks
//! like a growth of the first one's counters. NodeInfo names the node, and a sweep asks for it by LID once all else
//! is read, because a LID that has its node then had it before. An ordinary sweep asks each switch that responded
//! before, adapters whose link went down since the last sweep (a host that boots may get another LID, and its old one
//! another host), and a sample of the adapters by turns: that is 1 % of its requests, and a subnet manager that assigns
//! other LIDs leaves few switches their own. If another node responds, the whole sweep is void.
//!
//! A node that has confirmed its LID before and does not respond now may have lost it: what was read of it is dropped,
//! once. It is asked also if it did not respond to other requests: those to a manager that hangs, for example. While a
//! subnet manager changes the tables of the switches one by one, requests to a LID reach one node, none and another. A
//! node that says that it is busy has not lost its LID, and a request that was not sent says nothing.
//!
//! After that a sweep [confirms each](super::sweep::Sweep::confirming_each): NodeInfo of each node before everything
//! else and again at the end. Only what is read of a node between two such responses counts.
//!
//! In a fabric with planes, which no request by LID may cross, PortInfo is asked by directed route instead: the node at
//! the end of the route says which LID it has. Of a switch it also confirms that no other node came to the end of the
//! route since NodeInfo named it: that one would have another LID. An adapter is asked for NodeInfo first: one that
//! replaced it may have got its LID.
//!
//! These requests say nothing about whether a node is up: hosts whose performance management does not respond, or
//! whose subnet management is protected, look the same in each sweep, whichever is in the sample.

use std::collections::{HashMap, HashSet, VecDeque};

use ib_mad::m_key::MKeys;
use ib_mad::port_info::PortInfo;
use ib_mad::smp::{self, NodeInfo};
use ib_mad::{Mad, PortKey};
use ib_umad::{Address, Request, RequestError};

use super::throttle::ThrottledQueue;
use super::unresponsive::MAX_LOST;
use super::{Outcome, has_responded, is_other_lid};
use crate::topology::Presence;
use crate::{Fabric, PortIndex};

/// Adapters in the sample of a sweep: 10,000 hosts take turns within 80 minutes at the default interval.
const SAMPLE: usize = 32;
/// Adapters asked in a sweep because their link went down. The others are asked in the next ones.
const MAX_RETURNED: usize = 256;

/// What is kept from sweep to sweep.
#[derive(Debug, Default)]
pub(super) struct ConfirmationCache {
    /// The port index at which the next sample begins.
    next_port: u32,
    /// How often the link to an adapter went down, by the port of its switch, when the adapter was last confirmed or
    /// first seen.
    link_downs: HashMap<PortKey, u64>,
    /// Adapters whose last response to NodeInfo by LID was their own. Others may never respond to it.
    responding: HashSet<PortKey>,
}

impl ConfirmationCache {
    /// Forgets counts of links: the discovery has just found by which LIDs adapters are reached.
    pub fn on_discovery(&mut self, fabric: &Fabric) {
        self.link_downs.clear();
        self.responding.retain(|key| fabric.find(*key).is_some());
    }
}

/// Why a node is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// It has responded in this sweep.
    Known,
    /// Its link went down, or each node is asked.
    Suspect,
    Sample,
}

/// What a request by directed route asks; by LID it is NodeInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Which node is at the end of the route.
    Node,
    /// Which LID it has.
    Lid,
}

/// A request for NodeInfo of a port by its LID, or for NodeInfo or PortInfo by its route.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConfirmationQuery {
    pub port: PortIndex,
    reason: Reason,
    part: Part,
}

/// How often the link of an adapter went down until now.
#[derive(Debug)]
struct LinkDowns {
    switch_port: PortKey,
    count: u64,
    adapter: PortIndex,
}

#[derive(Debug)]
pub(super) struct Confirmation<'a> {
    fabric: &'a Fabric,
    keys: &'a MKeys,
    cache: &'a mut ConfirmationCache,
    known: VecDeque<PortIndex>,
    /// Adapters that have named themselves at the end of their routes: which LID they have is asked next.
    named: VecDeque<PortIndex>,
    suspects: ThrottledQueue<PortIndex>,
    sample: ThrottledQueue<PortIndex>,
    /// Ports whose LID their own node has, according to its response since the last [`Confirmation::restart`].
    pub confirmed: HashSet<PortIndex>,
    /// Ports whose LID another node has.
    pub others: HashSet<PortIndex>,
    /// Ports whose node did not respond at the end, but before.
    pub lost: HashSet<PortIndex>,
    link_downs: Vec<LinkDowns>,
}

/// Whether a port has a LID of its own that can be asked: port 0 of a switch, a port of another present node.
fn is_asked(fabric: &Fabric, port: PortIndex) -> bool {
    fabric.management_port(port) == port
        && fabric.node_of(port).present()
        && fabric.lid_of(port).is_some()
}

/// How many requests confirm LIDs at most, in a sweep that confirms each or not: to tell in advance how long it takes.
pub fn max_requests(fabric: &Fabric, confirms_each: bool) -> usize {
    let asked = || fabric.port_indexes().filter(|&port| is_asked(fabric, port));
    let switches = asked().filter(|&port| fabric.node_of(port).is_switch()).count();
    let adapters = asked().count() - switches;
    // NodeInfo, and by directed route PortInfo, too.
    let requests = if fabric.routes.is_directed() { 2 } else { 1 };
    if confirms_each {
        // The first request to a switch belongs to each sweep.
        return switches + 2 * requests * adapters;
    }
    switches + requests * adapters.min(SAMPLE + MAX_RETURNED)
}

/// Whether the discovery reached a port's node.
fn is_found(fabric: &Fabric, port: PortIndex) -> bool {
    fabric.node_of(port).presence == Presence::Found
}

fn in_order(ports: impl Iterator<Item = PortIndex>) -> VecDeque<PortIndex> {
    let mut ports: Vec<PortIndex> = ports.collect();
    ports.sort_unstable();
    ports.dedup();
    ports.into()
}

impl<'a> Confirmation<'a> {
    pub fn new(fabric: &'a Fabric, keys: &'a MKeys, cache: &'a mut ConfirmationCache) -> Self {
        Confirmation {
            fabric,
            keys,
            cache,
            known: VecDeque::new(),
            named: VecDeque::new(),
            suspects: ThrottledQueue::new(VecDeque::new(), MAX_LOST),
            sample: ThrottledQueue::new(VecDeque::new(), 0),
            confirmed: HashSet::new(),
            others: HashSet::new(),
            lost: HashSet::new(),
            link_downs: Vec::new(),
        }
    }

    /// Queues each adapter that the discovery reached. Those that refuse are few dozen at most: each response permits
    /// another request.
    pub fn ask_adapters(&mut self) {
        let fabric = self.fabric;
        let is_adapter = |port: &PortIndex| {
            is_asked(fabric, *port) && !fabric.node_of(*port).is_switch() && is_found(fabric, *port)
        };
        self.suspects.queue = fabric.port_indexes().filter(is_adapter).collect();
    }

    /// Queues the ports that were confirmed before, and `also` these, to be confirmed again.
    pub fn restart(&mut self, also: &HashSet<PortIndex>) {
        self.known = in_order(self.confirmed.drain().chain(also.iter().copied()));
    }

    /// Queues what an ordinary sweep confirms at its end: `confirmed` ports again, and adapters with counters, of whose
    /// sample up to `max_silent` may not respond. `link_downs` is how often a port's link went down, as far as its
    /// counters were read.
    pub fn ask_sample(
        &mut self,
        confirmed: &HashSet<PortIndex>,
        max_silent: usize,
        link_downs: impl Fn(PortIndex) -> Option<u64>,
        has_counters: impl Fn(PortIndex) -> bool,
    ) {
        let fabric = self.fabric;
        self.known = in_order(confirmed.iter().copied());
        let is_wanted = |port: PortIndex| {
            !fabric.node_of(port).is_switch()
                && is_asked(fabric, port)
                && is_found(fabric, port)
                && has_counters(port)
        };
        for port in fabric.port_indexes().filter(|&port| fabric.node_of(port).is_switch()) {
            let Some(adapter) = fabric.port(port).connected_peer() else { continue };
            let Some(count) = link_downs(port).filter(|_| is_wanted(adapter)) else { continue };
            let switch_port = fabric.port_key(port);
            let before = self.cache.link_downs.get(&switch_port).copied();
            if before == Some(count) {
                continue;
            }
            let has_room = self.suspects.queue.len() < MAX_RETURNED;
            if before.is_some() && has_room {
                self.suspects.queue.push_back(adapter);
            }
            // Those that do not fit keep the old count, and are asked in the next sweep.
            if before.is_none() || has_room {
                self.link_downs.push(LinkDowns { switch_port, count, adapter });
            }
        }
        let count = fabric.ports.len() as u32;
        let begin = self.cache.next_port.min(count);
        let sample = (begin..count)
            .chain(0..begin)
            .map(PortIndex)
            .filter(|&port| is_wanted(port))
            // A response would have a subnet manager that hangs there tried three times instead of once.
            .filter(|&port| fabric.port(port).status.is_none_or(|status| !status.is_sm))
            .take(SAMPLE);
        self.sample = ThrottledQueue::new(sample.collect(), max_silent);
    }

    /// The next request, to the address of a port.
    pub fn poll_request(
        &mut self,
        address_of: impl Fn(PortIndex) -> Option<Address>,
    ) -> Option<(Request, ConfirmationQuery)> {
        loop {
            let next = self.pop()?;
            let port = self.fabric.port(next.port);
            let Some(to) = address_of(next.port) else {
                self.on_response(next.reason);
                continue;
            };
            let query = match (to, next.part) {
                (Address::Directed(_), Part::Lid) => smp::port_info(port.number),
                _ => smp::node_info(),
            };
            let query = query.with_m_key(self.keys.get(port.guid));
            // A node that did not respond to others, such as SMInfo of a manager that hangs, may still have its LID.
            let query = if self.is_expected(next) { query.always_sent() } else { query };
            return Some((Request { to, query }, next));
        }
    }

    /// Whether what is read of the node is dropped if it does not respond.
    fn is_expected(&self, query: ConfirmationQuery) -> bool {
        let key = self.fabric.port_key(query.port);
        query.reason == Reason::Known || self.cache.responding.contains(&key)
    }

    /// A request has a response, or was not sent.
    fn on_response(&mut self, reason: Reason) {
        match reason {
            Reason::Known => {}
            Reason::Suspect => self.suspects.on_response(),
            Reason::Sample => self.sample.on_response(),
        }
    }

    /// Whether a response is of the node that is known to have the LID of a port. If no LID is known, any may be its own.
    fn is_own(&self, port: PortIndex, mad: &Mad) -> bool {
        if mad.attribute() == PortInfo::ID {
            let known = self.fabric.port(port).status;
            let now = PortInfo::decode(mad).lid;
            return known.is_none_or(|known| !is_other_lid(known.lid, now));
        }
        NodeInfo::decode(mad).node_guid == self.fabric.node_of(port).identity.guid
    }

    fn pop(&mut self) -> Option<ConfirmationQuery> {
        if let Some(port) = self.named.pop_front() {
            return Some(ConfirmationQuery { port, reason: Reason::Known, part: Part::Lid });
        }
        let (port, reason) = if let Some(port) = self.known.pop_front() {
            (port, Reason::Known)
        } else if let Some(port) = self.suspects.pop() {
            (port, Reason::Suspect)
        } else {
            let port = self.sample.pop()?;
            self.cache.next_port = port.0 + 1;
            (port, Reason::Sample)
        };
        // A switch has named itself at the begin of the sweep, and another one there would have another LID. At a cable
        // of an adapter may be another one, to which the subnet manager gave the LID of the first.
        let is_switch = self.fabric.node_of(port).is_switch();
        let first = if is_switch { Part::Lid } else { Part::Node };
        Some(ConfirmationQuery { port, reason, part: first })
    }

    pub fn on_outcome(&mut self, query: ConfirmationQuery, outcome: Outcome<'_>) {
        let ConfirmationQuery { port, reason, part } = query;
        if has_responded(&outcome) {
            self.on_response(reason);
        }
        let is_expected = self.is_expected(query);
        let key = self.fabric.port_key(port);
        let mad = match outcome {
            Ok(mad) => mad,
            // A node has the LID; or it was not asked.
            Err(RequestError::Busy | RequestError::Unsent) => return,
            Err(_) => {
                if is_expected {
                    self.lost.insert(port);
                    self.cache.responding.remove(&key);
                }
                return;
            }
        };
        if !self.is_own(port, mad) {
            self.others.insert(port);
            return;
        }
        if reason != Reason::Known {
            self.cache.responding.insert(key);
        }
        if part == Part::Node && self.fabric.routes.is_directed() {
            self.named.push_back(port);
        } else {
            self.confirmed.insert(port);
        }
    }

    /// Records the counts of links, unless an adapter that was asked because of one did not respond: it is asked
    /// again.
    pub fn finish(self) {
        for LinkDowns { switch_port, count, adapter } in self.link_downs {
            let known = &mut self.cache.link_downs;
            if self.confirmed.contains(&adapter) || !known.contains_key(&switch_port) {
                known.insert(switch_port, count);
            }
        }
    }
}
