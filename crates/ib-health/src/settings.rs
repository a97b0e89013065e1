//! The maintenance windows of a site.

use std::time::SystemTime;

use ib_fabric::{Fabric, NodeIndex, PortIndex};
use ib_mad::{Guid, PortNumber};

/// A node by its GUID or name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSelector {
    /// By its GUID.
    Guid(Guid),
    /// By its name.
    Name(String),
}

impl NodeSelector {
    /// A name, unless it has the form of a GUID: `0x` and 16 digits.
    pub fn new(text: &str) -> Self {
        let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 16);
        match digits.and_then(|digits| digits.parse().ok()) {
            Some(guid) => NodeSelector::Guid(guid),
            None => NodeSelector::Name(text.to_owned()),
        }
    }

    fn matches(&self, fabric: &Fabric, node: NodeIndex) -> bool {
        let node = fabric.node(node);
        match self {
            NodeSelector::Guid(guid) => node.identity.guid == *guid,
            NodeSelector::Name(name) => node.has_name(name),
        }
    }
}

/// A maintenance window: links there are expected to go down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceWindow {
    /// The node.
    pub node: NodeSelector,
    /// One of its ports, with the link there; `None` for all.
    pub port: Option<PortNumber>,
    /// When it begins; `None` if it always has.
    pub from: Option<SystemTime>,
    /// When it ends; `None` if it does not.
    pub until: Option<SystemTime>,
}

impl MaintenanceWindow {
    /// Whether it is active at a time.
    pub fn is_active(&self, at: SystemTime) -> bool {
        self.from.is_none_or(|from| from <= at) && self.until.is_none_or(|until| at < until)
    }

    /// The ports that it covers.
    pub fn ports<'a>(&'a self, fabric: &'a Fabric) -> impl Iterator<Item = PortIndex> + 'a {
        fabric
            .node_indexes()
            .filter(|&node| self.node.matches(fabric, node))
            .flat_map(|node| fabric.ports_of(node))
            .filter(|&port| self.port.is_none_or(|number| fabric.port(port).number == number))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ib_fabric::testing::{end, fabric, found};
    use ib_mad::node::NodeKind;

    #[test]
    fn maintenance_covers_a_node_or_a_port_for_a_time() {
        let fabric =
            fabric(vec![found(1, NodeKind::Switch, 3), found(2, NodeKind::Ca, 1)], &[], None);
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let window = |node: &str, port| MaintenanceWindow {
            node: NodeSelector::new(node),
            port,
            from: Some(at(10)),
            until: Some(at(20)),
        };
        let ports = |window: &MaintenanceWindow| {
            window.ports(&fabric).map(|port| fabric.end(port)).collect::<Vec<_>>()
        };
        assert_eq!(ports(&window("node 2", None)), [end(2, 1)]);
        assert_eq!(ports(&window("0x0000000000000001", Some(2))), [end(1, 2)]);
        assert_eq!(ports(&window("0x0000000000000001", None)).len(), 4);
        assert_eq!(ports(&window("nobody", None)), []);
        // A name that two nodes share means both of them.
        let mut twins = [3, 4].map(|guid| found(guid, NodeKind::Ca, 1));
        for twin in &mut twins {
            twin.identity.description = "node 9".into();
        }
        let twins = self::fabric(twins.to_vec(), &[], None);
        let count = |name: &str| window(name, None).ports(&twins).count();
        assert_eq!(["node 9", "node 9#000003", "node 9#00"].map(count), [2, 1, 0]);
        let window = window("node 2", None);
        let active = [9, 10, 19, 20].map(|seconds| window.is_active(at(seconds)));
        assert_eq!(active, [false, true, true, false]);
        assert!(MaintenanceWindow { from: None, until: None, ..window }.is_active(at(0)));
    }
}
