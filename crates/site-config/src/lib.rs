//! YAML that people write: read once into a tree with positions, then typed.

pub mod diagnostics;
pub mod file;
pub mod suggestion;
pub mod units;
pub mod yaml;

pub use diagnostics::ConfigError;
