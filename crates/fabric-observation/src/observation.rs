//! What monitors publish: all that the exposition, the API, the pages and the recorder need.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use display_text::labeled_enum;
use ib_fabric::routes::RouteReason;
use ib_fabric::topology::LinkId;
use ib_fabric::{Snapshot, change};
use ib_health::Assessment;
use ib_mad::Moment;
use ib_mad::moment::Anchor;
use ib_umad::stats::MadStats;

use super::data_source::DataSource;
use super::host::HostObservation;
use super::jobs::JobsObservation;
use super::link_hosts::LinkHosts;
use super::mastership::Mastership;
use super::staleness::stale_after;

/// The latest observation of each monitor.
#[derive(Clone, Debug, Default)]
pub struct SharedState {
    /// The fabrics, in the order of the settings.
    pub fabrics: Vec<Arc<Observation>>,
    /// The host, if it is monitored.
    pub host: Option<Arc<HostObservation>>,
    /// The recorder's statistics, if there is one: these change while the state stays.
    pub recording: Option<Arc<RecorderMetrics>>,
    /// The jobs that run on the hosts, if they are read.
    pub jobs: Option<Arc<JobsObservation>>,
    /// The moment of which this state is, if a history gave it back; `None` of the present.
    pub as_of: Option<SystemTime>,
}

impl SharedState {
    /// Whether another state has the same observations of fabrics: nothing derived from them changes.
    pub fn has_same_fabrics(&self, other: &SharedState) -> bool {
        let (own, others) = (&self.fabrics, &other.fabrics);
        own.len() == others.len()
            && own.iter().zip(others).all(|(own, other)| Arc::ptr_eq(own, other))
    }

    /// Whether another state has the same observation of jobs.
    pub fn has_same_jobs(&self, other: &SharedState) -> bool {
        match (&self.jobs, &other.jobs) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }
}

impl From<Vec<Arc<Observation>>> for SharedState {
    fn from(fabrics: Vec<Arc<Observation>>) -> Self {
        SharedState { fabrics, ..SharedState::default() }
    }
}

/// The state of one fabric after its latest sweep.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct Observation {
    pub fabric: String,
    /// The configured time between two sweeps; of data that another program collects, that between two changes of it if
    /// it is longer.
    pub interval: Duration,
    /// The latest sweep; `None` before the first. Shared: events between sweeps change only the assessment.
    pub snapshot: Option<Arc<Snapshot>>,
    /// The assessment of that sweep, and of the events since then; empty where there is no sweep.
    pub assessment: Assessment,
    pub stats: MonitorStats,
    /// The outcomes of its MADs.
    pub mads: MadStats,
    /// The hosts whose packets cross bad links, of those for which the forwarding tables were read. Empty if the reading
    /// of tables is disabled.
    pub crossing: Arc<BTreeMap<LinkId, LinkHosts>>,
    /// Where its data is from, if another program collects it.
    pub source: Option<Arc<DataSource>>,
}

impl Observation {
    /// After how long its sweep is stale. A discovery may have to be waited for, too.
    pub fn stale_after(&self) -> Duration {
        let swept = self.snapshot.as_ref().map(|last| last.ended.since(last.began));
        let discovered = self.stats.discovery.map(|(began, ended)| ended.since(began.moment));
        let took = [swept, discovered].into_iter().flatten().sum();
        stale_after(self.interval, took)
    }
}

labeled_enum! {
    /// A part of a monitor's work that can fail by itself.
    pub enum Collector {
        Discovery, "discovery", "Finding nodes and links.";
        Perfmgt, "perfmgt", "Reading counters.";
        Subnet, "subnet", "Querying subnet managers.";
    }
}

labeled_enum! {
    /// A file in which a site describes its fabric.
    #[derive(PartialOrd, Ord)]
    pub enum SiteFileKind {
        NodeNameMap, "node_name_map", "The names of nodes.";
        MKey, "m_key", "The M_Keys of ports.";
        VsKey, "vs_key", "The VSKeys of devices.";
        Maintenance, "maintenance", "Maintenance windows.";
        DrainedHosts, "drained_hosts", "The hosts that a scheduler has drained.";
    }
}

