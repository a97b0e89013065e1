//! Whether a loop hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A counter of loop iterations; clones share it.
///
/// [`run`](crate::plan::run) and [`drain_until`](crate::plan::drain_until) tick it at least every 100 ms, however dead
/// the fabric is. So a hanging thread can be distinguished from a long discovery.
#[derive(Clone, Debug, Default)]
pub struct Heartbeat(Arc<AtomicU64>);

impl Heartbeat {
    /// Counts one iteration.
    pub fn tick(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of iterations so far.
    pub fn ticks(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
