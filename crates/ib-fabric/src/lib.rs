#![doc = include_str!("../README.md")]

#[cfg(test)]
extern crate self as ib_fabric; // for the helpers that unit tests share with `tests/simulated`

pub mod assembly;
pub mod change;
pub mod collect;
pub mod hardware;
pub mod hosts;
pub mod index;
pub mod names;
pub mod node_name_map;
pub mod reference;
pub mod snapshot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod topology;
mod unique_names;

pub use index::{NodeIndex, NodeMap, PortIndex, PortMap};
pub use snapshot::Snapshot;
pub use topology::{Fabric, Node, Port};
