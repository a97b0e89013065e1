//! The ground: what a fabric is, as plain values.
//!
//! Nothing here does I/O or reads a clock, and nothing here knows how a value was obtained; every
//! other room of the house imports this one, and this one imports none.

pub mod assembly;
pub mod change;
pub mod collect;
pub mod levels;
pub mod names;
pub mod snapshot;
pub mod subnet;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod topology;
pub mod unique;

pub use snapshot::Snapshot;
pub use topology::{Fabric, Node, NodeIndex, Port, PortIndex};
