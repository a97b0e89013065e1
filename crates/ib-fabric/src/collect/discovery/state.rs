//! The state of a discovery, and its result.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ib_mad::m_key::MKeys;
use ib_mad::port_info::PortInfo;
use ib_mad::port_state::SpeedFields;
use ib_mad::{DirectedRoute, Guid, Moment, PortKey};
use ib_umad::{PlaneSet, RequestError};

use super::draft::{Cable, CableConflict, DiscoveryRequest, NodeDraft, Step};
use super::kind_survey::KindSurvey;
use super::limits::{DiscoveryLimits, LimitReached};
use super::panel_queue::{PanelQueue, PanelRequest};
use crate::assembly::DiscoveredFabric;
use crate::front_panels::FrontPanels;

/// Maximum number of gap messages; all gaps are counted.
const MAX_GAPS: usize = 1024;

/// The query plan; see the [module](super).
#[derive(Debug, Default)]
pub struct Discovery {
    pub(super) steps: Vec<Step>,
    /// The steps that were not sent yet: those behind slow nodes wait for the others.
    pub(super) fast: VecDeque<usize>,
    pub(super) slow: VecDeque<usize>,
    /// When the steps were sent that have no outcome yet.
    pub(super) sent: HashMap<usize, Moment>,
    /// How many requests to a node, or beyond it, a limit left out.
    pub(super) left_out: HashMap<usize, usize>,
    pub(super) limits: DiscoveryLimits,
    pub(super) reached: Option<LimitReached>,
    pub(super) began: Option<Moment>,
    pub(super) now: Moment,
    pub(super) ports: usize,
    /// Switches behind which nothing is asked.
    pub(super) cut: HashSet<Guid>,
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
    /// The front-panel names that are known.
    pub(super) front_panels: FrontPanels,
    /// Ports that announce HierarchyInfo, of a switch port 0, until the queue is made of them; `None` too if names are
    /// not read.
    pub(super) panel_routes: Option<Vec<PanelRequest>>,
    pub(super) panels: PanelQueue,
    pub(super) survey: KindSurvey,
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
    /// The limit that it reached: then it is not complete.
    pub limit_reached: Option<LimitReached>,
    /// The switch behind which nearly all is that a limit left out.
    pub culprit: Option<Guid>,
    /// Number of requests.
    pub steps: usize,
    /// Why the local node did not respond to NodeInfo; then nothing was found.
    pub local_error: Option<RequestError>,
}

impl Discovery {
    /// A discovery that begins at the local port. If the M_Keys differ, the key of the local port is found by
    /// its GUID. The neighbors of `skipped` ports are not queried, unless the port's link is not active.
    pub fn new(keys: Arc<MKeys>, local_guid: Option<Guid>, skipped: HashSet<PortKey>) -> Self {
        let target = DiscoveryRequest::Node { from: None, verify: false };
        let steps = vec![Step { route: DirectedRoute::LOCAL, target }];
        Discovery { steps, fast: [0].into(), keys, local_guid, skipped, ..Self::default() }
    }

    /// The same from the local port of each plane of a multi-plane HCA. Planes are connected with each other inside of
    /// switches only: where that connection is broken, no port reaches all.
    #[must_use]
    pub fn from_planes(self, planes: PlaneSet) -> Self {
        if planes.is_empty() {
            return self;
        }
        let target = DiscoveryRequest::Node { from: None, verify: false };
        let step = |plane| Step { route: DirectedRoute::of_plane(plane), target };
        let steps: Vec<Step> = planes.iter().map(step).collect();
        Discovery { fast: (0..steps.len()).collect(), steps, ..self }
    }

    /// The same with other limits than those of a first discovery, which asks nothing behind `cut` switches.
    #[must_use]
    pub fn limited(self, limits: DiscoveryLimits, cut: HashSet<Guid>) -> Self {
        Discovery { limits, cut, ..self }
    }

    #[cfg(test)]
    pub(in crate::collect) fn with_limit(limit: usize) -> Self {
        let limits = DiscoveryLimits { steps: limit, ..DiscoveryLimits::default() };
        Self::new(Arc::default(), None, HashSet::new()).limited(limits, HashSet::new())
    }

