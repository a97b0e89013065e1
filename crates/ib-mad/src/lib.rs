#![doc = include_str!("../README.md")]

pub mod class_port_info;
pub mod clear;
pub mod counter;
pub mod fec;
pub mod forwarding_table;
pub mod front_panel;
pub mod hierarchy;
pub mod ids;
pub mod layout;
pub mod m_key;
pub mod mad;
pub mod moment;
pub mod node;
pub mod p_key;
pub mod pma;
pub mod port_event;
pub mod port_info;
pub mod port_key;
pub mod port_state;
pub mod query;
pub mod rate;
pub mod reading;
pub mod register;
pub mod smp;
pub mod vendor;
pub mod vendor_smp;

pub use counter::Counter;
pub use front_panel::FrontPanel;
pub use ids::{Guid, Lid, PortNumber};
pub use mad::{Class, DATA, DirectedRoute, LEN, Mad, method, status};
pub use moment::Moment;
pub use node::{NodeIdentity, NodeKind, PortRole, device};
pub use port_key::PortKey;
pub use query::{Management, Query};
pub use reading::Reading;

#[cfg(test)]
mod testing;
