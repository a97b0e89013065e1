//! What frames are about, and so how long they are of use.

use ib_mad::Counter;
use ib_mad::counter::CounterKind;

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
    /// What became of ports and their links since the sweep before.
    Ports = 4,
    /// How all ports and links were.
    AllPorts = 5,
    /// Which nodes began or ceased to answer.
    Nodes = 6,
    /// Which of all nodes answered.
    AllNodes = 7,
}

/// Ports by their number in the file that stand in one row of traffic, and of what is digested. With
/// 60,000 ports a link's traffic is then in a sixtieth of the data, in rows of 25 KB.
pub(crate) const PORTS_A_PART: u32 = 1_024;

/// The part that a port is in.
pub(crate) fn part_of(port: u32) -> u32 {
    port / PORTS_A_PART
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
