//! From readings to totals, and from totals to a verdict per link.
//!
//! Nothing here does I/O or reads a clock: snapshots come in with the moments in which they were read, and
//! assessments are returned as values, so each can be tested and replayed.

pub mod assessment;
pub mod bit_errors;
pub mod congestion;
pub mod corruption;
pub mod evaluator;
pub mod evidence;
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

pub use assessment::{Assessment, LinkAssessment, PortAssessment};
pub use evaluator::LinkEvaluator;
pub use settings::HealthSettings;
pub use verdict::{Reason, Verdict};
