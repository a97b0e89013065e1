//! The checks of routes with which a sweep of a fabric with planes begins: NodeInfo of each switch by directed route.
//!
//! A route may lead to another node once a cable was moved, and to none once a switch on it is off. So each sweep asks
//! who is at the end of a route before it asks for anything else there. A route is dropped, until the next discovery,
//! if another node responds, or if none does to two rounds of requests; then the route from another plane's local port
//! is checked. Routes of a plane share their hops: what goes through a switch whose route was dropped is dropped with
//! it, without a request, and a switch is asked once the one before it has responded. So a dead plane costs the time of
//! one switch.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ib_mad::smp::NodeInfo;
use ib_mad::{DirectedRoute, Guid};
use ib_umad::RequestError;

use super::Outcome;
use crate::routes::SwitchRoute;
use crate::topology::Presence;
use crate::{Fabric, NodeIndex, PortIndex};

/// A local port that does not send as many requests sends no more in a sweep: one may be refused by chance.
const MAX_UNSENT: u32 = 2;

/// A route to a switch: that of a plane.
type RouteKey = (NodeIndex, u8);

/// What is kept from sweep to sweep.
#[derive(Debug, Default)]
pub(super) struct RouteCache {
    sweep: u64,
    /// The fabric of the indexes.
    fabric: Arc<Fabric>,
    dropped: HashSet<RouteKey>,
    /// Switches that the last sweep did not reach by any route.
    unconfirmed: HashSet<Guid>,
}

/// How far the check of a switch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Check {
    /// It is queued, or waits for the switch before it.
    Pending,
    /// By this plane's route.
    Open { plane: u8, is_second: bool },
    /// The switch itself responded on this route.
    Confirmed(DirectedRoute),
    /// No route is left.
    Lost,
}

/// What a response shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// The switch responds.
    Confirmed,
    /// It does not, by any route.
    Lost,
    /// Nothing yet: it is asked again, or another node responded.
    Nothing,
}

/// The checks of a sweep.
#[derive(Debug)]
pub(super) struct SwitchChecks<'a> {
    fabric: &'a Fabric,
    cache: &'a mut RouteCache,
    checks: HashMap<NodeIndex, Check>,
    queue: VecDeque<NodeIndex>,
    /// Those whose routes go through a switch that is checked first.
    waiting: HashMap<NodeIndex, Vec<NodeIndex>>,
    /// How many requests from the local port of a plane were not sent.
    unsent: HashMap<u8, u32>,
    /// The checks that have not ended.
    pending: usize,
    /// Another node was at the end of a route.
    has_moved: bool,
}

impl<'a> SwitchChecks<'a> {
    /// The checks of a fabric with planes; `None` of another one.
    pub fn new(fabric: &'a Arc<Fabric>, cache: &'a mut RouteCache) -> Option<Self> {
        if !fabric.routes.is_directed() {
            *cache = RouteCache::default();
            return None;
        }
        if !Arc::ptr_eq(&cache.fabric, fabric) {
            cache.dropped.clear();
            cache.fabric = Arc::clone(fabric);
        }
        cache.sweep += 1;
        let is_asked = |node: &NodeIndex| {
            let node = fabric.node(*node);
            node.is_switch() && node.presence == Presence::Found
        };
        let mut switches: Vec<NodeIndex> = fabric.node_indexes().filter(is_asked).collect();
        let first_hops =
            |node: &NodeIndex| fabric.routes.to_switch(*node).first().map(|it| it.route.hops());
        switches.sort_by_key(first_hops);
        for &node in &switches {
            cache.retry_one(node, fabric.routes.to_switch(node));
        }
        Some(SwitchChecks {
            checks: switches.iter().map(|node| (*node, Check::Pending)).collect(),
            pending: switches.len(),
            queue: switches.into(),
            waiting: HashMap::new(),
            unsent: HashMap::new(),
            has_moved: false,
            fabric,
            cache,
        })
    }

    /// Whether all have ended.
    pub fn is_done(&self) -> bool {
        self.pending == 0
    }

    /// The most requests, without retries.
    pub fn max_mads(&self) -> usize {
        // Each route is asked a second time, and that request may end at once.
        self.checks.keys().map(|node| 2 * self.fabric.routes.to_switch(*node).len()).sum()
    }

    /// The next switch to ask, and its route.
    pub fn pop(&mut self) -> Option<(PortIndex, DirectedRoute)> {
        loop {
            let node = self.queue.pop_front()?;
            let Some(it) = self.next_route(node) else {
                self.end(node, Check::Lost);
                continue;
            };
            if it.before != node && self.is_pending(it.before) {
                self.waiting.entry(it.before).or_default().push(node);
                continue;
            }
            let plane = it.route.plane();
            let is_same =
                |check: &Check| matches!(check, Check::Open { plane: of, .. } if *of == plane);
            let is_second = self.checks.get(&node).is_some_and(is_same);
            self.checks.insert(node, Check::Open { plane, is_second });
            return Some((self.fabric.ports_of(node).next()?, it.route));
        }
    }

