//! Who asks: walks over the fabric, each a state machine that knows what to ask next.

pub mod agents;
pub mod clear;
mod corrections;
pub mod discovery;
mod hidden;
pub mod home;
pub mod perfmgt;
pub mod port_state;
mod sources;
pub mod subnet;
pub mod sweep;
pub mod unanswered;

#[cfg(test)]
mod tests;
