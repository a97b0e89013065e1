#![doc = include_str!("../README.md")]

pub mod diagnostics;
pub mod file;
pub mod suggestion;
pub mod units;
pub mod yaml;

pub use diagnostics::ConfigError;
