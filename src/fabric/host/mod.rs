//! What a host sees of its own RDMA devices, as values.

pub mod ethernet;
pub mod event;
pub mod hw_counter;
