//! The state of fabrics and of the host at a moment: what monitors publish, and all others read.
//!
//! ```
//! use std::sync::Arc;
//!
//! use fabric_observation::{Collector, Observation, SharedState};
//!
//! let mut observation = Observation { fabric: "ib0".into(), ..Observation::default() };
//! observation.stats.sweeps += 1;
//! observation.stats.set_success(Collector::Perfmgt, true);
//! let shared = SharedState::from(vec![Arc::new(observation)]);
//! assert!(shared.fabrics[0].stats.success(Collector::Perfmgt));
//! ```

mod data_source;
pub mod families;
pub mod host;
mod jobs;
mod link_hosts;
mod mastership;
mod observation;
mod staleness;

pub use data_source::DataSource;
pub use jobs::{JobsObservation, JobsSource};
pub use link_hosts::{DirectionHosts, LinkHosts};
pub use mastership::{Mastership, NewMaster};
pub use observation::{
    Collector, MonitorStats, Observation, RecorderErrorKind, RecorderMetrics, RecorderStats,
    SharedState, SiteFileKind,
};
pub use staleness::stale_after;
