//! A sweep: states and counters of every port in one run, each on its own queue pair, and the subnet
//! managers after the states. At the end it confirms (`confirmation`) that LIDs still belong to their nodes.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use ib_mad::m_key::MKeys;
use ib_mad::moment::Anchor;
use ib_mad::port_info::PortInfo;
use ib_mad::reading::Raw;
use ib_mad::smp::{self, SmInfo, SmState};
use ib_mad::{Guid, Lid, Moment};
use ib_umad::plan::QueryPlan;
use ib_umad::{Address, QueuePair, Request};

use super::agent_cache::{AgentCache, m_key_of};
use super::confirmation::{self, Confirmation, ConfirmationQuery};
use super::counter_sweep::{CounterQuery, CounterSweep};
use super::fec_modes::has_reed_solomon;
use super::state_sweep::{StateQuery, StateSweep};
use super::unresponsive::MAX_SILENT;
use super::{Liveness, Outcome, has_responded, lids_of, liveness};
use crate::snapshot::SubnetManager;
use crate::topology::Presence;
use crate::{Fabric, NodeIndex, NodeMap, PortIndex, Snapshot};

/// A request that was sent, by the part of the sweep that sent it.
#[derive(Clone, Copy, Debug)]
enum Sent {
    State(StateQuery),
    Counter(CounterQuery),
    Manager(PortIndex),
    Confirmation(ConfirmationQuery),
}

/// The parts of a sweep. Each begins when all requests of the one before have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// NodeInfo of each node, in a sweep that confirms each.
    Before,
    /// States, counters and subnet managers.
    Reading,
    /// States of ports whose counters say that their links may have changed meanwhile.
    Retrained,
    /// NodeInfo again.
    After,
}

/// The query plan; see the [module](self).
#[derive(Debug)]
pub struct Sweep<'a> {
    fabric: &'a Arc<Fabric>,
    states: StateSweep<'a>,
    counters: CounterSweep<'a>,
    managers: SmSweep<'a>,
    confirmation: Confirmation<'a>,
    confirms_each: bool,
    stage: Stage,
    /// By tag.
    sent: Vec<Sent>,
    /// Requests without an outcome.
    open: usize,
    /// Whether port states are queried: switches of some fabrics do not respond.
    reads_states: bool,
    liveness: NodeMap<Liveness>,
    /// The same of performance management only.
    pma_liveness: NodeMap<Liveness>,
    anchor: Anchor,
    ended: Moment,
}

/// The result of a sweep.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent findings")]
pub struct SweepResult {
    /// The readings.
    pub snapshot: Snapshot<Raw>,
    /// Switches whose PortStateChange bit is set.
    pub state_changes: HashSet<Guid>,
    /// Some port changed since the discovery, or an absent node is back.
    pub changed: bool,
    /// LIDs changed. Only a sweep that [confirms each](Sweep::confirming_each) has readings then; any other was broken
    /// off, since they may be of other nodes, and is void.
    pub lids_changed: bool,
    /// Another subnet manager is the master: it may change LIDs, and has not yet.
    pub sm_lid_changed: bool,
    /// No switch responded to port state queries, but counters were read.
    pub states_unavailable: bool,
    /// Switches of a fabric with planes that no directed route reached: the states of their ports are unknown.
    pub unconfirmed_switches: usize,
    /// Number of ports with missing responses.
    pub failed_ports: usize,
    /// Switches respond to performance management, and at most one of ten channel adapters does.
    pub adapters_silent: bool,
}

/// Names the part of the sweep that sends a request.
fn sent<Q>(part: fn(Q) -> Sent) -> impl Fn((Request, Q)) -> (Request, Sent) {
    move |(request, query)| (request, part(query))
}

