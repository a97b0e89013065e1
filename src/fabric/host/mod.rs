//! What a host sees of its own RDMA devices, as values.

pub mod event;
pub mod hw_counter;
