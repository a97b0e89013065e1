//! Port states in each sweep: detects changes since the discovery.
//!
//! The requests are LID-routed, so that switches forward them in hardware. One end of each link is
//! queried (both ends lose the link together), and every port without a link, because a cable may be
//! plugged in. Of switches with a table of port states it is one request for 128 ports instead, and only those follow
//! that may have changed ([`state_tables`](super::state_tables)). After them some ports are queried for their FEC mode.
//!
//! NodeInfo and port 0 of each switch are queried, too: they show whether the subnet manager assigned other LIDs, in
//! which case readings by the old ones are invalid, and nothing more is asked by them: an M_Key that another node gets
//! is no secret any more, and counts as a violation there. Hidden nodes are queried for NodeInfo first, because their
//! LID may belong to another node now, or an M_Key may protect them: the [`HiddenNodes`] decide when.
//!
//! In a fabric with planes the requests take directed routes. A sweep begins with the checks of these routes
//! ([`switch_checks`](super::switch_checks)), and only what follows on a route whose end has just named itself counts.
//! PortInfo of port 0 is read last, and confirms the LIDs ([`confirmation`](super::confirmation)). What it does not
//! confirm is unknown: nodes that hide behind others are not asked, for no LID reaches them.
//!
//! A fabric may be configured so that its switches do not respond to LID-routed subnet management. If a few dozen
//! switches do not respond and none has, the others are left out, and port states come from discoveries only.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use ib_mad::Guid;
use ib_mad::fec::Fec;
use ib_mad::m_key::MKeys;
use ib_mad::port_info::PortInfo;
use ib_mad::port_state::PortStatus;
use ib_mad::rate::Speed;
use ib_mad::smp::{self, NodeInfo, SwitchInfo};
use ib_umad::{Request, RequestError};

use super::agent_cache::m_key_of;
use super::fec_modes::{FecMode, FecModeCache, link_state};
use super::state_tables::{Listing, Retrains, StateTableCache, TableSweep, is_in_block};
use super::switch_checks::{RouteCache, SwitchChecks};
use super::throttle::ThrottledQueue;
use super::unresponsive::{HiddenNodes, HiddenSweep, MAX_SILENT};
use super::{Outcome, has_responded, is_other_lid};
use crate::snapshot::PortRead;
use crate::topology::Presence;
use crate::{Fabric, NodeIndex, PortIndex, PortMap};

/// After this number of unresponsive nodes without any response no more nodes are queried.
const MAX_SILENT_NODES: usize = 32;

/// What is read of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    /// Shows whether the LID still belongs to the node.
    NodeInfo,
    SwitchInfo,
    /// A block of a switch's table.
    StateTable(u8),
    PortInfo,
    /// The FEC mode.
    PortInfoExtended,
}

/// A query of a port's state.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateQuery {
    attribute: Attribute,
    port: PortIndex,
}

impl Attribute {
    pub(super) fn of(self, port: PortIndex) -> StateQuery {
        StateQuery { attribute: self, port }
    }
}

#[derive(Debug)]
pub struct StateSweep<'a> {
    pub(super) fabric: &'a Fabric,
    hidden: HiddenSweep<'a>,
    /// Of a fabric with planes.
    pub(super) checks: Option<SwitchChecks<'a>>,
    /// Whether these have ended, and the ports are queued.
    is_reading: bool,
    queue: VecDeque<StateQuery>,
    pub(super) tables: TableSweep<'a>,
    /// Whether PortInfo of a port was queued.
    asked: PortMap<bool>,
    /// The ports of switches with a table, which may all be queried.
    by_table: usize,
    /// Ports to query for their FEC mode. No response says nothing about a node, so it is queried again
    /// later; if many do not respond, few are queried in a sweep.
    due: ThrottledQueue<PortIndex>,
    pub result: StateResult,
    pub(super) answered: bool,
    /// Nodes that the discovery reached, and that did not respond.
    pub(super) unanswered: HashSet<NodeIndex>,
    /// A hidden node did not respond, or a request was not sent.
    pub(super) others_unanswered: bool,
    fec_modes: &'a mut FecModeCache,
    /// Ports that were asked for their FEC mode.
    asked_modes: Vec<PortIndex>,
    pub(super) keys: &'a MKeys,
    modes: PortMap<FecMode>,
}

