//! The maintenance windows of a site, and the hosts that its scheduler has drained.

mod node_pattern;

use std::collections::{BTreeSet, HashSet};
use std::time::SystemTime;

pub use node_pattern::{NamePattern, PatternError, host_list};

use ib_fabric::host_names::HostNames;
use ib_fabric::{Fabric, NodeIndex, PortIndex};
use ib_mad::{Guid, PortNumber};

/// Nodes by a GUID, a name or a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSelector {
    /// By its GUID.
    Guid(Guid),
    /// By its name, or that of its host.
    Name(String),
    /// By a pattern of these names; or the text of the pattern itself is the name.
    Pattern(NamePattern, String),
}

impl NodeSelector {
    /// A name, unless it has the form of a GUID, `0x` and 16 digits, or of a pattern.
    pub fn new(text: &str) -> Self {
        if let Some(guid) = guid(text) {
            return NodeSelector::Guid(guid);
        }
        // A device may have any characters in its name.
        match NamePattern::parse(text) {
            Ok(pattern) if pattern.as_name().is_none() => {
                NodeSelector::Pattern(pattern, text.to_owned())
            }
            _ => NodeSelector::Name(text.to_owned()),
        }
    }

    fn matches(&self, fabric: &Fabric, node: NodeIndex) -> bool {
        let node = fabric.node(node);
        match self {
            NodeSelector::Guid(guid) => node.identity.guid == *guid,
            NodeSelector::Name(name) => node.has_name(name),
            NodeSelector::Pattern(pattern, text) => {
                node.names().any(|name| pattern.matches(name) || name == text)
            }
        }
    }
}

/// The GUID of a text that has its form.
fn guid(text: &str) -> Option<Guid> {
    text.strip_prefix("0x").filter(|digits| digits.len() == 16)?.parse().ok()
}

/// The hosts and nodes that a scheduler has drained. There may be thousands, so names are looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DrainedHosts {
    names: HashSet<String>,
    guids: HashSet<Guid>,
    patterns: Vec<NamePattern>,
    /// Hosts by the names of a scheduler, with or without domain.
    hosts: BTreeSet<String>,
}

impl DrainedHosts {
    /// Adds the hosts of a list: names, GUIDs and patterns, separated by commas.
    pub fn add(&mut self, list: &str) -> Result<(), PatternError> {
        for pattern in host_list(list)? {
            match pattern.as_name() {
                Some(name) => match guid(name) {
                    Some(guid) => drop(self.guids.insert(guid)),
                    None => drop(self.names.insert(name.to_owned())),
                },
                None => self.patterns.push(pattern),
            }
        }
        Ok(())
    }

    /// Hosts by the names that a scheduler has for them. Nothing in them is a pattern, and each means the host that has
    /// this name, or the only one that has it without domain.
    pub fn of_scheduler(hosts: impl IntoIterator<Item = String>) -> Self {
        DrainedHosts { hosts: hosts.into_iter().collect(), ..DrainedHosts::default() }
    }

    /// These and those of others.
    #[must_use]
    pub fn and(mut self, others: &DrainedHosts) -> Self {
        self.names.extend(others.names.iter().cloned());
        self.guids.extend(&others.guids);
        self.patterns.extend(others.patterns.iter().cloned());
        self.hosts.extend(others.hosts.iter().cloned());
        self
    }

    /// How many names, GUIDs, patterns and hosts it has.
    pub fn len(&self) -> usize {
        self.names.len() + self.guids.len() + self.patterns.len() + self.hosts.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many patterns it has: each is compared with each name.
    pub fn patterns(&self) -> usize {
        self.patterns.len()
    }

    /// The nodes that are drained, or whose host is.
    pub fn nodes<'a>(&'a self, fabric: &'a Fabric) -> impl Iterator<Item = NodeIndex> + 'a {
        let is_listed = |name: &str| {
            self.names.contains(name) || self.patterns.iter().any(|it| it.matches(name))
        };
        let known = if self.hosts.is_empty() {
            HostNames::default()
        } else {
            HostNames::new(fabric.nodes.iter().filter_map(|node| node.host.as_deref()))
        };
        let hosts: HashSet<&str> = self.hosts.iter().filter_map(|host| known.find(host)).collect();
        fabric.node_indexes().filter(move |&index| {
            let node = fabric.node(index);
            node.host.as_deref().is_some_and(|host| hosts.contains(host))
                || self.guids.contains(&node.identity.guid)
                || node.names().any(is_listed)
        })
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

    /// The nodes that it names.
    pub fn nodes<'a>(&'a self, fabric: &'a Fabric) -> impl Iterator<Item = NodeIndex> + 'a {
        fabric.node_indexes().filter(|&node| self.node.matches(fabric, node))
    }

    /// The ports that it covers.
    pub fn ports<'a>(&'a self, fabric: &'a Fabric) -> impl Iterator<Item = PortIndex> + 'a {
        self.nodes(fabric)
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
            window.ports(&fabric).map(|port| fabric.port_key(port)).collect::<Vec<_>>()
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
        let count = |name: &str| window(name, None).ports(&fabric).count();
        assert_eq!(["node*", "node [1-2]", "node [2-9]", "node ?1"].map(count), [5, 5, 1, 0]);
        let window = window("node 2", None);
        let active = [9, 10, 19, 20].map(|seconds| window.is_active(at(seconds)));
        assert_eq!(active, [false, true, true, false]);
        assert!(MaintenanceWindow { from: None, until: None, ..window }.is_active(at(0)));
    }
    #[test]
    fn drained_hosts_are_names_patterns_and_guids() {
        let fabric =
            fabric(vec![found(1, NodeKind::Switch, 3), found(2, NodeKind::Ca, 1)], &[], None);
        let nodes = |list: &str| {
            let mut drained = DrainedHosts::default();
            drained.add(list).unwrap();
            assert!(!drained.is_empty());
            let guids = drained.nodes(&fabric).map(|node| fabric.node(node).identity.guid.0);
            (guids.collect::<Vec<_>>(), drained.len())
        };
        assert_eq!(nodes("node 2,nobody"), (vec![2], 2));
        assert_eq!(nodes("node [1-9],node 2"), (vec![1, 2], 2));
        assert_eq!(nodes("0x0000000000000001"), (vec![1], 1));
        assert!(DrainedHosts::default().add("node [").is_err());
        // What a scheduler calls a host is no pattern, and may lack the domain.
        let mut node = found(3, NodeKind::Ca, 1);
        node.identity.description = "gpu7.example mlx5_0".into();
        let fabric = self::fabric(vec![found(1, NodeKind::Switch, 3), node], &[], None);
        let hosts = |names: &[&str]| {
            DrainedHosts::of_scheduler(names.iter().map(|name| (*name).to_owned()))
        };
        let drained = |hosts: &DrainedHosts| hosts.nodes(&fabric).count();
        for (name, count) in [("gpu7", 1), ("gpu7.example", 1), ("gpu*", 0), ("node 1", 0)] {
            assert_eq!(drained(&hosts(&[name])), count, "{name}");
        }
        let mut file = DrainedHosts::default();
        file.add("node 1").unwrap();
        let both = file.and(&hosts(&["gpu7"]));
        assert_eq!((drained(&both), both.len()), (2, 2));
    }
}
