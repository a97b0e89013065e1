//! The requests of a discovery: what each asks, and with which M_Key.

use ib_mad::m_key::MKey;
use ib_mad::smp;
use ib_mad::{DirectedRoute, Guid, PortNumber, Query};

use super::Discovery;
use crate::topology::End;

/// A request, its route and purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) route: DirectedRoute,
    pub(super) target: DiscoveryRequest,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum DiscoveryRequest {
    /// NodeInfo. `from` is the port from which the route leaves the known part of the fabric; with `verify`
    /// the other end was found already, but it may be another node with the same GUID.
    Node {
        from: Option<(usize, PortNumber)>,
        verify: bool,
    },
    Description {
        node: usize,
    },
    Switch {
        node: usize,
    },
    Port {
        node: usize,
        port: PortNumber,
    },
    /// Mellanox ExtendedPortInfo: of a port that seems to run at QDR, and of a port that may be internal.
    Extended {
        node: usize,
        port: PortNumber,
    },
    /// NodeInfo again, of the far end of a conflicting link.
    Recheck {
        conflict: usize,
    },
    /// PortInfo again, of a conflicting port without a link.
    RecheckPort {
        conflict: usize,
        port: PortNumber,
    },
}

impl DiscoveryRequest {
    pub(super) fn query(self) -> Query {
        match self {
            DiscoveryRequest::Node { .. } | DiscoveryRequest::Recheck { .. } => smp::node_info(),
            DiscoveryRequest::Description { .. } => smp::node_description(),
            DiscoveryRequest::Switch { .. } => smp::switch_info(),
            DiscoveryRequest::Port { port, .. } | DiscoveryRequest::RecheckPort { port, .. } => {
                smp::port_info(port)
            }
            DiscoveryRequest::Extended { port, .. } => smp::mellanox_extended_port_info(port),
        }
    }
}

impl Discovery {
    /// GUID of a port; the ports of a switch have that of its port 0.
    fn port_guid(&self, node: usize, port: PortNumber) -> Guid {
        let draft = &self.nodes[node];
        let found =
            draft.found.ports.iter().find(|found| found.number == port && !draft.is_switch());
        found.map_or(draft.info.port_guid, |found| found.guid)
    }

    fn key_of(&self, end: Option<End>) -> MKey {
        let known = end.and_then(|(guid, port)| Some((*self.by_guid.get(&guid)?, port)));
        known.map_or(self.keys.common(), |(node, port)| self.keys.get(self.port_guid(node, port)))
    }

    pub(super) fn m_key(&self, target: DiscoveryRequest) -> MKey {
        match target {
            DiscoveryRequest::Node { from: None, .. } => {
                self.local_guid.map_or(self.keys.common(), |guid| self.keys.get(guid))
            }
            DiscoveryRequest::Node { from: Some((node, port)), .. } => {
                self.keys.get_neighbor(self.port_guid(node, port), port)
            }
            DiscoveryRequest::Description { node } | DiscoveryRequest::Switch { node } => {
                self.keys.get(self.nodes[node].info.port_guid)
            }
            DiscoveryRequest::Port { node, port } | DiscoveryRequest::Extended { node, port } => {
                self.keys.get(self.port_guid(node, port))
            }
            DiscoveryRequest::Recheck { conflict } => {
                self.key_of(self.links[self.conflicts[conflict].old].map(|cable| cable.far))
            }
            DiscoveryRequest::RecheckPort { conflict, .. } => {
                self.key_of(Some(self.conflicts[conflict].end))
            }
        }
    }
}
