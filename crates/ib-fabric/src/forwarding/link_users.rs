//! The hosts whose packets cross a link.

use super::tables_read::TablesRead;
use crate::{NodeIndex, PortIndex};

/// The hosts whose packets cross a link, for each direction of it.
#[derive(Clone, Debug)]
pub struct LinkUsers {
    /// That from the lower port of the link, and that from the higher one.
    pub directions: [DirectionUsers; 2],
    /// Packets may take other ports than the tables have: a switch at an end of the link has adaptive routing enabled, or
    /// the caller says so. Then hosts that are not listed may cross the link, too.
    pub may_differ: bool,
    /// What was read.
    pub read: TablesRead,
}

impl LinkUsers {
    /// Whether all tables were read that decide about a host.
    pub fn is_complete(&self) -> bool {
        self.directions.iter().all(DirectionUsers::is_complete)
    }
}

/// The hosts whose packets cross a link in one direction: those for which there is another host, so that the tables lead
/// packets between them over the link. Each LID of a host counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectionUsers {
    /// The port that sends.
    pub from: PortIndex,
    /// The hosts that send packets over the link.
    pub sources: HostSet,
    /// The hosts that receive packets over the link.
    pub destinations: HostSet,
    /// The blocks of tables that were not read and may decide about a host.
    pub unread_blocks: usize,
    /// The switches that they belong to.
    pub unread_switches: usize,
}

impl DirectionUsers {
    /// Whether no host is undecided.
    pub fn is_complete(&self) -> bool {
        self.sources.undecided.is_empty() && self.destinations.undecided.is_empty()
    }
}

/// Hosts, each once, by node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSet {
    /// Their packets cross the link.
    pub crossing: Vec<NodeIndex>,
    /// The tables that were read do not say whether they do.
    pub undecided: Vec<NodeIndex>,
}
