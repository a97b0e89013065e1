//! The model of a fabric as plain values: no I/O, no clock.

pub mod assembly;
pub mod change;
pub mod collect;
pub mod levels;
pub mod names;
pub mod snapshot;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod topology;
pub mod unique;

pub use snapshot::Snapshot;
pub use topology::{Fabric, Node, NodeIndex, Port, PortIndex};
