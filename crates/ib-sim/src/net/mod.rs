//! A net: nodes and cables as built, before any change.
//!
//! It is read from a [`mod@file`] or generated with one of the [`shapes`].

mod build;
pub mod file;
mod plane_port;
mod planes;
pub mod rates;
pub mod shapes;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod topology;

pub use plane_port::PlanePort;
pub use planes::FNM1_PORT;
pub use topology::{Net, Node, NodeId, Port, PortId};
