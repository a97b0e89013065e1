//! The hosts whose packets cross a link, by the forwarding tables of the switches.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

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
    /// Switches whose tables were not read, or not completely, although they decide about hosts.
    pub unread_switches: usize,
}

/// The hosts whose packets cross a link in one direction, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionHosts {
    /// They send packets over the link.
    pub senders: Vec<Arc<str>>,
    /// They receive packets over the link.
    pub receivers: Vec<Arc<str>>,
    /// How many further hosts may send or receive over the link, by tables that were not read.
    pub undecided: usize,
}

impl DirectionHosts {
    /// The hosts that send or receive.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.senders.iter().chain(&self.receivers).map(|name| &**name)
    }
}

impl LinkHosts {
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
