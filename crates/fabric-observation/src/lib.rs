//! The state of fabrics and of the host at a moment: what monitors publish, and all others read.

pub mod families;
pub mod host;
mod mastership;
mod observation;
mod recorder_stats;
mod site_file;

pub use mastership::Mastership;
pub use observation::{Collector, MonitorStats, Observation, SharedState};
pub use recorder_stats::{RecorderErrorKind, RecorderStats};
pub use site_file::SiteFileKind;
