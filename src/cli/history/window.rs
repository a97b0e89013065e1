//! Which span of time is meant.

use std::time::{Duration, SystemTime};

use clap::Args;

use fabric_history::Source;
use fabric_history::model::Window;

use super::{Exit, Fatal, unreadable};
use fabric_history::clock::Clock;

/// How far around `--at` is looked.
const AROUND: Duration = Duration::from_secs(10 * 60);

/// What is meant where nothing is said.
const USUAL: Duration = Duration::from_secs(24 * 3600);

/// After so long without a sweep nobody records any more, or something else is wrong.
const OVER: Duration = Duration::from_secs(3600);

/// How long before the first sweep a history begins to tell, and after the last one ends.
const BESIDE: Duration = Duration::from_secs(10);

/// A span of time, as people say it.
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
    /// The span that is meant.
    pub fn window(&self, clock: &Clock, source: &dyn Source) -> Result<Window, Fatal> {
        if let Some(at) = &self.at {
            let at = asked(clock, "--at", at)?;
            let from = at.checked_sub(AROUND).unwrap_or(SystemTime::UNIX_EPOCH);
            return Ok(Window { from, to: at + AROUND });
        }
        let since = self.since.as_deref().map(|text| asked(clock, "--since", text)).transpose()?;
        let until = self.until.as_deref().map(|text| asked(clock, "--until", text)).transpose()?;
        // Of a file that nobody writes any more the last day is the one that is of interest.
        let known = source.span().map_err(unreadable)?;
        let is_over = |last: &SystemTime| *last + OVER < clock.time();
        let to = match known.last.filter(is_over) {
            Some(last) if since.is_none() => until.unwrap_or(last + BESIDE),
            _ => until.unwrap_or_else(|| far(clock)),
        };
        let from = since.unwrap_or_else(|| {
            let end = known.last.unwrap_or(clock.time()).min(to);
            let day = end.checked_sub(USUAL).unwrap_or(SystemTime::UNIX_EPOCH);
            // With what was told just beside sweeps: that the exporter was started, and ended.
            let first = known.first.and_then(|first| first.checked_sub(BESIDE));
            first.map_or(day, |first| first.max(day)).min(end)
        });
        if from > to {
            return Err(Fatal::new(Exit::Usage, "--until: is before --since"));
        }
        Ok(Window { from, to })
    }
}

/// The end of what is asked for where nobody names one: a simulated clock may be ahead of ours.
pub(super) fn far(clock: &Clock) -> SystemTime {
    clock.time() + Duration::from_secs(365 * 24 * 3600)
}

/// A time that somebody asked for.
pub(super) fn asked(clock: &Clock, flag: &str, text: &str) -> Result<SystemTime, Fatal> {
    clock.read(text).map_err(|error| Fatal::new(Exit::Usage, format!("{flag}: {error}")))
}
