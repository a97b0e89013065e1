//! Taking the observations that monitors publish, each at most once. No monitor waits for it.
//!
//! The queue is the published state, in which a fabric's latest observation replaces the one before: a queue of length
//! one. A reader that falls behind therefore costs no memory (an observation of 60,000 ports is 20 MB) and delays
//! nothing. The monitor's count of sweeps shows how many it missed.

use std::sync::Arc;
use std::time::SystemTime;

use tokio::runtime::Runtime;
use tokio::sync::watch;

use fabric_observation::host::HostObservation;
use fabric_observation::{Observation, SharedState};

/// What is done with observations. `now` is the time of day.
pub(super) trait Observer {
    /// Takes one of a fabric.
    fn observe(&mut self, observation: &Observation, now: SystemTime);

    /// Takes one of the host's devices, except those that a fabric contains.
    fn observe_host(
        &mut self,
        host: &HostObservation,
        fabrics: &[Arc<Observation>],
        now: SystemTime,
    );
}

/// Passes on what is published until the sender of the published state is dropped.
pub(super) fn observe_each(
    observer: &mut impl Observer,
    mut receiver: watch::Receiver<SharedState>,
    runtime: &Runtime,
) {
    let mut last: Vec<Arc<Observation>> = Vec::new();
    let mut last_look = 0;
    loop {
        let (fabrics, host) = {
            let state = receiver.borrow_and_update();
            (state.fabrics.clone(), state.host.clone())
        };
        for (index, observation) in fabrics.iter().enumerate() {
            if last.get(index).is_none_or(|last| !Arc::ptr_eq(last, observation)) {
                observer.observe(observation, SystemTime::now());
            }
        }
        if let Some(host) = host.filter(|host| host.reads != last_look) {
            last_look = host.reads;
            observer.observe_host(&host, &fabrics, SystemTime::now());
        }
        last = fabrics;
        if runtime.block_on(receiver.changed()).is_err() {
            return;
        }
    }
}