impl<'a> Sweep<'a> {
    /// A sweep that begins at the anchor's moment, with port states or without.
    pub fn new(
        fabric: &'a Arc<Fabric>,
        agents: &'a mut AgentCache,
        anchor: Anchor,
        states: bool,
    ) -> Self {
        let AgentCache {
            pma,
            fec_modes,
            state_tables,
            keys,
            routes,
            hidden,
            absent,
            adapters,
            confirmation,
            ..
        } = agents;
        let modes = fec_modes.modes(fabric);
        let reed_solomon = fabric
            .port_indexes()
            .zip(&modes)
            .map(|(port, &mode)| has_reed_solomon(fabric, port, mode))
            .collect();
        // Adapters that are only probed did not respond last time.
        let unasked = |node| adapters.is_probed(fabric, node).then_some(false);
        let liveness: NodeMap<Liveness> = fabric.node_indexes().map(unasked).collect();
        let absent = if adapters.are_suspected() { Vec::new() } else { absent.next_probes(fabric) };
        Sweep {
            states: StateSweep::new(
                fabric,
                states,
                (fec_modes, modes),
                (state_tables, routes),
                (keys, hidden),
            ),
            counters: CounterSweep::new(
                fabric,
                (pma, adapters),
                absent,
                reed_solomon,
                anchor.moment,
            ),
            managers: SmSweep::new(fabric, Arc::clone(keys)),
            confirmation: Confirmation::new(fabric, keys, confirmation),
            confirms_each: false,
            stage: Stage::Reading,
            sent: Vec::new(),
            open: 0,
            reads_states: states,
            pma_liveness: liveness.clone(),
            liveness,
            fabric,
            anchor,
            ended: anchor.moment,
        }
    }

    /// The most MADs that it sends, without retries; only before the first request. Of agents that were not queried yet
    /// it is an estimate from above.
    pub fn max_mads(&self) -> usize {
        // Each part tells its own, also what a response may raise.
        self.states.max_mads()
            + self.counters.max_mads()
            + self.managers.max_mads()
            + self.max_confirmations()
    }

    /// The same sweep, with the readings of only those nodes that responded at their LIDs before and after them. For
    /// a time in which LIDs change: it has readings even if some have changed since the discovery.
    #[must_use]
    pub fn confirming_each(mut self) -> Self {
        (self.confirms_each, self.stage) = (true, Stage::Before);
        if self.reads_states {
            self.confirmation.ask_adapters();
        }
        self
    }

    /// How many of its requests confirm LIDs, at most.
    fn max_confirmations(&self) -> usize {
        if self.reads_states {
            confirmation::max_requests(self.fabric, self.confirms_each)
        } else {
            0
        }
    }

    /// Whether it is broken off: what is asked by LIDs that have changed may be asked of other nodes.
    fn is_void(&self) -> bool {
        !self.confirms_each
            && (self.states.result.lids_changed || !self.confirmation.others.is_empty())
    }

    /// Begins the next part, if there is one and the current one has ended. Returns whether it did.
    fn advance(&mut self) -> bool {
        match self.stage {
            _ if self.open > 0 => return false,
            Stage::Before => {
                let (fabric, others) = (self.fabric, &self.confirmation.others);
                let states = &self.states.result;
                let is_lost = |port: PortIndex| {
                    others.contains(&fabric.management_port(port))
                        || states.lid_mismatches.contains(&fabric.port(port).node)
                };
                self.counters.leave_out(|port| !is_lost(port));
                self.managers.queue.retain(|&port| !is_lost(port));
                self.stage = Stage::Reading;
            }
            Stage::Reading if !self.counters.is_done() => return false,
            Stage::Reading => {
                if self.reads_states {
                    let counters = &self.counters;
                    self.states.ask_retrained(|port| counters.retrains(port));
                }
                self.stage = Stage::Retrained;
            }
            Stage::Retrained if self.confirms_each => {
                self.confirmation.restart(&self.states.result.confirmed);
                self.stage = Stage::After;
            }
            Stage::Retrained => {
                if self.reads_states {
                    // Those that refuse share one budget.
                    let max_silent = MAX_SILENT.saturating_sub(self.states.unanswered());
                    let counters = &self.counters;
                    self.confirmation.ask_sample(
                        &self.states.result.confirmed,
                        max_silent,
                        |port| counters.link_downs(port),
                        |port| counters.has_response(port),
                    );
                }
                self.stage = Stage::After;
            }
            Stage::After => return false,
        }
        true
    }

