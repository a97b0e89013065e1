//! What monitors publish: all that the exposition, the API, the pages and the recorder need.

use std::sync::Arc;
use std::time::Duration;

use crate::SiteFileKind;
use ib_fabric::{Snapshot, change};
use ib_health::Assessment;
use ib_mad::Moment;
use ib_mad::moment::Anchor;
use ib_umad::stats::MadStats;

use super::host::HostObservation;
use super::mastership::Mastership;
use super::recorder_metrics::RecorderMetrics;

/// The latest observation of each monitor.
#[derive(Clone, Debug, Default)]
pub struct SharedState {
    /// The fabrics, in the order of the settings.
    pub fabrics: Vec<Arc<Observation>>,
    /// The host, if it is monitored.
    pub host: Option<Arc<HostObservation>>,
    /// The recorder's statistics, if there is one: these change while the state stays.
    pub recording: Option<Arc<RecorderMetrics>>,
}

impl From<Vec<Arc<Observation>>> for SharedState {
    fn from(fabrics: Vec<Arc<Observation>>) -> Self {
        SharedState { fabrics, ..SharedState::default() }
    }
}

/// The state of one fabric after its latest sweep.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// The fabric's name.
    pub fabric: String,
    /// The configured time between two sweeps.
    pub interval: Duration,
    /// The latest sweep; `None` before the first. Shared, for events between two sweeps change only the
    /// assessment.
    pub snapshot: Option<Arc<Snapshot>>,
    /// The assessment of that sweep, and of the events since then; empty where there is no sweep.
    pub assessment: Assessment,
    /// The monitor's own statistics.
    pub stats: MonitorStats,
    /// The outcomes of its MADs.
    pub mads: MadStats,
}

/// A part of a monitor's work that can fail by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {
    /// Finding nodes and links.
    Discovery,
    /// Reading counters.
    Perfmgt,
    /// Querying subnet managers.
    Subnet,
}

impl Collector {
    /// All of them.
    pub const ALL: [Collector; 3] = [Collector::Discovery, Collector::Perfmgt, Collector::Subnet];

    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            Collector::Discovery => "discovery",
            Collector::Perfmgt => "perfmgt",
            Collector::Subnet => "subnet",
        }
    }
}

/// A monitor's statistics of its own work.
#[derive(Clone, Debug, Default)]
pub struct MonitorStats {
    /// Completed sweeps.
    pub sweeps: u64,
    /// Completed discoveries.
    pub discoveries: u64,
    /// When the latest discovery began and ended.
    pub discovery: Option<(Anchor, Moment)>,
    /// Requests of the latest discovery without a response.
    pub discovery_gaps: u64,
    /// Ports with a link whose neighbor did not respond to subnet management in the latest discovery.
    pub unanswered_ports: usize,
    /// An M_Key is the likely cause of that.
    pub m_key_suspected: bool,
    /// In the latest sweep switches responded to performance management, and at most one of ten channel adapters
    /// other than our own did, or our port lacks the P_Key for requests: a partition is the likely cause.
    pub partition_suspected: bool,
    /// Ports of which the latest sweep did not get all that it requested.
    pub failed_ports: usize,
    /// Changes between discoveries, by kind.
    pub changes: [u64; change::CHANGE_KINDS.len()],
    /// When each site file was last checked and valid, in seconds since 1970.
    pub site_files: [Option<f64>; SiteFileKind::ALL.len()],
    /// The subnet's master.
    pub mastership: Mastership,
    success: [bool; Collector::ALL.len()],
}

impl MonitorStats {
    /// Records whether a part of the work succeeded.
    pub fn set_success(&mut self, collector: Collector, success: bool) {
        self.success[collector as usize] = success;
    }

    /// Whether a part of the work succeeded the last time.
    pub fn success(&self, collector: Collector) -> bool {
        self.success[collector as usize]
    }
}
