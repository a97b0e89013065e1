//! Port states of a fabric with planes: the part of a sweep that is about the directed routes of its requests.

use ib_mad::port_info::PortInfo;
use ib_mad::smp;
use ib_umad::{Address, Request};

use super::Outcome;
use super::agent_cache::m_key_of;
use super::state_sweep::{Attribute, StateQuery, StateSweep};
use super::switch_checks::{Checked, SwitchChecks};
use crate::snapshot::PortRead;
use crate::topology::Presence;
use crate::{NodeIndex, PortIndex};

impl StateSweep<'_> {
    /// Whether the requests take directed routes.
    pub fn is_directed(&self) -> bool {
        self.checks.is_some()
    }

    /// Whether the checks of the routes have ended.
    pub fn is_checked(&self) -> bool {
        self.checks.as_ref().is_none_or(SwitchChecks::is_done)
    }

    /// Where a port's node is asked: by LID, or by a route that this sweep has checked.
    pub fn address_of(&self, port: PortIndex) -> Option<Address> {
        match &self.checks {
            Some(checks) => checks.route_to(port).map(Address::Directed),
            None if self.fabric.routes.is_directed() => None,
            None => self.fabric.lid_of(port).map(Address::Lid),
        }
    }

    /// Whether the route to an adapter's port ends at a link that this sweep has found down.
    pub fn has_lost_link(&self, port: PortIndex) -> bool {
        self.is_directed() && self.shows_no_link(port)
    }

    /// What it sends to check routes, and behind them: not yet queued. Ports whose table fails, or that it shows to have
    /// changed, come in addition: by route no port is asked by turns.
    pub(super) fn max_by_route(&self) -> usize {
        let Some(checks) = &self.checks else { return 0 };
        let fabric = self.fabric;
        let is_found = |node: NodeIndex| fabric.node(node).presence == Presence::Found;
        let is_switch = |port: PortIndex| fabric.node_of(port).is_switch();
        // If all switches respond. Where one does not, the other ends of its links are asked instead.
        let is_end = |port: &PortIndex| match fabric.port(*port).connected_peer() {
            Some(peer) if !is_found(fabric.port(peer).node) => true,
            Some(peer) if is_switch(peer) == is_switch(*port) => *port <= peer,
            Some(_) => is_switch(*port),
            None => true,
        };
        // SwitchInfo, and the ports or the blocks of the table that shows them.
        let of_node = |node: NodeIndex| {
            let blocks = self.tables.blocks_of(node);
            let ends = || fabric.ports_of(node).filter(is_end).count();
            let states = if blocks > 0 { blocks } else { ends() };
            usize::from(fabric.node(node).is_switch()) + states
        };
        let nodes = fabric.node_indexes().filter(|node| is_found(*node)).map(of_node);
        // Our own ports are asked whether or not their leaves respond.
        checks.max_mads() + nodes.sum::<usize>() + fabric.routes.roots().len()
    }

    /// The next check of a route.
    pub(super) fn poll_check(&mut self) -> Option<(Request, StateQuery)> {
        let (port, route) = self.checks.as_mut()?.pop()?;
        let query = smp::node_info().with_m_key(m_key_of(self.keys, self.fabric, port));
        Some((Request { to: Address::Directed(route), query }, Attribute::NodeInfo.of(port)))
    }

    /// Handles the response to a check.
    pub(super) fn on_check(&mut self, port: PortIndex, outcome: Outcome<'_>) -> Option<PortIndex> {
        let node = self.fabric.port(port).node;
        match self.checks.as_mut()?.on_outcome(node, outcome) {
            Checked::Confirmed => {
                self.answered = true;
                self.result.confirmed.insert(port);
                Some(port)
            }
            Checked::Lost => {
                self.unanswered.insert(node);
                self.give_up_if_silent();
                Some(port)
            }
            Checked::Nothing => {
                self.others_unanswered = true;
                None
            }
        }
    }

    /// Handles PortInfo of a port that is asked by its route to confirm its LID.
    pub fn on_confirmation(&mut self, port: PortIndex, info: &PortInfo) {
        self.handle_port(port, info);
    }

    /// In a fabric with planes the state of a port is unknown if no switch that this sweep confirmed showed it: not
    /// even what the discovery found is known to be still true.
    pub(super) fn forget_unconfirmed(&mut self, is_valid: impl Fn(PortIndex) -> bool) {
        let Some(checks) = &self.checks else { return };
        let fabric = self.fabric;
        for port in fabric.port_indexes() {
            let read = &mut self.result.statuses[port];
            if *read != PortRead::NotQueried {
                continue;
            }
            let is_switch = |port: PortIndex| fabric.node_of(port).is_switch();
            let shown_by =
                if is_switch(port) { Some(port) } else { fabric.port(port).connected_peer() };
            let is_confirmed = |port: PortIndex| {
                is_valid(port) && checks.confirmed(fabric.port(port).node).is_some()
            };
            let is_unknown = |port: PortIndex| is_switch(port) && !is_confirmed(port);
            if !is_valid(port) || shown_by.is_some_and(is_unknown) {
                *read = PortRead::Unknown;
            }
        }
    }
}
