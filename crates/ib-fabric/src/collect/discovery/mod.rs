//! Discovery of a fabric by directed routes from the local port.
//!
//! Of each node NodeInfo, NodeDescription and PortInfo are read, and through each linked port of a
//! switch those of its neighbor. HCAs and routers do not forward, so the discovery ends there; the
//! local one is the exception, because it begins there. With a multi-plane HCA it begins at the port of each plane, and
//! what several of them lead to is asked once.

mod cables;
mod cut;
mod draft;
mod front_panels;
mod kind;
mod kind_survey;
mod limits;
mod panel_queue;
mod request;
mod state;

use std::collections::HashSet;
use std::time::Duration;

use ib_mad::node::{NodeIdentity, NodeKind};
use ib_mad::port_info::{MellanoxExtendedPortInfo, PortInfo};
use ib_mad::port_state::{PortState, PortStatus, SpeedFields};
use ib_mad::rate::Speed;
use ib_mad::smp::{self, NodeInfo, SwitchInfo};
use ib_mad::vendor_smp::SmpCapabilities;
use ib_umad::plan::QueryPlan;
use ib_umad::{Address, QueuePair, Request};

use super::Outcome;
use crate::assembly::{DiscoveredNode, DiscoveredPort};
use crate::routes::PlaneRoot;
use draft::{Cable, DiscoveryRequest, DraftPort, NodeDraft, same_device};
use ib_mad::{DirectedRoute, Guid, Moment, PortKey, PortNumber, device};
pub use limits::{DiscoveryLimits, LimitReached};
pub use state::{Discovery, DiscoveryResult};

/// A node that takes longer to respond waits for the others. An agent in firmware takes 50 µs; one that times out and
/// responds to the second try is slow, too.
const SLOW: Duration = Duration::from_millis(100);

impl Discovery {
    fn handle_node(
        &mut self,
        route: DirectedRoute,
        from: Option<DraftPort>,
        info: NodeInfo,
        took: Duration,
    ) {
        let Some(identity) = info.identity() else {
            let (guid, kind) = (info.node_guid, info.node_type);
            self.gap(route, format!("node {guid} has unknown node type {kind}: ignored"));
            self.result.failures += 1;
            return;
        };
        let node = match self.by_guid.get(&info.node_guid) {
            Some(&node) if !same_device(&self.nodes[node].info, &info) => {
                let behind = from.map(|(from, port)| self.nodes[from].end(port));
                return self.leave_out(info.node_guid, behind);
            }
            Some(&node) => node,
            None if self.ports + usize::from(identity.port_count) > self.limits.steps => {
                self.without_neighbor.extend(from.map(|(from, port)| self.nodes[from].end(port)));
                return self.overflow(route);
            }
            None => {
                let parent = from.map(|(from, _)| from);
                let is_slow =
                    took > SLOW || parent.is_some_and(|parent| self.nodes[parent].is_slow);
                self.add_node((route, parent, is_slow), info, identity)
            }
        };
        // Ports of a CA or router are found one by one, by their own routes.
        let draft = &mut self.nodes[node];
        if from.is_none() {
            let port = draft.end(if draft.is_switch() { 0 } else { info.local_port });
            let (found, plane) = (&mut self.result.fabric, route.plane());
            // Whichever responds first.
            if found.plane_roots.iter().all(|root| plane < root.plane) {
                found.local_port = Some(port);
            }
            found.plane_roots.push(PlaneRoot { plane, port });
        }
        if !draft.is_switch() && !draft.queried.contains(&info.local_port) {
            let (number, guid) = (info.local_port, info.port_guid);
            draft.found.ports.push(DiscoveredPort { number, guid, status: None, role: None });
            self.query_port(node, info.local_port, route);
        }
        if let Some((from, port)) = from {
            self.hosts_found += usize::from(!self.nodes[node].is_switch());
            let near = self.nodes[from].end(port);
            let far = PortKey::new(info.node_guid, info.local_port);
            self.join(Cable { near, far, route });
        }
    }

