//! What a monitor publishes: everything that a teller may want to know.

use std::sync::Arc;
use std::time::Duration;

use crate::SiteFileKind;
use ib_fabric::{Snapshot, change};
use ib_health::Findings;
use ib_mad::Moment;
use ib_mad::moment::Anchor;
use ib_umad::stats::MadStats;

use super::host::HostObservation;
use super::mastership::Mastership;
use super::recording::Recording;

/// What each monitor said last.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// The fabrics' own, in the order of the settings.
    pub fabrics: Vec<Arc<Observation>>,
    /// The host's own, if that is watched.
    pub host: Option<Arc<HostObservation>>,
    /// How what is seen is recorded, if it is: the numbers change while the board stays.
    pub recording: Option<Arc<Recording>>,
}

impl From<Vec<Arc<Observation>>> for Board {
    fn from(fabrics: Vec<Arc<Observation>>) -> Self {
        Board { fabrics, ..Board::default() }
    }
}

/// The state of one fabric, as it was last seen.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// The fabric's name.
    pub fabric: String,
    /// From one sweep to the next, as it is meant to be.
    pub interval: Duration,
    /// The latest sweep; `None` before the first.
    pub snapshot: Option<Snapshot>,
    /// What it comes to; empty where there is no sweep.
    pub findings: Findings,
    /// How the monitor itself fared.
    pub tally: Tally,
    /// What became of its MADs.
    pub mads: MadStats,
}

/// A part of a monitor's work that can fail by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collector {
    /// Finding nodes and links.
    Discovery,
    /// Reading counters.
    Perfmgt,
    /// Hearing subnet managers.
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

/// A monitor's account of its own work.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Sweeps that came to their end.
    pub sweeps: u64,
    /// Discoveries that came to their end.
    pub discoveries: u64,
    /// When the latest discovery began and ended.
    pub discovery: Option<(Anchor, Moment)>,
    /// Questions of the latest discovery that stayed open.
    pub discovery_gaps: u64,
    /// Ports with a link whose neighbor answers no subnet management, as of the latest discovery.
    pub unanswered_ports: usize,
    /// An M_Key is the likely cause of that.
    pub m_key_suspected: bool,
    /// In the latest sweep switches answered performance management, and at most one of ten channel
    /// adapters beside our own, or our port lacks the P_Key to ask with: a partition is the likely cause.
    pub partition_suspected: bool,
    /// Ports of which the latest sweep did not get all that it asked for.
    pub failed_ports: usize,
    /// Changes between discoveries, by kind.
    pub changes: [u64; change::CHANGE_KINDS.len()],
    /// When each file of the site's was last looked at and could be used, in seconds since 1970.
    pub site_files: [Option<f64>; SiteFileKind::ALL.len()],
    /// Who is the subnet's master.
    pub mastership: Mastership,
    success: [bool; Collector::ALL.len()],
}

impl Tally {
    /// Takes down how a part of the work went.
    pub fn set_success(&mut self, collector: Collector, success: bool) {
        self.success[collector as usize] = success;
    }

    /// Whether a part of the work went well the last time.
    pub fn success(&self, collector: Collector) -> bool {
        self.success[collector as usize]
    }
}
