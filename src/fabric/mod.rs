//! The ground: what a fabric is, as plain values.
//!
//! Nothing here does I/O or reads a clock, and nothing here knows how a value was obtained; every
//! other room of the house imports this one, and this one imports none.

pub mod assembly;
pub mod change;
pub mod counter;
pub mod device;
pub mod fec;
pub mod host;
pub mod ids;
pub mod label;
pub mod levels;
pub mod moment;
pub mod names;
pub mod rate;
pub mod reading;
pub mod snapshot;
pub mod status;
pub mod subnet;
pub mod topology;
pub mod unique;

pub use counter::Counter;
pub use ids::{Guid, Lid, PortNumber};
pub use moment::Moment;
pub use reading::Reading;
pub use snapshot::Snapshot;
pub use topology::{Fabric, Node, NodeIndex, Port, PortIndex};
