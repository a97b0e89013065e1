//! Collectors: query plans over the fabric, each a state machine that generates the next requests.

pub mod agent_cache;
pub mod clear;
mod counter_sweep;
pub mod discovery;
mod fec_modes;
pub mod local_port;
mod state_sweep;
pub mod sweep;
pub mod unresponsive;

use std::ops::Range;

use ib_mad::port_state::PortStatus;
use ib_mad::{Mad, status};
use ib_umad::RequestError;

/// Whether an outcome shows that the node runs: a refusal is a response, too.
fn has_responded(outcome: &Result<&Mad, RequestError>) -> bool {
    !outcome.is_err_and(RequestError::is_no_response)
}

/// Whether a failure says that the agent does not support the attribute.
fn is_unsupported(failure: RequestError) -> bool {
    matches!(failure, RequestError::Status(status) if status::is_unsupported(status))
}

/// The LIDs of a port: 2^LMC consecutive ones; LMC has 3 bits.
fn lids_of(status: PortStatus) -> Range<u32> {
    let first = u32::from(status.lid.0);
    first..first + (1 << (status.lmc & 7))
}

#[cfg(test)]
mod tests;
