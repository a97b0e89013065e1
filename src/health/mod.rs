//! What it means: from readings to totals, from totals to a verdict a cable.
//!
//! Nothing here does I/O or reads a clock: snapshots come in with the moments in which they were
//! read, and what was found goes out as values. So each judgement can be tested and replayed.

pub mod bit_errors;
pub mod congestion;
pub mod evidence;
pub mod findings;
pub mod outage;
pub mod settings;
pub mod verdict;

pub use findings::{Findings, LinkFindings, PortFindings};
pub use settings::HealthSettings;
pub use verdict::{Reason, Verdict};
