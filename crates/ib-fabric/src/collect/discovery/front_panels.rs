//! Front-panel names: the last part of a discovery, if it is [asked for](Discovery::with_front_panels).

use ib_mad::hierarchy::HierarchyInfo;
use ib_mad::node::NodeKind;
use ib_mad::port_info::PortInfo;
use ib_mad::{DirectedRoute, FrontPanel, PortNumber, Query};
use ib_umad::{Address, Request, RequestError};

use super::draft::NodeDraft;
use super::panel_queue::{PanelQueue, PanelRequest};
use super::state::Discovery;
use crate::collect::{Outcome, is_unsupported};
use crate::hardware::Hardware;
use crate::topology::{Fabric, Presence};

/// Tags of these requests have this bit.
pub(super) const TAG: u64 = 1 << 63;

impl Discovery {
    /// The same discovery, which reads front-panel names, too: of ports that announce HierarchyInfo and whose names the
    /// previous fabric does not have. Names of nodes that were absent, or have other firmware than before, are read
    /// again.
    #[must_use]
    pub fn with_front_panels(self, previous: Option<&Fabric>, hardware: Option<&Hardware>) -> Self {
        let mut known = previous.map_or_else(Default::default, |it| (*it.front_panels).clone());
        known.on_discovery();
        for node in previous.iter().flat_map(|fabric| &*fabric.nodes) {
            if node.presence != Presence::Found {
                known.expire(node.identity.guid);
            }
        }
        for (guid, device) in hardware.iter().flat_map(|hardware| &hardware.nodes) {
            if let Some(version) = device.general.and_then(|read| read.value.firmware_version()) {
                known.on_firmware(*guid, version);
            }
        }
        Discovery { front_panels: known, panel_routes: Some(Vec::new()), ..self }
    }

    /// Port 0 of a switch, or a port of an end node, has responded: remembers what to ask.
    pub(super) fn note_announcement(
        &mut self,
        route: DirectedRoute,
        (node, port): (usize, PortNumber),
        info: &PortInfo,
    ) {
        if let Some(routes) = self.panel_routes.as_mut().filter(|_| info.has_hierarchy_info()) {
            routes.push(PanelRequest { node, port, route });
        }
    }

    /// The ports to ask: all external ones of switches that announce it, and end ports that do. Those behind slow
    /// nodes come last.
    fn panel_requests(&mut self) -> Vec<PanelRequest> {
        let announced = self.panel_routes.take().unwrap_or_default();
        let nodes = &self.nodes;
        let identity = |at: &PanelRequest| &nodes[at.node].found.identity;
        // An aggregation node is inside its switch.
        let is_external = |at: &PanelRequest| identity(at).kind != NodeKind::AggregationNode;
        let of_announcement = |at: PanelRequest| {
            let is_switch = identity(&at).kind == NodeKind::Switch;
            let ports = if is_switch { 1..=identity(&at).port_count } else { at.port..=at.port };
            ports.map(move |port| PanelRequest { port, ..at })
        };
        let is_due = |at: &PanelRequest| self.front_panels.is_due(nodes[at.node].end(at.port));
        let mut due: Vec<PanelRequest> = announced
            .into_iter()
            .filter(is_external)
            .flat_map(of_announcement)
            .filter(is_due)
            .collect();
        due.sort_by_key(|at| nodes[at.node].is_slow);
        due
    }

    /// The next request, once nothing else is open.
    pub(super) fn next_front_panel(&mut self) -> Option<(Request, u64)> {
        if !self.sent.is_empty() || self.reached.is_some() {
            return None;
        }
        if self.panel_routes.is_some() {
            let requests = self.panel_requests();
            self.panels = PanelQueue::new(requests.into_iter());
        }
        let (request, index) = self.panels.pop()?;
        let query = self.panel_query(request.node, request.port);
        let to = Address::Directed(request.route);
        Some((Request { to, query }, TAG | index as u64))
    }

    fn panel_query(&self, node: usize, port: PortNumber) -> Query {
        // End nodes respond for the port that receives the request.
        let number = if self.nodes[node].is_switch() { port } else { 0 };
        HierarchyInfo::query(number, 0).with_m_key(self.keys.get(self.port_guid(node, port)))
    }

    /// Handles the outcome of such a request. None of them is a gap.
    pub(super) fn handle_front_panel(&mut self, index: usize, outcome: Outcome<'_>) {
        let Some(PanelRequest { node, port, .. }) = self.panels.get(index) else { return };
        let draft: &NodeDraft = &self.nodes[node];
        let (end, kind) = (draft.end(port), draft.found.identity.kind);
        match outcome {
            Ok(mad) => {
                let panel = FrontPanel::new(&HierarchyInfo::decode(mad), kind);
                self.front_panels.insert(end, panel);
                self.panels.on_response(node);
            }
            Err(failure) if is_unsupported(failure) => {
                self.front_panels.refuse(end.guid);
                self.panels.give_up(node);
            }
            Err(failure) if failure.is_no_response() => {
                if self.panels.on_silence(node) {
                    self.front_panels.lose(end.guid);
                }
            }
            // A port that has none.
            Err(RequestError::Status(_)) => {
                self.front_panels.insert(end, None);
                self.panels.on_response(node);
            }
            // It is asked again in another discovery.
            Err(_) => {}
        }
        if self.began.is_some_and(|began| self.now.since(began) > self.limits.time) {
            self.panels.clear();
        }
    }
}
