//! Totals of a replica: another exporter that sweeps the same fabric.
//!
//! Both read the same counters, so their totals differ only by what each saw of resets: what a counter had counted before
//! its last reset ([`ResetOffsets`](super::counter_resets::ResetOffsets)). A sweep every 15 s has seen more of it than one
//! every minute, and one that started later has seen nothing. When a Prometheus that scrapes one of them turns to the
//! other, a lower total looks like another reset, and `rate()` adds the whole total.
//!
//! The true count is at least what either saw. So each takes over the larger offset, and after that both have the same
//! totals, with any number of replicas and in any order.

use std::collections::HashMap;

use ib_mad::{Counter, Moment, PortKey};

/// What a replica knows of the ports whose counters were ever reset.
#[derive(Clone, Debug, Default)]
pub struct ReplicaTotals(pub HashMap<PortKey, Vec<ReplicaCounter>>);

/// A counter in the totals of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaCounter {
    /// Which one.
    pub counter: Counter,
    /// What it had counted before its last reset.
    pub offset: u64,
    /// What the device showed when it was read last; `None` if the replica's latest sweep did not read it.
    pub raw: Option<u64>,
    /// It was read after the first of these moments of our own clock, and before the second.
    pub read: [Moment; 2],
}

impl ReplicaTotals {
    /// Replaces these totals by later ones. A counter that the replica could not read now keeps its last value.
    pub fn update(&mut self, mut later: ReplicaTotals) {
        for (end, counters) in &mut later.0 {
            let Some(before) = self.0.get(end) else { continue };
            for counter in counters.iter_mut().filter(|it| it.raw.is_none()) {
                let known = before.iter().find(|known| known.counter == counter.counter);
                *counter = known.copied().unwrap_or(*counter);
            }
        }
        *self = later;
    }
}
