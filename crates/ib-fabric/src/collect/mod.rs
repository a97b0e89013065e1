//! Collectors: query plans over the fabric, each a state machine that generates the next requests.

mod absent_nodes;
pub mod agent_cache;
pub mod clear;
mod confirmation;
mod counter_sweep;
pub mod discovery;
mod fec_modes;
pub mod local_port;
pub mod registers;
mod silent_adapters;
mod state_route;
mod state_sweep;
mod state_tables;
pub mod sweep;
mod switch_checks;
mod throttle;
pub mod unresponsive;

use std::ops::Range;
use std::time::Duration;

use ib_mad::port_state::PortStatus;
use ib_umad::RequestError;

use ib_mad::{Lid, Mad, Moment, PortKey, status};

/// The response to a request, or why there is none.
type Outcome<'a> = Result<&'a Mad, RequestError>;

/// Whether a node responded to any of its requests; `None` if it was not queried.
type Liveness = Option<bool>;

/// Whether an outcome shows that the node runs: a refusal is a response, too.
fn has_responded(outcome: &Outcome<'_>) -> bool {
    !outcome.is_err_and(RequestError::is_no_response)
}

/// What an outcome shows of its node: nothing, if the transport did not send the request.
fn liveness(outcome: &Outcome<'_>) -> Liveness {
    (!matches!(outcome, Err(RequestError::Unsent))).then(|| has_responded(outcome))
}

/// Whether a failure says that the agent does not support the attribute.
fn is_unsupported(failure: RequestError) -> bool {
    matches!(failure, RequestError::Status(status) if status::is_unsupported(status))
}

/// Whether a port has its turn at `now`, if it last had one at `last`: once per interval, each port at another time of
/// it, so that no run has all of them.
fn take_turns(port: PortKey, interval: Duration, last: Option<Moment>, now: Moment) -> bool {
    let interval = (interval.as_nanos() as u64).max(1);
    // Fibonacci hashing: adjacent GUIDs and ports get distant turns.
    let mixed = (port.guid.0 ^ u64::from(port.number) << 48).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let turn = |at: Moment| at.0.saturating_add((mixed >> 1) % interval) / interval;
    last.is_none_or(|last| turn(last) != turn(now))
}

/// Whether a LID is not the one that the discovery found. A node that just came up had none.
fn is_other_lid(known: Lid, now: Lid) -> bool {
    known.is_unicast() && known != now
}

/// The LIDs of a port: 2^LMC consecutive ones; LMC has 3 bits.
fn lids_of(status: PortStatus) -> Range<u32> {
    let first = u32::from(status.lid.0);
    first..first + (1 << (status.lmc & 7))
}

#[cfg(test)]
mod tests;
