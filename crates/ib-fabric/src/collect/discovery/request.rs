//! The requests of a discovery: their attributes and M_Keys, and the meaning of a missing response.

use ib_mad::m_key::MKey;
use ib_mad::port_state::{PortState, SpeedFields};
use ib_mad::vendor_smp::SmpCapabilities;
use ib_umad::RequestError;

use super::draft::{DiscoveryRequest, Step};
use super::state::Discovery;
use ib_mad::{DirectedRoute, Guid, PortKey, PortNumber, Query, smp};

/// Number of unresponsive neighbors in one discovery after which the others are deferred to later ones, if
/// they outnumber the hosts that respond: 5,000 hosts that refuse would otherwise get 15,000 SMPs at once,
/// and delay the sweeps for minutes. Switches do not count: they respond while all hosts refuse.
const MAX_SILENT: usize = 128;

impl Discovery {
    /// GUID of a port; the ports of a switch have that of its port 0.
    pub(super) fn port_guid(&self, node: usize, port: PortNumber) -> Guid {
        let draft = &self.nodes[node];
        let own = draft.port(port).filter(|_| !draft.is_switch());
        own.map_or(draft.info.port_guid, |found| found.guid)
    }

    fn key_of(&self, PortKey { guid, number: port }: PortKey) -> MKey {
        let known = self.by_guid.get(&guid);
        known.map_or(self.keys.common, |node| self.keys.get(self.port_guid(*node, port)))
    }

    /// The query of a request, with the M_Key of its receiver.
    pub(super) fn query_of(&self, target: DiscoveryRequest) -> Query {
        let node_key = |node: usize| self.keys.get(self.nodes[node].info.port_guid);
        let port_key = |node, port| self.keys.get(self.port_guid(node, port));
        let (query, key) = match target {
            DiscoveryRequest::Node { from: None, .. } => {
                let key = self.local_guid.map_or(self.keys.common, |guid| self.keys.get(guid));
                (smp::node_info(), key)
            }
            DiscoveryRequest::Node { from: Some((node, port)), .. } => {
                (smp::node_info(), self.keys.get_neighbor(self.port_guid(node, port), port))
            }
            DiscoveryRequest::Description { node } => (smp::node_description(), node_key(node)),
            DiscoveryRequest::Switch { node } => (smp::switch_info(), node_key(node)),
            DiscoveryRequest::Capabilities { node } => (SmpCapabilities::query(), node_key(node)),
            DiscoveryRequest::Port { node, port } => (smp::port_info(port), port_key(node, port)),
            DiscoveryRequest::Extended { node, port } => {
                (smp::mellanox_extended_port_info(port), port_key(node, port))
            }
            DiscoveryRequest::Recheck { conflict } => {
                let old = self.conflicts[conflict].old;
                // On the route of a link that was removed meanwhile may be any node.
                let key =
                    if self.is_linked(&old) { self.key_of(old.far) } else { self.keys.common };
                (smp::node_info(), key)
            }
            DiscoveryRequest::RecheckPort { conflict } => {
                let end = self.conflicts[conflict].end;
                (smp::port_info(end.number), self.key_of(end))
            }
        };
        query.with_m_key(key)
    }

    /// Skips the neighbor of a port in this discovery.
    pub(super) fn skip(&mut self, end: PortKey) {
        self.without_neighbor.push(end);
        self.result.skipped.push(end);
    }

    /// Whether most hosts do not respond, and the neighbor of this port can be deferred. If the link is
    /// not active, the neighbor is not configured yet and may be any node.
    pub(super) fn is_deferred(&self, node: usize, port: PortNumber) -> bool {
        let silent = self.result.unanswered.len();
        let status = self.nodes[node].port(port).and_then(|found| found.status);
        silent >= MAX_SILENT
            && silent > self.hosts_found
            && status.is_some_and(|status| status.state == PortState::Active)
    }

    pub(super) fn handle_failure(&mut self, step: Step, failure: RequestError) {
        match step.target {
            // Many devices do not support Mellanox ExtendedPortInfo, with various errors.
            DiscoveryRequest::Extended { .. }
            | DiscoveryRequest::RecheckPort { .. }
            | DiscoveryRequest::Node { verify: true, .. } => {}
            DiscoveryRequest::Capabilities { .. } => self.handle_no_capabilities(failure),
            // No response: the node is not there any more.
            DiscoveryRequest::Recheck { conflict } => self.handle_recheck(conflict, None),
            // Counted at the end: it may be found from its other side.
            DiscoveryRequest::Node { from: Some((node, port)), .. } => {
                let end = self.nodes[node].end(port);
                tracing::debug!(
                    node = %end.guid, port, path = ?step.route, %failure,
                    "neighbor did not respond to NodeInfo"
                );
                self.without_neighbor.push(end);
                if failure.is_no_response() {
                    self.result.unanswered.push(end);
                }
            }
            DiscoveryRequest::Node { from: None, .. } => {
                self.result.failures += 1;
                self.result.local_error = Some(failure);
                if step.route.plane() > 0 {
                    let plane = step.route.plane();
                    let gap = format!("no discovery from plane {plane}: its local port: {failure}");
                    self.gap(step.route, gap);
                }
            }
            DiscoveryRequest::Description { node } => {
                self.fail(step.route, node, "NodeDescription", failure);
            }
            DiscoveryRequest::Switch { node } => self.fail(step.route, node, "SwitchInfo", failure),
            DiscoveryRequest::Port { node, port } => {
                self.fail(step.route, node, &format!("PortInfo of port {port}"), failure);
                // Whether it has a link, and to which node, is unknown.
                self.result.fabric.unreached.push(self.nodes[node].end(port));
                // The other ports must not wait forever; old switches have reserved bits instead of these
                // speed fields, which read 0.
                if port == 0 {
                    let fields = SpeedFields { extended: true, extended2: true };
                    self.set_speed_fields(step.route, node, fields);
                }
            }
        }
    }

    fn fail(&mut self, route: DirectedRoute, node: usize, attribute: &str, failure: RequestError) {
        self.result.failures += 1;
        let guid = self.nodes[node].found.identity.guid;
        self.gap(route, format!("cannot read {attribute} of node {guid}: {failure}"));
    }
}
