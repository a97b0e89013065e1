//! Port states, each sweep: has anything moved since the discovery?
//!
//! By LID, not by directed route, so that switches on the way forward the questions in hardware.
//! One end of each cable is asked (both ends lose the link together), and every port that has none,
//! for something may be plugged in.
//!
//! When all that is asked, some ports are asked for their error correction.
//!
//! A switch is asked who it is and for its port 0, too: a subnet manager that gives other LIDs shows
//! there, and what was read by the old ones must not be told. A node that the discovery could not reach
//! is asked who it is before all else, for the LID that it had may be another's by now, or it may be
//! protected by an M_Key: `hidden` says when.
//!
//! A fabric may be set up so that its switches answer no subnet management by LID. When a few dozen
//! switches are silent and none has answered, the rest is left out, and states come from discoveries
//! alone.

use std::collections::{HashSet, VecDeque};

use crate::snapshot::PortRead;
use crate::topology::Presence;
use crate::{Fabric, NodeIndex, PortIndex};
use ib_mad::Guid;
use ib_mad::Mad;
use ib_mad::fec::Fec;
use ib_mad::m_key::MKeys;
use ib_mad::port_info::PortInfo;
use ib_mad::port_state::PortStatus;
use ib_mad::rate::Speed;
use ib_mad::smp;
use ib_mad::smp::{NodeInfo, SwitchInfo};
use ib_umad::{Address, Failure, Request};

use super::agents::m_key_of;
use super::corrections::{Corrections, Known, linked};
use super::hidden::{HiddenNodes, HiddenSweep, MOST_SILENT, Throttled};

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
    hidden: HiddenSweep<'a>,
    queue: VecDeque<Ask>,
    /// Ports to ask for their error correction. Not answering that says nothing of a node, so it may be
    /// asked again; where many refuse, few are asked in a sweep.
    due: Throttled,
    asked: Vec<Ask>,
    states: States,
    answered: bool,
    /// Nodes that the discovery reached, and that did not answer.
    unanswered: HashSet<NodeIndex>,
    hidden_unanswered: bool,
    corrections: &'a mut Corrections,
    keys: &'a MKeys,
    known: Vec<Known>,
    told: Vec<(PortIndex, Known)>,
}

/// What the states were.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a finding by itself")]
pub struct States {
    /// By port index.
    pub statuses: Vec<PortRead>,
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
    /// Some were asked, and none answered: this says nothing of who is there.
    pub unheard: bool,
    /// The same of nodes that the discovery reached: they do not answer by LID.
    pub useless: bool,
    /// Nodes that the discovery could not reach, and that answered by LID when they were last asked.
    pub hidden_answered: HashSet<NodeIndex>,
}

/// Whether a port's end of a cable is the one to ask.
fn speaks_for_its_cable(fabric: &Fabric, hidden: &HiddenNodes, port: PortIndex) -> bool {
    let here = fabric.node_of(port).is_switch();
    let is_asked = |peer: PortIndex| {
        fabric.lid_of(peer).is_some() && hidden.is_expected(fabric, fabric.port(peer).node)
    };
    match fabric.port(port).peer.filter(|peer| peer.connected).map(|peer| peer.port) {
        // Something may be plugged in; at our own host's port, everything.
        None => true,
        // A node that has just come up has no LID yet, and cannot be asked; a silent one is no witness.
        Some(peer) if !is_asked(peer) => true,
        Some(peer) if fabric.node_of(peer).is_switch() == here => port <= peer,
        // A switch speaks for its hosts: it is one for many, and always there.
        Some(_) => here,
    }
}

impl<'a> StateSweep<'a> {
    /// A sweep over the present nodes of a fabric; with `wanted` false, one that asks nobody.
    /// `known` is what [`Corrections`] know of the ports. It asks with these keys.
    pub(super) fn new(
        fabric: &'a Fabric,
        wanted: bool,
        corrections: &'a mut Corrections,
        known: Vec<Known>,
        (keys, hidden): (&'a MKeys, &'a mut HiddenNodes),
    ) -> Self {
        let hidden = HiddenSweep::new(fabric, wanted, hidden);
        let is_found = |node: &NodeIndex| fabric.node(*node).presence == Presence::Found;
        let found: Vec<NodeIndex> =
            fabric.node_indexes().filter(|node| wanted && is_found(node)).collect();
        // Each switch once, before any of them is asked for all of its ports.
        let zeros = found.iter().filter_map(|&node| {
            let port0 = fabric.ports_of(node).find(|&port| fabric.port(port).number == 0);
            port0
                .filter(|&port| fabric.lid_of(port).is_some())
                .map(|port| Ask::Identity { node, port })
        });
        let queue = zeros.collect();
        let due = if wanted {
            corrections.due(fabric, &known, |node| hidden.nodes().is_expected(fabric, node))
        } else {
            VecDeque::new()
        };
        let states = States {
            statuses: vec![PortRead::NotQueried; fabric.ports.len()],
            fec: Vec::new(),
            state_changes: HashSet::new(),
            moved: false,
            impostors: HashSet::new(),
            readdressed: false,
            unheard: false,
            useless: false,
            hidden_answered: HashSet::new(),
        };
        let mut sweep = StateSweep {
            fabric,
            hidden,
            queue,
            due: Throttled::new(due, MOST_SILENT),
            asked: Vec::new(),
            states,
            answered: false,
            unanswered: HashSet::new(),
            hidden_unanswered: false,
            corrections,
            keys,
            known,
            told: Vec::new(),
        };
        for node in found {
            sweep.queue_ports_of(node);
        }
        sweep
    }