    fn poll_smp(&mut self) -> Option<(Request, Sent)> {
        loop {
            let next = match self.stage {
                Stage::Before => {
                    let next = self.states.poll_node_info().map(sent(Sent::State));
                    next.or_else(|| self.poll_confirmation())
                }
                Stage::Reading | Stage::Retrained => {
                    let next = self.states.poll_request().map(sent(Sent::State));
                    next.or_else(|| self.poll_manager())
                }
                Stage::After => self.poll_confirmation(),
            };
            if next.is_some() || !self.advance() {
                return next;
            }
        }
    }

    fn poll_confirmation(&mut self) -> Option<(Request, Sent)> {
        let states = &self.states;
        if !states.is_checked() {
            return None;
        }
        let next = self.confirmation.poll_request(|port| states.address_of(port));
        next.map(sent(Sent::Confirmation))
    }

    fn poll_manager(&mut self) -> Option<(Request, Sent)> {
        let states = &self.states;
        if !states.is_checked() {
            return None;
        }
        let next = self
            .managers
            .poll_request(|port| states.address_of(port).filter(|_| !states.has_lost_link(port)));
        next.map(sent(Sent::Manager))
    }

    /// LIDs have changed, according to something else than its responses.
    pub fn on_lids_changed(&mut self) {
        self.states.result.lids_changed = true;
    }

    /// The result, after the run.
    pub fn finish(self) -> SweepResult {
        let is_void = self.is_void();
        let fabric = self.fabric;
        let mut lid_mismatches = self.states.result.lid_mismatches.clone();
        lid_mismatches.extend(self.confirmation.others.iter().map(|&port| fabric.port(port).node));
        let is_valid = |port: PortIndex| {
            let Confirmation { confirmed, lost, .. } = &self.confirmation;
            let asked = fabric.management_port(port);
            !is_void
                && !lid_mismatches.contains(&fabric.port(port).node)
                && !lost.contains(&asked)
                && (!self.confirms_each || confirmed.contains(&asked))
        };
        let mut counters = self.counters;
        // A sweep that was broken off has not asked all.
        let adapters_silent = if is_void {
            counters.adapters.is_partition_likely()
        } else {
            // What responded at a LID that is another node's now says nothing about this one.
            let mut known = self.pma_liveness;
            for port in fabric.port_indexes().filter(|&port| !is_valid(port)) {
                known[fabric.port(port).node] = None;
            }
            // Nor does silence where the link is gone: a host was switched off.
            for port in fabric.port_indexes() {
                let known = &mut known[fabric.port(port).node];
                if *known == Some(false) && self.states.shows_no_link(port) {
                    *known = None;
                }
            }
            counters.adapters.update(fabric, &known)
        };
        counters.discard(is_valid);
        counters.select_fields();
        let mut managers = self.managers.finish();
        managers.retain(|manager| is_valid(manager.port));
        let states = self.states.finish(is_valid);
        let mut liveness = self.liveness;
        for &node in &lid_mismatches {
            // Another node responded there.
            liveness[node] = Some(false);
        }
        let lids_changed = states.lids_changed || !self.confirmation.others.is_empty();
        if !is_void {
            self.confirmation.finish();
        }
        let is_silent = |(node, liveness): (NodeIndex, Liveness)| match liveness {
            Some(has_responded) => !has_responded,
            // Not queried: the discovery got no response either; an earlier sweep may have.
            None => {
                self.fabric.node(node).presence == Presence::Hidden
                    && !states.hidden_responding.contains(&node)
            }
        };
        // If no node responds to anything, LID routing is not the cause.
        let has_readings = counters.readings.iter().any(Option::is_some);
        // If no node responds to subnet management, managers do not either: they may exist.
        let is_known = !managers.is_empty() || (self.reads_states && !states.no_response);
        SweepResult {
            snapshot: Snapshot {
                fabric: Arc::clone(self.fabric),
                anchor: self.anchor,
                began: self.anchor.moment,
                ended: self.ended,
                ticks: counters.ticks(),
                readings: counters.readings,
                statuses: states.statuses,
                silent: self.fabric.node_indexes().zip(liveness).map(is_silent).collect(),
                fec: states.fec,
                managers: is_known.then_some(managers),
                cleared: Vec::new(),
                hardware: Arc::default(),
            },
            state_changes: states.state_changes,
            changed: states.changed || counters.returned,
            lids_changed,
            sm_lid_changed: states.sm_lid_changed,
            states_unavailable: states.unavailable && has_readings,
            unconfirmed_switches: states.unconfirmed_switches,
            failed_ports: counters.failed.iter().filter(|failed| **failed).count(),
            adapters_silent,
        }
    }
}

