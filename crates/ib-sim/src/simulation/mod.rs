//! The simulation: the state of a fabric at a moment, and its changes over time.
//!
//! It has no thread and no clock of its own. A caller passes the time, and the simulation first
//! applies all that was due until then, in order. So a scenario with a seed is in the same state at
//! each moment, however often and however late it is called.

mod apply;
mod hop_counts;
mod port;
mod state;
mod subnet;
mod update;

pub(crate) use hop_counts::{HopCounts, follow_route};
pub use port::SimulatedPort;
pub use state::{Protection, Refusals, Simulation};

#[cfg(test)]
mod tests;