    /// The result, after the run.
    pub fn finish(mut self) -> DiscoveryResult {
        self.abandon_rest();
        let steps = self.steps.len();
        let Discovery { linked, mut without_neighbor, mut result, front_panels, survey, .. } = self;
        // A neighbor that was found from the other side is known, whether or not it responded here.
        for ends in [&mut without_neighbor, &mut result.unanswered, &mut result.skipped] {
            ends.retain(|end| !linked.contains_key(end));
        }
        result.failures += without_neighbor.len() as u64;
        (result.limit_reached, result.steps) = (self.reached, steps);
        let fabric = &mut result.fabric;
        if !fabric.plane_roots.is_empty() {
            // Another plane's local port responded.
            result.local_error = None;
        }
        fabric.unreached.append(&mut without_neighbor);
        fabric.nodes = self.nodes.into_iter().map(|draft| draft.found).collect();
        let links = linked.into_iter().filter(|(end, cable)| *end == cable.near);
        fabric.links = links.map(|(near, cable)| (near, cable.far)).collect();
        fabric.is_cut_off = result.local_error.is_some();
        fabric.front_panels = front_panels;
        (fabric.kind, fabric.kind_backoff) = (survey.kind(), survey.backoff());
        result
    }

    pub(super) fn query(&mut self, route: DirectedRoute, target: DiscoveryRequest) {
        let step = Step { route, target };
        let index = self.steps.len();
        if index >= self.limits.steps {
            self.abandon(step);
            return self.overflow(route);
        }
        self.steps.push(step);
        if self.is_slow(&step) { self.slow.push_back(index) } else { self.fast.push_back(index) }
    }

    pub(super) fn overflow(&mut self, route: DirectedRoute) {
        if self.reached.is_none() {
            self.reached = Some(LimitReached::Steps);
            let limit = self.limits.steps;
            let gap = format!(
                "discovery stopped after {limit} requests, many times what it took last time: a device probably \
                 reports neighbors that do not exist"
            );
            self.gap(route, gap);
        }
        self.result.failures += 1;
    }

    /// Asks nothing behind a switch: what is known there stays.
    pub(super) fn cut_off(&mut self, node: usize, route: DirectedRoute) {
        let draft = &self.nodes[node];
        let guid = draft.found.identity.guid;
        let ends = (1..=draft.found.identity.port_count).map(|port| draft.end(port));
        self.result.fabric.unreached.extend(ends);
        self.gap(
            route,
            format!("neighbors of node {guid} left out: an earlier discovery did not end there"),
        );
        self.result.failures += 1;
    }

    /// Records what a step would have found as unknown.
    fn abandon(&mut self, step: Step) {
        if let Some(node) = step.node() {
            *self.left_out.entry(node).or_default() += 1;
        }
        match step.target {
            DiscoveryRequest::Node { from: Some((node, port)), .. } => {
                self.without_neighbor.push(self.nodes[node].end(port));
            }
            DiscoveryRequest::Port { node, port } => {
                self.result.failures += 1;
                self.result.fabric.unreached.push(self.nodes[node].end(port));
            }
            DiscoveryRequest::Capabilities { .. } => {}
            _ => self.result.failures += 1,
        }
    }

    /// Ends what the time was not enough for, and names the node behind which it is.
    fn abandon_rest(&mut self) {
        if self.reached.is_none() {
            return;
        }
        for node in 0..self.nodes.len() {
            // Ports of switches whose port 0 has not responded.
            let fields = SpeedFields { extended: true, extended2: true };
            if self.nodes[node].early.is_some() {
                self.set_speed_fields(self.nodes[node].route, node, fields);
            }
        }
        let sent = std::mem::take(&mut self.sent).into_keys();
        let (fast, slow) = (std::mem::take(&mut self.fast), std::mem::take(&mut self.slow));
        let mut rest: Vec<usize> = sent.chain(fast).chain(slow).collect();
        rest.sort_unstable();
        for index in rest {
            self.abandon(self.steps[index]);
        }
        self.result.culprit = self.culprit();
        if self.reached == Some(LimitReached::Time) {
            let place = self
                .result
                .culprit
                .map_or_else(String::new, |guid| format!(", nearly all of it behind node {guid}"));
            let gap = format!(
                "discovery stopped after {:?}: part of the fabric was not asked{place}",
                self.limits.time
            );
            self.gap(DirectedRoute::LOCAL, gap);
        }
    }

    /// Records a gap. The monitor decides what to log.
    pub(super) fn gap(&mut self, route: DirectedRoute, gap: String) {
        tracing::debug!(path = ?route, "{gap}");
        if self.result.gaps.len() < MAX_GAPS {
            self.result.gaps.push(gap);
        }
    }
}
