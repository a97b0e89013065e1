//! What is known of the host's own devices.

mod missing;
mod tally;

pub use missing::{Absences, Missing};
pub use tally::{Place, PortTally, Tally};

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ib_health::findings::Counting;
use ib_health::totals::Before;
use ib_mad::Guid;
use rdma_host::model::HostSnapshot;
use rdma_host::model::rails::Rails;

/// Events of devices that nobody took, because too many waited already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// By this watch, while it read devices.
    pub by_host: u64,
    /// By the judges of fabrics, whose sweeps did not go on.
    pub by_judges: u64,
}

/// The state of the host's own devices, as it was last seen.
#[derive(Clone, Debug, Default)]
pub struct HostObservation {
    /// From one look to the next, as it is meant to be.
    pub interval: Duration,
    /// The latest look; `None` before the first.
    pub snapshot: Option<HostSnapshot>,
    /// How the counters of its ports fared: device by device, port by port as they stand there.
    pub counting: Vec<Vec<Counting>>,
    /// What its counters had counted before they fell last, in the same order.
    pub befores: Vec<Vec<Option<Arc<Before>>>>,
    /// What its devices are known by, in the same order: their GUIDs, or what takes the place of one.
    pub ids: Vec<Guid>,
    /// How many looks there were.
    pub looks: u64,
    /// The devices that are gone, by name.
    pub missing: Vec<Missing>,
    /// The events that were dropped.
    pub dropped: Dropped,
    /// What the ports went through.
    pub tally: Tally,
    /// The devices whose events are heard.
    pub heard: BTreeSet<String>,
    /// Which port is in which fabric.
    pub rails: Rails,
}

impl HostObservation {
    /// Whether the latest look could read a device. Where there is none, and none was there before, nothing
    /// is wrong: not every host has one.
    pub fn success(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| {
            let none_is_due = snapshot.devices.is_empty() && self.missing.is_empty();
            none_is_due && snapshot.problem.is_none()
                || snapshot.devices.iter().any(|device| device.answers)
        })
    }

    /// Why nothing could be read, where the reason is not a device's: sysfs is not where it should be, or
    /// may not be read.
    pub fn problem(&self) -> Option<&str> {
        let problem = self.snapshot.as_ref()?.problem.as_deref()?;
        Some(problem).filter(|_| !self.success())
    }
}
