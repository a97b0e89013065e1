//! Probes of absent nodes: a host that hung and is back.
//!
//! Its link never changes, so no port state shows that it is back. A node whose cable has no link is off, and the
//! request would only be counted as an error where it is dropped; its return changes the state of a port.

use std::collections::HashSet;

use super::lids_of;
use super::throttle::take_turns_after;
use crate::{Fabric, NodeIndex, PortIndex};
use ib_mad::{Guid, Lid};

/// Maximum number of probes in a sweep.
const MAX_PROBES: usize = 32;

/// Which absent nodes had their turn.
#[derive(Debug, Default)]
pub(super) struct AbsentNodes {
    last: Option<Guid>,
}

impl AbsentNodes {
    /// The last LIDs of the absent nodes that a sweep probes. LIDs that another node has now are left out.
    pub fn next_probes(&mut self, fabric: &Fabric) -> Vec<Lid> {
        let guid = |node: NodeIndex| fabric.node(node).identity.guid;
        // By GUID, as all nodes are.
        let absent = fabric.node_indexes().filter(|&node| !fabric.node(node).present());
        let mut absent: Vec<(NodeIndex, Lid)> = absent
            .filter_map(|node| {
                let mut linked = fabric.ports_of(node).filter(|&port| has_link(fabric, port));
                Some((node, linked.find_map(|port| fabric.lid_of(port))?))
            })
            .collect();
        if absent.is_empty() {
            return Vec::new();
        }
        let present = |port: &PortIndex| fabric.node_of(*port).present();
        let statuses =
            fabric.port_indexes().filter(present).filter_map(|port| fabric.port(port).status);
        let taken: HashSet<u32> = statuses.flat_map(lids_of).collect();
        absent.retain(|(_, lid)| !taken.contains(&u32::from(lid.0)));
        take_turns_after(&mut absent, self.last, |&(node, _)| guid(node));
        absent.truncate(MAX_PROBES);
        self.last = absent.last().map(|&(node, _)| guid(node)).or(self.last);
        absent.into_iter().map(|(_, lid)| lid).collect()
    }
}

/// Whether the port that a port's cable last led to has a link now.
fn has_link(fabric: &Fabric, port: PortIndex) -> bool {
    let Some(peer) = fabric.port(port).peer else { return false };
    let is_up = fabric.port(peer.port).status.is_some_and(|status| status.link_up());
    fabric.node_of(peer.port).present() && is_up
}
