//! The state of a discovery, and its result.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ib_mad::m_key::MKeys;
use ib_mad::port_info::PortInfo;
use ib_mad::{DirectedRoute, Guid, PortKey};
use ib_umad::RequestError;

use super::draft::{Cable, CableConflict, DiscoveryRequest, NodeDraft, Step};
use crate::assembly::DiscoveredFabric;

/// Maximum number of requests: the largest subnet, with 49,151 LIDs behind 64-port switches, takes
/// about 400,000. A device that invents neighbors must not exhaust memory.
const MAX_STEPS: usize = 1 << 21;

/// Maximum number of gap messages; all gaps are counted.
const MAX_GAPS: usize = 1024;

/// The query plan; see the [module](super).
#[derive(Debug, Default)]
pub struct Discovery {
    pub(super) steps: Vec<Step>,
    pub(super) next: usize,
    /// Maximum number of requests, and of ports.
    pub(super) limit: usize,
    pub(super) ports: usize,
    pub(super) overflowed: bool,
    pub(super) nodes: Vec<NodeDraft>,
    pub(super) by_guid: HashMap<Guid, usize>,
    /// Ports with a link without a discovered neighbor.
    pub(super) without_neighbor: Vec<PortKey>,
    /// The link of each port that has one.
    pub(super) linked: HashMap<PortKey, Cable>,
    pub(super) conflicts: Vec<CableConflict>,
    pub(super) keys: Arc<MKeys>,
    pub(super) local_guid: Option<Guid>,
    pub(super) skipped: HashSet<PortKey>,
    /// Number of neighbors other than switches that responded.
    pub(super) hosts_found: usize,
    pub(super) result: DiscoveryResult,
}

/// The result of a discovery.
#[derive(Debug, Default)]
pub struct DiscoveryResult {
    /// Nodes and links.
    pub fabric: DiscoveredFabric,
    /// Switches whose PortStateChange bit is set.
    pub state_changes: HashSet<Guid>,
    /// Number of requests without a response: parts of the fabric may be missing.
    pub failures: u64,
    /// Messages about the first of them; the same gap has the same message in each discovery.
    pub gaps: Vec<String>,
    /// Ports with a link whose neighbor was queried and did not respond.
    pub unanswered: Vec<PortKey>,
    /// Such ports whose neighbor was not queried this time.
    pub skipped: Vec<PortKey>,
    /// PortInfo of the local port, if it responded: it helps to explain why others do not respond.
    pub local_port_info: Option<PortInfo>,
    /// Why the local node did not respond to NodeInfo; then nothing was found.
    pub local_error: Option<RequestError>,
}

impl Discovery {
    /// A discovery that begins at the local port. If the M_Keys differ, the key of the local port is found by
    /// its GUID. The neighbors of `skipped` ports are not queried, unless the port's link is not active.
    pub fn new(keys: Arc<MKeys>, local_guid: Option<Guid>, skipped: HashSet<PortKey>) -> Self {
        let target = DiscoveryRequest::Node { from: None, verify: false };
        let steps = vec![Step { route: DirectedRoute::LOCAL, target }];
        Discovery { steps, limit: MAX_STEPS, keys, local_guid, skipped, ..Self::default() }
    }

    #[cfg(test)]
    pub(in crate::collect) fn with_limit(limit: usize) -> Self {
        Discovery { limit, ..Self::new(Arc::default(), None, HashSet::new()) }
    }

    /// The result, after the run.
    pub fn finish(self) -> DiscoveryResult {
        let Discovery { linked, mut without_neighbor, mut result, .. } = self;
        // A neighbor that was found from the other side is known, whether or not it responded here.
        for ends in [&mut without_neighbor, &mut result.unanswered, &mut result.skipped] {
            ends.retain(|end| !linked.contains_key(end));
        }
        result.failures += without_neighbor.len() as u64;
        let fabric = &mut result.fabric;
        fabric.unreached.append(&mut without_neighbor);
        fabric.nodes = self.nodes.into_iter().map(|draft| draft.found).collect();
        let links = linked.into_iter().filter(|(end, cable)| *end == cable.near);
        fabric.links = links.map(|(near, cable)| (near, cable.far)).collect();
        fabric.is_cut_off = result.local_error.is_some();
        result
    }

    pub(super) fn query(&mut self, route: DirectedRoute, target: DiscoveryRequest) {
        if self.steps.len() < self.limit {
            self.steps.push(Step { route, target });
        } else {
            self.overflow(route);
        }
    }

    pub(super) fn overflow(&mut self, route: DirectedRoute) {
        if !self.overflowed {
            self.overflowed = true;
            let limit = self.limit;
            let gap = format!(
                "discovery stopped after {limit} requests, more than any subnet needs: a device probably reports \
                 neighbors that do not exist"
            );
            self.gap(route, gap);
        }
        self.result.failures += 1;
    }

    /// Records a gap. The monitor decides what to log.
    pub(super) fn gap(&mut self, route: DirectedRoute, gap: String) {
        tracing::debug!(path = ?route, "{gap}");
        if self.result.gaps.len() < MAX_GAPS {
            self.result.gaps.push(gap);
        }
    }
}
