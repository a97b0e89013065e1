//! Changes of a fabric between two discoveries.

use std::fmt;

use super::topology::{Fabric, Link};
use crate::PortIndex;
use ib_mad::PortKey;
use ib_mad::ids::{Guid, Lid, PortNumber};

/// A port with the names for display.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct PortName {
    pub guid: Guid,
    pub node: String,
    pub port: PortNumber,
}

impl PortName {
    fn new(fabric: &Fabric, port: PortIndex) -> Self {
        let PortKey { guid, number } = fabric.port_key(port);
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
pub enum FabricChange {
    /// A new node: its GUID and name.
    NodeAppeared(Guid, String),
    /// A node that is no longer found: its GUID and name.
    NodeDisappeared(Guid, String),
    /// A new link between two ports that had none before.
    LinkAppeared(PortName, PortName),
    /// A link that is no longer found, without another one at either end.
    LinkDisappeared(PortName, PortName),
    /// A port has another peer than before.
    #[expect(missing_docs, reason = "the names say it")]
    LinkMoved { port: PortName, from: PortName, to: PortName },
    /// The subnet manager assigned another LID to a port: the previous and the new one.
    LidChanged(PortName, [Lid; 2]),
}

/// Kinds of changes: label values of `fabric_exporter_fabric_changes_total`.
pub const CHANGE_KINDS: [&str; 6] =
    ["node_added", "node_removed", "link_added", "link_removed", "link_moved", "lid_changed"];

impl FabricChange {
    /// The index of its kind in [`CHANGE_KINDS`], and the change as text.
    pub fn describe(&self) -> (usize, String) {
        match self {
            Self::NodeAppeared(guid, node) => (0, format!("node appeared: {node} ({guid})")),
            Self::NodeDisappeared(guid, node) => (1, format!("node disappeared: {node} ({guid})")),
            Self::LinkAppeared(a, b) => (2, format!("link appeared: {a} to {b}")),
            Self::LinkDisappeared(a, b) => (3, format!("link disappeared: {a} to {b}")),
            Self::LinkMoved { port, from, to } => {
                (4, format!("link moved: {port} was connected to {from}, now to {to}"))
            }
            Self::LidChanged(port, [from, to]) => {
                (5, format!("LID changed: {port} had {from}, now {to}"))
            }
        }
    }
}

/// All changes from one fabric to the next, nodes first.
pub fn diff(before: &Fabric, after: &Fabric) -> Vec<FabricChange> {
    let mut changes = Vec::new();
    for (here, there, change) in [
        (before, after, FabricChange::NodeDisappeared as fn(_, _) -> _),
        (after, before, FabricChange::NodeAppeared),
    ] {
        for node in here.nodes.iter().filter(|node| node.present()) {
            let guid = node.identity.guid;
            if !there.is_present(guid) {
                changes.push(change(guid, node.name.clone()));
            }
        }
    }
    let peer = |fabric: &Fabric, end: PortKey| fabric.port(fabric.find(end)?).connected_peer();
    for (here, there, change) in [
        (before, after, FabricChange::LinkDisappeared as fn(_, _) -> _),
        (after, before, FabricChange::LinkAppeared),
    ] {
        for Link { low: a, high: b } in here.links() {
            let (end_a, end_b) = (here.port_key(a), here.port_key(b));
            let connected = here.port(a).connected_peer().is_some();
            if connected && peer(there, end_a).is_none() && peer(there, end_b).is_none() {
                changes.push(change(PortName::new(here, a), PortName::new(here, b)));
            }
        }
    }
    for port in after.port_indexes() {
        let end = after.port_key(port);
        let Some(old) = before.find(end) else { continue };
        if let (Some(from), Some(to)) = (peer(before, end), peer(after, end))
            && before.port_key(from) != after.port_key(to)
        {
            changes.push(FabricChange::LinkMoved {
                port: PortName::new(after, port),
                from: PortName::new(before, from),
                to: PortName::new(after, to),
            });
        }
        // A switch has one LID, on port 0; the LID field of its other ports is not used.
        let has_lid = after.port(port).number == 0 || !after.node_of(port).is_switch();
        if let (Some(from), Some(to)) = (before.port(old).status, after.port(port).status)
            && has_lid
            && from.lid != to.lid
        {
            let port = PortName::new(after, port);
            changes.push(FabricChange::LidChanged(port, [from.lid, to.lid]));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::super::assembly::DiscoveredNode;
    use super::*;
    use crate::testing::{end, fabric, found};
    use ib_mad::moment::Moment;
    use ib_mad::node::NodeKind;

    fn nodes(guids: &[u64]) -> Vec<DiscoveredNode> {
        guids
            .iter()
            .map(|&guid| found(guid, if guid < 10 { NodeKind::Switch } else { NodeKind::Ca }, 4))
            .collect()
    }

    fn kinds(before: &Fabric, after: &Fabric) -> Vec<String> {
        let kind = |change: &FabricChange| CHANGE_KINDS[change.describe().0].to_owned();
        diff(before, after).iter().map(kind).collect()
    }

    #[test]
    fn same_fabric_has_no_changes() {
        let same = fabric(nodes(&[1, 11]), &[(end(1, 1), end(11, 1))], None);
        assert!(diff(&same, &same).is_empty());
    }

    #[test]
    fn each_change_is_reported_once_and_reversed() {
        let whole =
            fabric(nodes(&[1, 11, 12]), &[(end(1, 1), end(11, 1)), (end(1, 2), end(12, 1))], None);
        let less = fabric(nodes(&[1, 11]), &[(end(1, 1), end(11, 1))], Some((&whole, Moment(0))));
        let again = fabric(
            nodes(&[1, 11, 12]),
            &[(end(1, 1), end(11, 1)), (end(1, 2), end(12, 1))],
            Some((&less, Moment(0))),
        );
        assert_eq!(kinds(&whole, &less), ["node_removed", "link_removed"]);
        assert_eq!(kinds(&less, &again), ["node_added", "link_added"]);
        assert!(kinds(&whole, &again).is_empty());
    }

    #[test]
    fn moved_cable_and_new_lid_are_reported() {
        let before = fabric(nodes(&[1, 11]), &[(end(1, 1), end(11, 1))], None);
        let mut moved = nodes(&[1, 11]);
        for port in &mut moved[1].ports {
            if let Some(status) = &mut port.status {
                status.lid = Lid(77);
            }
        }
        moved[1].ports.truncate(1);
        let after = fabric(moved, &[(end(1, 3), end(11, 1))], Some((&before, Moment(0))));
        let changes = diff(&before, &after);
        let lines: Vec<String> = changes.iter().map(|change| change.describe().1).collect();
        assert_eq!(
            lines,
            [
                "link moved: node 11 port 1 (0x000000000000000b) was connected to node 1 port 1 \
                 (0x0000000000000001), now to node 1 port 3 (0x0000000000000001)",
                "LID changed: node 11 port 1 (0x000000000000000b) had 11, now 77",
            ]
        );
    }
}