#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
pub struct StateResult {
    pub statuses: PortMap<PortRead>,
    pub fec: PortMap<Option<Fec>>,
    /// Switches whose PortStateChange bit is set.
    pub state_changes: HashSet<Guid>,
    /// Some port changed since the discovery.
    pub changed: bool,
    /// Nodes at whose LIDs another node responds.
    pub lid_mismatches: HashSet<NodeIndex>,
    /// Ports by whose LID their own node responded, with NodeInfo.
    pub confirmed: HashSet<PortIndex>,
    /// LIDs changed: responses may have come from other nodes.
    pub lids_changed: bool,
    /// Another subnet manager is the master.
    pub sm_lid_changed: bool,
    /// Nodes were queried, and none responded: nothing is known of their presence.
    pub no_response: bool,
    /// The same of nodes that the discovery reached: they do not respond by LID.
    pub unavailable: bool,
    /// Hidden nodes that responded to their last query by LID.
    pub hidden_responding: HashSet<NodeIndex>,
    /// Switches that no route reached, of a fabric with planes.
    pub unconfirmed_switches: usize,
}

impl<'a> StateSweep<'a> {
    /// Unless `enabled` no node is queried. `modes` are the cached FEC modes.
    pub(super) fn new(
        fabric: &'a Arc<Fabric>,
        enabled: bool,
        (fec_modes, modes): (&'a mut FecModeCache, PortMap<FecMode>),
        (tables, routes): (&'a mut StateTableCache, &'a mut RouteCache),
        (keys, hidden): (&'a MKeys, &'a mut HiddenNodes),
    ) -> Self {
        let checks = if enabled { SwitchChecks::new(fabric, routes) } else { None };
        let is_by_lid = enabled && checks.is_none();
        let hidden = HiddenSweep::new(fabric, is_by_lid, hidden);
        let is_found = |node: &NodeIndex| fabric.node(*node).presence == Presence::Found;
        let found: Vec<NodeIndex> =
            fabric.node_indexes().filter(|node| is_by_lid && is_found(node)).collect();
        // NodeInfo of each switch first, then the ports.
        let zeros = found.iter().filter_map(|&node| fabric.ports_of(node).next());
        let queue = zeros
            .filter(|&port| fabric.port(port).number == 0 && fabric.lid_of(port).is_some())
            .map(|port| Attribute::NodeInfo.of(port))
            .collect();
        let due = if enabled {
            fec_modes.due(fabric, &modes, |node| hidden.nodes.is_expected(fabric, node))
        } else {
            VecDeque::new()
        };
        let statuses = PortMap::filled(fabric.ports.len(), PortRead::NotQueried);
        let mut sweep = StateSweep {
            fabric,
            hidden,
            is_reading: checks.is_none(),
            checks,
            queue,
            tables: TableSweep::new(fabric, tables),
            asked: PortMap::filled(fabric.ports.len(), false),
            by_table: 0,
            due: ThrottledQueue::new(due, MAX_SILENT),
            result: StateResult { statuses, ..StateResult::default() },
            answered: false,
            unanswered: HashSet::new(),
            others_unanswered: false,
            fec_modes,
            asked_modes: Vec::new(),
            keys,
            modes,
        };
        for node in found {
            sweep.queue_ports_of(node);
        }
        sweep
    }

    /// Whether a port's node is asked and expected to respond.
    fn is_reachable(&self, port: PortIndex) -> bool {
        let node = self.fabric.port(port).node;
        self.address_of(port).is_some()
            && (self.checks.is_some() || self.hidden.nodes.is_expected(self.fabric, node))
    }

    /// Whether a port is the queried end of its link.
    fn is_queried_end(&self, port: PortIndex) -> bool {
        let fabric = self.fabric;
        let here = fabric.node_of(port).is_switch();
        match fabric.port(port).connected_peer() {
            // A cable may be plugged in; at the local port, the whole fabric.
            None => true,
            // A node that just came up has no LID yet; an unresponsive one reports nothing.
            Some(peer) if !self.is_reachable(peer) => true,
            Some(peer) if fabric.node_of(peer).is_switch() == here => port <= peer,
            // The switch is queried for links to hosts: it is one for many, and always up.
            Some(_) => here,
        }
    }

    /// Once the routes are checked, queues the ports of all nodes that they reach.
    fn begin_reading(&mut self) {
        self.is_reading = true;
        let fabric = self.fabric;
        let found = |node: &NodeIndex| fabric.node(*node).presence == Presence::Found;
        for node in fabric.node_indexes().filter(found) {
            self.queue_ports_of(node);
        }
    }

    fn queue_ports_of(&mut self, node: NodeIndex) {
        let fabric = self.fabric;
        let ports: Vec<PortIndex> =
            fabric.ports_of(node).filter(|&port| self.address_of(port).is_some()).collect();
        if let Some(&port) = ports.iter().find(|&&port| fabric.port(port).number == 0) {
            self.asked[port] = true;
            self.queue.push_back(Attribute::SwitchInfo.of(port));
            // By directed route it is read last.
            if !self.is_directed() {
                self.queue.push_back(Attribute::PortInfo.of(port));
            }
        }
        if fabric.node(node).is_switch() && !ports.is_empty() && self.tables.ask(node) {
            self.by_table += ports.iter().filter(|&&port| self.is_queried_end(port)).count();
        } else {
            self.ask_each_port_of(node);
        }
    }

    /// Queries the ports of a node one by one, except port 0.
    fn ask_each_port_of(&mut self, node: NodeIndex) {
        let fabric = self.fabric;
        // As with all that was queued then.
        if self.has_given_up() {
            return;
        }
        for port in self.tables.in_turn(node) {
            let is_external = fabric.port(port).number != 0 && self.address_of(port).is_some();
            if is_external && self.is_queried_end(port) {
                self.ask(port);
            }
        }
    }

    fn ask(&mut self, port: PortIndex) {
        if std::mem::replace(&mut self.asked[port], true) {
            return;
        }
        // What the table showed does not count any more.
        if matches!(self.result.statuses[port], PortRead::Ok(_)) {
            self.result.statuses[port] = PortRead::NotQueried;
        }
        self.queue.push_back(Attribute::PortInfo.of(port));
    }

    /// Whether too many nodes did not respond, and none has.
    fn has_given_up(&self) -> bool {
        !self.answered && self.unanswered.len() >= MAX_SILENT_NODES
    }

    /// Once the counters are read, queries the ports whose links have trained again since the last sweep.
    pub fn ask_retrained(&mut self, retrains: impl Fn(PortIndex) -> Option<Retrains>) {
        self.tables.set_retrains(retrains);
        for port in self.fabric.port_indexes() {
            let is_shown =
                !self.asked[port] && matches!(self.result.statuses[port], PortRead::Ok(_));
            if is_shown && self.tables.is_late(port) {
                self.ask(port);
            }
        }
    }

    /// The most MADs that it sends; only before the first request. Retries are not known in advance.
    pub fn max_mads(&self) -> usize {
        let tables = self.tables.max_mads() + self.by_table;
        let known = self.queue.len() + self.due.queue.len() + tables + self.max_by_route();
        let hidden = self.hidden.max_mads();
        if known + hidden == 0 {
            return 0;
        }
        // The other end of a link that changed is queried, too, if it is a switch.
        let is_switch = |port| self.fabric.node_of(port).is_switch();
        let others = self.fabric.links().filter(|link| is_switch(link.low) && is_switch(link.high));
        known + hidden + others.count()
    }

    /// The next request for NodeInfo; `None` once there is none left.
    pub fn poll_node_info(&mut self) -> Option<(Request, StateQuery)> {
        if self.is_directed() {
            return self.poll_check();
        }
        loop {
            let hidden = self.hidden.pop().map(|port| Attribute::NodeInfo.of(port));
            let is_first = self.queue.front().is_some_and(|it| it.attribute == Attribute::NodeInfo);
            let next = hidden.or_else(|| if is_first { self.queue.pop_front() } else { None })?;
            if let Some(request) = self.request(next) {
                return Some((request, next));
            }
        }
    }

    pub fn poll_request(&mut self) -> Option<(Request, StateQuery)> {
        if !self.is_reading {
            if let Some(check) = self.poll_check() {
                return Some(check);
            }
            if !self.is_checked() {
                return None;
            }
            self.begin_reading();
        }
        loop {
            let next = self.pop()?;
            // Another node would get the key of this one.
            let is_lost = self.result.lid_mismatches.contains(&self.fabric.port(next.port).node);
            if let Some(request) = self.request(next).filter(|_| !is_lost) {
                return Some((request, next));
            }
            if next.attribute == Attribute::PortInfoExtended {
                self.due.on_response();
            }
        }
    }

    /// The optional requests without a response.
    pub fn unanswered(&self) -> usize {
        self.due.unanswered()
    }

    /// The next query; hidden nodes first, FEC modes last.
    fn pop(&mut self) -> Option<StateQuery> {
        let hidden = self.hidden.pop().map(|port| Attribute::NodeInfo.of(port));
        hidden.or_else(|| self.pop_table()).or_else(|| self.queue.pop_front()).or_else(|| {
            let port = self.due.pop()?;
            self.fec_modes.next_port = port.0 + 1;
            Some(Attribute::PortInfoExtended.of(port))
        })
    }

    /// The next table, after NodeInfo of the switches that were found.
    fn pop_table(&mut self) -> Option<StateQuery> {
        if self.queue.front().is_some_and(|it| it.attribute == Attribute::NodeInfo) {
            return None;
        }
        let (node, block) = self.tables.queue.pop()?;
        Some(Attribute::StateTable(block).of(self.fabric.ports_of(node).next()?))
    }

    /// The request of a query; `None` for a port without an address.
    fn request(&self, StateQuery { attribute, port }: StateQuery) -> Option<Request> {
        let number = self.fabric.port(port).number;
        let query = match attribute {
            Attribute::NodeInfo => smp::node_info(),
            Attribute::SwitchInfo => smp::switch_info(),
            Attribute::StateTable(block) => smp::switch_port_state_table(block),
            Attribute::PortInfo => smp::port_info(number),
            Attribute::PortInfoExtended => smp::port_info_extended(number),
        };
        let to = self.address_of(port)?;
        let query = query.with_m_key(m_key_of(self.keys, self.fabric, port));
        Some(Request { to, query })
    }

    /// Handles an outcome. Returns the port whose node's liveness it shows.
    pub fn on_outcome(&mut self, query: StateQuery, outcome: Outcome<'_>) -> Option<PortIndex> {
        let StateQuery { attribute, port } = query;
        let has_responded = has_responded(&outcome);
        if attribute == Attribute::PortInfoExtended {
            let mode = FecMode::from_outcome(outcome);
            self.asked_modes.push(port);
            self.fec_modes.insert(self.fabric, port, mode);
            self.modes[port] = mode;
            let was_not_sent =
                matches!(outcome, Err(RequestError::Unresponsive | RequestError::Unsent));
            if has_responded || was_not_sent {
                self.due.on_response();
            }
            // No response to this says nothing about the node.
            return outcome.is_ok().then_some(port);
        }
        let node = self.fabric.port(port).node;
        if attribute == Attribute::NodeInfo && self.is_directed() {
            return self.on_check(port, outcome);
        }
        if let Attribute::StateTable(block) = attribute {
            self.handle_table(node, block, outcome);
            // No response to this says nothing about the node either.
            return outcome.is_ok().then_some(port);
        }
        let is_hidden = self.fabric.node(node).presence == Presence::Hidden;
        match outcome {
            Ok(_) => self.answered = true,
            // That is the fault of the transport, and says nothing about the node.
            Err(RequestError::Unsent) => {
                if attribute == Attribute::NodeInfo && is_hidden {
                    self.hidden.on_unsent(port);
                }
                self.others_unanswered = true;
                return None;
            }
            Err(_) if is_hidden => self.others_unanswered = true,
            Err(_) => drop(self.unanswered.insert(node)),
        }
        self.give_up_if_silent();
        if attribute == Attribute::PortInfo
            && matches!(outcome, Err(RequestError::Slow | RequestError::Busy))
        {
            self.tables.on_slow(port);
        }
        if attribute == Attribute::NodeInfo && is_hidden {
            self.hidden.record(port, has_responded);
        }
        let Ok(mad) = outcome else { return Some(port) };
        let guid = self.fabric.node(node).identity.guid;
        match attribute {
            Attribute::NodeInfo if NodeInfo::decode(mad).node_guid != guid => {
                self.result.lid_mismatches.insert(node);
                // The LID of a hidden node is that of an earlier discovery.
                self.result.lids_changed |= !is_hidden;
            }
            Attribute::NodeInfo => {
                self.result.confirmed.insert(port);
                if is_hidden {
                    self.queue_ports_of(node);
                }
            }
            Attribute::SwitchInfo if SwitchInfo::decode(mad).port_state_change => {
                self.result.state_changes.insert(guid);
                if self.tables.leave(node) {
                    self.ask_each_port_of(node);
                }
            }
            Attribute::PortInfo => self.handle_port(port, &PortInfo::decode(mad)),
            Attribute::SwitchInfo | Attribute::StateTable(_) | Attribute::PortInfoExtended => {}
        }
        Some(port)
    }

    /// Whether the other end of a port's link shows that there is none any more.
    pub fn shows_no_link(&self, port: PortIndex) -> bool {
        let peer = self.fabric.port(port).connected_peer();
        let read = peer.map(|peer| self.result.statuses[peer]);
        matches!(read, Some(PortRead::Ok(status)) if !status.link_up())
    }

    pub(super) fn give_up_if_silent(&mut self) {
        if self.has_given_up() {
            self.queue.clear();
            self.due.queue.clear();
            self.tables.queue.queue.clear();
            if let Some(checks) = &mut self.checks {
                checks.give_up();
            }
        }
    }

    fn handle_table(&mut self, node: NodeIndex, block: u8, outcome: Outcome<'_>) {
        let fabric = self.fabric;
        match self.tables.on_outcome(node, block, outcome) {
            Listing::Block(block) => {
                let is_listed = |port: &PortIndex| is_in_block(fabric.port(*port).number, block);
                for port in fabric.ports_of(node).filter(is_listed) {
                    if self.asked[port] || !self.is_queried_end(port) {
                        continue;
                    }
                    match self.tables.known(port) {
                        Some(known) => self.result.statuses[port] = PortRead::Ok(known),
                        None => self.ask(port),
                    }
                }
            }
            Listing::Failed => self.ask_each_port_of(node),
            Listing::Unused => {}
        }
        for node in self.tables.give_up() {
            self.ask_each_port_of(node);
        }
    }

    pub(super) fn handle_port(&mut self, port: PortIndex, info: &PortInfo) {
        let identity = &self.fabric.node_of(port).identity;
        let is_switch = self.fabric.node_of(port).is_switch();
        let fields = if is_switch { identity.speed_fields } else { info.speed_fields() };
        let mut status = info.status(fields);
        if is_switch && self.fabric.port(port).number == 0 {
            self.tables.on_announcement(identity.guid, info.has_state_table());
        } else if self.tables.contradicts(port, info.state) {
            let node = self.fabric.port(port).node;
            self.tables.leave(node);
            self.ask_each_port_of(node);
        }
        // A port that the discovery did not reach cannot be compared; discovery handles its own gaps.
        let known = self.fabric.port(port).status;
        if let Some(known) = known {
            if known.speed == Some(Speed::Fdr10) {
                status = status.at_fdr10();
            }
            // The LID fields of other ports of a switch are not used.
            if !is_switch || self.fabric.port(port).number == 0 {
                self.result.lids_changed |= is_other_lid(known.lid, status.lid);
                self.result.sm_lid_changed |= is_other_lid(known.sm_lid, status.sm_lid);
                // It has one since the discovery.
                self.result.changed |= !known.lid.is_unicast() && status.lid.is_unicast();
            }
            if link_state(&known) != link_state(&status) {
                self.result.changed = true;
                self.invalidate_peer(port, &status);
            }
        }
        self.result.statuses[port] = PortRead::Ok(status);
    }

    /// The other end changed, too: a switch is queried, and the state of a host without its link is unknown.
    fn invalidate_peer(&mut self, port: PortIndex, status: &PortStatus) {
        let fabric = self.fabric;
        let Some(peer) = fabric.port(port).connected_peer() else { return };
        let read = &mut self.result.statuses[peer];
        if *read != PortRead::NotQueried {
            return;
        }
        let is_switch = fabric.node_of(peer).is_switch();
        if is_switch || !status.link_up() {
            *read = PortRead::Unknown;
        }
        if is_switch && self.is_reachable(peer) {
            self.ask(peer);
        }
    }

    fn discard(&mut self, is_valid: impl Fn(PortIndex) -> bool) {
        let fabric = self.fabric;
        for &port in self.asked_modes.iter().filter(|&&port| !is_valid(port)) {
            self.fec_modes.remove(fabric, port);
            self.modes[port] = FecMode::Unknown;
        }
        for port in fabric.port_indexes().filter(|&port| !is_valid(port)) {
            self.result.statuses[port] = PortRead::NotQueried;
            // What it said of the other end is not valid either.
            if let Some(peer) = fabric.port(port).connected_peer()
                && self.result.statuses[peer] == PortRead::Unknown
            {
                self.result.statuses[peer] = PortRead::NotQueried;
            }
            self.result.state_changes.remove(&fabric.node_of(port).identity.guid);
        }
    }

    /// The result without what `is_valid` excludes: the responses about its port may be another node's.
    pub fn finish(mut self, is_valid: impl Fn(PortIndex) -> bool) -> StateResult {
        self.discard(&is_valid);
        self.forget_unconfirmed(&is_valid);
        let unavailable = !self.answered && !self.unanswered.is_empty();
        let no_response = unavailable || !self.answered && self.others_unanswered;
        let hidden_responding = self.hidden.finish();
        let (unconfirmed_switches, has_news) =
            self.checks.take().map_or((0, false), SwitchChecks::finish);
        let changed = self.result.changed || has_news;
        self.tables.finish(&self.result.statuses, is_valid);
        self.fec_modes.update(self.fabric, &self.result.statuses, &mut self.modes);
        let fec = self.modes.into_iter().map(FecMode::fec).collect();
        StateResult {
            fec,
            changed,
            no_response,
            unavailable,
            hidden_responding,
            unconfirmed_switches,
            ..self.result
        }
    }
}
