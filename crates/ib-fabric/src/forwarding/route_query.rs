//! Reads the routes between two nodes.

use ib_mad::forwarding_table::LinearForwardingTable;
use ib_mad::m_key::MKeys;
use ib_mad::{Lid, Mad, Moment};
use ib_umad::plan::QueryPlan;
use ib_umad::{QueuePair, Request, RequestError};

use super::cache::ForwardingCache;
use super::lids::lids_of_port;
use super::reader::{ReadSteps, TableItem, TableReader};
use super::route::{BrokenRoute, Route, RouteBreak, trace};
use super::tables_read::{TablesRead, Unread};
use crate::topology::Fabric;
use crate::{NodeIndex, PortIndex};

/// A route that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// The port that sends: of an adapter, or port 0 of a switch.
    pub from: PortIndex,
    /// The destination LID.
    pub to: Lid,
}

impl Endpoints {
    /// All routes from one node to another: from each of its ports with a link to each LID of the other one. Empty if
    /// either has none.
    pub fn between(fabric: &Fabric, from: NodeIndex, to: NodeIndex) -> Vec<Endpoints> {
        let mut lids: Vec<Lid> = ends(fabric, to)
            .flat_map(|port| lids_of_port(fabric, port))
            .filter_map(|lid| u16::try_from(lid).ok().map(Lid))
            .collect();
        // The planes of an adapter have the same LIDs.
        lids.sort_unstable();
        lids.dedup();
        let to_each = |from| lids.iter().map(move |&to| Endpoints { from, to });
        ends(fabric, from).flat_map(to_each).collect()
    }
}

/// The ports of a node at which routes begin and end: of a switch port 0, of others those with a link.
fn ends(fabric: &Fabric, node: NodeIndex) -> impl Iterator<Item = PortIndex> + '_ {
    let is_switch = fabric.node(node).is_switch();
    fabric.ports_of(node).filter(move |port| {
        let of_port = fabric.port(*port);
        if is_switch { of_port.number == 0 } else { of_port.connected_peer().is_some() }
    })
}

/// The routes that were found.
#[derive(Clone, Debug)]
pub struct Routes {
    /// In the order in which they were wanted.
    pub routes: Vec<FoundRoute>,
    /// Packets may take other ports than these: a switch on a route has adaptive routing enabled, or the caller says so.
    /// What depends on the service level (several forwarding tables, pLFT) is not detected.
    pub may_differ: bool,
    /// What was read.
    pub read: TablesRead,
}

/// A route, or where it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct FoundRoute {
    pub ends: Endpoints,
    pub route: Result<Route, BrokenRoute>,
}

/// The query plan: it reads, switch by switch along each route, the block of the forwarding table that has the LID. All
/// requests are Gets of subnet management: LinearForwardingTable, SwitchInfo for LinearFDBTop, and of NVIDIA's switches
/// whether adaptive routing is enabled.
#[derive(Debug)]
pub struct RouteQuery<'a> {
    reader: TableReader<'a>,
    wanted: Vec<Endpoints>,
    may_differ: bool,
}

impl<'a> RouteQuery<'a> {
    /// A query of these routes, which begins now.
    pub fn new(
        fabric: &'a Fabric,
        cache: &'a mut ForwardingCache,
        keys: &'a MKeys,
        wanted: Vec<Endpoints>,
        now: Moment,
    ) -> Self {
        let reader = TableReader::new(fabric, cache, keys, now);
        RouteQuery { reader, wanted, may_differ: false }
    }

    /// The same query, with a caller that knows whether packets may take other ports than the tables have.
    #[must_use]
    pub fn may_differ(self, may_differ: bool) -> Self {
        RouteQuery { may_differ, ..self }
    }

    /// The same query with another limit of SMPs than 2,000, not counting retries.
    #[must_use]
    pub fn max_requests(mut self, max_requests: usize) -> Self {
        self.reader.set_max_requests(max_requests);
        self
    }

    fn trace(&self, ends: Endpoints) -> Result<Route, BrokenRoute> {
        let look_up = |switch, lid| self.reader.look_up(switch, lid);
        trace(self.reader.fabric, look_up, ends.from, ends.to)
    }

    /// The routes, after the run.
    pub fn finish(self) -> Routes {
        let mut may_differ = self.may_differ;
        let mut routes = Vec::with_capacity(self.wanted.len());
        for &ends in &self.wanted {
            let mut route = self.trace(ends);
            if let Err(broken) = &mut route
                && let (RouteBreak::NotRead(Unread::Ended), Some(switch)) =
                    (broken.cause, broken.end())
            {
                broken.cause = RouteBreak::NotRead(self.reader.why_unread(switch));
            }
            let hops = route.as_ref().map_or_else(|broken| &broken.hops, |route| &route.hops);
            may_differ |= hops.iter().any(|hop| self.reader.may_differ(hop.node));
            routes.push(FoundRoute { ends, route });
        }
        Routes { routes, may_differ, read: self.reader.finish() }
    }
}

impl<'a> ReadSteps<'a> for RouteQuery<'a> {
    fn reader(&mut self) -> &mut TableReader<'a> {
        &mut self.reader
    }

    fn advance(&mut self) -> bool {
        let mut is_wanted = false;
        for index in 0..self.wanted.len() {
            let ends = self.wanted[index];
            let Err(broken) = self.trace(ends) else { continue };
            let (RouteBreak::NotRead(_), Some(switch)) = (broken.cause, broken.end()) else {
                continue;
            };
            let block = LinearForwardingTable::block_of(ends.to);
            for item in [
                TableItem::Block(switch, block),
                TableItem::Top(switch),
                TableItem::Capabilities(switch),
            ] {
                is_wanted |= self.reader.want(item);
            }
        }
        is_wanted
    }
}

impl QueryPlan for RouteQuery<'_> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        self.next_step(qp)
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment) {
        self.reader.on_outcome(tag, outcome, at);
    }
}