impl SiteFileKind {
    /// As messages call it.
    pub fn name(self) -> &'static str {
        match self {
            SiteFileKind::NodeNameMap => "node-name-map",
            SiteFileKind::MKey => "M_Key file",
            SiteFileKind::VsKey => "VSKey file",
            SiteFileKind::Maintenance => "maintenance file",
            SiteFileKind::DrainedHosts => "drained hosts file",
        }
    }
}

/// A monitor's statistics of its own work.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct MonitorStats {
    pub sweeps: u64,
    pub discoveries: u64,
    /// When the latest discovery began and ended.
    pub discovery: Option<(Anchor, Moment)>,
    /// Requests of the latest discovery without a response.
    pub discovery_gaps: u64,
    /// Those of them to neighbors that an earlier discovery found.
    pub known_gaps: usize,
    /// Ports with a link whose neighbor did not respond to subnet management in the latest discovery.
    pub unanswered_ports: usize,
    /// An M_Key is the likely cause of that.
    pub m_key_suspected: bool,
    /// A VSKey is the likely cause of devices that do not respond to the vendor class.
    pub vs_key_suspected: bool,
    /// In the latest sweep switches responded to performance management, and at most one of ten channel adapters
    /// other than our own did, or our port lacks the P_Key for requests: a partition is the likely cause.
    pub partition_suspected: bool,
    /// Ports of which the latest sweep did not get all that it requested.
    pub failed_ports: usize,
    /// Why sweeps read port states as they do.
    pub route_reason: RouteReason,
    /// Switches of a fabric with planes that the latest sweep reached by no directed route.
    pub unconfirmed_switches: usize,
    /// Changes between discoveries, by kind.
    pub changes: [u64; change::CHANGE_KINDS.len()],
    /// When each site file was last checked and valid, in seconds since 1970.
    pub site_files: [Option<f64>; SiteFileKind::ALL.len()],
    pub mastership: Mastership,
    /// When totals of another exporter were last received, in seconds since 1970.
    pub totals_received: Option<f64>,
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

labeled_enum! {
    /// Why something could not be written to the history.
    pub enum RecorderErrorKind {
        Taken, "taken", "Another exporter records to this file.";
        Unusable, "unusable", "The file is not a history, or not one that this version can write.";
        Damaged, "damaged", "SQLite found the file corrupt.";
        Displaced, "displaced", "Another program deleted, renamed, replaced or truncated the file: a new one was started.";
        Full, "full", "Less than the reserved space of the disk is free.";
        Io, "io", "The operating system or the disk reported an error.";
        Database, "database", "SQLite refused: the file is locked, or an added table or trigger forbids it.";
        Numbers, "numbers", "An id exceeds the range of the file format.";
    }
}

/// What the recorder wrote, and the state of its file and disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecorderStats {
    /// The size of the file, in bytes.
    pub bytes: u64,
    /// Frames of counters that were written.
    pub frames: u64,
    /// Events that were written.
    pub events: u64,
    /// How often something could not be written, by [reason](RecorderErrorKind).
    pub errors: [u64; RecorderErrorKind::ALL.len()],
    /// Sweeps that came while an earlier one was still being written.
    pub missed: u64,
    /// How long it took to write the latest sweep.
    pub write_duration: Duration,
    /// The free bytes of the disk, once that is known.
    pub free: Option<u64>,
    /// The bytes of the disk that are left free.
    pub floor: u64,
    /// The number of damaged files beside the history, once that is known.
    pub set_aside: Option<u64>,
}

/// The metrics of the recorder, published so that it and the exposition do not depend on each other.
#[derive(Debug, Default)]
pub struct RecorderMetrics(Mutex<RecorderStats>);

impl RecorderMetrics {
    /// The present values.
    pub fn get(&self) -> RecorderStats {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How often something could not be written.
    pub fn errors(&self) -> u64 {
        self.get().errors.iter().sum()
    }

    /// Changes the values. Scrapes wait until that is done, so nothing that blocks belongs here.
    pub fn update(&self, change: impl FnOnce(&mut RecorderStats)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