    fn add_node(
        &mut self,
        (route, parent, is_slow): (DirectedRoute, Option<usize>, bool),
        info: NodeInfo,
        identity: NodeIdentity,
    ) -> usize {
        let node = self.nodes.len();
        let (is_switch, port_count) = (identity.kind == NodeKind::Switch, identity.port_count);
        self.ports += usize::from(port_count);
        self.by_guid.insert(info.node_guid, node);
        self.nodes.push(NodeDraft {
            info,
            route,
            parent,
            is_slow,
            found: DiscoveredNode { identity, ports: Vec::new() },
            queried: HashSet::new(),
            early: is_switch.then(Vec::new),
        });
        self.query(route, DiscoveryRequest::Description { node });
        if is_switch {
            self.query(route, DiscoveryRequest::Switch { node });
            let is_cut = self.cut.contains(&info.node_guid);
            for port in 0..=if is_cut { 0 } else { port_count } {
                self.query_port(node, port, route);
            }
            if is_cut {
                self.cut_off(node, route);
            }
        }
        node
    }

    fn query_port(&mut self, node: usize, port: PortNumber, route: DirectedRoute) {
        if self.nodes[node].queried.insert(port) {
            self.query(route, DiscoveryRequest::Port { node, port });
        }
    }

    fn handle_port(&mut self, route: DirectedRoute, node: usize, port: PortNumber, info: PortInfo) {
        let draft = &mut self.nodes[node];
        if self.result.fabric.local_port == Some(draft.end(port)) {
            // Without the M_Key, a secret.
            self.result.local_port_info = Some(PortInfo { m_key: 0, ..info });
        }
        if !draft.is_switch() || port == 0 {
            draft.found.identity.reports_fec |= info.reports_fec();
            self.note_announcement(route, (node, port), &info);
            if port == 0 {
                self.ask_kind(route, node, &info);
            }
            self.set_status(route, (node, port), info.status(info.speed_fields()));
            if self.nodes[node].is_switch() {
                self.set_speed_fields(route, node, info.speed_fields());
            }
        } else if let Some(early) = &mut draft.early {
            early.push((port, info));
        } else {
            let status = info.status(draft.found.identity.speed_fields);
            self.set_status(route, (node, port), status);
        }
    }

    pub(super) fn set_speed_fields(
        &mut self,
        route: DirectedRoute,
        node: usize,
        fields: SpeedFields,
    ) {
        let draft = &mut self.nodes[node];
        draft.found.identity.speed_fields = fields;
        for (port, info) in draft.early.take().unwrap_or_default() {
            self.set_status(route, (node, port), info.status(fields));
        }
    }

    /// Records the state of a port, and queries its neighbor.
    fn set_status(&mut self, route: DirectedRoute, (node, port): DraftPort, status: PortStatus) {
        let draft = &mut self.nodes[node];
        let end = draft.end(port);
        match draft.found.ports.iter_mut().find(|found| found.number == port) {
            Some(found) => found.status = Some(status),
            None => draft.found.ports.push(DiscoveredPort {
                number: port,
                guid: if port == 0 { draft.info.port_guid } else { Guid::default() },
                status: Some(status),
                role: None,
            }),
        }
        if !status.link_up() {
            return self.check_entry_port(end);
        }
        let leads_on = if draft.is_switch() { port != 0 } else { route.hops() == 0 };
        let known = self.linked.contains_key(&end);
        // Of known devices only multi-plane switches have internal ports with links.
        let is_multi_plane = draft.is_switch() && draft.info.device_id == device::QUANTUM_3;
        let may_be_fdr10 = status.speed == Some(Speed::Qdr);
        if device::is_mellanox(draft.info.vendor_id)
            && (may_be_fdr10 || is_multi_plane && port != 0)
        {
            self.query(route, DiscoveryRequest::Extended { node, port });
        }
        if leads_on && !known && status.state == PortState::Active && self.skipped.contains(&end) {
            self.skip(end);
        } else if leads_on && !known {
            let neighbor = DiscoveryRequest::Node { from: Some((node, port)), verify: false };
            match route.then(port) {
                Some(route) => self.query(route, neighbor),
                None => self.result.failures += 1,
            }
        }
    }
}

