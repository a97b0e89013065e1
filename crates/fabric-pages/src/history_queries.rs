//! Queries of the history file for requests: few run at a time, each on a thread and with a reader of its own, and that of
//! a client that disconnects is interrupted. Pages wait for a permit only shortly.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use exporter_web::blocking;
use fabric_history::Reader;
use fabric_history::source::SourceError;
use maud::{Markup, Render, html};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::recent_moments::RecentMoments;

/// Queries that run at the same time. Each may hold its answer in memory.
const MAX_CONCURRENT_QUERIES: usize = 4;
/// The most readings of one answer: 40 bytes each in memory, and about 30 as JSON. That is 256 ports with
/// all counters for 45 minutes, sweep by sweep. Four such answers take 140 MB.
const MAX_READINGS: usize = 500_000;
/// How long a page waits for a permit. Its reader waits as well.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(3);

/// The history file, and the permits that limit its use.
#[derive(Clone, Debug)]
pub struct HistoryQueries {
    /// The file, if there is a history.
    pub file: Option<Arc<Path>>,
    /// One permit for each query that may run now.
    pub query_permits: Arc<Semaphore>,
    /// One permit: a single dump is made and sent at a time.
    pub dump_permits: Arc<Semaphore>,
    /// The moments of the past that were shown last.
    pub(crate) recent: RecentMoments,
}

impl HistoryQueries {
    /// The queries of a history file, if there is one.
    pub fn new(file: Option<Arc<Path>>) -> Self {
        let [query_permits, dump_permits] =
            [MAX_CONCURRENT_QUERIES, 1].map(|permits| Arc::new(Semaphore::new(permits)));
        HistoryQueries { file, query_permits, dump_permits, recent: RecentMoments::default() }
    }
}

/// Runs a query with its own reader on a blocking thread. When the future is dropped, because the client
/// disconnected or the response took too long, the reader is interrupted: what the query holds, such as its
/// permit, is released soon after. `None` if the query panicked.
pub async fn run_query<T: Send + 'static>(
    file: Arc<Path>,
    query: impl FnOnce(&Reader) -> Result<T, SourceError> + Send + 'static,
) -> Option<Result<T, SourceError>> {
    let client = Arc::new(());
    let waiting = Arc::downgrade(&client);
    // Aborts when it is dropped: a query that has not started when its client leaves will not start.
    let mut thread = JoinSet::new();
    let (permit, span) = (blocking::permit(), tracing::Span::current());
    thread.spawn_blocking(move || {
        let (_permit, _in_request) = (permit, span.entered());
        let is_over = move || waiting.strong_count() == 0;
        query(&Reader::open(&file)?.limited(MAX_READINGS).interrupted_when(is_over)?)
    });
    let result = thread.join_next().await;
    drop(client);
    result?.ok()
}

/// Why a page shows nothing from the history.
#[derive(Debug)]
pub enum NoHistory {
    NotRecorded,
    /// The query failed, or the history is busy; the text says why.
    Unavailable(String),
}

pub type HistoryAnswer<T> = Result<T, NoHistory>;

pub async fn run<T: Send + 'static>(
    history: &HistoryQueries,
    query: impl FnOnce(&Reader) -> Result<T, SourceError> + Send + 'static,
) -> HistoryAnswer<T> {
    let file = history.file.clone().ok_or(NoHistory::NotRecorded)?;
    let unavailable = |text: &str| NoHistory::Unavailable(text.into());
    let permit = history.query_permits.clone().acquire_owned();
    let Ok(Ok(permit)) = tokio::time::timeout(PERMIT_TIMEOUT, permit).await else {
        return Err(unavailable("Too many concurrent history queries. Reload this page."));
    };
    let result = run_query(file, move |reader| {
        let _permit = permit;
        query(reader)
    });
    let panicked = "Internal error while reading the history. See the exporter's log.";
    let answer = result.await.ok_or_else(|| unavailable(panicked))?;
    answer.map_err(|error| unavailable(&format!("Reading the history failed: {error}.")))
}

/// Runs a query with a timeout, for a page that is nearly complete without its result.
pub async fn run_within<T: Send + 'static>(
    limit: Duration,
    history: &HistoryQueries,
    query: impl FnOnce(&Reader) -> Result<T, SourceError> + Send + 'static,
) -> HistoryAnswer<T> {
    let busy = "The history is busy, so nothing of it is shown. Reload this page.";
    let answer = tokio::time::timeout(limit, run(history, query)).await;
    answer.unwrap_or_else(|_| Err(NoHistory::Unavailable(busy.into())))
}

impl Render for NoHistory {
    fn render(&self) -> Markup {
        html! { p .quiet { @match self {
            NoHistory::Unavailable(why) => (why),
            NoHistory::NotRecorded => {
                "No history is recorded. Start the exporter with " code { "--history.file=FILE" }
                " to record events and counters."
            }
        } } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn busy_history_is_not_waited_for() {
        let history = HistoryQueries::new(Some(Path::new("/nowhere/history.db").into()));
        let all = u32::try_from(history.query_permits.available_permits()).unwrap();
        let taken = history.query_permits.acquire_many(all).await.unwrap();
        let limit = Duration::from_millis(10);
        let answer = run_within(limit, &history, |_| Ok(())).await;
        let busy = "The history is busy";
        assert!(matches!(answer, Err(NoHistory::Unavailable(why)) if why.contains(busy)));
        drop(taken);
        let answer = run_within(Duration::from_secs(60), &history, |_| Ok(())).await;
        let file = "/nowhere/history.db";
        assert!(matches!(answer, Err(NoHistory::Unavailable(why)) if why.contains(file)));
        let answer = run_within(limit, &HistoryQueries::new(None), |_| Ok(())).await;
        assert!(matches!(answer, Err(NoHistory::NotRecorded)));
    }
}
