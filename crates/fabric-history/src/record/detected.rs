//! The events of a fabric, from one observation to the next.

use std::time::SystemTime;

use serde_json::json;

use crate::event::{EventKind, NewEvent};
use crate::record::clock::ClockMonitor;
use crate::record::events::EventDetector;
use fabric_observation::Observation;
use ib_fabric::Snapshot;

/// A fabric whose events are detected.
#[derive(Debug, Default)]
pub(super) struct DetectedFabric {
    pub detector: EventDetector,
    clock: ClockMonitor,
    /// The monitor's count of sweeps at the last one.
    sweeps: u64,
    /// When that ended.
    last_ended: Option<SystemTime>,
}

/// What an observation has that the one before had not.
#[derive(Debug)]
pub(super) struct Update<'a> {
    pub events: Vec<NewEvent>,
    /// The sweep, if it is a new one.
    pub sweep: Option<&'a Snapshot>,
    /// How many sweeps were between the two.
    pub missed: u64,
}

impl DetectedFabric {
    /// With a detector, and the event with which a fabric begins: nothing is known of the time before.
    pub fn begin(fabric: &str, detector: EventDetector, now: SystemTime) -> (Self, NewEvent) {
        let version = env!("CARGO_PKG_VERSION");
        let text = format!("fabric-exporter {version} started");
        let start = NewEvent::of_fabric(EventKind::ExporterStart, fabric, text, now);
        let start = NewEvent { detail: json!({"version": version}), ..start };
        (DetectedFabric { detector, ..DetectedFabric::default() }, start)
    }

    /// The events of an observation. `now` is the time of day.
    pub fn update<'a>(&mut self, observation: &'a Observation, now: SystemTime) -> Update<'a> {
        let mut events = self.detector.update(observation, now);
        // When a device is removed, the state is published without a new sweep.
        let sweeps = observation.stats.sweeps;
        let sweep = observation.snapshot.as_deref().filter(|_| sweeps > self.sweeps);
        let mut missed = 0;
        if let Some(sweep) = sweep {
            missed = if self.sweeps > 0 { sweeps - self.sweeps - 1 } else { 0 };
            self.sweeps = sweeps;
            events.extend(self.clock.update(&observation.fabric, sweep));
            self.last_ended = Some(sweep.anchor.wall_of(sweep.ended));
        }
        Update { events, sweep, missed }
    }

    /// The event with which a fabric ends.
    pub fn end(&self, fabric: &str, now: SystemTime) -> NewEvent {
        let at = self.last_ended.map_or(now, |last| last.max(now));
        NewEvent::of_fabric(EventKind::ExporterStop, fabric, "fabric-exporter stopped", at)
    }

    /// The time of day, if it can be trusted.
    pub fn trusted_time(&self) -> Option<SystemTime> {
        self.clock.trusted_time()
    }
}
