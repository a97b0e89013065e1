//! The cables of a discovery, and nodes that share a GUID.
//!
//! A node is met by many routes, and is known again by its GUID. Where two nodes have one GUID (a card
//! whose firmware was copied, a cloned configuration), they would be merged into one that has the ports
//! of both. They show by what one node cannot be: another device, a port with two cables, a port that
//! was entered and has no link. A cable that is moved during the walk looks the same, so the first
//! answer is asked for again before anything is said.

use crate::topology::{DuplicateGuid, End};
use ib_mad::Path;
use ib_mad::port_info::PortInfo;
use ib_mad::port_state::{PortStatus, physical};
use ib_mad::smp::NodeInfo;
use ib_mad::{Guid, PortNumber};

use super::{Ask, Discovery};

/// A cable: the question that left `near` by this route was answered at `far`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cable {
    pub(super) near: End,
    pub(super) far: End,
    path: Path,
}

impl Cable {
    pub(super) fn new(near: End, far: End, path: Path) -> Self {
        Cable { near, far, path }
    }

    fn joins(&self, other: &Cable) -> bool {
        (self.near, self.far) == (other.near, other.far)
            || (self.near, self.far) == (other.far, other.near)
    }

    fn other_end(&self, end: End) -> End {
        if self.near == end { self.far } else { self.near }
    }
}

/// A port that two cables claim, or one cable although the port has no link: the cable was moved
/// during the walk, or two nodes have one GUID.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dispute {
    pub(super) end: End,
    /// The place of the cable that claimed the port first.
    pub(super) old: usize,
    new: Option<Cable>,
}

/// Whether two answers with one NodeGUID can be of one node: what NodeInfo says of the node, and not
/// of the port that was entered by, is the same then.
pub(super) fn same_device(one: &NodeInfo, other: &NodeInfo) -> bool {
    let of = |info: &NodeInfo| {
        (info.node_type, info.port_count, info.vendor_id, info.device_id, info.system_guid)
    };
    of(one) == of(other)
}

/// Whether nothing can come in by a port: it sleeps, polls or is disabled.
fn is_down(status: &PortStatus) -> bool {
    matches!(status.physical_state, physical::SLEEP..=physical::DISABLED)
}

impl Discovery {
    /// Takes a cable down, unless one of its ports has another one.
    pub(super) fn join(&mut self, cable: Cable) {
        let cable_at = |end| Some((end, *self.linked.get(&end)?));
        let known: Vec<(End, usize)> =
            [cable.near, cable.far].into_iter().filter_map(cable_at).collect();
        let differs = |at: usize| self.links[at].is_some_and(|known| !known.joins(&cable));
        if let Some(&(end, old)) = known.iter().find(|(_, at)| differs(*at)) {
            return self.doubt(Dispute { end, old, new: Some(cable) });
        }
        if known.is_empty() {
            let place = self.links.len();
            self.links.push(Some(cable));
            self.linked.extend([(cable.near, place), (cable.far, place)]);
            self.doubt_if_down(cable.far);
        }
    }

    /// A node cannot have been entered by a port that has no link.
    pub(super) fn doubt_if_down(&mut self, end: End) {
        let Some((&old, &node)) = self.linked.get(&end).zip(self.by_guid.get(&end.0)) else {
            return;
        };
        let draft = &self.nodes[node];
        let port = draft.found.ports.iter().find(|port| port.number == end.1);
        let is_down = port.and_then(|port| port.status).is_some_and(|status| is_down(&status));
        if draft.is_switch() && is_down {
            self.doubt(Dispute { end, old, new: None });
        }
    }

    /// Asks the first of two cables again: if it was moved meanwhile, nothing answers there any more.
    fn doubt(&mut self, dispute: Dispute) {
        if let Some(old) = self.links[dispute.old] {
            let place = self.disputes.len();
            self.disputes.push(dispute);
            self.ask(old.path, Ask::Again { dispute: place });
        }
    }

    pub(super) fn answered_again(&mut self, place: usize, answer: Option<NodeInfo>) {
        let dispute = self.disputes[place];
        let Dispute { end, old: at, new } = dispute;
        let Some(old) = self.links[at] else { return new.map_or((), |new| self.join(new)) };
        let stands = answer.is_some_and(|info| (info.node_guid, info.local_port) == old.far);
        let Some(&node) = self.by_guid.get(&end.0) else { return };
        let own_path = self.nodes[node].path;
        match new {
            None if stands => {
                self.ask(own_path, Ask::StillDown { dispute: place, port: end.1 });
            }
            None => {}
            Some(new) if !stands => {
                // It was moved while we looked.
                self.unlink(at);
                self.join(new);
            }
            Some(new) => {
                // Both are there at once. The node that is kept is the one that is asked: what left by
                // its own port, or came to it first, is its own cable.
                let is_own = |cable: &Cable| cable.near == end || cable.path == own_path;
                if is_own(&new) && !is_own(&old) {
                    self.unlink(at);
                    self.join(new);
                    self.leave_out(end.0, Some(old.other_end(end)));
                } else {
                    self.leave_out(end.0, Some(new.other_end(end)));
                }
            }
        }
    }

    pub(super) fn still_down(&mut self, path: Path, place: usize, info: &PortInfo) {
        let Dispute { end, old: at, .. } = self.disputes[place];
        let Some((old, &node)) = self.links[at].zip(self.by_guid.get(&end.0)) else { return };
        let status = info.status(self.nodes[node].found.identity.speed_fields);
        if is_down(&status) {
            self.unlink(at);
            self.leave_out(end.0, Some(old.other_end(end)));
        } else {
            // It came up while we looked.
            self.place(path, node, end.1, status);
        }
    }

    fn unlink(&mut self, at: usize) {
        if let Some(cable) = self.links[at].take() {
            for end in [cable.near, cable.far] {
                if self.linked.get(&end) == Some(&at) {
                    self.linked.remove(&end);
                }
            }
        }
    }

    /// Leaves a node out whose GUID another node has. What else was said of the other one by cables
    /// that it was not asked about may have been meant for this one, so it is asked.
    pub(super) fn leave_out(&mut self, guid: Guid, behind: Option<End>) {
        let duplicate = DuplicateGuid { guid, behind };
        if self.duplicates.contains(&duplicate) {
            return;
        }
        let is_first = self.duplicates.iter().all(|known| known.guid != guid);
        self.duplicates.push(duplicate);
        let Some(&node) = self.by_guid.get(&guid).filter(|_| is_first) else { return };
        let (is_switch, path) = (self.nodes[node].is_switch(), self.nodes[node].path);
        if !is_switch {
            return;
        }
        let claimed: Vec<PortNumber> = (self.links.iter().flatten())
            .filter(|cable| cable.far.0 == guid && cable.path != path)
            .map(|cable| cable.far.1)
            .collect();
        for port in claimed {
            if let Some(path) = path.then(port) {
                self.ask(path, Ask::Who { from: Some((node, port)), verify: true });
            }
        }
    }
}
