//! A sweep: states and counters of every port in one walk, each on its own lane, and the subnet's
//! managers behind the states.

use std::collections::HashSet;
use std::sync::Arc;

use crate::topology::Presence;
use crate::{Fabric, NodeIndex, PortIndex, Snapshot};
use ib_mad::Mad;
use ib_mad::moment::Anchor;
use ib_mad::node::NodeKind;
use ib_mad::reading::Raw;
use ib_mad::{Guid, Moment};
use ib_umad::walk::Walk;
use ib_umad::{Failure, Lane, Request};

use super::agents::Agents;
use super::corrections::has_reed_solomon;
use super::perfmgt::CounterSweep;
use super::port_state::StateSweep;
use super::subnet::SubnetSweep;

/// What is known of a node's life from the outcomes of its questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    NotAsked,
    Silent,
    Heard,
}

impl Life {
    fn sign(&mut self, alive: bool) {
        if alive {
            *self = Life::Heard;
        } else if *self == Life::NotAsked {
            *self = Life::Silent;
        }
    }
}

/// So many adapters must have been asked before their silence says something of all.
const ENOUGH_ADAPTERS: usize = 3;

/// A few adapters are full members of the hosts' partition: the subnet manager's, a storage server's.
const SILENT_FOR_EACH_HEARD: usize = 9;

/// Which part of the walk asked, in the lowest bits of a question's tag.
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

    fn of(tag: u64) -> Self {
        match tag & ((1 << Self::BITS) - 1) {
            0 => Part::States,
            1 => Part::Counters,
            _ => Part::Managers,
        }
    }
}

/// The walk; see the module.
#[derive(Debug)]
pub struct Sweep<'a> {
    fabric: &'a Arc<Fabric>,
    states: StateSweep<'a>,
    counters: CounterSweep<'a>,
    managers: SubnetSweep<'a>,
    /// Whether switches are asked by LID, which those of some fabrics do not answer.
    by_lid: bool,
    life: Vec<Life>,
    /// The same of performance management alone.
    agents_life: Vec<Life>,
    anchor: Anchor,
    ended: Moment,
}

/// What a sweep brought in.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a finding by itself")]
pub struct Swept {
    /// For the tellers.
    pub snapshot: Snapshot<Raw>,
    /// Switches whose PortStateChange bit is set.
    pub state_changes: HashSet<Guid>,
    /// Some port is not as the discovery found it, or an absent node is back.
    pub moved: bool,
    /// LIDs are not what they were: what was read may be others', and must not be told.
    pub readdressed: bool,
    /// Switches were asked for port states by LID, and none answered; counters were, though.
    pub states_useless: bool,
    /// Ports of which something that was asked for is missing.
    pub failed_ports: usize,
    /// Switches answer performance management, and at most one of ten channel adapters beside our own.
    pub adapters_unheard: bool,
}

impl<'a> Sweep<'a> {
    /// A sweep that begins at the anchor's moment, with port states or without.
    pub fn new(
        fabric: &'a Arc<Fabric>,
        agents: &'a mut Agents,
        anchor: Anchor,
        states: bool,
    ) -> Self {
        let Agents { plans, corrections, keys, hidden, .. } = agents;
        let known = corrections.known(fabric);
        let reed_solomon = fabric
            .port_indexes()
            .zip(&known)
            .map(|(port, &known)| has_reed_solomon(fabric, port, known))
            .collect();
        Sweep {
            states: StateSweep::new(fabric, states, corrections, known, (keys, hidden)),
            counters: CounterSweep::new(fabric, plans, reed_solomon, anchor.moment),
            managers: SubnetSweep::new(fabric).with_keys(Arc::clone(keys)),
            by_lid: states,
            life: vec![Life::NotAsked; fabric.nodes.len()],
            agents_life: vec![Life::NotAsked; fabric.nodes.len()],
            fabric,
            anchor,
            ended: anchor.moment,
        }
    }

    fn sign(&mut self, port: Option<PortIndex>, alive: bool, asked_by: Part) {
        let Some(port) = port else { return };
        let node = self.fabric.port(port).node.0 as usize;
        self.life[node].sign(alive);
        if asked_by == Part::Counters {
            self.agents_life[node].sign(alive);
        }
    }

