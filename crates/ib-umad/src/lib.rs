#![doc = include_str!("../README.md")]

pub mod capture;
pub mod client;
mod heartbeat;
pub mod plan;
mod plane_set;
mod request;
pub mod stats;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transport;
pub mod umad;

pub use heartbeat::Heartbeat;
pub use plane_set::PlaneSet;
pub use request::{Address, GlobalRoute, QueuePair, Request, RequestError};
pub use transport::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};