impl QueryPlan for Sweep<'_> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        if self.is_over() {
            return None;
        }
        let (request, sent) = match qp {
            QueuePair::Qp0 => self.poll_smp()?,
            QueuePair::Qp1 if self.stage == Stage::Before => return None,
            QueuePair::Qp1 => self.counters.poll_request().map(sent(Sent::Counter))?,
        };
        self.open += 1;
        self.sent.push(sent);
        Some((request, self.sent.len() as u64 - 1))
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Outcome<'_>, at: Moment) {
        let shown = liveness(&outcome);
        self.ended = at;
        let Some(&sent) = self.sent.get(tag as usize) else { return };
        self.open = self.open.saturating_sub(1);
        let port = match sent {
            // It says nothing about the node.
            Sent::Confirmation(query) => {
                if let (true, Ok(mad)) = (self.states.is_directed(), outcome)
                    && mad.attribute() == PortInfo::ID
                {
                    self.states.on_confirmation(query.port, &PortInfo::decode(mad));
                }
                return self.confirmation.on_outcome(query, outcome);
            }
            Sent::State(query) => self.states.on_outcome(query, outcome),
            Sent::Counter(query) => self.counters.on_outcome(query, outcome, at),
            Sent::Manager(port) => self.managers.on_outcome(port, outcome),
        };
        let Some(port) = port else { return };
        let node = self.fabric.port(port).node;
        // One response outweighs any number of missing ones.
        let update = |known: &mut Liveness| *known = (*known).max(shown);
        update(&mut self.liveness[node]);
        if matches!(sent, Sent::Counter(_)) {
            update(&mut self.pma_liveness[node]);
        }
    }

    fn is_over(&self) -> bool {
        self.is_void()
    }
}

/// Maximum number of queries. A subnet has two or three managers; if each host is installed with one it has
/// hundreds, and those that hang would delay the sweep.
const MAX_MANAGERS: usize = 256;

/// Subnet managers in each sweep: the master and its standbys.
///
/// SMInfo is read by LID, in a fabric with planes by directed route, of all ports whose PortInfo announces a subnet
/// manager, and of the port with the SM LID of the local port, where one may have started after the discovery. A
/// stopped manager does not respond, which says nothing about its node. The first such sweep takes up to 1.8 s longer,
/// for three tries. The next ones try a host once, for up to 0.6 s, and a switch that responds to other
/// requests three times, until a discovery finds that it no longer announces one.
///
/// It is a plan of its own, too, to query only subnet managers.
#[derive(Debug)]
pub struct SmSweep<'a> {
    fabric: &'a Fabric,
    queue: VecDeque<PortIndex>,
    /// The managers that were asked. The ports of all planes of an adapter have one LID, and one manager: it is asked by
    /// the first of them that has an address.
    asked: HashSet<(NodeIndex, Option<Lid>)>,
    managers: Vec<SubnetManager>,
    keys: Arc<MKeys>,
}

/// Whether a subnet manager can be queried at a port: of a switch only at port 0, and not at absent nodes.
fn can_host_sm(fabric: &Fabric, port: PortIndex) -> bool {
    let node = fabric.node_of(port);
    node.present()
        && node.is_switch() == (fabric.port(port).number == 0)
        && fabric.lid_of(port).is_some()
}