impl QueryPlan for Discovery {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        if qp != QueuePair::Qp0 {
            return None;
        }
        if self.is_over() {
            return None;
        }
        while let Some(index) = self.fast.pop_front().or_else(|| self.slow.pop_front()) {
            let step = self.steps[index];
            let tag = index as u64;
            // Meanwhile the far end may have been found from its other side.
            if let DiscoveryRequest::Node { from: Some((node, port)), verify: false } = step.target
            {
                let end = self.nodes[node].end(port);
                if self.linked.contains_key(&end) {
                    continue;
                }
                if self.is_deferred(node, port) {
                    self.skip(end);
                    continue;
                }
            }
            let (to, query) = (Address::Directed(step.route), self.query_of(step.target));
            self.sent.insert(index, self.now);
            return Some((Request { to, query }, tag));
        }
        self.next_front_panel()
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Outcome<'_>, at: Moment) {
        if tag & front_panels::TAG != 0 {
            self.now = at;
            return self.handle_front_panel((tag & !front_panels::TAG) as usize, outcome);
        }
        let Some(&step) = self.steps.get(tag as usize) else { return };
        self.now = at;
        let began = *self.began.get_or_insert(at);
        let sent = self.sent.remove(&(tag as usize)).unwrap_or(at);
        let took = at.since(sent.max(began));
        if at.since(began) > self.limits.time {
            self.reached = Some(LimitReached::Time);
        }
        let mad = match outcome {
            Ok(mad) => mad,
            Err(failure) => return self.handle_failure(step, failure),
        };
        match step.target {
            DiscoveryRequest::Node { from, .. } => {
                self.handle_node(step.route, from, NodeInfo::decode(mad), took);
            }
            DiscoveryRequest::Recheck { conflict } => {
                self.handle_recheck(conflict, Some(NodeInfo::decode(mad)));
            }
            DiscoveryRequest::RecheckPort { conflict } => {
                self.handle_recheck_port(step.route, conflict, &PortInfo::decode(mad));
            }
            DiscoveryRequest::Description { node } => {
                let identity = &mut self.nodes[node].found.identity;
                identity.description = smp::decode_node_description(mad);
                let (name, vendor) = (&identity.description, identity.vendor_id);
                if identity.kind == NodeKind::Ca && smp::is_aggregation_node(name, vendor) {
                    identity.kind = NodeKind::AggregationNode;
                }
            }
            DiscoveryRequest::Switch { node } => {
                let info = SwitchInfo::decode(mad);
                let identity = &mut self.nodes[node].found.identity;
                identity.enhanced_port0 = info.enhanced_port0;
                if info.port_state_change {
                    self.result.state_changes.insert(identity.guid);
                }
            }
            DiscoveryRequest::Capabilities { .. } => {
                self.handle_capabilities(SmpCapabilities::decode(mad));
            }
            DiscoveryRequest::Port { node, port } => {
                self.handle_port(step.route, node, port, PortInfo::decode(mad));
            }
            DiscoveryRequest::Extended { node, port } => {
                let NodeDraft { info: node_info, found, .. } = &mut self.nodes[node];
                let info = MellanoxExtendedPortInfo::decode(mad);
                if let Some(found) = found.ports.iter_mut().find(|found| found.number == port) {
                    // The bits are unknown on other devices.
                    found.role = (node_info.device_id == device::QUANTUM_3).then(|| info.role());
                    let qdr = found.status.filter(|status| status.speed == Some(Speed::Qdr));
                    if let Some(status) = qdr.filter(|_| info.is_fdr10()) {
                        found.status = Some(status.at_fdr10());
                    }
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.reached == Some(LimitReached::Time)
    }
}
