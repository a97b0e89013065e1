//! The moments of the past that were shown last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use fabric_api::LiveState;
use fabric_history::model::time;
use fabric_history::past::Past;

/// How many moments are kept, so that the pages of one need not be read from the file again: two that are compared, and
/// the one before. One of 5,000 hosts takes 12 MB.
const KEPT: usize = 3;

/// A moment that a page shows, and the state at that time.
#[derive(Debug)]
pub struct ShownMoment {
    /// What the history has of it.
    pub past: Past,
    /// The state.
    pub live: Arc<LiveState>,
}

impl ShownMoment {
    /// The moment, as an address has it.
    pub fn text(&self) -> String {
        time::text(self.past.at)
    }
}

/// The moments that were shown last, the latest first.
#[derive(Clone, Debug, Default)]
pub struct RecentMoments(Arc<Mutex<VecDeque<Arc<ShownMoment>>>>);

impl RecentMoments {
    /// A moment, if it is kept.
    pub fn find(&self, at: SystemTime) -> Option<Arc<ShownMoment>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|moment| moment.past.at == at)?;
        let found = kept.remove(place)?;
        kept.push_front(Arc::clone(&found));
        Some(found)
    }

    /// Keeps a moment.
    pub fn keep(&self, moment: &Arc<ShownMoment>) {
        // More may be recorded of a moment after the last sweep.
        if moment.past.neighbors.sweeps[1].is_some() {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_front(Arc::clone(moment));
            kept.truncate(KEPT);
        }
    }
}
