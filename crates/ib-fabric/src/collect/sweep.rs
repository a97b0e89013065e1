//! A sweep: states and counters of every port in one run, each on its own queue pair, and the subnet
//! managers after the states.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use ib_mad::m_key::MKeys;
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::reading::Raw;
use ib_mad::smp::{self, SmInfo, SmState};
use ib_mad::{Guid, Moment};
use ib_umad::plan::QueryPlan;
use ib_umad::{Address, QueuePair, Request};

use super::agent_cache::{AgentCache, m_key_of};
use super::counter_sweep::{CounterQuery, CounterSweep};
use super::fec_modes::has_reed_solomon;
use super::state_sweep::{StateQuery, StateSweep};
use super::{Outcome, has_responded, lids_of};
use crate::snapshot::SubnetManager;
use crate::topology::Presence;
use crate::{Fabric, NodeIndex, NodeMap, PortIndex, Snapshot};

/// Whether a node responded to any of its requests; `None` if it was not queried.
type Liveness = Option<bool>;

const MIN_ADAPTERS: usize = 3;

/// A few adapters are full members of the hosts' partition: of the subnet manager, of storage servers.
const SILENT_PER_RESPONDING: usize = 9;

/// A request that was sent, by the part of the sweep that sent it.
#[derive(Clone, Copy, Debug)]
enum Sent {
    State(StateQuery),
    Counter(CounterQuery),
    Manager(PortIndex),
}

/// The query plan; see the [module](self).
#[derive(Debug)]
pub struct Sweep<'a> {
    fabric: &'a Arc<Fabric>,
    states: StateSweep<'a>,
    counters: CounterSweep<'a>,
    managers: SmSweep<'a>,
    /// By tag.
    sent: Vec<Sent>,
    /// Whether port states are queried by LID, to which switches of some fabrics do not respond.
    by_lid: bool,
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
    /// LIDs changed: the readings may be of other nodes, and must not be published.
    pub lids_changed: bool,
    /// No switch responded to port state queries by LID, but counters were read.
    pub states_unavailable: bool,
    /// Number of ports with missing responses.
    pub failed_ports: usize,
    /// Switches respond to performance management, and at most one of ten channel adapters does.
    pub adapters_silent: bool,
}

impl<'a> Sweep<'a> {
    /// A sweep that begins at the anchor's moment, with port states or without.
    pub fn new(
        fabric: &'a Arc<Fabric>,
        agents: &'a mut AgentCache,
        anchor: Anchor,
        states: bool,
    ) -> Self {
        let AgentCache { pma, fec_modes, keys, hidden, .. } = agents;
        let modes = fec_modes.modes(fabric);
        let reed_solomon = fabric
            .port_indexes()
            .zip(&modes)
            .map(|(port, &mode)| has_reed_solomon(fabric, port, mode))
            .collect();
        Sweep {
            states: StateSweep::new(fabric, states, fec_modes, modes, (keys, hidden)),
            counters: CounterSweep::new(fabric, pma, reed_solomon, anchor.moment),
            managers: SmSweep::new(fabric, Arc::clone(keys)),
            sent: Vec::new(),
            by_lid: states,
            liveness: NodeMap::filled(fabric.nodes.len(), None),
            pma_liveness: NodeMap::filled(fabric.nodes.len(), None),
            fabric,
            anchor,
            ended: anchor.moment,
        }
    }

    /// Whether switches respond to performance management, and nearly no channel adapter does of those that
    /// responded to subnet management, which has no partition, in the discovery. Limited members of a partition
    /// drop packets of each other; port 0 of a switch is usually a full member (IBTA 1.4, 10.9.3), and so is
    /// the subnet manager's host in OpenSM's default partitions.conf (ALL=limited, SELF=full).
    fn adapters_silent(&self) -> bool {
        let local = self.fabric.local_port.map(|port| self.fabric.port(port).node);
        let count = |kind: NodeKind, has_responded: bool| {
            let is_counted = |&(node, liveness): &(NodeIndex, &Liveness)| {
                let about = self.fabric.node(node);
                *liveness == Some(has_responded)
                    && about.identity.kind == kind
                    && Some(node) != local
                    && (has_responded || about.presence == Presence::Found)
            };
            self.fabric.node_indexes().zip(&self.pma_liveness).filter(is_counted).count()
        };
        let silent = count(NodeKind::Ca, false);
        silent >= MIN_ADAPTERS
            && silent >= SILENT_PER_RESPONDING * count(NodeKind::Ca, true)
            && count(NodeKind::Switch, true) > 0
    }

