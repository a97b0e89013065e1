//! Port states, each sweep: has anything moved since the discovery?
//!
//! By LID, not by directed route, so that switches on the way forward the questions in hardware.
//! One end of each cable is asked (both ends lose the link together), and every port that has none,
//! for something may be plugged in.
//!
//! When all that is asked, some ports are asked for their error correction.
//!
//! A switch is asked who it is and for its port 0, too: a subnet manager that gives other LIDs shows
//! there, and what was read by the old ones must not be told. So is a node that the discovery could not
//! reach: the LID that it had may be another's by now. Of those a few are asked in each sweep, in turn,
//! for they may be protected by an M_Key, and count each question as a violation.
//!
//! A fabric may be set up so that its switches answer no subnet management by LID. When a few dozen
//! switches are silent and none has answered, the rest is left out, and states come from discoveries
//! alone.

use std::collections::{HashSet, VecDeque};

use crate::fabric::fec::Fec;
use crate::fabric::rate::Speed;
use crate::fabric::snapshot::Fresh;
use crate::fabric::status::PortStatus;
use crate::fabric::topology::Presence;
use crate::fabric::{Fabric, Guid, NodeIndex, PortIndex};
use crate::mad::Mad;
use crate::mad::m_key::MKeys;
use crate::mad::port_info::PortInfo;
use crate::mad::smp::{self, NodeInfo, SwitchInfo};
use crate::transport::{Address, Failure, Request};

use super::agents::m_key_of;
use super::corrections::{Corrections, Known, linked};

/// So many nodes that the discovery could not reach are asked in a sweep; the next ones in the next.
/// Each refuses or is silent as a rule: at the usual interval that is less than an SMP a second.
const MOST_HIDDEN: usize = 4;

/// After so many silent nodes, and no answer from any, nobody else is asked.
const ENOUGH_SILENCE: usize = 32;

#[derive(Clone, Copy, Debug)]
enum Ask {
    /// Is this LID still the node's that it was given to?
    Identity {
        node: NodeIndex,
        port: PortIndex,
    },
    Switch {
        node: NodeIndex,
        port0: PortIndex,
    },
    Port {
        port: PortIndex,
    },
    /// Which error correction does it run with?
    Correction {
        port: PortIndex,
    },
}

/// The walk; see the module.
#[derive(Debug)]
pub struct StateSweep<'a> {
    fabric: &'a Fabric,
    queue: VecDeque<Ask>,
    asked: Vec<Ask>,
    states: States,
    answered: bool,
    unanswered: HashSet<NodeIndex>,
    corrections: &'a mut Corrections,
    keys: &'a MKeys,
    known: Vec<Known>,
    told: Vec<(PortIndex, Known)>,
}

/// What the states were.
#[derive(Debug)]
pub struct States {
    /// By port index.
    pub statuses: Vec<Fresh>,
    /// Error corrections, by port index, as far as they are known.
    pub fec: Vec<Option<Fec>>,
    /// Switches whose PortStateChange bit is set.
    pub state_changes: HashSet<Guid>,
    /// Some port is not as the discovery found it.
    pub moved: bool,
    /// Nodes at whose LIDs somebody else answers.
    pub impostors: HashSet<NodeIndex>,
    /// LIDs are not what they were: answers may have come from others than were meant.
    pub readdressed: bool,
    /// Many were asked, and nobody answered.
    pub useless: bool,
}

/// Whether a port's end of a cable is the one to ask.
fn speaks_for_its_cable(fabric: &Fabric, port: PortIndex) -> bool {
    let here = fabric.node_of(port).is_switch();
    let is_asked = |peer: PortIndex| fabric.lid_of(peer).is_some();
    match fabric.port(port).peer.filter(|peer| peer.connected).map(|peer| peer.port) {
        // Something may be plugged in; at our own host's port, everything.
        None => true,
        // Whoever has just come up has no LID yet, and cannot be asked.
        Some(peer) if !is_asked(peer) => true,
        Some(peer) if fabric.node_of(peer).is_switch() == here => port <= peer,
        // A switch speaks for its hosts: it is one for many, and always there.
        Some(_) => here,
    }
}

