//! The model of a fabric as plain values: no I/O, no clock.

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