    fn queue_ports_of(&mut self, node: NodeIndex) {
        let fabric = self.fabric;
        for port in fabric.ports_of(node).filter(|&port| fabric.lid_of(port).is_some()) {
            if fabric.port(port).number == 0 {
                self.queue.push_back(Ask::Switch { node, port0: port });
                self.queue.push_back(Ask::Port { port });
            } else if speaks_for_its_cable(fabric, self.hidden.nodes(), port) {
                self.queue.push_back(Ask::Port { port });
            }
        }
    }

    fn next_ask(&mut self) -> Option<Ask> {
        let fabric = self.fabric;
        if let Some(port) = self.hidden.next() {
            return Some(Ask::Identity { node: fabric.port(port).node, port });
        }
        if let Some(ask) = self.queue.pop_front() {
            return Some(ask);
        }
        let port = self.due.next()?;
        self.corrections.asked(port);
        Some(Ask::Correction { port })
    }

    /// The next question.
    pub fn next_request(&mut self) -> Option<(Request, u64)> {
        let ask = self.next_ask()?;
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
        let has_answered = outcome.as_ref().map_or_else(|failure| !failure.is_silence(), |_| true);
        let asked = match ask {
            Ask::Switch { port0, .. } => port0,
            Ask::Identity { port, .. } | Ask::Port { port } => port,
            Ask::Correction { port } => {
                self.told.push((port, Known::from(outcome)));
                if has_answered {
                    self.due.answered();
                }
                // Who says nothing to this may be well all the same.
                return outcome.is_ok().then_some(port);
            }
        };
        let node = self.fabric.port(asked).node;
        let is_hidden = self.fabric.node(node).presence == Presence::Hidden;
        match outcome {
            Ok(_) => self.answered = true,
            Err(_) if is_hidden => self.hidden_unanswered = true,
            Err(_) => drop(self.unanswered.insert(node)),
        }
        if !self.answered && self.unanswered.len() >= ENOUGH_SILENCE {
            self.queue.clear();
            self.due.stop();
        }
        if let Ask::Identity { port, .. } = ask
            && is_hidden
        {
            self.hidden.finished(port, has_answered);
        }
        match (ask, outcome) {
            (Ask::Identity { node, .. }, Ok(mad)) => {
                if NodeInfo::decode(mad).node_guid != self.fabric.node(node).identity.guid {
                    self.states.impostors.insert(node);
                    // Of a node that was not found, this is what the discovery knew last.
                    self.states.readdressed |= !is_hidden;
                } else if is_hidden {
                    self.queue_ports_of(node);
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
        self.states.statuses[port.0 as usize] = PortRead::Ok(status);
    }

    /// One end of a cable is not as it was, so the other is not either: a switch is asked, and of
    /// a host without its link nothing is known.
    fn doubt_the_other_end(&mut self, port: PortIndex, status: &PortStatus) {
        let Some(peer) = self.fabric.port(port).peer.filter(|peer| peer.connected) else { return };
        let fresh = &mut self.states.statuses[peer.port.0 as usize];
        if *fresh != PortRead::NotQueried {
            return;
        }
        let is_switch = self.fabric.node_of(peer.port).is_switch();
        if is_switch || !status.link_up() {
            *fresh = PortRead::Unknown;
        }
        let node = self.fabric.port(peer.port).node;
        let is_expected = self.hidden.nodes().is_expected(self.fabric, node);
        if is_switch && is_expected && self.fabric.lid_of(peer.port).is_some() {
            self.queue.push_back(Ask::Port { port: peer.port });
        }
    }

    /// What was read, once the walk is at its end.
    pub fn finish(mut self) -> States {
        let useless = !self.answered && !self.unanswered.is_empty();
        let unheard = useless || !self.answered && self.hidden_unanswered;
        let hidden_answered = self.hidden.finish();
        let statuses = &self.states.statuses;
        self.corrections.settle(self.fabric, statuses, self.told, &mut self.known);
        let fec = self.known.into_iter().map(Known::fec).collect();
        States { fec, unheard, useless, hidden_answered, ..self.states }
    }
}
