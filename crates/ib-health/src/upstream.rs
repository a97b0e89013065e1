//! Where packets that are received marked bad were corrupted.
//!
//! A switch that finds a packet corrupt while it is already forwarding it marks its end as bad (EBP), and every
//! port that receives it from there on counts PortRcvRemotePhysicalErrors. So the fault is on a link that
//! leads into the switch before, or further upstream. Which way packets took is not known without the
//! forwarding tables: of several candidates the one with most errors is reported.

use std::collections::HashMap;

use ib_fabric::{Fabric, NodeIndex, PortIndex};

pub trait PortErrors {
    fn fabric(&self) -> &Fabric;
    /// The packets of the latest minutes that were corrupted on the link into a port.
    fn local(&self, port: PortIndex) -> f32;
    /// Whether a port received packets that were marked bad in that time.
    fn has_marked(&self, port: PortIndex) -> bool;

    /// Of some ports the one with most local errors.
    fn worst(&self, ports: impl Iterator<Item = PortIndex>) -> Option<PortIndex> {
        ports.max_by(|&a, &b| self.local(a).total_cmp(&self.local(b)))
    }
}

/// How many switches upstream are searched at most: fat trees of three levels have five between two hosts.
const MAX_HOPS: u8 = 8;

/// The searches of one sweep, which visit each node once.
#[derive(Debug, Default)]
pub struct UpstreamSearch {
    found: HashMap<NodeIndex, Option<PortIndex>>,
}

impl UpstreamSearch {
    /// The port at which the marked packets that `port` receives were corrupted: `None` if the node before
    /// it corrupted them itself, or does not report errors.
    pub fn origin(&mut self, errors: &impl PortErrors, port: PortIndex) -> Option<PortIndex> {
        self.search(errors, port, MAX_HOPS)
    }

    fn search(&mut self, errors: &impl PortErrors, port: PortIndex, hops: u8) -> Option<PortIndex> {
        let hops = hops.checked_sub(1)?;
        let fabric = errors.fabric();
        let sender = fabric.port(port).connected_peer()?;
        let node = fabric.port(sender).node;
        match self.worst_behind(errors, node, hops) {
            // No packet returns the way it came: what is corrupted there goes elsewhere.
            Some(found) if found == sender => {
                errors.worst(corrupting(errors, node).filter(|&port| port != sender))
            }
            found => found,
        }
    }

    fn worst_behind(
        &mut self,
        errors: &impl PortErrors,
        node: NodeIndex,
        hops: u8,
    ) -> Option<PortIndex> {
        if let Some(found) = self.found.get(&node) {
            return *found;
        }
        let fabric = errors.fabric();
        if !fabric.node(node).is_switch() {
            return None;
        }
        // Ends a search that returns to this node.
        self.found.insert(node, None);
        let found = errors.worst(corrupting(errors, node)).or_else(|| {
            let marked = fabric.ports_of(node).filter(|&port| errors.has_marked(port));
            errors.worst(marked.filter_map(|port| self.search(errors, port, hops)))
        });
        self.found.insert(node, found);
        found
    }
}

/// The ports of a node with local errors.
fn corrupting(errors: &impl PortErrors, node: NodeIndex) -> impl Iterator<Item = PortIndex> {
    errors.fabric().ports_of(node).filter(move |&port| errors.local(port) > 0.0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use ib_fabric::testing::{end, fabric, found};
    use ib_fabric::topology::End;
    use ib_mad::node::NodeKind;

    struct Reported<'a> {
        fabric: &'a Fabric,
        local: HashMap<End, f32>,
        marked: Vec<End>,
    }

    impl PortErrors for Reported<'_> {
        fn fabric(&self) -> &Fabric {
            self.fabric
        }

        fn local(&self, port: PortIndex) -> f32 {
            self.local.get(&self.fabric.end(port)).copied().unwrap_or_default()
        }

        fn has_marked(&self, port: PortIndex) -> bool {
            self.marked.contains(&self.fabric.end(port))
        }
    }

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

    fn origin(local: &[(End, f32)], marked: &[End], at: End) -> Option<End> {
        let fabric = row();
        let reported = Reported {
            fabric: &fabric,
            local: local.iter().copied().collect(),
            marked: marked.to_vec(),
        };
        let port = fabric.find(at).unwrap();
        UpstreamSearch::default().origin(&reported, port).map(|port| fabric.end(port))
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
