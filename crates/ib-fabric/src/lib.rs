#![doc = include_str!("../README.md")]

#[cfg(test)]
extern crate self as ib_fabric; // for the helpers that unit tests share with `tests/simulated`

pub mod aggregated_links;
pub mod assembly;
mod backoff;
pub mod change;
pub mod collect;
pub mod fabric_kind;
mod fnm_rings;
pub mod forwarding;
pub mod front_panels;
pub mod hardware;
pub mod host_names;
pub mod hosts;
pub mod index;
mod link;
pub mod names;
pub mod node_name_map;
mod plane_search;
pub mod rails;
pub mod reference;
pub mod ring_gap;
mod route_search;
pub mod routes;
pub mod snapshot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod topology;
mod unique_names;

pub use index::{NodeIndex, NodeMap, PortIndex, PortMap};
pub use snapshot::Snapshot;
pub use topology::{Fabric, Node, Port};
