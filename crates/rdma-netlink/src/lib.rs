//! Netlink of the kernel's RDMA subsystem: messages, and the SMI devices of multi-plane HCAs. No request needs privileges.

pub mod message;
mod smi_devices;

pub use smi_devices::{SmiDevice, SmiDevices};
