//! Where packets were spoilt that come in marked bad.
//!
//! A switch that finds a packet broken while it is already on its way out marks its end as bad (EBP),
//! and every port that it comes through from there on counts PortRcvRemotePhysicalErrors. So the
//! fault is on a link that leads into the switch before, or further up. Which way the packets took
//! is not known without the forwarding tables: of several candidates the one with most errors is
//! named.

use std::collections::HashMap;

use ib_fabric::{Fabric, NodeIndex, PortIndex};

/// What the search needs to know of ports.
pub trait Errors {
    /// How many local errors bits that came in there had in the latest minutes.
    fn local(&self, port: PortIndex) -> f32;
    /// Whether packets came in there marked in that time.
    fn has_marked(&self, port: PortIndex) -> bool;
}

/// So many switches further up it is looked at the most: fat trees of three levels have five between
/// two hosts.
const MOST_HOPS: u8 = 8;

/// Searches of one sweep: each node is looked at once.
#[derive(Debug, Default)]
pub struct Upstream {
    found: HashMap<NodeIndex, Option<PortIndex>>,
}

impl Upstream {
    /// The port at which packets that come in at `port` marked were spoilt, as far as it can be
    /// told: `None` if the node before it spoilt them itself, or tells nothing.
    pub fn origin(
        &mut self,
        fabric: &Fabric,
        errors: &impl Errors,
        port: PortIndex,
    ) -> Option<PortIndex> {
        self.search(fabric, errors, port, MOST_HOPS)
    }

    fn search(
        &mut self,
        fabric: &Fabric,
        errors: &impl Errors,
        port: PortIndex,
        hops: u8,
    ) -> Option<PortIndex> {
        let hops = hops.checked_sub(1)?;
        let way = fabric.port(port).peer.filter(|peer| peer.connected)?.port;
        let node = fabric.port(way).node;
        match self.worst_behind(fabric, errors, node, hops) {
            // No packet goes back the way it came: what is spoilt there goes elsewhere.
            Some(found) if found == way => worst(fabric, errors, node, Some(way)),
            found => found,
        }
    }

    fn worst_behind(
        &mut self,
        fabric: &Fabric,
        errors: &impl Errors,
        node: NodeIndex,
        hops: u8,
    ) -> Option<PortIndex> {
        if let Some(found) = self.found.get(&node) {
            return *found;
        }
        if !fabric.node(node).is_switch() {
            return None;
        }
        // Ends a search that comes round in a circle.
        self.found.insert(node, None);
        let found = worst(fabric, errors, node, None).or_else(|| {
            fabric
                .ports_of(node)
                .filter(|&port| errors.has_marked(port))
                .filter_map(|port| self.search(fabric, errors, port, hops))
                .max_by(|&a, &b| errors.local(a).total_cmp(&errors.local(b)))
        });
        self.found.insert(node, found);
        found
    }
}

/// The port of a node at which most bits come in wrong.
fn worst(
    fabric: &Fabric,
    errors: &impl Errors,
    node: NodeIndex,
    but: Option<PortIndex>,
) -> Option<PortIndex> {
    fabric
        .ports_of(node)
        .filter(|&port| Some(port) != but && errors.local(port) > 0.0)
        .max_by(|&a, &b| errors.local(a).total_cmp(&errors.local(b)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use ib_fabric::testing::{end, fabric, found};
    use ib_fabric::topology::End;
    use ib_mad::node::NodeKind;

    struct Told<'a> {
        fabric: &'a Fabric,
        local: HashMap<End, f32>,
        marked: Vec<End>,
    }

    impl Errors for Told<'_> {
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
        let told = Told {
            fabric: &fabric,
            local: local.iter().copied().collect(),
            marked: marked.to_vec(),
        };
        let port = fabric.find(at).unwrap();
        Upstream::default().origin(&fabric, &told, port).map(|port| fabric.end(port))
    }

    #[test]
    fn the_fault_is_at_the_switch_before_or_further_up() {
        // Spoilt on the way from switch 1 to switch 2; host 13 gets them through switch 3.
        let bad = (end(2, 2), 9.0);
        assert_eq!(origin(&[bad], &[end(13, 1), end(3, 3)], end(13, 1)), Some(end(2, 2)));
        assert_eq!(origin(&[bad], &[end(12, 1)], end(12, 1)), Some(end(2, 2)));
        // The other direction of the cable by which they came is another matter.
        assert_eq!(origin(&[bad, (end(3, 3), 70.0)], &[], end(2, 3)), None);
        assert_eq!(origin(&[bad, (end(2, 3), 70.0)], &[], end(3, 3)), Some(end(2, 2)));
        // The worst of several.
        let worse = (end(2, 1), 50.0);
        assert_eq!(origin(&[bad, worse], &[], end(3, 3)), Some(end(2, 1)));
    }

    #[test]
    fn what_nobody_tells_is_not_known() {
        assert_eq!(origin(&[], &[end(13, 1)], end(13, 1)), None);
        // A host that sends marked packets has spoilt them itself.
        assert_eq!(origin(&[], &[end(3, 1)], end(3, 1)), None);
        // Switches 2 and 3 both say that it came from the other.
        let round = [end(2, 3), end(3, 3)];
        assert_eq!(origin(&[], &round, end(13, 1)), None);
    }
}
