//! What changed in a fabric between two discoveries.

use std::fmt;

use super::topology::{End, Fabric, Link, PortIndex};
use ib_mad::ids::{Guid, Lid, PortNumber};

/// A port by the names that people and metrics use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortName {
    /// The node's GUID.
    pub guid: Guid,
    /// The node's name.
    pub node: String,
    /// The port's number.
    pub port: PortNumber,
}

impl PortName {
    fn of(fabric: &Fabric, port: PortIndex) -> Self {
        let (guid, number) = fabric.end(port);
        PortName { guid, node: fabric.node_of(port).name.clone(), port: number }
    }
}

impl fmt::Display for PortName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} port {} ({})", self.node, self.port, self.guid)
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A node that was not there before.
    NodeCame {
        /// Its GUID.
        guid: Guid,
        /// Its name.
        node: String,
    },
    /// A node that cannot be reached any more.
    NodeWent {
        /// Its GUID.
        guid: Guid,
        /// Its name.
        node: String,
    },
    /// A link between two ports of which neither had another before.
    LinkCame(PortName, PortName),
    /// A link that is no more, and neither end has another.
    LinkWent(PortName, PortName),
    /// A port's cable leads to another port than before.
    LinkMoved {
        /// The port.
        port: PortName,
        /// Where it led.
        from: PortName,
        /// Where it leads.
        to: PortName,
    },
    /// The subnet manager gave a port another LID.
    LidChanged {
        /// The port.
        port: PortName,
        /// The LID it had.
        from: Lid,
        /// The LID it has.
        to: Lid,
    },
}

/// The kinds of changes, as `infiniband_fabric_changes_total` labels them.
pub const KINDS: [&str; 6] =
    ["node_came", "node_went", "link_came", "link_went", "link_moved", "lid_changed"];

impl Change {
    /// Its place in [`KINDS`].
    pub fn kind(&self) -> usize {
        match self {
            Change::NodeCame { .. } => 0,
            Change::NodeWent { .. } => 1,
            Change::LinkCame(..) => 2,
            Change::LinkWent(..) => 3,
            Change::LinkMoved { .. } => 4,
            Change::LidChanged { .. } => 5,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::NodeCame { guid, node } => write!(f, "node came: {node} ({guid})"),
            Change::NodeWent { guid, node } => write!(f, "node went: {node} ({guid})"),
            Change::LinkCame(a, b) => write!(f, "link came: {a} to {b}"),
            Change::LinkWent(a, b) => write!(f, "link went: {a} to {b}"),
            Change::LinkMoved { port, from, to } => {
                write!(f, "link moved: {port} led to {from}, now leads to {to}")
            }
            Change::LidChanged { port, from, to } => {
                write!(f, "LID changed: {port} had {from}, now has {to}")
            }
        }
    }
}

/// All changes from one fabric to the next, nodes first.
pub fn between(before: &Fabric, after: &Fabric) -> Vec<Change> {
    let mut changes = Vec::new();
    for (here, there, came) in [(before, after, false), (after, before, true)] {
        for node in here.nodes.iter().filter(|node| node.present()) {
            let guid = node.identity.guid;
            if !there.node_by_guid(guid).is_some_and(|other| there.node(other).present()) {
                let node = node.name.clone();
                changes.push(if came {
                    Change::NodeCame { guid, node }
                } else {
                    Change::NodeWent { guid, node }
                });
            }
        }
    }
    let peer = |fabric: &Fabric, end: End| {
        let peer = fabric.port(fabric.find(end)?).peer?;
        peer.connected.then(|| fabric.end(peer.port))
    };
    for (here, there, came) in [(before, after, false), (after, before, true)] {
        for Link(a, b) in here.links() {
            let (end_a, end_b) = (here.end(a), here.end(b));
            let connected = here.port(a).peer.is_some_and(|peer| peer.connected);
            if connected && peer(there, end_a).is_none() && peer(there, end_b).is_none() {
                let (a, b) = (PortName::of(here, a), PortName::of(here, b));
                changes.push(if came { Change::LinkCame(a, b) } else { Change::LinkWent(a, b) });
            }
        }
    }
    for port in after.port_indexes() {
        let end = after.end(port);
        let Some(old) = before.find(end) else { continue };
        if let (Some(from), Some(to)) = (peer(before, end), peer(after, end))
            && from != to
            && let (Some(from), Some(to)) = (before.find(from), after.find(to))
        {
            changes.push(Change::LinkMoved {
                port: PortName::of(after, port),
                from: PortName::of(before, from),
                to: PortName::of(after, to),
            });
        }
        // A switch has one LID, on port 0; what its other ports say of theirs means nothing.
        let has_lid = after.port(port).number == 0 || !after.node_of(port).is_switch();
        if let (Some(from), Some(to)) = (before.port(old).status, after.port(port).status)
            && has_lid
            && from.lid != to.lid
        {
            let port = PortName::of(after, port);
            changes.push(Change::LidChanged { port, from: from.lid, to: to.lid });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::super::assembly::FoundNode;
    use super::*;
    use crate::testing::{end, fabric, found};
    use ib_mad::moment::Moment;
    use ib_mad::node::NodeKind;

    fn nodes(guids: &[u64]) -> Vec<FoundNode> {
        guids
            .iter()
            .map(|&guid| found(guid, if guid < 10 { NodeKind::Switch } else { NodeKind::Ca }, 4))
            .collect()
    }

    fn told(before: &Fabric, after: &Fabric) -> Vec<String> {
        between(before, after).iter().map(|change| KINDS[change.kind()].to_owned()).collect()
    }

    #[test]
    fn nothing_changed() {
        let same = fabric(nodes(&[1, 11]), &[(end(1, 1), end(11, 1))], None);
        assert!(between(&same, &same).is_empty());
    }

    #[test]
    fn each_change_is_told_once_and_undone_by_its_opposite() {
        let whole =
            fabric(nodes(&[1, 11, 12]), &[(end(1, 1), end(11, 1)), (end(1, 2), end(12, 1))], None);
        let less = fabric(nodes(&[1, 11]), &[(end(1, 1), end(11, 1))], Some((&whole, Moment(0))));
        let again = fabric(
            nodes(&[1, 11, 12]),
            &[(end(1, 1), end(11, 1)), (end(1, 2), end(12, 1))],
            Some((&less, Moment(0))),
        );
        assert_eq!(told(&whole, &less), ["node_went", "link_went"]);
        assert_eq!(told(&less, &again), ["node_came", "link_came"]);
        assert!(told(&whole, &again).is_empty());
    }

    #[test]
    fn a_moved_cable_and_a_new_lid() {
        let before = fabric(nodes(&[1, 11]), &[(end(1, 1), end(11, 1))], None);
        let mut moved = nodes(&[1, 11]);
        for port in &mut moved[1].ports {
            if let Some(status) = &mut port.status {
                status.lid = Lid(77);
            }
        }
        moved[1].ports.truncate(1);
        let after = fabric(moved, &[(end(1, 3), end(11, 1))], Some((&before, Moment(0))));
        let changes = between(&before, &after);
        let lines: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "link moved: node 11 port 1 (0x000000000000000b) led to node 1 port 1 \
                 (0x0000000000000001), now leads to node 1 port 3 (0x0000000000000001)",
                "LID changed: node 11 port 1 (0x000000000000000b) had 11, now has 77",
            ]
        );
    }
}