/// The ports with the SM LID of the local port, of the first node that has it: of an adapter those of all planes.
fn known_masters(fabric: &Fabric) -> Vec<PortIndex> {
    let local = fabric.local_port.and_then(|port| fabric.port(port).status);
    let Some(master) = local.map(|status| u32::from(status.sm_lid.0)) else { return Vec::new() };
    let is_master = |port: &PortIndex| {
        can_host_sm(fabric, *port)
            && fabric.port(*port).status.is_some_and(|it| lids_of(it).contains(&master))
    };
    let Some(first) = fabric.port_indexes().find(is_master) else { return Vec::new() };
    fabric.ports_of(fabric.port(first).node).filter(is_master).collect()
}

impl<'a> SmSweep<'a> {
    /// A sweep over the subnet managers of a fabric.
    pub fn new(fabric: &'a Fabric, keys: Arc<MKeys>) -> Self {
        let masters = known_masters(fabric);
        let announces_sm = |port: &PortIndex| fabric.port(*port).status.is_some_and(|it| it.is_sm);
        let others = fabric
            .port_indexes()
            .filter(announces_sm)
            .filter(|&port| can_host_sm(fabric, port) && !masters.contains(&port));
        let queue = masters.iter().copied().chain(others).collect();
        SmSweep { fabric, queue, asked: HashSet::new(), managers: Vec::new(), keys }
    }

    /// What tells the manager at a port from others.
    fn manager_at(&self, port: PortIndex) -> (NodeIndex, Option<Lid>) {
        (self.fabric.port(port).node, self.fabric.lid_of(port))
    }

    /// The most requests, without retries.
    fn max_mads(&self) -> usize {
        let managers: HashSet<_> = self.queue.iter().map(|&port| self.manager_at(port)).collect();
        managers.len().min(MAX_MANAGERS)
    }

    fn poll_request(
        &mut self,
        address_of: impl Fn(PortIndex) -> Option<Address>,
    ) -> Option<(Request, PortIndex)> {
        loop {
            let port = self.queue.pop_front().filter(|_| self.asked.len() < MAX_MANAGERS)?;
            let manager = self.manager_at(port);
            let Some(to) = address_of(port).filter(|_| !self.asked.contains(&manager)) else {
                continue;
            };
            self.asked.insert(manager);
            // The manager is not the agent that responds to the other requests: either may hang, or be slow.
            let query = smp::sm_info().with_m_key(m_key_of(&self.keys, self.fabric, port));
            return Some((Request { to, query: query.always_sent() }, port));
        }
    }

    /// Handles an outcome. Returns the port if its node responded.
    fn on_outcome(&mut self, port: PortIndex, outcome: Outcome<'_>) -> Option<PortIndex> {
        if let Ok(SmInfo { state, priority, act_count, .. }) = outcome.map(SmInfo::decode)
            && let Some(state) = SmState::from_discriminant(state)
        {
            self.managers.push(SubnetManager { port, state, priority, act_count });
        }
        // A stopped manager does not respond; the node may be up.
        has_responded(&outcome).then_some(port)
    }

    /// The managers that responded, by port, after the run.
    pub fn finish(mut self) -> Vec<SubnetManager> {
        self.managers.sort_unstable_by_key(|manager| manager.port);
        self.managers
    }
}

impl QueryPlan for SmSweep<'_> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        if qp != QueuePair::Qp0 {
            return None;
        }
        let fabric = self.fabric;
        let by_lid = |port| fabric.lid_of(port).map(Address::Lid);
        let by_route = |port| fabric.routes.best_to_port(fabric, port).map(Address::Directed);
        let is_directed = fabric.routes.is_directed();
        let next =
            self.poll_request(|port| if is_directed { by_route(port) } else { by_lid(port) });
        next.map(|(request, port)| (request, port.0.into()))
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Outcome<'_>, _at: Moment) {
        let _ = self.on_outcome(PortIndex(tag as u32), outcome);
    }
}
