//! What it means: from readings to totals, from totals to a verdict a cable.
//!
//! Nothing here does I/O or reads a clock: snapshots come in with the moments in which they were
//! read, and what was found goes out as values. So each judgement can be tested and replayed.

pub mod bit_errors;
pub mod congestion;
pub mod corruption;
pub mod evidence;
pub mod findings;
pub mod judge;
pub mod link;
pub mod outage;
pub mod peers;
pub mod plausible;
pub mod port;
pub mod settings;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod totals;
pub mod upstream;
pub mod verdict;
pub mod window;

pub use findings::{Findings, LinkFindings, PortFindings};
pub use judge::Judge;
pub use settings::HealthSettings;
pub use verdict::{Reason, Verdict};
