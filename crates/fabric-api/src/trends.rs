//! What the hosts of each fabric sent, sweep by sweep: a short memory for pages, which need no history for it.

use std::sync::Arc;
use std::time::SystemTime;

use fabric_observation::{Observation, SharedState};

use crate::view::FabricView;

/// The sweeps that are remembered: an hour at an interval of 15 s.
const MAX_SWEEPS: usize = 240;

/// The trend of each fabric.
#[derive(Clone, Debug, Default)]
pub struct Trends(Vec<Arc<Trend>>);

#[derive(Clone, Debug, Default)]
struct Trend {
    fabric: String,
    /// When the latest sweep ended.
    swept: Option<SystemTime>,
    /// Bytes per second that all hosts sent, the latest last.
    sent: Vec<f32>,
}

impl Trends {
    /// What the hosts of a fabric sent, in bytes per second, the latest last.
    pub fn of(&self, fabric: &str) -> &[f32] {
        self.0.iter().find(|trend| trend.fabric == fabric).map_or(&[], |trend| &trend.sent)
    }

    /// The same with the sweeps of a state that are new.
    #[must_use]
    pub fn with(&self, state: &SharedState) -> Self {
        Trends(state.fabrics.iter().map(|it| self.with_fabric(it)).collect())
    }

    fn with_fabric(&self, observation: &Observation) -> Arc<Trend> {
        let known = self.0.iter().find(|trend| trend.fabric == observation.fabric);
        let swept = observation.snapshot.as_ref().map(|it| it.anchor.wall_of(it.ended));
        // Between two sweeps, events change only the assessment.
        if let Some(known) = known.filter(|known| known.swept == swept) {
            return Arc::clone(known);
        }
        let mut trend = known.map_or_else(Trend::default, |known| Trend::clone(known));
        (trend.fabric, trend.swept) = (observation.fabric.clone(), swept);
        if let Some([sent, _]) = FabricView::new(observation).and_then(|view| view.throughput()) {
            let excess = (trend.sent.len() + 1).saturating_sub(MAX_SWEEPS);
            trend.sent.drain(..excess);
            trend.sent.push(sent as f32);
        }
        Arc::new(trend)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use ib_health::assessment::Flow;
    use ib_health::testing::{fine, port, snapshot};

    #[test]
    fn each_sweep_counts_once() {
        let mut trends = Trends::default();
        for sweep in 0..MAX_SWEEPS as u64 + 5 {
            let mut snapshot = snapshot();
            snapshot.ended = snapshot.ended + Duration::from_secs(15 * sweep);
            let mut assessment = fine(&snapshot);
            let host = port(&snapshot, 2, 1);
            assessment.ports[host].tx = Some(Flow { rate: sweep as f32, used: 0.1 });
            let (fabric, snapshot) = ("f".into(), Some(snapshot.into()));
            let observation =
                Observation { fabric, snapshot, assessment, ..Observation::default() };
            let state = vec![Arc::new(observation)].into();
            trends = trends.with(&state).with(&state);
        }
        let sent = trends.of("f");
        assert_eq!((sent.len(), sent.first(), sent.last()), (240, Some(&5.0), Some(&244.0)));
        assert!(trends.of("g").is_empty());
    }
}
