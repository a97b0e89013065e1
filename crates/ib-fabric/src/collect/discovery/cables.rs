//! Links of a discovery, and detection of nodes that share a GUID.
//!
//! A node is found on many routes and identified by its GUID. Two nodes with one GUID (a card with copied firmware, a
//! cloned configuration) would be merged into one with the ports of both. They are detected by contradictions: a
//! different device, a port with two links, an entry port without a link. A cable that is moved during the discovery
//! looks the same, so the first response is checked again before a duplicate is reported.

use ib_mad::port_info::PortInfo;
use ib_mad::smp::NodeInfo;

use super::draft::{Cable, CableConflict, DiscoveryRequest, is_down};
use super::state::Discovery;
use crate::topology::DuplicateGuid;
use ib_mad::{DirectedRoute, Guid, PortKey, PortNumber};

impl Discovery {
    /// Adds a link, unless one of its ports has another one.
    pub(super) fn join(&mut self, cable: Cable) {
        let ends = [cable.near, cable.far];
        let mut known = ends.into_iter().filter_map(|end| Some((end, *self.linked.get(&end)?)));
        if let Some((end, old)) = known.find(|(_, known)| !known.is_same(&cable)) {
            self.recheck(CableConflict { end, old, new: Some(cable) });
        } else if !self.linked.contains_key(&cable.near) {
            self.linked.extend(ends.map(|end| (end, cable)));
            self.check_entry_port(cable.far);
        }
    }

    /// Detects a node that was entered by a port without a link.
    pub(super) fn check_entry_port(&mut self, end: PortKey) {
        let Some((&old, &node)) = self.linked.get(&end).zip(self.by_guid.get(&end.guid)) else {
            return;
        };
        let draft = &self.nodes[node];
        let status = draft.port(end.number).and_then(|port| port.status);
        if draft.is_switch() && status.is_some_and(|status| is_down(&status)) {
            self.recheck(CableConflict { end, old, new: None });
        }
    }

    /// Queries the first of two links again: if its cable was moved, the node is not there any more.
    fn recheck(&mut self, conflict: CableConflict) {
        let index = self.conflicts.len();
        self.conflicts.push(conflict);
        self.query(conflict.old.route, DiscoveryRequest::Recheck { conflict: index });
    }

    pub(super) fn handle_recheck(&mut self, index: usize, info: Option<NodeInfo>) {
        let CableConflict { end, old, new } = self.conflicts[index];
        if !self.is_linked(&old) {
            return new.map_or((), |new| self.join(new));
        }
        let is_confirmed =
            info.is_some_and(|info| PortKey::new(info.node_guid, info.local_port) == old.far);
        let Some(&node) = self.by_guid.get(&end.guid) else { return };
        let own_route = self.nodes[node].route;
        match new {
            None if is_confirmed => {
                self.query(own_route, DiscoveryRequest::RecheckPort { conflict: index });
            }
            None => {}
            Some(new) if !is_confirmed => {
                // The cable was moved.
                self.unlink(&old);
                self.join(new);
            }
            Some(new) => {
                // Both exist. The node that is queried stays: its link left its own port, or was first.
                let is_own = |cable: &Cable| cable.near == end || cable.route == own_route;
                let is_new = is_own(&new) && !is_own(&old);
                if is_new {
                    self.unlink(&old);
                    self.join(new);
                }
                let other = if is_new { old } else { new };
                self.leave_out(end.guid, Some(other.other_end(end)));
            }
        }
    }

    pub(super) fn handle_recheck_port(
        &mut self,
        route: DirectedRoute,
        index: usize,
        info: &PortInfo,
    ) {
        let CableConflict { end, old, .. } = self.conflicts[index];
        let Some(&node) = self.by_guid.get(&end.guid).filter(|_| self.is_linked(&old)) else {
            return;
        };
        let status = info.status(self.nodes[node].found.identity.speed_fields);
        if is_down(&status) {
            self.unlink(&old);
            self.leave_out(end.guid, Some(old.other_end(end)));
        } else {
            // It came up meanwhile.
            self.set_status(route, (node, end.number), status);
        }
    }

    pub(super) fn is_linked(&self, cable: &Cable) -> bool {
        let is_it = |known: &Cable| known.is_same(cable) && known.route == cable.route;
        self.linked.get(&cable.near).is_some_and(is_it)
    }

    fn unlink(&mut self, cable: &Cable) {
        for end in [cable.near, cable.far] {
            self.linked.remove(&end);
        }
    }

    /// Leaves out a node whose GUID another has. Links to that GUID on other routes are checked.
    pub(super) fn leave_out(&mut self, guid: Guid, behind: Option<PortKey>) {
        let duplicate = DuplicateGuid { guid, behind };
        if self.result.fabric.duplicates.contains(&duplicate) {
            return;
        }
        let is_first = self.result.fabric.duplicates.iter().all(|known| known.guid != guid);
        self.result.fabric.duplicates.push(duplicate);
        let Some(&node) = self.by_guid.get(&guid).filter(|_| is_first) else { return };
        let (is_switch, route) = (self.nodes[node].is_switch(), self.nodes[node].route);
        if !is_switch {
            return;
        }
        let mut claimed: Vec<PortNumber> = (self.linked.iter())
            .filter(|(end, cable)| **end == cable.far && end.guid == guid && cable.route != route)
            .map(|(end, _)| end.number)
            .collect();
        claimed.sort_unstable();
        for port in claimed {
            if let Some(route) = route.then(port) {
                let claimed = DiscoveryRequest::Node { from: Some((node, port)), verify: true };
                self.query(route, claimed);
            }
        }
    }
}
