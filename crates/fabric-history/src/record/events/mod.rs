//! Detects what happened between two observations of a fabric. Reads no clock, and writes nothing.

mod congestions;
mod detector;
mod fabric_wide;
mod links;
mod ports;
mod reports;
mod sweep;
#[cfg(test)]
mod tests;

pub use detector::EventDetector;
pub(super) use links::{active_rate, rate_change};
