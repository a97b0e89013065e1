//! The model of an InfiniBand fabric, and the collectors that read it.
//!
//! A [`Fabric`] has nodes, ports and links. [`Fabric::assemble`] builds it from the result of a
//! discovery and the previous fabric, so that nodes and links that are gone are remembered for a while.
//! [`change::diff`] compares two fabrics. A [`Snapshot`] has the readings of one sweep.
//!
//! The collectors in [`collect`] are query plans of `ib_umad`: [`collect::discovery::Discovery`] finds
//! the fabric by directed routes, and [`collect::sweep::Sweep`] reads port states, counters and subnet
//! managers by LID.
//!
//! ```
//! use ib_fabric::Fabric;
//! use ib_fabric::assembly::{DiscoveredFabric, DiscoveredNode};
//! use ib_fabric::names::NodeNameMap;
//! use ib_mad::port_state::SpeedFields;
//! use ib_mad::{Guid, Moment, NodeIdentity, NodeKind};
//!
//! let node = |guid, kind, port_count| DiscoveredNode {
//!     identity: NodeIdentity {
//!         guid: Guid(guid),
//!         system_guid: Guid(guid),
//!         kind,
//!         description: format!("node-{guid}"),
//!         vendor_id: 0x2c9,
//!         device_id: 0,
//!         port_count,
//!         enhanced_port0: false,
//!         speed_fields: SpeedFields::default(),
//!         reports_fec: false,
//!     },
//!     ports: Vec::new(),
//! };
//! let discovered = DiscoveredFabric {
//!     nodes: vec![node(1, NodeKind::Switch, 4), node(2, NodeKind::Ca, 1)],
//!     links: vec![((Guid(1), 3), (Guid(2), 1))],
//!     ..DiscoveredFabric::default()
//! };
//! let fabric = Fabric::assemble(discovered, &NodeNameMap::default(), Moment::default(), None);
//! let port = fabric.find((Guid(2), 1)).unwrap();
//! assert_eq!(fabric.node_of(port).name, "node-2");
//! let link = fabric.link_id(port).unwrap();
//! assert_eq!(link.to_string(), "0x0000000000000001:3-0x0000000000000002:1");
//! ```

#[cfg(test)]
extern crate self as ib_fabric; // for the helpers that unit tests share with `tests/simulated`

pub mod assembly;
pub mod change;
pub mod collect;
pub mod names;
pub mod snapshot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod topology;

pub use snapshot::Snapshot;
pub use topology::{Fabric, Node, NodeIndex, Port, PortIndex};
