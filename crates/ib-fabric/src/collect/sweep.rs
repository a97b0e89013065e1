//! A sweep: states and counters of every port in one run, each on its own queue pair, and the subnet
//! managers after the states.

use std::collections::HashSet;
use std::sync::Arc;

use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::reading::Raw;
use ib_mad::{Guid, Mad, Moment};
use ib_umad::query::QueryPlan;
use ib_umad::{QueuePair, Request, RequestError};

use super::agent_cache::AgentCache;
use super::counter_sweep::CounterSweep;
use super::fec_modes::has_reed_solomon;
use super::sm_sweep::SmSweep;
use super::state_sweep::StateSweep;
use crate::topology::Presence;
use crate::{Fabric, NodeIndex, PortIndex, Snapshot};

/// Whether a node responded to its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Liveness {
    NotQueried,
    Silent,
    Responding,
}

impl Liveness {
    fn record(&mut self, has_responded: bool) {
        if has_responded {
            *self = Liveness::Responding;
        } else if *self == Liveness::NotQueried {
            *self = Liveness::Silent;
        }
    }
}

/// Minimum number of silent adapters for a conclusion.
const MIN_ADAPTERS: usize = 3;

/// A few adapters are full members of the hosts' partition: of the subnet manager, of storage servers.
const SILENT_PER_RESPONDING: usize = 9;

/// The part of the sweep that sent a request, in the lowest bits of its tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    States,
    Counters,
    Managers,
}

impl Part {
    const BITS: u32 = 2;

    fn tag(self, tag: u64) -> u64 {
        tag << Self::BITS | self as u64
    }

    fn from_tag(tag: u64) -> Self {
        match tag & ((1 << Self::BITS) - 1) {
            0 => Part::States,
            1 => Part::Counters,
            _ => Part::Managers,
        }
    }
}

/// The query plan; see the [module](self).
#[derive(Debug)]
pub struct Sweep<'a> {
    fabric: &'a Arc<Fabric>,
    states: StateSweep<'a>,
    counters: CounterSweep<'a>,
    managers: SmSweep<'a>,
    /// Whether port states are queried by LID, to which switches of some fabrics do not respond.
    by_lid: bool,
    liveness: Vec<Liveness>,
    /// The same of performance management only.
    pma_liveness: Vec<Liveness>,
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
    /// Switches respond to performance management, and at most one of ten channel adapters other than the
    /// local one.
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
            managers: SmSweep::new(fabric).with_keys(Arc::clone(keys)),
            by_lid: states,
            liveness: vec![Liveness::NotQueried; fabric.nodes.len()],
            pma_liveness: vec![Liveness::NotQueried; fabric.nodes.len()],
            fabric,
            anchor,
            ended: anchor.moment,
        }
    }

    fn record_liveness(&mut self, port: Option<PortIndex>, has_responded: bool, sender: Part) {
        let Some(port) = port else { return };
        let node = self.fabric.port(port).node.0 as usize;
        self.liveness[node].record(has_responded);
        if sender == Part::Counters {
            self.pma_liveness[node].record(has_responded);
        }
    }

    /// Whether switches respond to performance management, and nearly no channel adapter does of those
    /// that responded to subnet management, which has no partition, in the discovery. Limited members
    /// of a partition drop packets of each other; port 0 of a switch is usually a full member (IBTA
    /// 1.4, 10.9.3), and so is the subnet manager's host in OpenSM's default partitions.conf
    /// (ALL=limited, SELF=full).
    fn adapters_silent(&self) -> bool {
        let local = self.fabric.local_port.map(|port| self.fabric.port(port).node);
        let count = |kind: NodeKind, liveness: Liveness| {
            let nodes = self.fabric.node_indexes().zip(&self.pma_liveness);
            nodes
                .filter(|&(node, &actual)| {
                    let about = self.fabric.node(node);
                    let is_found = about.presence == Presence::Found;
                    let is_kind = about.identity.kind == kind && Some(node) != local;
                    is_kind && actual == liveness && (is_found || liveness == Liveness::Responding)
                })
                .count()
        };
        let silent = count(NodeKind::Ca, Liveness::Silent);
        silent >= MIN_ADAPTERS
            && silent >= SILENT_PER_RESPONDING * count(NodeKind::Ca, Liveness::Responding)
            && count(NodeKind::Switch, Liveness::Responding) > 0
    }

    /// The result, after the run.
    pub fn finish(self) -> SweepResult {
        let adapters_silent = self.adapters_silent();
        let states = self.states.finish();
        let mut counters = self.counters.finish();
        let mut managers = self.managers.finish();
        let mut liveness = self.liveness;
        for &node in &states.lid_mismatches {
            // Another node responded there.
            liveness[node.0 as usize] = Liveness::Silent;
            managers.retain(|manager| self.fabric.port(manager.port).node != node);
            for port in self.fabric.ports_of(node) {
                counters.readings[port.0 as usize] = None;
            }
        }
        let is_silent = |(node, liveness): (NodeIndex, Liveness)| match liveness {
            Liveness::Responding => false,
            Liveness::Silent => true,
            // The discovery got no response either; an earlier sweep may have.
            Liveness::NotQueried => {
                let is_hidden = self.fabric.node(node).presence == Presence::Hidden;
                is_hidden && !states.hidden_responding.contains(&node)
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
                readings: counters.readings,
                statuses: states.statuses,
                silent: self.fabric.node_indexes().zip(liveness).map(is_silent).collect(),
                ticks: counters.ticks,
                fec: states.fec,
                managers: is_known.then_some(managers),
                cleared: Vec::new(),
            },
            state_changes: states.state_changes,
            changed: states.changed || counters.returned,
            lids_changed: states.lids_changed,
            states_unavailable: states.unavailable && has_readings,
            failed_ports: counters.failed_ports,
            adapters_silent,
        }
    }
}

impl QueryPlan for Sweep<'_> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        let tagged = |part: Part| move |(request, tag)| (request, part.tag(tag));
        match qp {
            QueuePair::Qp0 => (self.states.poll_request().map(tagged(Part::States)))
                .or_else(|| self.managers.poll_request().map(tagged(Part::Managers))),
            QueuePair::Qp1 => self.counters.poll_request().map(tagged(Part::Counters)),
        }
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment) {
        // A refusal is a response, too.
        let has_responded =
            outcome.as_ref().map_or_else(|failure| !failure.is_no_response(), |_| true);
        let own = tag >> Part::BITS;
        let sender = Part::from_tag(tag);
        let port = match sender {
            Part::States => self.states.on_outcome(own, outcome),
            Part::Counters => self.counters.on_outcome(own, outcome, at),
            Part::Managers => self.managers.on_outcome(own, outcome),
        };
        self.record_liveness(port, has_responded, sender);
        self.ended = at;
    }
}
