//! Queries of the history for pages: with a permit of their own, and a short timeout.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};

use crate::api::history_service::{HistoryService, run_query};
use fabric_history::model::Window;
use fabric_history::source::SourceError;
use fabric_history::{Reader, Source};

use super::address;
use super::query_params::QueryParams;

/// How long a page waits for a permit. Its reader waits as well.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(3);

/// A window that ends now, of one of the lengths to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowChoice {
    /// Its name in addresses.
    pub name: &'static str,
    length: Duration,
}

impl WindowChoice {
    pub const HOURS_6: WindowChoice = WindowChoice::hours("6h", 6);
    pub const DAY: WindowChoice = WindowChoice::hours("24h", 24);
    pub const WEEK: WindowChoice = WindowChoice::hours("7d", 7 * 24);
    pub const MONTH: WindowChoice = WindowChoice::hours("30d", 30 * 24);
    /// All choices, the shortest first.
    pub const ALL: [WindowChoice; 5] =
        [Self::hours("1h", 1), Self::HOURS_6, Self::DAY, Self::WEEK, Self::MONTH];

    const fn hours(name: &'static str, hours: u64) -> Self {
        WindowChoice { name, length: Duration::from_secs(hours * 3_600) }
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

    /// The window that ends now, or at the last record: a simulated clock may be ahead of ours.
    pub fn until_now(self, source: &dyn Source) -> Result<Window, SourceError> {
        let now = SystemTime::now();
        let to = source.span()?.last.map_or(now, |last| last.max(now));
        Ok(Window { from: to.checked_sub(self.length).unwrap_or(SystemTime::UNIX_EPOCH), to })
    }
}

/// The result of a query.
#[derive(Debug)]
pub enum HistoryAnswer<T> {
    Ready(T),
    /// There is no history.
    NotRecorded,
    /// The query failed, or the history is busy; the text says why.
    Unavailable(String),
}

/// Runs a query.
pub async fn run<T: Send + 'static>(
    history: &HistoryService,
    query: impl FnOnce(&Reader) -> Result<T, SourceError> + Send + 'static,
) -> HistoryAnswer<T> {
    let Some(file) = history.file().cloned() else { return HistoryAnswer::NotRecorded };
    let permit = history.query_permits.clone().acquire_owned();
    let Ok(Ok(permit)) = tokio::time::timeout(PERMIT_TIMEOUT, permit).await else {
        let text = "Too many ask the history at once. Load this page again.";
        return HistoryAnswer::Unavailable(text.into());
    };
    let result = run_query(file, move |reader| {
        let _permit = permit;
        query(reader)
    });
    match result.await {
        Ok(Ok(answer)) => HistoryAnswer::Ready(answer),
        Ok(Err(error)) => {
            HistoryAnswer::Unavailable(format!("The history cannot be read: {error}."))
        }
        Err(_) => {
            let text = "The history cannot be told. The exporter's log may say why.";
            HistoryAnswer::Unavailable(text.into())
        }
    }
}

/// Runs a query with a timeout, for a page that is nearly complete without its result.
pub async fn run_within<T: Send + 'static>(
    limit: Duration,
    history: &HistoryService,
    query: impl FnOnce(&Reader) -> Result<T, SourceError> + Send + 'static,
) -> HistoryAnswer<T> {
    let busy = "The recorder is busy: it is left alone for now.";
    let answer = tokio::time::timeout(limit, run(history, query)).await;
    answer.unwrap_or_else(|_| HistoryAnswer::Unavailable(busy.into()))
}

impl<T> HistoryAnswer<T> {
    /// The answer, or the text to show in its place.
    pub fn ready(&self) -> Result<&T, Markup> {
        match self {
            HistoryAnswer::Ready(answer) => Ok(answer),
            HistoryAnswer::Unavailable(why) => Err(html! { p .quiet { (why) } }),
            HistoryAnswer::NotRecorded => Err(html! {
                p .quiet {
                    "Nothing is recorded here. Started with " code { "--history.file=FILE" }
                    ", the exporter keeps each sweep and each event, and this page shows their course."
                }
            }),
        }
    }
}

/// The links to the same page with other windows, up to the longest that it offers.
pub fn window_links(
    chosen: WindowChoice,
    longest: WindowChoice,
    path: &str,
    pairs: &[(&str, &str)],
) -> Markup {
    let offered = WindowChoice::ALL.into_iter().filter(|choice| choice.length <= longest.length);
    html! {
        nav .windows aria-label="Window" { ul {
            @for WindowChoice { name, .. } in offered { li {
                a href=(address::with(path, &[pairs, &[("window", name)]].concat()))
                    aria-current=[(name == chosen.name).then_some("true")] { (name) }
            } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn busy_history_is_not_waited_for() {
        let history = HistoryService::new(Some(std::path::Path::new("/nowhere/history.db").into()));
        let all = u32::try_from(history.query_permits.available_permits()).unwrap();
        let taken = history.query_permits.acquire_many(all).await.unwrap();
        let limit = Duration::from_millis(10);
        let answer = run_within(limit, &history, |_| Ok(())).await;
        let busy = "The recorder is busy";
        assert!(matches!(answer, HistoryAnswer::Unavailable(why) if why.contains(busy)));
        drop(taken);
        let answer = run_within(Duration::from_secs(60), &history, |_| Ok(())).await;
        let file = "/nowhere/history.db";
        assert!(matches!(answer, HistoryAnswer::Unavailable(why) if why.contains(file)));
        let answer = run_within(limit, &HistoryService::new(None), |_| Ok(())).await;
        assert!(matches!(answer, HistoryAnswer::NotRecorded));
    }
}
