//! What a poll of a source has.

use std::time::Duration;

use fabric_dumps::Dump;

/// What the interval of a source is taken for until it is known: that of the secondary telemetry of UFM.
pub(super) const USUAL_INTERVAL: Duration = Duration::from_secs(300);

/// Why a poll has no data.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PollError {
    /// The exporter stops.
    Stopped,
    /// In one line, with what to do.
    Problem(String),
}

/// The data of a poll.
#[derive(Debug)]
pub(super) enum Polled {
    /// The source was not asked: it cannot have anything new, or is given time to recover.
    NotDue,
    /// Its files are being written.
    Unsettled,
    /// It has what it had.
    Unchanged,
    /// What is new, the oldest first.
    New(Vec<Dump>),
}

/// What is wrong with a source that answers, and has had the same data for so long.
pub(super) fn stands_still(since: Duration) -> String {
    let minutes = since.as_secs() / 60;
    format!(
        "the data has not changed for {minutes} minutes: see whether the program that collects it runs"
    )
}