    /// The result, after the run.
    pub fn finish(self) -> SweepResult {
        let adapters_silent = self.adapters_silent();
        let states = self.states.finish();
        let mut counters = self.counters;
        counters.select_fields();
        let mut managers = self.managers.finish();
        let mut liveness = self.liveness;
        for &node in &states.lid_mismatches {
            // Another node responded there.
            liveness[node] = Some(false);
            managers.retain(|manager| self.fabric.port(manager.port).node != node);
            for port in self.fabric.ports_of(node) {
                counters.readings[port] = None;
            }
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
        // If no node responds to subnet management by LID, managers do not either: they may exist.
        let is_known = !managers.is_empty() || (self.by_lid && !states.no_response);
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
            lids_changed: states.lids_changed,
            states_unavailable: states.unavailable && has_readings,
            failed_ports: counters.failed.iter().filter(|failed| **failed).count(),
            adapters_silent,
        }
    }
}

impl QueryPlan for Sweep<'_> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        fn sent<Q>(part: fn(Q) -> Sent) -> impl Fn((Request, Q)) -> (Request, Sent) {
            move |(request, query)| (request, part(query))
        }
        let (request, sent) = match qp {
            QueuePair::Qp0 => (self.states.poll_request().map(sent(Sent::State)))
                .or_else(|| self.managers.poll_request().map(sent(Sent::Manager)))?,
            QueuePair::Qp1 => self.counters.poll_request().map(sent(Sent::Counter))?,
        };
        self.sent.push(sent);
        Some((request, self.sent.len() as u64 - 1))
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Outcome<'_>, at: Moment) {
        let has_responded = has_responded(&outcome);
        self.ended = at;
        let Some(&sent) = self.sent.get(tag as usize) else { return };
        let port = match sent {
            Sent::State(query) => self.states.on_outcome(query, outcome),
            Sent::Counter(query) => self.counters.on_outcome(query, outcome, at),
            Sent::Manager(port) => self.managers.on_outcome(port, outcome),
        };
        let Some(port) = port else { return };
        let node = self.fabric.port(port).node;
        // One response outweighs any number of missing ones.
        let update = |known: &mut Liveness| *known = (*known).max(Some(has_responded));
        update(&mut self.liveness[node]);
        if matches!(sent, Sent::Counter(_)) {
            update(&mut self.pma_liveness[node]);
        }
    }
}

/// Maximum number of queries. A subnet has two or three managers; if each host is installed with one it has
/// hundreds, and those that hang would delay the sweep.
const MAX_MANAGERS: usize = 256;

/// Subnet managers in each sweep: the master and its standbys.
///
/// SMInfo is read by LID of all ports whose PortInfo announces a subnet manager, and of the port with
/// the SM LID of the local port, where one may have started after the discovery. A stopped manager does
/// not respond, which says nothing about its node. The first such sweep takes up to 1.8 s longer, for
/// three tries. The next ones try a host once, for up to 0.6 s, and a switch that responds to other
/// requests three times, until a discovery finds that it no longer announces one.
///
/// It is a plan of its own, too, to query only subnet managers.
#[derive(Debug)]
pub struct SmSweep<'a> {
    fabric: &'a Fabric,
    queue: VecDeque<PortIndex>,
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

fn known_master(fabric: &Fabric) -> Option<PortIndex> {
    let master = fabric.port(fabric.local_port?).status?.sm_lid;
    let has_lid = |status| lids_of(status).contains(&u32::from(master.0));
    let is_master = |&port: &PortIndex| fabric.port(port).status.is_some_and(has_lid);
    fabric.port_indexes().filter(|&port| can_host_sm(fabric, port)).find(is_master)
}

impl<'a> SmSweep<'a> {
    /// A sweep over the subnet managers of a fabric.
    pub fn new(fabric: &'a Fabric, keys: Arc<MKeys>) -> Self {
        let master = known_master(fabric);
        let announces_sm = |port: &PortIndex| fabric.port(*port).status.is_some_and(|it| it.is_sm);
        let others = fabric
            .port_indexes()
            .filter(announces_sm)
            .filter(|&port| can_host_sm(fabric, port) && Some(port) != master);
        let queue = master.into_iter().chain(others).take(MAX_MANAGERS).collect();
        SmSweep { fabric, queue, managers: Vec::new(), keys }
    }

    pub(super) fn poll_request(&mut self) -> Option<(Request, PortIndex)> {
        loop {
            let port = self.queue.pop_front()?;
            let Some(lid) = self.fabric.lid_of(port) else { continue };
            let query = smp::sm_info().with_m_key(m_key_of(&self.keys, self.fabric, port));
            return Some((Request { to: Address::Lid(lid), query }, port));
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
        let next = if qp == QueuePair::Qp0 { self.poll_request() } else { None };
        next.map(|(request, port)| (request, port.0.into()))
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Outcome<'_>, _at: Moment) {
        let _ = self.on_outcome(PortIndex(tag as u32), outcome);
    }
}
