//! A moment of the past for commands: from a history file, or from an exporter that records one.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Args;
use fabric_history::Reader;
use fabric_history::local_clock::LocalClock;
use fabric_observation::SharedState;

use crate::exit::Fatal;

/// Which moment is shown.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Past")]
pub struct PastArgs {
    /// Show the fabric as it was at this time
    ///
    /// From the history of --url, or of --file: the latest sweep that had ended by then. 2h (ago), 03:12,
    /// "2026-11-21 03:12", or RFC 3339 as in 2026-11-21T03:12:00Z. LIDs, firmware, modules, temperatures and bit error
    /// ratios are not recorded, nor totals of traffic and of corrected errors.
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// History file for --at
    ///
    /// --history.file of the "serve" command; it can be in use by a running exporter.
    #[arg(long, value_name = "FILE", requires = "at", conflicts_with = "url")]
    pub(super) file: Option<PathBuf>,
}

impl PastArgs {
    /// The moment, if one is given.
    pub(super) fn at(&self) -> Result<Option<SystemTime>, Fatal> {
        let parse = |text: &String| {
            LocalClock::now().parse(text).map_err(|error| Fatal::usage(format!("--at: {error}")))
        };
        self.at.as_ref().map(parse).transpose()
    }
}

/// The state of a file at a moment, and what is known less well of it than it was then.
pub(super) fn read(file: &Path, at: SystemTime) -> Result<(SharedState, Vec<String>), Fatal> {
    let (past, clock) = (Reader::open(file)?.past(at, &[])?, LocalClock::now());
    if past.fabrics.is_empty() {
        let begins = match past.neighbors.span.first {
            Some(first) => format!("it begins at {}", clock.format(first)),
            None => "it is empty".into(),
        };
        let (file, at) = (file.display(), clock.format(at));
        return Err(Fatal::usage(format!("--at: {file} has no data for {at}: {begins}")));
    }
    let state = SharedState { as_of: Some(at), ..SharedState::from(past.observations()) };
    let notes = past.limits(&clock).into_iter().map(|limit| format!("note: {limit}"));
    Ok((state, notes.collect()))
}
