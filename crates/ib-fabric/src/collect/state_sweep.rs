//! Port states in each sweep: detects changes since the discovery.
//!
//! The requests are LID-routed, so that switches forward them in hardware. One end of each link is
//! queried (both ends lose the link together), and every port without a link, because a cable may be
//! plugged in. After them some ports are queried for their FEC mode.
//!
//! NodeInfo and port 0 of each switch are queried, too: they show whether the subnet manager assigned other LIDs, in
//! which case readings by the old ones are invalid. Hidden nodes are queried for NodeInfo first, because their LID
//! may belong to another node now, or an M_Key may protect them: the [`HiddenNodes`] decide when.
//!
//! A fabric may be configured so that its switches do not respond to LID-routed subnet management. If a few dozen
//! switches do not respond and none has, the others are left out, and port states come from discoveries only.

use std::collections::{HashSet, VecDeque};

use ib_mad::Guid;
use ib_mad::fec::Fec;
use ib_mad::m_key::MKeys;
use ib_mad::port_info::PortInfo;
use ib_mad::port_state::PortStatus;
use ib_mad::rate::Speed;
use ib_mad::smp::{self, NodeInfo, SwitchInfo};
use ib_umad::{Address, Request};

use super::agent_cache::m_key_of;
use super::fec_modes::{FecMode, FecModeCache, link_state};
use super::unresponsive::{HiddenNodes, HiddenSweep, MAX_SILENT, ThrottledQueue};
use super::{Outcome, has_responded};
use crate::snapshot::PortRead;
use crate::topology::Presence;
use crate::{Fabric, NodeIndex, PortIndex, PortMap};

/// After this number of unresponsive nodes without any response no more nodes are queried.
const MAX_SILENT_NODES: usize = 32;

/// What is read of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attribute {
    /// Shows whether the LID still belongs to the node.
    NodeInfo,
    SwitchInfo,
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
    fn of(self, port: PortIndex) -> StateQuery {
        StateQuery { attribute: self, port }
    }
}

#[derive(Debug)]
pub struct StateSweep<'a> {
    fabric: &'a Fabric,
    hidden: HiddenSweep<'a>,
    queue: VecDeque<StateQuery>,
    /// Ports to query for their FEC mode. No response says nothing about a node, so it is queried again
    /// later; if many do not respond, few are queried in a sweep.
    due: ThrottledQueue,
    result: StateResult,
    answered: bool,
    /// Nodes that the discovery reached, and that did not respond.
    unanswered: HashSet<NodeIndex>,
    hidden_unanswered: bool,
    fec_modes: &'a mut FecModeCache,
    keys: &'a MKeys,
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
    /// LIDs changed: responses may have come from other nodes.
    pub lids_changed: bool,
    /// Nodes were queried, and none responded: nothing is known of their presence.
    pub no_response: bool,
    /// The same of nodes that the discovery reached: they do not respond by LID.
    pub unavailable: bool,
    /// Hidden nodes that responded to their last query by LID.
    pub hidden_responding: HashSet<NodeIndex>,
}

/// Whether a port is the queried end of its link.
fn is_queried_end(fabric: &Fabric, hidden: &HiddenNodes, port: PortIndex) -> bool {
    let here = fabric.node_of(port).is_switch();
    let is_reachable = |peer: PortIndex| {
        fabric.lid_of(peer).is_some() && hidden.is_expected(fabric, fabric.port(peer).node)
    };
    match fabric.port(port).connected_peer() {
        // A cable may be plugged in; at the local port, the whole fabric.
        None => true,
        // A node that just came up has no LID yet; an unresponsive one reports nothing.
        Some(peer) if !is_reachable(peer) => true,
        Some(peer) if fabric.node_of(peer).is_switch() == here => port <= peer,
        // The switch is queried for links to hosts: it is one for many, and always up.
        Some(_) => here,
    }
}

