//! What can happen in a cell.

use ib_mad::Counter;
use ib_mad::rate::Width;

use crate::cell::Optics;
use crate::rates::Event;

/// What happens at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "the other names say it")]
pub enum Action {
    /// A node is off for so many seconds, and its counters start at zero then.
    NodeDown(usize, f64),
    NodeUp(usize),
    /// A cable loses its link for so many seconds. Of its two ends these count it.
    LinkDown {
        cable: usize,
        seconds: f64,
        counted: [bool; 2],
    },
    /// The link trains, if nothing else has happened to it since.
    LinkUp {
        cable: usize,
        transition: u32,
    },
    /// Another tool clears the counters of a port, or of all.
    ClearPort(usize),
    ClearFabric,
    Silent(usize, f64),
    Impossible(usize, Counter, f64),
    /// A host on the second side of a cable is slow, or not any more; see [`Cable`](crate::cell::Cable).
    Congestion(usize, Option<(f64, bool)>),
    Burst(usize, u64),
    Retrain(usize),
    SmFailover(f64),
    /// The exporter does not sweep for so long.
    Gap(f64),
    Restart,
    /// The receivers at both ends have this ratio from now on, as multiples of the limit.
    Errors(usize, [f64; 2]),
    /// The ratio of the fault grows by this natural logarithm per second.
    Drift(usize, f64),
    PreFec(usize, [f64; 2]),
    /// The cable trains with so many lanes; it does so now.
    Lanes(usize, Width),
    Hot(usize, usize),
    Dark(usize, usize),
    Optics(usize, Optics),
    /// The cable is in the maintenance file for so many seconds.
    Announce(usize, f64),
    /// Only notes what the following actions belong to.
    Note(usize, Event),
}
