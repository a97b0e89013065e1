//! The period that a page shows of the history.

use std::time::{Duration, SystemTime};

use fabric_history::Source;
use fabric_history::model::{Span, Window};
use fabric_history::source::SourceError;

use super::query_params::QueryParams;

/// A window that ends now, or at the moment that is shown, of one of the lengths to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowChoice {
    pub name: &'static str,
    /// As text: `24 hours`.
    pub label: &'static str,
    length: Duration,
}

impl WindowChoice {
    pub const HOUR: WindowChoice = WindowChoice::hours("1h", "hour", 1);
    pub const HOURS_6: WindowChoice = WindowChoice::hours("6h", "6 hours", 6);
    pub const DAY: WindowChoice = WindowChoice::hours("24h", "24 hours", 24);
    pub const WEEK: WindowChoice = WindowChoice::hours("7d", "7 days", 7 * 24);
    pub const MONTH: WindowChoice = WindowChoice::hours("30d", "30 days", 30 * 24);
    /// All choices, the shortest first.
    pub const ALL: [WindowChoice; 5] =
        [Self::HOUR, Self::HOURS_6, Self::DAY, Self::WEEK, Self::MONTH];

    const fn hours(name: &'static str, label: &'static str, hours: u64) -> Self {
        WindowChoice { name, label, length: Duration::from_secs(hours * 3_600) }
    }

    /// The choice that the query names, or the default.
    pub fn parse(query: &QueryParams, default: WindowChoice) -> Result<Self, String> {
        let chosen = query.parse("window", |name| {
            let names = || WindowChoice::ALL.map(|choice| choice.name).join(", ");
            let chosen = WindowChoice::ALL.into_iter().find(|choice| choice.name == name);
            chosen.ok_or_else(|| format!("must be one of: {}", names()))
        })?;
        Ok(chosen.unwrap_or(default))
    }

    /// The window that ends at a moment or, without one, now or at the last record: a simulated clock may be ahead of
    /// ours.
    pub fn until(
        self,
        end: Option<SystemTime>,
        source: &dyn Source,
    ) -> Result<Window, SourceError> {
        Ok(self.window(end, source.span()?))
    }

    /// The part of that window that was recorded: a plot of it is not mostly empty.
    pub fn recorded(
        self,
        end: Option<SystemTime>,
        source: &dyn Source,
    ) -> Result<Window, SourceError> {
        let span = source.span()?;
        Ok(fitted(self.window(end, span), span))
    }

    fn window(self, end: Option<SystemTime>, recorded: Span) -> Window {
        let now = || {
            let now = SystemTime::now();
            recorded.last.map_or(now, |last| last.max(now))
        };
        let to = end.unwrap_or_else(now);
        Window { from: to.checked_sub(self.length).unwrap_or(SystemTime::UNIX_EPOCH), to }
    }
}

/// The shortest time that a plot shows, after a start.
const SHORTEST_PLOT: Duration = Duration::from_secs(2 * 60);

/// The part of a window that was recorded.
fn fitted(window: Window, recorded: Span) -> Window {
    let shortest = window.to.checked_sub(SHORTEST_PLOT).unwrap_or(window.from);
    let first = recorded.first.unwrap_or(window.from).min(shortest);
    Window { from: window.from.max(first), ..window }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plot_begins_with_the_first_record() {
        let at = |minute: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(60 * minute);
        let window = Window { from: at(1_000), to: at(1_360) };
        for (first, from) in
            [(Some(500), 1_000), (Some(1_300), 1_300), (Some(1_359), 1_358), (None, 1_000)]
        {
            let recorded = Span { first: first.map(at), last: None };
            assert_eq!(fitted(window, recorded), Window { from: at(from), ..window }, "{first:?}");
        }
    }
}
