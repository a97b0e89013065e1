//! Collectors: query plans over the fabric, each a state machine that generates the next requests.

pub mod agent_cache;
pub mod clear;
mod counter_sources;
pub mod counter_sweep;
pub mod discovery;
mod fec_modes;
mod hidden_nodes;
pub mod local_port;
pub mod sm_sweep;
pub mod state_sweep;
pub mod sweep;
pub mod unresponsive;

#[cfg(test)]
mod tests;