impl<'a> StateSweep<'a> {
    /// Unless `enabled` no node is queried. `modes` are the cached FEC modes.
    pub(super) fn new(
        fabric: &'a Fabric,
        enabled: bool,
        fec_modes: &'a mut FecModeCache,
        modes: PortMap<FecMode>,
        (keys, hidden): (&'a MKeys, &'a mut HiddenNodes),
    ) -> Self {
        let hidden = HiddenSweep::new(fabric, enabled, hidden);
        let is_found = |node: &NodeIndex| fabric.node(*node).presence == Presence::Found;
        let found: Vec<NodeIndex> =
            fabric.node_indexes().filter(|node| enabled && is_found(node)).collect();
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
            queue,
            due: ThrottledQueue::new(due, MAX_SILENT),
            result: StateResult { statuses, ..StateResult::default() },
            answered: false,
            unanswered: HashSet::new(),
            hidden_unanswered: false,
            fec_modes,
            keys,
            modes,
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
                self.queue.extend([Attribute::SwitchInfo.of(port), Attribute::PortInfo.of(port)]);
            } else if is_queried_end(fabric, self.hidden.nodes, port) {
                self.queue.push_back(Attribute::PortInfo.of(port));
            }
        }
    }

    pub fn poll_request(&mut self) -> Option<(Request, StateQuery)> {
        loop {
            let next = self.pop()?;
            if let Some(request) = self.request(next) {
                return Some((request, next));
            }
        }
    }

    /// The next query; hidden nodes first, FEC modes last.
    fn pop(&mut self) -> Option<StateQuery> {
        let hidden = self.hidden.pop().map(|port| Attribute::NodeInfo.of(port));
        hidden.or_else(|| self.queue.pop_front()).or_else(|| {
            let port = self.due.pop()?;
            self.fec_modes.next_port = port.0 + 1;
            Some(Attribute::PortInfoExtended.of(port))
        })
    }

    /// The request of a query; `None` for a port without a LID.
    fn request(&self, StateQuery { attribute, port }: StateQuery) -> Option<Request> {
        let number = self.fabric.port(port).number;
        let query = match attribute {
            Attribute::NodeInfo => smp::node_info(),
            Attribute::SwitchInfo => smp::switch_info(),
            Attribute::PortInfo => smp::port_info(number),
            Attribute::PortInfoExtended => smp::port_info_extended(number),
        };
        let to = Address::Lid(self.fabric.lid_of(port)?);
        let query = query.with_m_key(m_key_of(self.keys, self.fabric, port));
        Some(Request { to, query })
    }

    /// Handles an outcome. Returns the port whose node's liveness it shows.
    pub fn on_outcome(&mut self, query: StateQuery, outcome: Outcome<'_>) -> Option<PortIndex> {
        let StateQuery { attribute, port } = query;
        let has_responded = has_responded(&outcome);
        if attribute == Attribute::PortInfoExtended {
            let mode = FecMode::from_outcome(outcome);
            self.fec_modes.insert(self.fabric, port, mode);
            self.modes[port] = mode;
            if has_responded {
                self.due.on_response();
            }
            // No response to this says nothing about the node.
            return outcome.is_ok().then_some(port);
        }
        let node = self.fabric.port(port).node;
        let is_hidden = self.fabric.node(node).presence == Presence::Hidden;
        match outcome {
            Ok(_) => self.answered = true,
            Err(_) if is_hidden => self.hidden_unanswered = true,
            Err(_) => drop(self.unanswered.insert(node)),
        }
        if !self.answered && self.unanswered.len() >= MAX_SILENT_NODES {
            self.queue.clear();
            self.due.queue.clear();
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
            Attribute::NodeInfo if is_hidden => self.queue_ports_of(node),
            Attribute::SwitchInfo if SwitchInfo::decode(mad).port_state_change => {
                self.result.state_changes.insert(guid);
            }
            Attribute::PortInfo => self.handle_port(port, &PortInfo::decode(mad)),
            Attribute::NodeInfo | Attribute::SwitchInfo | Attribute::PortInfoExtended => {}
        }
        Some(port)
    }

    fn handle_port(&mut self, port: PortIndex, info: &PortInfo) {
        let identity = &self.fabric.node_of(port).identity;
        let is_switch = self.fabric.node_of(port).is_switch();
        let fields = if is_switch { identity.speed_fields } else { info.speed_fields() };
        let mut status = info.status(fields);
        // A port that the discovery did not reach cannot be compared; discovery handles its own gaps.
        let known = self.fabric.port(port).status;
        if let Some(known) = known {
            if known.speed == Some(Speed::Fdr10) {
                status = status.at_fdr10();
            }
            // The LID fields of other ports of a switch are not used.
            if !is_switch || self.fabric.port(port).number == 0 {
                self.result.lids_changed |=
                    (known.lid, known.sm_lid) != (status.lid, status.sm_lid);
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
        let is_expected = self.hidden.nodes.is_expected(fabric, fabric.port(peer).node);
        if is_switch && is_expected && fabric.lid_of(peer).is_some() {
            self.queue.push_back(Attribute::PortInfo.of(peer));
        }
    }

    pub fn finish(mut self) -> StateResult {
        let unavailable = !self.answered && !self.unanswered.is_empty();
        let no_response = unavailable || !self.answered && self.hidden_unanswered;
        let hidden_responding = self.hidden.finish();
        self.fec_modes.update(self.fabric, &self.result.statuses, &mut self.modes);
        let fec = self.modes.into_iter().map(FecMode::fec).collect();
        StateResult { fec, no_response, unavailable, hidden_responding, ..self.result }
    }
}
