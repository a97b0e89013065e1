#![doc = include_str!("../README.md")]

pub mod agents;
mod change;
pub mod device;
pub mod load;
pub mod net;
pub mod rng;
pub mod scenario;
pub mod simulation;
pub mod transport;
