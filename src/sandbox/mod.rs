//! The process as its host's service: what it may do ([`confine`]), and what the service manager is
//! told of it ([`notify`]).

pub mod confine;
pub mod notify;
