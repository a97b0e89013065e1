//! Resets of counters: a tool cleared them, or their device was reset, and they count from zero again.
//!
//! A counter that decreased was reset: its value was counted since then. What it counted between the last reading and the
//! reset is lost, so the total is too low by that much; it never falls and never jumps. Each counter is checked separately,
//! because tools clear some of them and not others: one that was cleared and already shows more than before seems to have
//! grown by the difference. No counter wraps: all stop at their maximum.

use std::sync::Arc;

use ib_mad::Counter;
use ib_mad::counter::COUNT;

/// What counters had counted before their last reset, by counter.
pub type ResetOffsets = [u64; COUNT];

/// By how much a counter grew that showed one value after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub by: u64,
    /// It was reset in between.
    pub is_reset: bool,
}

impl Step {
    pub fn between(last: u64, now: u64) -> Step {
        match now.checked_sub(last) {
            Some(by) => Step { by, is_reset: false },
            None => Step { by: now, is_reset: true },
        }
    }
}

/// The [`ResetOffsets`] of a port: the total of a counter is its value and its offset.
///
/// Modulo 2^64, for a counter that was set to more than its total. `None` for most ports, whose counters were never reset,
/// which saves 280 bytes per port. Shared with the assessment.
#[derive(Clone, Debug, Default)]
pub(crate) struct CounterOffsets(Option<Arc<ResetOffsets>>);

impl CounterOffsets {
    /// The total of a counter that shows this value.
    pub fn total(&self, counter: Counter, value: u64) -> u64 {
        self.0.as_ref().map_or(0, |offsets| offsets[counter as usize]).wrapping_add(value)
    }

    /// A counter starts from 0 again after it showed `last`.
    pub fn add_reset(&mut self, counter: Counter, last: u64) {
        self.set(counter, self.total(counter, last));
    }

    /// Sets what a counter had counted.
    pub fn set(&mut self, counter: Counter, offset: u64) {
        let all = self.0.get_or_insert_with(|| Arc::new([0; COUNT]));
        Arc::make_mut(all)[counter as usize] = offset;
    }

    /// `None` if no counter was ever reset.
    pub fn shared(&self) -> Option<&Arc<ResetOffsets>> {
        self.0.as_ref()
    }
}
