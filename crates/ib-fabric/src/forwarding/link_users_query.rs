//! Reads which hosts' packets cross a link.

use ib_mad::m_key::MKeys;
use ib_mad::{Mad, Moment};
use ib_umad::plan::QueryPlan;
use ib_umad::{QueuePair, Request, RequestError};

use super::cache::ForwardingCache;
use super::crossing::{Crossing, Hosts, Missing};
use super::link_users::LinkUsers;
use super::reader::{ReadSteps, TableItem, TableReader};
use crate::topology::{Fabric, Link};
use crate::{NodeIndex, PortIndex};

/// How many blocks are read at once to decide about destinations: each may make others unnecessary.
const AT_ONCE: usize = 256;

/// The query plan: it reads the table of the switch before the link in each direction, and of the switches from which
/// packets come there as many blocks as are needed to decide about each host (see `crossing`). All requests are Gets of
/// subnet management.
///
/// First it finds the hosts that send over the link, and some of those that receive. What is left of the limit of SMPs
/// goes to the other destinations: that no switch sends packets to a LID over the link needs the block of each. With 5,000
/// simulated hosts in three levels a link at a leaf needs 393 SMPs, and one at a core switch 936.
///
/// Of a link of several planes it is one plane: each has its own switches and tables.
#[derive(Debug)]
pub struct LinkUsersQuery<'a> {
    reader: TableReader<'a>,
    hosts: Hosts,
    /// The ports that send.
    ends: [PortIndex; 2],
    may_differ: bool,
}

impl<'a> LinkUsersQuery<'a> {
    /// A query of the hosts that use a link, which begins now.
    pub fn new(
        fabric: &'a Fabric,
        cache: &'a mut ForwardingCache,
        keys: &'a MKeys,
        link: Link,
        now: Moment,
    ) -> Self {
        let reader = TableReader::new(fabric, cache, keys, now);
        let hosts = Hosts::new(fabric);
        LinkUsersQuery { reader, hosts, ends: link.ports(), may_differ: false }
    }

    /// The same query, with a caller that knows whether packets may take other ports than the tables have.
    #[must_use]
    pub fn may_differ(self, may_differ: bool) -> Self {
        LinkUsersQuery { may_differ, ..self }
    }

    /// The same query with another limit of SMPs than 2,000, not counting retries.
    #[must_use]
    pub fn max_requests(mut self, max_requests: usize) -> Self {
        self.reader.set_max_requests(max_requests);
        self
    }

    fn search(&self) -> [Crossing; 2] {
        let look_up = |switch, lid| self.reader.look_up(switch, lid);
        self.ends.map(|from| Crossing::search(self.reader.fabric, &self.hosts, look_up, from))
    }

    /// The switches at the ends of a link between two switches.
    fn switches(&self) -> Vec<NodeIndex> {
        let fabric = self.reader.fabric;
        let nodes = self.ends.map(|port| fabric.port(port).node);
        let are_switches = nodes.iter().all(|node| fabric.node(*node).is_switch());
        if are_switches { nodes.to_vec() } else { Vec::new() }
    }

    /// The hosts, after the run.
    pub fn finish(self) -> LinkUsers {
        let fabric = self.reader.fabric;
        let directions = self.search().map(|crossing| crossing.finish(fabric, &self.hosts));
        let is_adaptive = |switch: &NodeIndex| self.reader.may_differ(*switch);
        let may_differ = self.may_differ || self.switches().iter().any(is_adaptive);
        LinkUsers { directions, may_differ, read: self.reader.finish() }
    }
}

impl<'a> ReadSteps<'a> for LinkUsersQuery<'a> {
    fn reader(&mut self) -> &mut TableReader<'a> {
        &mut self.reader
    }

    fn advance(&mut self) -> bool {
        let mut is_wanted = false;
        let fabric = self.reader.fabric;
        let item = |missing: Missing| TableItem::Block(missing.switch, missing.block);
        let crossings = self.search();
        let can_read = |missing| self.reader.can_read(item(missing));
        let next = crossings.iter().flat_map(|it| it.next_blocks(fabric, &self.hosts, can_read));
        let mut next: Vec<Missing> = next.collect();
        if next.is_empty() {
            let others = crossings.iter().flat_map(|it| it.other_blocks(fabric, &self.hosts));
            next.extend(others.filter(|missing| can_read(*missing)).take(AT_ONCE));
        }
        for missing in next {
            is_wanted |= self.reader.want(item(missing));
        }
        for switch in self.switches() {
            is_wanted |= self.reader.want(TableItem::Capabilities(switch));
        }
        is_wanted
    }
}

impl QueryPlan for LinkUsersQuery<'_> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        self.next_step(qp)
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment) {
        self.reader.on_outcome(tag, outcome, at);
    }
}
