#![doc = include_str!("../README.md")]

mod aggregated_link;
pub mod assessment;
pub mod bit_errors;
mod clears;
pub mod congestion;
pub mod counter_resets;
pub mod counter_status;
mod evaluator;
pub mod explain;
pub mod flap_days;
pub mod flap_limits;
mod impossible_values;
mod incoming;
mod judge;
pub mod limits;
mod link_history;
mod link_tracker;
pub mod lost_data;
pub mod outage;
mod peers;
mod port;
pub mod recorded;
mod replacement;
pub mod replica;
mod reported;
pub mod settings;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod totals;
mod upstream;
pub mod verdict;
mod window;

pub use assessment::{
    Assessment, LinkAssessment, PlaneAssessment, PortAssessment, RecordedEvidence,
};
pub use evaluator::LinkEvaluator;
pub use limits::LimitTable;
pub use peers::RateReference;
pub use port::TRAINING;
pub use verdict::{Reason, Verdict};
