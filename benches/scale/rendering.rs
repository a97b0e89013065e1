//! What rendering the metrics of a state costs: the first one, one after a sweep as most are, and one of which
//! everything has changed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fabric_exporter::metrics::selection::Selection;
use fabric_exporter::metrics::{Format, OwnMetrics, RenderedMetrics};
use fabric_observation::{Observation, SharedState};
use ib_mad::Counter;
use ib_mad::counter::{CounterKind, TABLE};
use serde::{Deserialize, Serialize};

const RUNS: usize = 5;

/// Least and most of [`RUNS`] runs, in seconds of CPU time.
pub type Range = [f64; 2];

/// CPU time of renderings.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Renderings {
    /// Nothing was rendered before.
    pub first: Range,
    /// Traffic counters have moved on 60% of the ports, errors on 1%.
    pub typical: Range,
    /// The fabric has another name, which is in each sample.
    pub worst: Range,
}

/// Whether a port is among a share of them in percent, which is spread over all.
fn is_among(port: usize, percent: u64) -> bool {
    (port as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 < (percent << 32) / 100
}

/// The state after the next sweep.
fn swept(before: &Observation) -> Observation {
    let mut after = before.clone();
    let mut snapshot = (**after.snapshot.as_ref().unwrap()).clone();
    for (port, reading) in snapshot.readings.iter_mut().enumerate() {
        let Some(reading) = reading else { continue };
        if is_among(port, 60) {
            for row in TABLE.iter().filter(|row| row.kind == CounterKind::Traffic) {
                if let Some(total) = reading.get(row.counter) {
                    reading.set(row.counter, total + 1_234_567 + port as u64);
                }
            }
        }
        if is_among(port + 1_000_000, 1) {
            for counter in [Counter::SymbolErrors, Counter::RcvErrors] {
                reading.set(counter, reading.get(counter).unwrap_or(0) + 1);
            }
        }
    }
    after.snapshot = Some(Arc::new(snapshot));
    after
}

/// The length of the whole text.
pub fn text_of(metrics: &RenderedMetrics) -> u64 {
    let own = OwnMetrics::new(Path::new("/proc"));
    metrics.document(&Selection::default(), Format::Text, &own).plain_len()
}

fn state(of: &Observation) -> SharedState {
    vec![Arc::new(of.clone())].into()
}

/// Measures the renderings of a state, while nothing else runs in this process.
pub fn measure(last: &Observation) -> Renderings {
    let cpu = || test_rig::cpu_time(std::process::id());
    let mut ranges = [[f64::INFINITY, 0.0]; 3];
    let mut note = |what: usize, took: Duration| {
        let range: &mut Range = &mut ranges[what];
        let took = took.as_secs_f64();
        *range = [range[0].min(took), range[1].max(took)];
    };
    let mut now = last.clone();
    for run in 0..RUNS {
        let began = cpu();
        let first = RenderedMetrics::first(state(&now));
        note(0, cpu().saturating_sub(began));
        now = swept(&now);
        let next = state(&now);
        let began = cpu();
        let typical = first.next(next);
        note(1, cpu().saturating_sub(began));
        now.fabric = format!("f{run}");
        let next = state(&now);
        let began = cpu();
        let worst = typical.next(next);
        note(2, cpu().saturating_sub(began));
        std::hint::black_box(&worst);
    }
    let [first, typical, worst] = ranges;
    Renderings { first, typical, worst }
}