impl<'a> StateSweep<'a> {
    /// A sweep over the present nodes of a fabric; with `wanted` false, one that asks nobody.
    /// `known` is what [`Corrections`] know of the ports. It asks with these keys, and where the turn
    /// is of the nodes that the discovery could not reach.
    pub(super) fn new(
        fabric: &'a Fabric,
        wanted: bool,
        corrections: &'a mut Corrections,
        known: Vec<Known>,
        (keys, turn): (&'a MKeys, &mut usize),
    ) -> Self {
        let mut queue = VecDeque::new();
        let is_hidden = |node: &NodeIndex| fabric.node(*node).presence == Presence::Hidden;
        let hidden: Vec<NodeIndex> = fabric.node_indexes().filter(is_hidden).collect();
        let whose_turn = hidden.iter().cycle().skip(*turn % hidden.len().max(1));
        let whose_turn: HashSet<NodeIndex> =
            whose_turn.take(hidden.len().min(MOST_HIDDEN)).copied().collect();
        *turn = (*turn + MOST_HIDDEN) % hidden.len().max(1);
        let asked = || {
            let present =
                fabric.node_indexes().filter(|&node| wanted && fabric.node(node).present());
            present.filter(|node| !is_hidden(node) || whose_turn.contains(node))
        };
        let reached = |node| fabric.ports_of(node).filter(|&port| fabric.lid_of(port).is_some());
        // Each switch once, before any of them is asked for all of its ports.
        for node in asked() {
            let hidden = fabric.node(node).presence == Presence::Hidden;
            let ports = reached(node).filter(|&port| hidden || fabric.port(port).number == 0);
            let one = if fabric.node(node).is_switch() { 1 } else { usize::MAX };
            queue.extend(ports.take(one).map(|port| Ask::Identity { node, port }));
        }
        for node in asked() {
            for port in reached(node) {
                if fabric.port(port).number == 0 {
                    queue.push_back(Ask::Switch { node, port0: port });
                    queue.push_back(Ask::Port { port });
                } else if speaks_for_its_cable(fabric, port) {
                    queue.push_back(Ask::Port { port });
                }
            }
        }
        if wanted {
            let due = corrections.due(fabric, &known);
            queue.extend(due.into_iter().map(|port| Ask::Correction { port }));
        }
        let states = States {
            statuses: vec![Fresh::NotAsked; fabric.ports.len()],
            fec: Vec::new(),
            state_changes: HashSet::new(),
            moved: false,
            impostors: HashSet::new(),
            readdressed: false,
            useless: false,
        };
        StateSweep {
            fabric,
            queue,
            asked: Vec::new(),
            states,
            answered: false,
            unanswered: HashSet::new(),
            corrections,
            keys,
            known,
            told: Vec::new(),
        }
    }

    /// The next question.
    pub fn next_request(&mut self) -> Option<(Request, u64)> {
        let ask = self.queue.pop_front()?;
        let (port, query) = match ask {
            Ask::Identity { port, .. } => (port, smp::node_info()),
            Ask::Switch { port0, .. } => (port0, smp::switch_info()),
            Ask::Port { port } => (port, smp::port_info(self.fabric.port(port).number)),
            Ask::Correction { port } => {
                (port, smp::port_info_extended(self.fabric.port(port).number))
            }
        };
        let to = Address::Lid(self.fabric.lid_of(port)?);
        self.asked.push(ask);
        let query = query.with_m_key(m_key_of(self.keys, self.fabric, port));
        Some((Request { to, query }, self.asked.len() as u64 - 1))
    }

    /// Takes an outcome in. Tells the port, for its node's sign of life.
    pub fn finished(&mut self, tag: u64, outcome: Result<&Mad, Failure>) -> Option<PortIndex> {
        let ask = *self.asked.get(tag as usize)?;
        let asked = match ask {
            Ask::Switch { port0, .. } => port0,
            Ask::Identity { port, .. } | Ask::Port { port } => port,
            Ask::Correction { port } => {
                self.told.push((port, Known::from(outcome)));
                // Who says nothing to this may be well all the same.
                return outcome.is_ok().then_some(port);
            }
        };
        match outcome {
            Ok(_) => self.answered = true,
            Err(_) => drop(self.unanswered.insert(self.fabric.port(asked).node)),
        }
        if !self.answered && self.unanswered.len() >= ENOUGH_SILENCE {
            self.queue.clear();
        }
        match (ask, outcome) {
            (Ask::Identity { node, .. }, Ok(mad)) => {
                if NodeInfo::decode(mad).node_guid != self.fabric.node(node).identity.guid {
                    self.states.impostors.insert(node);
                    // Of who was not found, this is what the discovery knew last.
                    let found = self.fabric.node(node).presence == Presence::Found;
                    self.states.readdressed |= found;
                }
            }
            (Ask::Switch { node, .. }, Ok(mad)) => {
                if SwitchInfo::decode(mad).port_state_change {
                    self.states.state_changes.insert(self.fabric.node(node).identity.guid);
                }
            }
            (Ask::Port { port }, Ok(mad)) => self.place(port, &PortInfo::decode(mad)),
            (Ask::Correction { .. }, _) | (_, Err(_)) => {}
        }
        Some(asked)
    }

    fn place(&mut self, port: PortIndex, info: &PortInfo) {
        let identity = &self.fabric.node_of(port).identity;
        let is_switch = self.fabric.node_of(port).is_switch();
        let fields = if is_switch { identity.speed_fields } else { info.speed_fields() };
        let mut status = info.status(fields);
        // Of a port that the discovery did not reach there is nothing to compare with; that is a
        // gap, and the discovery looks into its gaps by itself.
        let known = self.fabric.port(port).status;
        if let Some(known) = known {
            if known.speed == Some(Speed::Fdr10) {
                status = status.at_fdr10();
            }
            // What a switch's other ports say of LIDs means nothing.
            if !is_switch || self.fabric.port(port).number == 0 {
                self.states.readdressed |= (known.lid, known.sm_lid) != (status.lid, status.sm_lid);
            }
            if linked(&known) != linked(&status) {
                self.states.moved = true;
                self.doubt_the_other_end(port, &status);
            }
        }
        self.states.statuses[port.0 as usize] = Fresh::Told(status);
    }

    /// One end of a cable is not as it was, so the other is not either: a switch is asked, and of
    /// a host without its link nothing is known.
    fn doubt_the_other_end(&mut self, port: PortIndex, status: &PortStatus) {
        let Some(peer) = self.fabric.port(port).peer.filter(|peer| peer.connected) else { return };
        let fresh = &mut self.states.statuses[peer.port.0 as usize];
        if *fresh != Fresh::NotAsked {
            return;
        }
        let is_switch = self.fabric.node_of(peer.port).is_switch();
        if is_switch || !status.link_up() {
            *fresh = Fresh::Unknown;
        }
        if is_switch && self.fabric.lid_of(peer.port).is_some() {
            self.queue.push_back(Ask::Port { port: peer.port });
        }
    }

    /// What was read, once the walk is at its end.
    pub fn finish(mut self) -> States {
        let useless = !self.answered && !self.unanswered.is_empty();
        let statuses = &self.states.statuses;
        self.corrections.settle(self.fabric, statuses, self.told, &mut self.known);
        let fec = self.known.into_iter().map(Known::fec).collect();
        States { fec, useless, ..self.states }
    }
}
