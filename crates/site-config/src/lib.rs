//! Reads the YAML files of a site into `serde` types, and reports all mistakes of a file at once, each in one
//! line with line, column and key.
//!
//! - [`yaml`] parses a text into a tree with positions, and deserializes types from the tree.
//! - [`diagnostics`] collects the mistakes of flags and of a config file into a [`ConfigError`].
//! - [`suggestion`] finds what an unknown name may have meant.
//! - [`mod@file`] reads regular files up to a size, within a timeout; [`units`] has durations and sizes.
//!
//! ```
//! use serde::Deserialize;
//! use site_config::units::HumanDuration;
//! use site_config::yaml;
//!
//! #[derive(Debug, Default, Deserialize)]
//! #[serde(deny_unknown_fields, default)]
//! struct Sweep {
//!     interval: Option<HumanDuration>,
//!     retries: u8,
//! }
//!
//! let parsed = yaml::parse::<Sweep>("intervall: 15s\nretries: 300\n");
//! let lines: Vec<String> = parsed.diagnostics.iter().map(ToString::to_string).collect();
//! assert_eq!(
//!     lines,
//!     [
//!         "line 1, column 1: intervall: unknown key (did you mean \"interval\"?); known: interval, retries",
//!         "line 2, column 10: retries: \"300\" is not a whole number between 0 and 255",
//!     ]
//! );
//! ```

pub mod diagnostics;
pub mod file;
pub mod suggestion;
pub mod units;
pub mod yaml;

pub use diagnostics::ConfigError;
