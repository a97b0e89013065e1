//! Events of fabrics that are not recorded.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::record::detected::DetectedFabric;
use crate::record::events::EventDetector;
use crate::record::host::HostFabric;
use crate::record::listener::EventListener;
use crate::record::published::{Observer, observe_each};
use crate::settings::HOST_FABRIC;
use fabric_observation::host::HostObservation;
use fabric_observation::{Observation, SharedState};

/// Detects the events that a [`Recorder`](super::Recorder) would record, and tells a listener.
#[derive(Debug)]
pub struct EventWatch {
    fabrics: HashMap<String, DetectedFabric>,
    host: HostFabric,
    listener: EventListener,
}

impl EventWatch {
    /// Events for this listener.
    pub fn new(listener: EventListener) -> Self {
        EventWatch { fabrics: HashMap::new(), host: HostFabric::default(), listener }
    }

    /// Detects events of what is published until the sender of the published state is dropped.
    pub fn run(mut self, receiver: watch::Receiver<SharedState>, runtime: &Runtime) {
        observe_each(&mut self, receiver, runtime);
        self.finish(SystemTime::now());
    }

    /// Detects the events of an observation. `now` is the time of day.
    pub fn observe(&mut self, observation: &Observation, now: SystemTime) {
        let name = &observation.fabric;
        let mut fabric = self.fabric(name, EventDetector::default, now);
        for event in fabric.update(observation, now).events {
            self.listener.tell(name, &event);
        }
        // These are for the file.
        fabric.detector.reports.places.changes.clear();
        self.fabrics.insert(name.clone(), fabric);
    }

    /// Tells that the exporter stops.
    pub fn finish(mut self, now: SystemTime) {
        for (name, fabric) in &self.fabrics {
            self.listener.tell(name, &fabric.end(name, now));
        }
    }

    /// The fabric of this name, which begins with an event.
    fn fabric(
        &mut self,
        name: &str,
        detector: impl FnOnce() -> EventDetector,
        now: SystemTime,
    ) -> DetectedFabric {
        self.fabrics.remove(name).unwrap_or_else(|| {
            let (fabric, start) = DetectedFabric::begin(name, detector(), now);
            self.listener.tell(name, &start);
            fabric
        })
    }
}

impl Observer for EventWatch {
    fn observe(&mut self, observation: &Observation, now: SystemTime) {
        EventWatch::observe(self, observation, now);
    }

    fn observe_host(
        &mut self,
        host: &HostObservation,
        fabrics: &[Arc<Observation>],
        now: SystemTime,
    ) {
        let Some((observation, events)) = self.host.update(host, fabrics) else { return };
        let fabric = self.fabric(HOST_FABRIC, EventDetector::of_host, now);
        self.fabrics.insert(HOST_FABRIC.to_owned(), fabric);
        for event in events {
            self.listener.tell(HOST_FABRIC, &event);
        }
        self.observe(&observation, now);
    }
}
