//! The window of a query.

use std::time::{Duration, SystemTime};

use clap::Args;

use fabric_history::Source;
use fabric_history::model::Window;

use super::{Exit, Fatal, unreadable};
use fabric_history::local_clock::LocalClock;

/// The window's extent before and after `--at`.
const AROUND: Duration = Duration::from_secs(10 * 60);

/// The default length.
const DEFAULT_LENGTH: Duration = Duration::from_secs(24 * 3600);

/// A file whose last sweep is older than this is not being recorded.
const STALE_AFTER: Duration = Duration::from_secs(3600);

/// How long before the first sweep, and after the last one, there are events of the exporter itself.
const MARGIN: Duration = Duration::from_secs(10);

/// The arguments that name a window.
#[derive(Args, Clone, Debug, Default)]
pub struct WindowArgs {
    /// From then on: 2h (ago), 03:12, "2026-11-21 03:12", or RFC 3339 [default: a day before the end]
    #[arg(long, value_name = "TIME", conflicts_with = "at")]
    since: Option<String>,
    /// Until then; the same forms [default: all that there is]
    #[arg(long, value_name = "TIME", conflicts_with = "at")]
    until: Option<String>,
    /// Ten minutes before and after this time
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
}

impl WindowArgs {
    /// The window that the arguments name.
    pub fn window(&self, clock: &LocalClock, source: &dyn Source) -> Result<Window, Fatal> {
        if let Some(at) = &self.at {
            let at = parse_time(clock, "--at", at)?;
            let from = at.checked_sub(AROUND).unwrap_or(SystemTime::UNIX_EPOCH);
            return Ok(Window { from, to: at + AROUND });
        }
        let since =
            self.since.as_deref().map(|text| parse_time(clock, "--since", text)).transpose()?;
        let until =
            self.until.as_deref().map(|text| parse_time(clock, "--until", text)).transpose()?;
        // Of a file that is not being recorded, the last recorded day is shown.
        let known = source.span().map_err(unreadable)?;
        let is_stale = |last: &SystemTime| *last + STALE_AFTER < clock.time();
        let to = match known.last.filter(is_stale) {
            Some(last) if since.is_none() => until.unwrap_or(last + MARGIN),
            _ => until.unwrap_or_else(|| open_end(clock)),
        };
        let from = since.unwrap_or_else(|| {
            let end = known.last.unwrap_or(clock.time()).min(to);
            let day = end.checked_sub(DEFAULT_LENGTH).unwrap_or(SystemTime::UNIX_EPOCH);
            // With the exporter's start, which is before the first sweep.
            let first = known.first.and_then(|first| first.checked_sub(MARGIN));
            first.map_or(day, |first| first.max(day)).min(end)
        });
        if from > to {
            return Err(Fatal::new(Exit::Usage, "--until: is before --since"));
        }
        Ok(Window { from, to })
    }
}

/// The end of a window without `--until`: a simulated clock may be ahead of the host's.
pub(super) fn open_end(clock: &LocalClock) -> SystemTime {
    clock.time() + Duration::from_secs(365 * 24 * 3600)
}

/// Parses the time of a flag.
pub(super) fn parse_time(clock: &LocalClock, flag: &str, text: &str) -> Result<SystemTime, Fatal> {
    clock.parse(text).map_err(|error| Fatal::new(Exit::Usage, format!("{flag}: {error}")))
}
