//! The hosts whose packets cross a link, by the forwarding tables of the switches.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use ib_fabric::forwarding::link_users::{HostSet, LinkUsers};
use ib_fabric::topology::Link;
use ib_fabric::{Fabric, NodeIndex, PortIndex};
use ib_mad::NodeKind;

/// The hosts whose packets cross a link, as the tables said when they were read.
///
/// Names are those of hosts, as in [`ib_fabric::Node::host`]; a channel adapter without one is called by its own name.
/// Of the cable of a host only that host is listed: what all others send to it crosses its cable, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkHosts {
    /// For each direction: that from the lower port of the link, and that from the higher one.
    pub hosts: [DirectionHosts; 2],
    /// Packets may take other ports than the tables have (adaptive routing): others than these hosts may cross the link.
    pub may_differ: bool,
    /// When the oldest table was read that this is based on; when the question was asked if none was needed.
    pub read_at: SystemTime,
    /// At least so many switches decide about hosts by tables that were not read, or not completely.
    pub unread_switches: usize,
}

/// The hosts whose packets cross a link in one direction, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionHosts {
    /// They send packets over the link.
    pub senders: Vec<Arc<str>>,
    /// They receive packets over the link.
    pub receivers: Vec<Arc<str>>,
    /// How many hosts may send or receive over the link, by tables that were not read; some are in the other list.
    pub undecided: usize,
}

impl DirectionHosts {
    /// The hosts that send or receive.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.senders.iter().chain(&self.receivers).map(|name| &**name)
    }
}

/// The name of the host that a node is in, or its own.
fn host_name(fabric: &Fabric, node: NodeIndex) -> &str {
    let node = fabric.node(node);
    node.host.as_deref().unwrap_or(&node.name)
}

/// The names of hosts, each once for all lists.
struct HostNames<'a> {
    fabric: &'a Fabric,
    known: HashMap<&'a str, Arc<str>>,
}

impl<'a> HostNames<'a> {
    fn of(&mut self, nodes: &[NodeIndex]) -> Vec<Arc<str>> {
        let fabric = self.fabric;
        let names: BTreeSet<&'a str> = nodes.iter().map(|node| host_name(fabric, *node)).collect();
        let known = &mut self.known;
        let shared = |name: &'a str| Arc::clone(known.entry(name).or_insert_with(|| name.into()));
        names.into_iter().map(shared).collect()
    }
}

impl LinkHosts {
    /// Those of a cable of a host, for which no table is needed; `None` of a link between switches.
    pub fn of_adapter(fabric: &Fabric, link: Link, at: SystemTime) -> Option<Self> {
        let nodes = link.ports().map(|port| fabric.port(port).node);
        let are_switches = nodes.iter().all(|node| fabric.node(*node).is_switch());
        if are_switches {
            return None;
        }
        let mut names = HostNames { fabric, known: HashMap::new() };
        let mut host = |node: NodeIndex| {
            let is_host = fabric.node(node).identity.kind == NodeKind::Ca;
            names.of(if is_host { std::slice::from_ref(&node) } else { &[] })
        };
        let [low, high] = nodes.map(&mut host);
        let direction = |senders: &[Arc<str>], receivers: &[Arc<str>]| DirectionHosts {
            senders: senders.to_vec(),
            receivers: receivers.to_vec(),
            undecided: 0,
        };
        let hosts = [direction(&low, &high), direction(&high, &low)];
        Some(LinkHosts { hosts, may_differ: false, read_at: at, unread_switches: 0 })
    }

    /// Those of a link between switches, from what was read of each plane, with the ports of the plane in the order of
    /// the link's ends.
    pub fn of_planes(
        fabric: &Fabric,
        planes: &[([PortIndex; 2], LinkUsers)],
        read_at: SystemTime,
    ) -> Self {
        let mut names = HostNames { fabric, known: HashMap::new() };
        let mut unread_switches = 0;
        let hosts = [0, 1].map(|nth| {
            let (mut senders, mut receivers, mut open) = (Vec::new(), Vec::new(), BTreeSet::new());
            for (ports, users) in planes {
                let of_end = users.directions.iter().filter(|it| it.from == ports[nth]);
                for direction in of_end {
                    senders.extend_from_slice(&direction.sources.crossing);
                    receivers.extend_from_slice(&direction.destinations.crossing);
                    let undecided = |set: &HostSet| set.undecided.clone();
                    open.extend(undecided(&direction.sources));
                    open.extend(undecided(&direction.destinations));
                    unread_switches = unread_switches.max(direction.unread_switches);
                }
            }
            let (senders, receivers) = (names.of(&senders), names.of(&receivers));
            let open: BTreeSet<&str> = open.iter().map(|node| host_name(fabric, *node)).collect();
            DirectionHosts { senders, receivers, undecided: open.len() }
        });
        let may_differ = planes.iter().any(|(_, users)| users.may_differ);
        LinkHosts { hosts, may_differ, read_at, unread_switches }
    }

    /// The names of all hosts that send or receive packets over the link in any direction, sorted, each once.
    pub fn hosts(&self) -> BTreeSet<&str> {
        self.hosts.iter().flat_map(DirectionHosts::names).collect()
    }

    /// Whether tables that decide about a host were not read: there may be more hosts.
    pub fn is_incomplete(&self) -> bool {
        self.unread_switches > 0 || self.hosts.iter().any(|direction| direction.undecided > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction(senders: &[&str], receivers: &[&str]) -> DirectionHosts {
        let names = |names: &[&str]| names.iter().map(|name| Arc::from(*name)).collect();
        DirectionHosts { senders: names(senders), receivers: names(receivers), undecided: 0 }
    }

    #[test]
    fn hosts_are_sorted_and_listed_once() {
        let hosts = [direction(&["b", "c"], &["d"]), direction(&["d"], &["a", "b"])];
        let mut found = LinkHosts {
            hosts,
            may_differ: false,
            read_at: SystemTime::UNIX_EPOCH,
            unread_switches: 0,
        };
        assert_eq!(found.hosts().into_iter().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
        assert!(!found.is_incomplete());
        found.hosts[1].undecided = 1;
        assert!(found.is_incomplete());
    }
}
