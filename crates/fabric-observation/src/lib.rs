//! What is known of fabrics and of the host at a moment: what monitors publish.

pub mod families;
pub mod host;
mod mastership;
mod observation;
mod recorder_metrics;
mod site_file;

pub use mastership::Mastership;
pub use observation::{Board, Collector, Observation, Tally};
pub use recorder_metrics::{RecorderErrorKind, RecorderMetrics};
pub use site_file::SiteFileKind;
