//! What a link went through: losses, their lengths, and whose they were.

use std::time::Duration;

use crate::fabric::Moment;

/// The bounds of the histogram of outages, in seconds: what ends a job is how long it had to wait.
/// The time-outs of NCCL and MPI are about 7 and 14 s with common settings.
pub const BOUNDS: [f64; 7] = [1.0, 5.0, 7.0, 14.0, 30.0, 60.0, 300.0];

/// Why a link was down although nothing is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A node at its end was rebooted or reset.
    Reboot,
    /// Somebody said that it would be.
    Maintenance,
}

impl Expected {
    /// All of them.
    pub const ALL: [Expected; 2] = [Expected::Reboot, Expected::Maintenance];

    /// As metrics write it.
    pub fn label(self) -> &'static str {
        match self {
            Expected::Reboot => "reboot",
            Expected::Maintenance => "maintenance",
        }
    }
}

/// A link's outages so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outages {
    /// Losses of the link that nobody expected; one that both ends tell is one.
    pub flaps: u32,
    /// Those that were expected, by why.
    pub expected: [u32; Expected::ALL.len()],
    /// For how long it was down by flaps, as far as that was seen. One that is over between two
    /// looks has no length.
    pub down: Duration,
    /// For how long by what was expected.
    pub expected_down: Duration,
    /// How many flaps were at most so long as each bound, and longer than the one before; the last
    /// place has the longer ones.
    pub lengths: [u16; BOUNDS.len() + 1],
    /// Times that it retrained by itself (LinkErrorRecovery).
    pub recoveries: u32,
    /// When it went down or came up last.
    pub last_change: Option<Moment>,
}
