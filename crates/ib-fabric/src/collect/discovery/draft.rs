//! What a discovery has found so far: nodes, links and contradictions; and its requests.

use std::collections::HashSet;

use ib_mad::node::NodeKind;
use ib_mad::port_info::PortInfo;
use ib_mad::port_state::{PhysicalState, PortStatus};
use ib_mad::smp::NodeInfo;
use ib_mad::{DirectedRoute, PortKey, PortNumber};

use crate::assembly::{DiscoveredNode, DiscoveredPort};

/// A node, as far as it is known.
#[derive(Debug)]
pub(super) struct NodeDraft {
    pub(super) info: NodeInfo,
    /// The route on which it was found first, and is queried.
    pub(super) route: DirectedRoute,
    /// The node through which it was found.
    pub(super) parent: Option<usize>,
    /// It responds slowly, or is behind such a node.
    pub(super) is_slow: bool,
    pub(super) found: DiscoveredNode,
    pub(super) queried: HashSet<PortNumber>,
    /// Ports of a switch that responded before its port 0, from which the valid speed fields are known; `None` once
    /// that responded or failed.
    pub(super) early: Option<Vec<(PortNumber, PortInfo)>>,
}

/// A port of a node, by the node's index.
pub(super) type DraftPort = (usize, PortNumber);

impl NodeDraft {
    pub(super) fn is_switch(&self) -> bool {
        self.found.identity.kind == NodeKind::Switch
    }

    pub(super) fn end(&self, port: PortNumber) -> PortKey {
        PortKey::new(self.found.identity.guid, port)
    }

    pub(super) fn port(&self, port: PortNumber) -> Option<&DiscoveredPort> {
        self.found.ports.iter().find(|found| found.number == port)
    }
}

/// A link: the request that left `near` on this route was answered by `far`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cable {
    pub(super) near: PortKey,
    pub(super) far: PortKey,
    pub(super) route: DirectedRoute,
}

impl Cable {
    pub(super) fn is_same(&self, other: &Cable) -> bool {
        (self.near, self.far) == (other.near, other.far)
            || (self.near, self.far) == (other.far, other.near)
    }

    pub(super) fn other_end(&self, end: PortKey) -> PortKey {
        if self.near == end { self.far } else { self.near }
    }
}

/// A port with two links, or with one although it is down: a moved cable, or two nodes with one GUID.
#[derive(Clone, Copy, Debug)]
pub(super) struct CableConflict {
    pub(super) end: PortKey,
    pub(super) old: Cable,
    pub(super) new: Option<Cable>,
}

/// Whether two NodeInfos can be of one node: the fields that do not depend on the entry port are equal.
pub(super) fn same_device(one: &NodeInfo, other: &NodeInfo) -> bool {
    let node_fields = |info: &NodeInfo| {
        (info.node_type, info.port_count, info.vendor_id, info.device_id, info.system_guid)
    };
    node_fields(one) == node_fields(other)
}

/// Whether nothing can enter by a port: it sleeps, polls or is disabled.
pub(super) fn is_down(status: &PortStatus) -> bool {
    matches!(
        status.physical_state,
        PhysicalState::Sleep | PhysicalState::Polling | PhysicalState::Disabled
    )
}

/// A request, and the route that it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) route: DirectedRoute,
    pub(super) target: DiscoveryRequest,
}

impl Step {
    /// The node that it is about, or beyond which it leads.
    pub(super) fn node(&self) -> Option<usize> {
        match self.target {
            DiscoveryRequest::Node { from, .. } => from.map(|(node, _)| node),
            DiscoveryRequest::Description { node }
            | DiscoveryRequest::Switch { node }
            | DiscoveryRequest::Capabilities { node }
            | DiscoveryRequest::Port { node, .. }
            | DiscoveryRequest::Extended { node, .. } => Some(node),
            DiscoveryRequest::Recheck { .. } | DiscoveryRequest::RecheckPort { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum DiscoveryRequest {
    // NodeInfo. `from` is the port from which the route leaves the known part of the fabric; with `verify`
    // the other end was found already, but it may be another node with the same GUID.
    Node { from: Option<DraftPort>, verify: bool },
    Description { node: usize },
    Switch { node: usize },
    // GeneralInfo of subnet management, of a switch.
    Capabilities { node: usize },
    Port { node: usize, port: PortNumber },
    // Mellanox ExtendedPortInfo: of a port that seems to run at QDR, and of a port that may be internal.
    Extended { node: usize, port: PortNumber },
    // NodeInfo again, of the far end of a conflicting link.
    Recheck { conflict: usize },
    // PortInfo again, of a conflicting port without a link.
    RecheckPort { conflict: usize },
}
