//! `/api/v1/history/…`: queries of the history file, and the limits under which they and the pages run.
//!
//! A query never delays a scrape: it runs on a thread of its own with a reader of its own, few run at a time,
//! and answers are bounded: events are paged, and a series has a maximum number of readings. The query of a
//! client that disconnects is interrupted.

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rusqlite::InterruptHandle;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinError};

use fabric_history::history_query::{DUMP, HistoryQuery, InvalidQuery, PATH, Pairs};
use fabric_history::source::SourceError;
use fabric_history::{HistoryError, Reader};

use exporter_web::error_response::{bad_request, error_response, unavailable};

use super::{JSON, dump};

/// Queries that run at the same time. Each may hold its answer in memory.
const MAX_CONCURRENT_QUERIES: usize = 4;

/// The most readings of one answer: 40 bytes each in memory, and about 30 as JSON. That is 256 ports with
/// all counters for 45 minutes, sweep by sweep. Four such answers take 140 MB.
const MAX_READINGS: usize = 500_000;

/// How long a query waits for a permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(20);

/// An abandoned query is interrupted this often until it ends, since SQLite forgets an interrupt that arrives
/// between two statements.
const INTERRUPT_EVERY: Duration = Duration::from_millis(10);

/// The query parameters of a request, or the reason why they cannot be decoded.
pub type QueryResult = Result<Query<Pairs>, QueryRejection>;

/// The history file, and the permits that limit its use.
#[derive(Clone, Debug)]
pub struct HistoryService {
    file: Option<Arc<Path>>,
    /// One permit for each query that may run now.
    pub query_permits: Arc<Semaphore>,
    /// One permit: a single dump is made and sent at a time.
    pub dump_permits: Arc<Semaphore>,
}

impl HistoryService {
    /// The service of a history file; without a file each request is answered by 404.
    pub fn new(file: Option<Arc<Path>>) -> Self {
        let [query_permits, dump_permits] =
            [MAX_CONCURRENT_QUERIES, 1].map(|permits| Arc::new(Semaphore::new(permits)));
        HistoryService { file, query_permits, dump_permits }
    }

    /// The file, if there is a history.
    pub fn file(&self) -> Option<&Arc<Path>> {
        self.file.as_ref()
    }

    /// The file and the query parameters, or the response that says which of them is missing or wrong.
    #[expect(clippy::result_large_err, reason = "a response, once a request")]
    pub fn open_request(&self, query: QueryResult) -> Result<(Arc<Path>, Pairs), Response> {
        let Some(file) = &self.file else {
            let problem =
                "nothing is recorded here: the exporter was started without --history.file";
            return Err(error_response(StatusCode::NOT_FOUND, problem));
        };
        let Query(pairs) = query.map_err(|rejection| bad_request(&rejection.body_text()))?;
        Ok((Arc::clone(file), pairs))
    }
}

/// Runs a query with its own reader on a blocking thread. When the future is dropped, because the client
/// disconnected or the response took too long, the reader is interrupted: what the query holds, such as its
/// permit, is released soon after.
pub async fn run_query<T: Send + 'static>(
    file: Arc<Path>,
    query: impl FnOnce(&Reader) -> Result<T, SourceError> + Send + 'static,
) -> Result<Result<T, SourceError>, JoinError> {
    let handle = Arc::new(OnceLock::new());
    let weak = Arc::downgrade(&handle);
    let thread = tokio::task::spawn_blocking(move || {
        let reader = Reader::open(&file)?.limited(MAX_READINGS);
        // Nothing else sets it.
        let _ = handle.set(reader.interrupt_handle());
        query(&reader)
    });
    let _guard = InterruptOnDrop { thread: thread.abort_handle(), handle: weak };
    thread.await
}

/// Interrupts a query that still runs when this is dropped.
struct InterruptOnDrop {
    thread: AbortHandle,
    /// Alive while the query runs; set once its reader is open.
    handle: Weak<OnceLock<InterruptHandle>>,
}

impl Drop for InterruptOnDrop {
    fn drop(&mut self) {
        // A query that has not started will not start.
        self.thread.abort();
        let handle = std::mem::take(&mut self.handle);
        if handle.strong_count() == 0 {
            return;
        }
        // Without a runtime the process is about to end.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            while let Some(handle) = handle.upgrade() {
                if let Some(reader) = handle.get() {
                    reader.interrupt();
                }
                drop(handle);
                tokio::time::sleep(INTERRUPT_EVERY).await;
            }
        });
    }
}

/// The status of a failed query: 400 if it requests too much, 500 for a damaged file, 503 for what may
/// pass.
pub fn status_of(error: &SourceError) -> StatusCode {
    match error {
        SourceError::File(HistoryError::TooMuch { .. }) => StatusCode::BAD_REQUEST,
        SourceError::File(error) if error.is_damage() => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// The routes. The dump has its own below the path of the queries.
pub(super) fn router(history: HistoryService) -> Router {
    Router::new()
        .route(&format!("{PATH}/{{question}}"), get(query))
        .route(DUMP, get(dump::dump))
        .with_state(history)
}

async fn query(
    State(history): State<HistoryService>,
    UrlPath(name): UrlPath<String>,
    pairs: QueryResult,
) -> Response {
    let (file, pairs) = match history.open_request(pairs) {
        Ok(request) => request,
        Err(response) => return response,
    };
    let query = match HistoryQuery::read(&name, &pairs) {
        Ok(query) => query,
        Err(InvalidQuery::Name(problem)) => return error_response(StatusCode::NOT_FOUND, &problem),
        Err(InvalidQuery::Parameters(problem)) => return bad_request(&problem),
    };
    let permit = tokio::time::timeout(PERMIT_TIMEOUT, history.query_permits.acquire_owned()).await;
    let Ok(Ok(permit)) = permit else {
        return unavailable("too many ask the history at once: try again");
    };
    let result = run_query(file, move |reader| {
        let _permit = permit;
        query.answer(reader)
    });
    match result.await {
        Ok(Ok(Ok(json))) => ([(header::CONTENT_TYPE, JSON)], json).into_response(),
        Ok(Err(error)) => error_response(status_of(&error), &error.to_string()),
        _ => error_response(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be told"),
    }
}
