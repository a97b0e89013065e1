//! What a host tells of its own RDMA devices.

pub mod events;
