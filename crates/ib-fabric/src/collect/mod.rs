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

use ib_mad::Mad;
use ib_umad::RequestError;

/// Whether an outcome shows that the node runs: a refusal is a response, too.
fn has_responded(outcome: &Result<&Mad, RequestError>) -> bool {
    !outcome.is_err_and(RequestError::is_no_response)
}

#[cfg(test)]
mod tests;
