//! Small fabrics for tests.

use crate::assembly::{FoundFabric, FoundNode, FoundPort};
use crate::names::NodeNames;
use crate::topology::{End, Fabric};
use ib_mad::port_state::SpeedFields;
use ib_mad::port_state::testing::up;
use ib_mad::{Guid, Moment, NodeIdentity, NodeKind};

/// A found node for tests, with all its ports up.
pub fn found(guid: u64, kind: NodeKind, ports: u8) -> FoundNode {
    let first = u8::from(kind != NodeKind::Switch);
    FoundNode {
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
            tells_fec: false,
        },
        ports: (first..=ports)
            .map(|number| FoundPort {
                number,
                guid: Guid(guid << 8 | u64::from(number)),
                status: Some(up(guid as u16)),
                role: None,
            })
            .collect(),
    }
}

pub fn end(guid: u64, port: u8) -> End {
    (Guid(guid), port)
}

pub fn fabric(
    found: Vec<FoundNode>,
    links: &[(End, End)],
    previous: Option<(&Fabric, Moment)>,
) -> Fabric {
    let found = FoundFabric { nodes: found, links: links.to_vec(), ..FoundFabric::default() };
    Fabric::assemble(found, &NodeNames::default(), Moment(10), previous)
}
