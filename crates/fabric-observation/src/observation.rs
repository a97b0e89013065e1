//! What monitors publish: all that the exposition, the API, the pages and the recorder need.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ib_fabric::topology::End;
use ib_fabric::{Snapshot, change};
use ib_health::Assessment;
use ib_mad::moment::Anchor;
use ib_mad::smp::SmState;
use ib_mad::{Moment, labeled_enum};
use ib_umad::stats::MadStats;

use super::host::HostObservation;

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
    /// The latest sweep; `None` before the first. Shared: events between sweeps change only the assessment.
    pub snapshot: Option<Arc<Snapshot>>,
    /// The assessment of that sweep, and of the events since then; empty where there is no sweep.
    pub assessment: Assessment,
    /// The monitor's own statistics.
    pub stats: MonitorStats,
    /// The outcomes of its MADs.
    pub mads: MadStats,
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
        Maintenance, "maintenance", "Maintenance windows.";
    }
}

impl SiteFileKind {
    /// As messages call it.
    pub fn name(self) -> &'static str {
        match self {
            SiteFileKind::NodeNameMap => "node-name-map",
            SiteFileKind::MKey => "M_Key file",
            SiteFileKind::Maintenance => "maintenance file",
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

/// The subnet's master from sweep to sweep.
#[derive(Clone, Debug, Default)]
pub struct Mastership {
    last: Option<End>,
    changes: u64,
}

impl Mastership {
    /// How often another subnet manager became the master: not the first known one, nor the same one again.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// The port of the last known master, which may be gone.
    pub fn master(&self) -> Option<End> {
        self.last
    }

    /// Adds a sweep. While two claim to be the master, the one that was it still is.
    pub fn update<V>(&mut self, name: &str, snapshot: &Snapshot<V>) {
        let (fabric, managers) = (&snapshot.fabric, snapshot.managers.as_deref());
        let masters = managers.unwrap_or_default().iter();
        let mut masters = masters.filter(|it| it.state == SmState::Master).peekable();
        let Some(&first) = masters.peek() else { return };
        if masters.any(|master| Some(fabric.end(master.port)) == self.last) {
            return;
        }
        let node = &fabric.node_of(first.port).name;
        if let Some((before, port)) = self.last.replace(fabric.end(first.port)) {
            tracing::info!(fabric = name, node, %before, port, "master SM changed");
            self.changes += 1;
        } else {
            tracing::info!(fabric = name, node, "master SM found");
        }
    }
}

labeled_enum! {
    /// Why something could not be written to the history.
    pub enum RecorderErrorKind {
        Taken, "taken", "Another exporter records to this file.";
        Unusable, "unusable", "The file is not a history, or not one that this version can write.";
        Damaged, "damaged", "SQLite found the file corrupt.";
        Full, "full", "Less than the reserved space of the disk is free.";
        Io, "io", "The operating system or the disk reported an error.";
        Database, "database", "SQLite refused: the file is locked, or an added table or trigger forbids it.";
        Numbers, "numbers", "An id exceeds the range of the file format.";
    }
}

/// The metrics of the recorder, published so that it and the exposition do not depend on each other.
#[derive(Debug, Default)]
pub struct RecorderMetrics {
    bytes: AtomicU64,
    frames: AtomicU64,
    events: AtomicU64,
    errors: [AtomicU64; RecorderErrorKind::ALL.len()],
    missed: AtomicU64,
    write_nanos: AtomicU64,
    /// Not set until it was measured.
    free: OnceLock<AtomicU64>,
    floor: AtomicU64,
    /// Not set while the folder cannot be read.
    set_aside: OnceLock<AtomicU64>,
}

macro_rules! accessors {
    ($($get:ident $verb:ident $update:ident $about:literal;)+) => {
        impl RecorderMetrics {
            $(
                #[doc = $about]
                pub fn $get(&self) -> u64 {
                    self.$get.load(Ordering::Relaxed)
                }

                #[doc = concat!("Updates: ", $about)]
                pub fn $update(&self, value: u64) {
                    self.$get.$verb(value, Ordering::Relaxed);
                }
            )+
        }
    };
}

accessors! {
    frames fetch_add add_frames "Frames of counters that were written.";
    events fetch_add add_events "Events that were written.";
    missed fetch_add add_missed "Sweeps that came while an earlier one was still being written.";
    bytes store set_bytes "The size of the file, in bytes.";
    floor store set_floor "The bytes of the disk that are left free.";
}

impl RecorderMetrics {
    /// How often something could not be written.
    pub fn errors(&self) -> u64 {
        RecorderErrorKind::ALL.into_iter().map(|kind| self.errors_by(kind)).sum()
    }

    /// How often something could not be written for a reason.
    pub fn errors_by(&self, kind: RecorderErrorKind) -> u64 {
        self.errors[kind as usize].load(Ordering::Relaxed)
    }

    /// Counts an error.
    pub fn add_error(&self, kind: RecorderErrorKind) {
        self.errors[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of damaged files beside the history, once that is known.
    pub fn set_aside(&self) -> Option<u64> {
        self.set_aside.get().map(|count| count.load(Ordering::Relaxed))
    }

    /// Sets the number of damaged files beside the history.
    pub fn count_set_aside(&self, count: u64) {
        self.set_aside.get_or_init(|| AtomicU64::new(count)).store(count, Ordering::Relaxed);
    }

    /// The free bytes of the disk, once that is known.
    pub fn free(&self) -> Option<u64> {
        self.free.get().map(|free| free.load(Ordering::Relaxed))
    }

    /// Sets the free bytes of the disk.
    pub fn set_free(&self, bytes: u64) {
        // Initialized with the value: a scrape in between must not see a full disk.
        self.free.get_or_init(|| AtomicU64::new(bytes)).store(bytes, Ordering::Relaxed);
    }

    /// How long it took to write the latest sweep.
    pub fn write_duration(&self) -> Duration {
        Duration::from_nanos(self.write_nanos.load(Ordering::Relaxed))
    }

    /// Sets how long it took to write the latest sweep.
    pub fn set_write_duration(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.write_nanos.store(nanos, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use ib_fabric::snapshot::SubnetManager;
    use ib_fabric::testing::{end, fabric, found};
    use ib_mad::node::NodeKind;

    /// The role of each host in one sweep: `M` master, `s` standby, `-` silent; `None` if it is not known.
    fn snapshot(parts: Option<&str>) -> Snapshot {
        let nodes = (1..=3).map(|guid| found(guid, NodeKind::Ca, 1)).collect();
        let fabric = Arc::new(fabric(nodes, &[], None));
        let manager = |(guid, part): (u64, char)| {
            let state = match part {
                'M' => SmState::Master,
                's' => SmState::Standby,
                _ => return None,
            };
            let port = fabric.find(end(guid, 1))?;
            Some(SubnetManager { port, state, priority: 0, act_count: 0 })
        };
        let managers = parts.map(|parts| (1..).zip(parts.chars()).filter_map(manager).collect());
        let anchor = Anchor { moment: Moment(0), wall: SystemTime::UNIX_EPOCH };
        Snapshot { managers, ..Snapshot::blank(Arc::clone(&fabric), anchor) }
    }

    #[test]
    fn only_another_master_is_a_change() {
        for (sweeps, changes) in [
            (&["M--"][..], 0),
            (&["Ms-", "Ms-", "sM-", "sM-"], 1),
            (&["Ms-", "sM-", "Ms-"], 2),
            // Away for a while: itself, another one, and before any was known.
            (&["M--", "-s-", "---", "M--"], 0),
            (&["M--", "-s-", "-M-"], 1),
            (&["---", "ss-", "-M-"], 0),
            // Two at once, until they have settled it.
            (&["-M-", "MM-", "sM-"], 0),
            (&["-M-", "MM-", "Ms-", "MM-"], 1),
            (&["--M", "MM-", "MM-", "sM-"], 2),
        ] {
            let mut mastership = Mastership::default();
            for parts in sweeps {
                mastership.update("f", &snapshot(Some(parts)));
                mastership.update("f", &snapshot(None));
            }
            assert_eq!(mastership.changes(), changes, "{sweeps:?}");
        }
    }
}
