//! What frames are about, and so how long they are of use.

use crate::fabric::Counter;
use crate::fabric::counter::Kind as CounterKind;

/// How long a frame is of use, and what its numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tier {
    /// What seldom grows: errors, and what links went through.
    Rare = 0,
    /// What grows all the time: traffic, waits, and what error correction mends.
    Busy = 1,
    /// What counters came to that were never recorded before.
    First = 2,
    /// What all counters came to: nothing before it is needed to tell totals.
    All = 3,
}

impl Tier {
    /// The tier of what a counter grows by.
    pub fn of(counter: Counter) -> Tier {
        use Counter::{FecCorrectedBlocks, FecCorrectedSymbols, XmitWait};
        match (counter.row().kind, counter) {
            (CounterKind::Traffic, _)
            | (_, XmitWait | FecCorrectedBlocks | FecCorrectedSymbols) => Tier::Busy,
            _ => Tier::Rare,
        }
    }
}
