//! The live state: what monitors published, and what API and pages derive from it once for all requests.

use std::sync::Arc;
use std::time::SystemTime;

use fabric_history::past::Past;
use fabric_observation::SharedState;
use fabric_observation::host::HostObservation;

use crate::condition;
use crate::model::Condition;
use crate::trends::Trends;

/// A published state, with what is derived from it and from the states before it.
#[derive(Debug)]
pub struct LiveState {
    /// What the monitors published.
    pub state: SharedState,
    /// What the hosts of each fabric sent in the latest sweeps.
    pub trends: Trends,
    /// The reading of the host before the latest one.
    pub previous_host: Option<Arc<HostObservation>>,
    /// The conditions of the fabrics, as the latest sweeps found them.
    conditions: Arc<[Condition]>,
}

impl LiveState {
    /// The first state.
    pub fn first(state: SharedState) -> Self {
        Self::derive(None, state)
    }

    /// The state that follows this one. Nothing is derived again from fabrics that did not change.
    #[must_use]
    pub fn next(&self, state: SharedState) -> Self {
        Self::derive(Some(self), state)
    }

    /// The state at a moment of the past. Of the host's devices and of jobs nothing is recorded.
    pub fn past(past: &Past) -> Self {
        let state = SharedState { as_of: Some(past.at), ..SharedState::from(past.observations()) };
        Self::first(state)
    }

    /// The moment of which this state is, or the present: not before the latest sweep, as a simulated clock may be ahead
    /// of ours.
    pub fn now(&self) -> SystemTime {
        let swept = self.state.fabrics.iter().filter_map(|it| it.snapshot.as_ref());
        let latest = swept.map(|snapshot| snapshot.anchor.wall_of(snapshot.ended)).max();
        let present = || SystemTime::now().max(latest.unwrap_or(SystemTime::UNIX_EPOCH));
        self.state.as_of.unwrap_or_else(present)
    }

    fn derive(previous: Option<&LiveState>, state: SharedState) -> Self {
        let unchanged = previous.filter(|previous| previous.state.has_same_fabrics(&state));
        let (trends, conditions) = if let Some(previous) = unchanged {
            (previous.trends.clone(), Arc::clone(&previous.conditions))
        } else {
            let trends = previous.map_or_else(Trends::default, |previous| previous.trends.clone());
            let conditions = state.fabrics.iter().map(|fabric| condition::latest(fabric)).collect();
            (trends.with(&state), conditions)
        };
        let previous_host = previous.and_then(|previous| {
            let is_same = match (&previous.state.host, &state.host) {
                (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                _ => false,
            };
            if is_same { previous.previous_host.clone() } else { previous.state.host.clone() }
        });
        LiveState { state, trends, previous_host, conditions }
    }

    /// The conditions of the fabrics at a time, by which the latest sweep is recent or not.
    pub fn conditions(&self, now: SystemTime) -> impl Iterator<Item = Condition> + '_ {
        let fabrics = self.state.fabrics.iter().zip(&*self.conditions);
        fabrics.map(move |(observation, latest)| latest.clone().aged(observation, now))
    }
}