    /// Whether switches answer performance management, and nearly no channel adapter does of those that
    /// answered subnet management in the discovery, which is in no partition. Of two limited members of
    /// a partition an adapter drops what it gets from the other; a switch's port 0 is a full member as a
    /// rule (IBTA 1.4, 10.9.3), and so is the subnet manager's host in OpenSM's default partitions.conf
    /// (ALL=limited, SELF=full).
    fn adapters_unheard(&self) -> bool {
        let home = self.fabric.home.map(|home| self.fabric.port(home).node);
        let count = |kind: NodeKind, life: Life| {
            let nodes = self.fabric.node_indexes().zip(&self.agents_life);
            nodes
                .filter(|&(node, &of)| {
                    let about = self.fabric.node(node);
                    let is_found = about.presence == Presence::Found;
                    let is_kind = about.identity.kind == kind && Some(node) != home;
                    is_kind && of == life && (is_found || life == Life::Heard)
                })
                .count()
        };
        let silent = count(NodeKind::Ca, Life::Silent);
        silent >= ENOUGH_ADAPTERS
            && silent >= SILENT_FOR_EACH_HEARD * count(NodeKind::Ca, Life::Heard)
            && count(NodeKind::Switch, Life::Heard) > 0
    }

    /// What was read, once the walk is at its end.
    pub fn finish(self) -> Swept {
        let adapters_unheard = self.adapters_unheard();
        let states = self.states.finish();
        let mut counters = self.counters.finish();
        let mut managers = self.managers.finish();
        let mut life = self.life;
        for &node in &states.impostors {
            // Whatever answered there, it was not this node.
            life[node.0 as usize] = Life::Silent;
            managers.retain(|manager| self.fabric.port(manager.port).node != node);
            for port in self.fabric.ports_of(node) {
                counters.readings[port.0 as usize] = None;
            }
        }
        let is_silent = |(node, life): (NodeIndex, Life)| match life {
            Life::Heard => false,
            Life::Silent => true,
            // The discovery got no answer from there either, unless an earlier sweep did.
            Life::NotAsked => {
                let is_hidden = self.fabric.node(node).presence == Presence::Hidden;
                is_hidden && !states.hidden_answered.contains(&node)
            }
        };
        // Where nobody answers anything it is not the manner of asking that is at fault.
        let heard = counters.readings.iter().any(Option::is_some);
        // Where nobody answers subnet management by LID, nor do managers: they may be there.
        let is_known = !managers.is_empty() || (self.by_lid && !states.unheard);
        Swept {
            snapshot: Snapshot {
                fabric: Arc::clone(self.fabric),
                anchor: self.anchor,
                began: self.anchor.moment,
                ended: self.ended,
                readings: counters.readings,
                statuses: states.statuses,
                silent: self.fabric.node_indexes().zip(life).map(is_silent).collect(),
                ticks: counters.ticks,
                fec: states.fec,
                managers: is_known.then_some(managers),
                cleared: Vec::new(),
            },
            state_changes: states.state_changes,
            moved: states.moved || counters.returned,
            readdressed: states.readdressed,
            states_useless: states.useless && heard,
            failed_ports: counters.failed_ports,
            adapters_unheard,
        }
    }
}

impl Walk for Sweep<'_> {
    fn next(&mut self, lane: Lane) -> Option<(Request, u64)> {
        let tagged = |part: Part| move |(request, tag)| (request, part.tag(tag));
        match lane {
            Lane::Smp => (self.states.next_request().map(tagged(Part::States)))
                .or_else(|| self.managers.next_request().map(tagged(Part::Managers))),
            Lane::Gmp => self.counters.next_request().map(tagged(Part::Counters)),
        }
    }

    fn finished(&mut self, tag: u64, outcome: Result<&Mad, Failure>, at: Moment) {
        // A refusal is an answer, too.
        let alive = outcome.as_ref().map_or_else(|failure| !failure.is_silence(), |_| true);
        let own = tag >> Part::BITS;
        let asked_by = Part::of(tag);
        let port = match asked_by {
            Part::States => self.states.finished(own, outcome),
            Part::Counters => self.counters.finished(own, outcome, at),
            Part::Managers => self.managers.finished(own, outcome),
        };
        self.sign(port, alive, asked_by);
        self.ended = at;
    }
}
