//! Small fabrics for tests.

use crate::assembly::{DiscoveredFabric, DiscoveredNode, DiscoveredPort};
use crate::names::Naming;
use crate::topology::Fabric;
use ib_mad::port_state::SpeedFields;
use ib_mad::port_state::testing::up;
use ib_mad::{Guid, Moment, NodeIdentity, NodeKind, PortKey};

/// A discovered node with all ports up.
pub fn found(guid: u64, kind: NodeKind, ports: u8) -> DiscoveredNode {
    let first = u8::from(kind != NodeKind::Switch);
    DiscoveredNode {
        identity: NodeIdentity {
            guid: Guid(guid),
            system_guid: Guid(guid),
            kind,
            description: format!("node {guid}"),
            vendor_id: 0x2c9,
            device_id: 1,
            port_count: ports,
            enhanced_port0: false,
            speed_fields: SpeedFields::default(),
            reports_fec: false,
        },
        ports: (first..=ports)
            .map(|number| DiscoveredPort {
                number,
                guid: Guid(guid << 8 | u64::from(number)),
                status: Some(up(guid as u16)),
                role: None,
            })
            .collect(),
    }
}

/// A link end.
pub fn end(guid: u64, port: u8) -> PortKey {
    PortKey::new(Guid(guid), port)
}

/// A fabric of these nodes and links, discovered at moment 10.
pub fn fabric(
    found: Vec<DiscoveredNode>,
    links: &[(PortKey, PortKey)],
    previous: Option<(&Fabric, Moment)>,
) -> Fabric {
    let found =
        DiscoveredFabric { nodes: found, links: links.to_vec(), ..DiscoveredFabric::default() };
    Fabric::assemble(found, &Naming::default(), Moment(10), previous)
}
