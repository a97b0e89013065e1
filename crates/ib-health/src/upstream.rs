//! Where packets that are received marked bad were corrupted.
//!
//! A switch that finds a packet corrupt while it is already forwarding it marks its end as bad (EBP), and every
//! port that receives it from there on counts PortRcvRemotePhysicalErrors. So the fault is on a link that
//! leads into the switch before, or further upstream. Which way packets took is not known without the
//! forwarding tables: of several candidates the one with most errors is reported.

use std::collections::HashMap;

use ib_fabric::{Fabric, NodeIndex, PortIndex, PortMap};

use super::port::PortTracker;

/// How many switches upstream are searched at most: fat trees of three levels have five between two hosts.
const MAX_HOPS: u8 = 8;

/// The origins behind the nodes that one sweep's searches visited: each node is visited once.
pub type KnownOrigins = HashMap<NodeIndex, Option<PortIndex>>;

/// A search among the ports of a fabric, and what is kept of them.
pub struct UpstreamSearch<'a> {
    pub fabric: &'a Fabric,
    pub ports: &'a PortMap<PortTracker>,
    pub known: &'a mut KnownOrigins,
}

impl UpstreamSearch<'_> {
    /// The port at which the marked packets that `port` receives were corrupted: `None` if the node before
    /// it corrupted them itself, or does not report errors.
    pub fn origin(&mut self, port: PortIndex) -> Option<PortIndex> {
        self.search(port, MAX_HOPS)
    }

    fn search(&mut self, port: PortIndex, hops: u8) -> Option<PortIndex> {
        let hops = hops.checked_sub(1)?;
        let sender = self.fabric.port(port).connected_peer()?;
        let node = self.fabric.port(sender).node;
        match self.worst_behind(node, hops) {
            // No packet returns the way it came: what is corrupted there goes elsewhere.
            Some(found) if found == sender => {
                self.worst(self.fabric.ports_of(node).filter(|&port| port != sender))
            }
            found => found,
        }
    }

    fn worst_behind(&mut self, node: NodeIndex, hops: u8) -> Option<PortIndex> {
        if let Some(found) = self.known.get(&node) {
            return *found;
        }
        let (fabric, ports) = (self.fabric, self.ports);
        if !fabric.node(node).is_switch() {
            return None;
        }
        // Ends a search that returns to this node.
        self.known.insert(node, None);
        let found = self.worst(fabric.ports_of(node)).or_else(|| {
            let has_marked = |port: &PortIndex| ports[*port].has_marked();
            let marked = fabric.ports_of(node).filter(has_marked);
            let origins: Vec<PortIndex> =
                marked.filter_map(|port| self.search(port, hops)).collect();
            self.worst(origins.into_iter())
        });
        self.known.insert(node, found);
        found
    }

    /// Of some ports the one with most packets that were corrupted on the link into it, if there are any.
    fn worst(&self, ports: impl Iterator<Item = PortIndex>) -> Option<PortIndex> {
        let corrupted = |port: PortIndex| self.ports[port].recent.sum(|it| it.corrupted);
        let corrupting = ports.filter(|&port| corrupted(port) > 0.0);
        corrupting.max_by(|&a, &b| corrupted(a).total_cmp(&corrupted(b)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_fabric::testing::{end, fabric, found};
    use ib_mad::PortKey;
    use ib_mad::node::NodeKind;

    /// Switches 1, 2 and 3 in a row, with host 11 at 1, 12 at 2 and 13 at 3.
    fn row() -> Fabric {
        let nodes = [1, 2, 3].map(|guid| found(guid, NodeKind::Switch, 4));
        let hosts = [11, 12, 13].map(|guid| found(guid, NodeKind::Ca, 1));
        let links = [
            (end(1, 1), end(11, 1)),
            (end(2, 1), end(12, 1)),
            (end(3, 1), end(13, 1)),
            (end(1, 2), end(2, 2)),
            (end(2, 3), end(3, 3)),
        ];
        fabric(nodes.into_iter().chain(hosts).collect(), &links, None)
    }

    fn origin(local: &[(PortKey, f32)], marked: &[PortKey], at: PortKey) -> Option<PortKey> {
        let fabric = row();
        let mut ports = PortMap::filled(fabric.ports.len(), PortTracker::default());
        let index = |at: PortKey| fabric.find(at).unwrap();
        for (at, errors) in local {
            ports[index(*at)].recent.current.corrupted += errors;
        }
        for at in marked {
            ports[index(*at)].recent.current.marked += 1.0;
        }
        let mut known = KnownOrigins::default();
        let mut search = UpstreamSearch { fabric: &fabric, ports: &ports, known: &mut known };
        search.origin(index(at)).map(|port| fabric.port_key(port))
    }

    #[test]
    fn origin_is_at_the_switch_before_or_upstream() {
        // Corrupted on the way from switch 1 to switch 2; host 13 gets them through switch 3.
        let bad = (end(2, 2), 9.0);
        assert_eq!(origin(&[bad], &[end(13, 1), end(3, 3)], end(13, 1)), Some(end(2, 2)));
        assert_eq!(origin(&[bad], &[end(12, 1)], end(12, 1)), Some(end(2, 2)));
        // Errors of the other direction of that cable do not matter.
        assert_eq!(origin(&[bad, (end(3, 3), 70.0)], &[], end(2, 3)), None);
        assert_eq!(origin(&[bad, (end(2, 3), 70.0)], &[], end(3, 3)), Some(end(2, 2)));
        // The worst of several.
        let worse = (end(2, 1), 50.0);
        assert_eq!(origin(&[bad, worse], &[], end(3, 3)), Some(end(2, 1)));
    }

    #[test]
    fn origin_is_unknown_without_reported_errors() {
        assert_eq!(origin(&[], &[end(13, 1)], end(13, 1)), None);
        // A host that sends marked packets corrupted them itself.
        assert_eq!(origin(&[], &[end(3, 1)], end(3, 1)), None);
        // Switches 2 and 3 each received them from the other.
        let round = [end(2, 3), end(3, 3)];
        assert_eq!(origin(&[], &round, end(13, 1)), None);
    }
}