    /// The best route to a switch that is not known to be broken.
    fn next_route(&mut self, node: NodeIndex) -> Option<SwitchRoute> {
        let fabric = self.fabric;
        for it in fabric.routes.to_switch(node) {
            let plane = it.route.plane();
            let key = (node, plane);
            if self.is_closed(plane) || self.cache.dropped.contains(&key) {
                continue;
            }
            if !self.cache.dropped.contains(&(it.before, plane)) {
                return Some(*it);
            }
            self.drop_route(key);
        }
        None
    }

    /// Whether nothing more is sent from the local port of a plane in this sweep.
    fn is_closed(&self, plane: u8) -> bool {
        self.unsent.get(&plane).is_some_and(|count| *count >= MAX_UNSENT)
    }

    fn is_pending(&self, node: NodeIndex) -> bool {
        matches!(self.checks.get(&node), Some(Check::Pending | Check::Open { .. }))
    }

    fn drop_route(&mut self, key: RouteKey) {
        self.cache.dropped.insert(key);
        self.release(key.0);
    }

    fn end(&mut self, node: NodeIndex, check: Check) {
        self.checks.insert(node, check);
        self.pending = self.pending.saturating_sub(1);
        self.release(node);
    }

    /// Lets those go on that wait for a switch.
    fn release(&mut self, node: NodeIndex) {
        self.queue.extend(self.waiting.remove(&node).unwrap_or_default());
    }

    /// Asks a switch again, by the same route or by the next one.
    fn ask_again(&mut self, node: NodeIndex, check: Check) {
        self.checks.insert(node, check);
        self.queue.push_front(node);
    }

    pub fn on_outcome(&mut self, node: NodeIndex, outcome: Outcome<'_>) -> Checked {
        let Some(&Check::Open { plane, is_second }) = self.checks.get(&node) else {
            return Checked::Nothing;
        };
        let fabric = self.fabric;
        let guid = fabric.node(node).identity.guid;
        match outcome {
            Ok(mad) if NodeInfo::decode(mad).node_guid == guid => {
                let routes = fabric.routes.to_switch(node);
                let route = routes.iter().find(|it| it.route.plane() == plane);
                self.end(node, route.map_or(Check::Lost, |it| Check::Confirmed(it.route)));
                return Checked::Confirmed;
            }
            Ok(_) => {
                self.has_moved = true;
                self.drop_route((node, plane));
            }
            Err(RequestError::Unsent) => {
                *self.unsent.entry(plane).or_default() += 1;
                if self.is_closed(plane) {
                    self.release(node);
                }
            }
            // With its retries that is a round already, unless there are none.
            Err(RequestError::TimedOut) if !is_second => {
                self.ask_again(node, Check::Open { plane, is_second: true });
                return Checked::Nothing;
            }
            Err(error) if error.is_no_response() => self.drop_route((node, plane)),
            // Busy, or refused: the route leads to a node, and beyond it.
            Err(_) => {
                self.end(node, Check::Lost);
                return Checked::Lost;
            }
        }
        if self.next_route(node).is_some() {
            self.ask_again(node, Check::Pending);
            return Checked::Nothing;
        }
        self.end(node, Check::Lost);
        // A response of another node, or a closed port, says nothing about this one.
        if matches!(outcome, Err(error) if error != RequestError::Unsent) {
            Checked::Lost
        } else {
            Checked::Nothing
        }
    }

    /// Asks nothing more.
    pub fn give_up(&mut self) {
        self.queue.clear();
        self.waiting.clear();
        self.pending = 0;
    }

    /// The route to a switch that responded on it.
    pub fn confirmed(&self, switch: NodeIndex) -> Option<DirectedRoute> {
        match self.checks.get(&switch) {
            Some(Check::Confirmed(route)) => Some(*route),
            _ => None,
        }
    }

    /// The route to a port's node, through a switch that responded.
    pub fn route_to(&self, port: PortIndex) -> Option<DirectedRoute> {
        self.fabric.routes.to_port(self.fabric, port, |switch| self.confirmed(switch))
    }

    /// Remembers the switches that did not respond. Returns their number, and whether there is something to discover.
    pub fn finish(self) -> (usize, bool) {
        let guid = |node: NodeIndex| self.fabric.node(node).identity.guid;
        let unconfirmed: HashSet<Guid> = self
            .checks
            .keys()
            .filter(|node| self.confirmed(**node).is_none())
            .map(|node| guid(*node))
            .collect();
        let is_new = unconfirmed.difference(&self.cache.unconfirmed).next().is_some();
        let count = unconfirmed.len();
        self.cache.unconfirmed = unconfirmed;
        (count, is_new || self.has_moved)
    }
}

impl RouteCache {
    /// Of a switch whose routes were all dropped one is tried again in each sweep, by turns.
    fn retry_one(&mut self, node: NodeIndex, routes: &[SwitchRoute]) {
        let key = |it: &SwitchRoute| (node, it.route.plane());
        if routes.is_empty() || !routes.iter().all(|it| self.dropped.contains(&key(it))) {
            return;
        }
        let turn = (self.sweep % routes.len() as u64) as usize;
        if let Some(it) = routes.get(turn) {
            self.dropped.remove(&key(it));
        }
    }
}
