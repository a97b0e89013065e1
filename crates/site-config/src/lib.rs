//! YAML that people write: read once into a tree with positions, then typed.

pub mod file;
pub mod mistakes;
pub mod near;
pub mod values;
pub mod yaml;

pub use mistakes::ConfigError;
