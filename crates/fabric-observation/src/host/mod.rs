//! The state of the host's own devices.

mod identity;
mod missing;
mod port_events;

pub use identity::DeviceIds;
pub use missing::{MissingDevice, MissingDevices};
pub use port_events::{EventKey, HostPortEvents, PortEventCounts};

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ib_health::counter_resets::ResetOffsets;
use ib_health::counter_status::CounterStatus;
use ib_mad::{Guid, Reading};
use rdma_host::model::{HostSnapshot, PortFabrics};

/// Events that were dropped because too many waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedEvents {
    /// By the host's monitor, while it read devices.
    pub by_host: u64,
    /// By the monitors of fabrics, while they did not sweep.
    pub by_fabrics: u64,
}

/// The totals of a port of the host.
#[derive(Clone, Debug)]
pub struct HostPortTotals {
    /// The totals of its counters.
    pub reading: Reading,
    /// Saturation, resets and impossible values of its counters.
    pub counters: CounterStatus,
    /// What counters had counted before their last reset, if one was ever reset.
    pub reset_offsets: Option<Arc<ResetOffsets>>,
}

/// The state of the host's own devices at their latest reading.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct HostObservation {
    /// The configured time between two readings.
    pub interval: Duration,
    /// The latest reading, with raw counters; `None` before the first.
    pub snapshot: Option<HostSnapshot>,
    /// The totals of its ports: by device and port, in the order of the snapshot.
    pub totals: Vec<Vec<HostPortTotals>>,
    /// The ids of its devices, in the same order, by [`DeviceIds`].
    pub ids: Vec<Guid>,
    pub reads: u64,
    /// The devices that disappeared, by name.
    pub missing: Vec<MissingDevice>,
    pub dropped: DroppedEvents,
    pub port_events: HostPortEvents,
    /// The devices whose events are received.
    pub monitored: BTreeSet<String>,
    /// Which port is in which fabric.
    pub port_fabrics: PortFabrics,
}

impl HostObservation {
    /// Whether the latest reading succeeded for a device, or there is none to read: not every host has one.
    pub fn success(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| {
            let none_expected = snapshot.devices.is_empty() && self.missing.is_empty();
            none_expected && snapshot.problem.is_none()
                || snapshot.devices.iter().any(|device| device.is_readable)
        })
    }

    /// After how long its reading is stale.
    pub fn stale_after(&self) -> Duration {
        let took = self.snapshot.as_ref().map(|last| last.ended.since(last.began));
        crate::staleness::stale_after(self.interval, took.unwrap_or_default())
    }

    /// Why nothing could be read, if no device is the reason: sysfs is elsewhere, or must not be read.
    pub fn problem(&self) -> Option<&str> {
        let problem = self.snapshot.as_ref()?.problem.as_deref()?;
        Some(problem).filter(|_| !self.success())
    }
}
