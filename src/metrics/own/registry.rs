//! The registry.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use exporter_web::{Security, WebMetrics};
use exposition::{Family, Format};
use fabric_observation::SharedState;
use prometheus_client::encoding::text::encode_registry;
use prometheus_client::metrics::family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

use super::collectors::{
    NotifyCollector, ProcessCollector, Published, RefusalCollector, StateCollector,
    WebConfigCollector,
};
use super::process::Process;
use super::{families, text};
use crate::notify::Queue;

/// Upper bounds in seconds: a sweep of a small fabric takes milliseconds, one of a large fabric minutes.
const BOUNDS: [f64; 10] = [0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0];

fn durations() -> Histogram {
    Histogram::new(BOUNDS)
}

type FabricLabel = [(&'static str, String); 1];

/// What the process itself counts.
#[derive(Debug)]
pub struct OwnMetrics {
    registry: Mutex<Registry>,
    state: StateCollector,
    sweeps: family::Family<FabricLabel, Histogram>,
    renderings: Histogram,
    /// The server counts its requests here.
    pub web: WebMetrics,
    /// The URL under which users reach the exporter; empty if it is not set.
    pub external_url: String,
}

impl OwnMetrics {
    /// Of this process, which is read from where procfs is mounted.
    pub fn new(procfs: &Path) -> Self {
        let mut registry = Registry::default();
        let state = StateCollector::default();
        let sweeps = family::Family::new_with_constructor(durations as fn() -> Histogram);
        let (renderings, web) = (durations(), WebMetrics::default());
        registry.register_collector(Box::new(state.clone()));
        register(&mut registry, &families::SWEEP, sweeps.clone());
        register(&mut registry, &families::RENDER, renderings.clone());
        register(&mut registry, &families::WEB_REQUESTS, web.requests.clone());
        register(&mut registry, &families::WEB_REQUEST_DURATION, web.durations.clone());
        registry.register_collector(Box::new(ProcessCollector(Process::new(procfs))));
        let (registry, external_url) = (Mutex::new(registry), String::new());
        OwnMetrics { registry, state, sweeps, renderings, web, external_url }
    }

    /// Adds what the server refuses, and how its web config file is read.
    #[must_use]
    pub fn with_security(mut self, security: &Security) -> Self {
        let registry = self.registry.get_mut().unwrap_or_else(PoisonError::into_inner);
        registry.register_collector(Box::new(RefusalCollector(security.refusals())));
        if let Some(status) = security.reload_status() {
            registry.register_collector(Box::new(WebConfigCollector(status)));
        }
        self
    }

    /// Adds what becomes of events that are sent to a webhook.
    #[must_use]
    pub fn with_notifications(mut self, queue: Arc<Queue>) -> Self {
        let registry = self.registry.get_mut().unwrap_or_else(PoisonError::into_inner);
        registry.register_collector(Box::new(NotifyCollector(queue)));
        self
    }

    /// Where the durations of a fabric's sweeps are counted.
    pub fn sweeps_of(&self, fabric: &str) -> Histogram {
        self.sweeps.get_or_create_owned(&[("fabric", fabric.to_owned())])
    }

    /// Counts a rendering.
    pub fn count_rendering(&self, duration: Duration) {
        self.renderings.observe(duration.as_secs_f64());
    }

    /// Appends the metrics to a scrape of a state whose rendering took so long.
    pub(in crate::metrics) fn write(
        &self,
        state: &SharedState,
        rendering: Duration,
        out: &mut Vec<u8>,
        format: Format,
    ) {
        // Held until the end: another scrape may be of the next state.
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let collect = |published| {
            *self.state.0.lock().unwrap_or_else(PoisonError::into_inner) = published;
        };
        collect(Published { state: state.clone(), rendering });
        let mut encoded = String::new();
        // Writing to a text does not fail.
        let _ = encode_registry(&mut encoded, &registry);
        // Until the next scrape, later sweeps replace this state: its snapshots must not stay in memory.
        collect(Published::default());
        text::append(&encoded, out, format);
    }
}

fn register(registry: &mut Registry, family: &Family, metric: impl Metric) {
    registry.register(&*family.name, &*family.help, metric);
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_observation::Observation;

    #[test]
    fn state_of_a_scrape_is_not_kept_in_memory() {
        let own = OwnMetrics::new(Path::new("/nowhere"));
        let state = SharedState::from(vec![Arc::new(Observation::default())]);
        let fabric = Arc::downgrade(&state.fabrics[0]);
        let mut text = Vec::new();
        own.write(&state, Duration::ZERO, &mut text, Format::Text);
        drop(state);
        assert!(String::from_utf8(text).unwrap().contains("\nfabric_exporter_mads_total{"));
        assert_eq!(fabric.strong_count(), 0);
    }
}
