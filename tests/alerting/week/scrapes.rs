//! The exporter of a host, from readings to scrapes: the code of the program without its clock, threads and server.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use exposition::Part;
use fabric_exporter::metrics::selection::Shard;
use fabric_exporter::metrics::{host, self_metrics};
use fabric_exporter::monitor::host::HostReadings;
use fabric_observation::SharedState;
use fabric_observation::host::HostObservation;
use ib_mad::port_event::PortEvent;
use rdma_host::model::{HostSnapshot, PortFabrics};
use test_rig::{promql, rules};

/// The default of --fabric.forget-after.
const FORGET_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);

/// An exporter that runs.
pub struct Exporter {
    readings: HostReadings,
    seen: HostObservation,
}

/// The metrics that rules read. The others would only cost time.
static READ: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    let expressions = rules::all().into_iter().map(|(_, rule)| rule.expr);
    expressions.flat_map(|it| promql::metrics(&it).unwrap()).collect()
});

impl Exporter {
    /// Starts the exporter of a host whose ports are in a fabric.
    pub fn start(fabric: &str) -> Self {
        let port_fabrics = PortFabrics { ports: Vec::new(), default: fabric.into() };
        let interval = Duration::from_secs(15);
        Exporter {
            readings: HostReadings::new(FORGET_AFTER),
            seen: HostObservation { port_fabrics, interval, ..HostObservation::default() },
        }
    }

    /// Adds a reading, and the events before it.
    pub fn add(&mut self, events: &[PortEvent], snapshot: HostSnapshot) {
        for event in events {
            self.seen.port_events.add_event(event);
        }
        self.readings.add(snapshot, &mut self.seen);
    }

    /// The samples that a scrape gets of metrics that rules read, by family.
    pub fn scrape(&mut self) -> Vec<Part<Vec<u8>>> {
        let seen = Arc::new(std::mem::take(&mut self.seen));
        let mut parts = host::render(&seen);
        let state = SharedState { host: Some(Arc::clone(&seen)), ..SharedState::default() };
        parts.extend(self_metrics::render(&state, ""));
        parts.push(self_metrics::shards(Shard::default()));
        drop(state);
        self.seen = Arc::into_inner(seen).unwrap();
        parts.retain(|part| {
            let end = part.samples.iter().position(|it| b"{ ".contains(it)).unwrap();
            READ.contains(std::str::from_utf8(&part.samples[..end]).unwrap())
        });
        parts
    }
}
