//! From readings to totals, and from totals to a verdict per link.
//!
//! A [`LinkEvaluator`] gets each sweep's snapshot of raw readings, and returns the snapshot with totals in their
//! place and an [`Assessment`]: per link its [`Verdict`], the reasons and a repair to try first; per port bit
//! error ratios, waiting time and the state of its counters; and the regions of congestion.
//!
//! Nothing here does I/O or reads a clock: snapshots come in with the moments in which they were read, and
//! assessments are returned as values, so each can be tested and replayed.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::{Duration, SystemTime};
//!
//! use ib_fabric::Snapshot;
//! # use ib_fabric::testing::{end, fabric, found};
//! use ib_health::{HealthSettings, LinkEvaluator, Reason, Verdict, evidence};
//! use ib_mad::moment::Anchor;
//! # use ib_mad::node::NodeKind;
//! use ib_mad::{Counter, Moment, Reading};
//!
//! // A switch and a host, with a link between them.
//! # let nodes = vec![found(1, NodeKind::Switch, 1), found(2, NodeKind::Ca, 1)];
//! # let fabric = Arc::new(fabric(nodes, &[(end(1, 1), end(2, 1))], None));
//! let host = fabric.find(end(2, 1)).unwrap();
//! let mut evaluator = LinkEvaluator::new(HealthSettings::default());
//! let mut latest = None;
//! // Each sweep, the host's port has received 5,000 symbol errors more.
//! for sweep in 0..4 {
//!     let at = Moment::default() + Duration::from_secs(15 * sweep);
//!     let anchor = Anchor { moment: at, wall: SystemTime::now() };
//!     let mut snapshot = Snapshot::blank(Arc::clone(&fabric), anchor);
//!     let mut reading = Reading::empty(at);
//!     reading.set(Counter::SymbolErrors, 5_000 * sweep);
//!     snapshot.readings[host.0 as usize] = Some(reading);
//!     latest = Some(evaluator.evaluate(snapshot));
//! }
//! let (totals, assessment) = latest.unwrap();
//! let link = &assessment.links[0];
//! assert_eq!(link.verdict, Verdict::Bad);
//! let text = evidence::describe(Reason::BitErrors, link, &assessment, &totals);
//! assert!(text.starts_with("bit error ratio "), "{text}");
//! ```

pub mod assessment;
pub mod bit_errors;
pub mod congestion;
mod evaluator;
pub mod evidence;
mod link;
pub mod outage;
mod peers;
mod port;
pub mod settings;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod totals;
mod upstream;
pub mod verdict;
mod window;

pub use assessment::{Assessment, LinkAssessment, PortAssessment};
pub use evaluator::LinkEvaluator;
pub use peers::RateReference;
pub use settings::HealthSettings;
pub use verdict::{Reason, Verdict};
