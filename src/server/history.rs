//! `/api/v1/history/…`: queries of the history file, a copy of a time window of it, and the limits of these and of
//! the pages.
//!
//! A query never delays a scrape: it runs on a thread of its own with a reader of its own, few run at a time,
//! and answers are bounded: events are paged, and a series has a maximum number of readings. The query of a
//! client that disconnects is interrupted.
//!
//! One copy at a time is written next to the history file and sent, since it is as large as the window; the last
//! free bytes of the disk are not used. It is a file without a name, so nothing is left of it. It is read on a blocking
//! thread: a slow disk does not delay other requests.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use fabric_history::HistoryError;
use fabric_history::history_query::{DUMP, HistoryQuery, InvalidQuery, PATH, read_window};
use fabric_history::parameters::Pairs;
use fabric_history::settings::LEAST_FREE;
use fabric_history::source::SourceError;

use exporter_web::error_response::{bad_request, error_response, internal_error, unavailable};

use fabric_pages::{HistoryQueries, QueryResult, run_query};

pub(super) const JSON: &str = "application/json";
const PERMIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The file and the query parameters, or the response that says which of them is missing or wrong.
#[expect(clippy::result_large_err, reason = "a response, once a request")]
fn open_request(
    history: &HistoryQueries,
    query: QueryResult,
) -> Result<(Arc<Path>, Pairs), Response> {
    let Some(file) = &history.file else {
        let problem = "no history: the exporter was started without --history.file";
        return Err(error_response(StatusCode::NOT_FOUND, problem));
    };
    let Query(pairs) = query.map_err(|rejection| bad_request(&rejection.body_text()))?;
    Ok((Arc::clone(file), pairs))
}

/// A response, or that to a request that cannot be answered.
type Answer = Result<Response, Response>;

/// The response to a failed query: 400 if it requests too much, 500 for a damaged file, 503 for a failure that
/// may be temporary.
fn failed(error: &SourceError) -> Response {
    let status = match error {
        SourceError::File(HistoryError::TooMuch { .. }) => StatusCode::BAD_REQUEST,
        SourceError::File(error) if error.is_damage() => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    };
    error_response(status, &error.to_string())
}

/// The routes. The dump has its own below the path of the queries.
pub(super) fn router(history: HistoryQueries) -> Router {
    Router::new()
        .route(&format!("{PATH}/{{question}}"), get(query))
        .route(DUMP, get(dump))
        .with_state(history)
}

async fn query(
    State(history): State<HistoryQueries>,
    UrlPath(name): UrlPath<String>,
    pairs: QueryResult,
) -> Answer {
    let (file, pairs) = open_request(&history, pairs)?;
    let query = HistoryQuery::read(&name, &pairs).map_err(|invalid| match invalid {
        InvalidQuery::Name(problem) => error_response(StatusCode::NOT_FOUND, &problem),
        InvalidQuery::Parameters(problem) => bad_request(&problem),
    })?;
    let permit = tokio::time::timeout(PERMIT_TIMEOUT, history.query_permits.acquire_owned()).await;
    let Ok(Ok(permit)) = permit else {
        return Err(unavailable("too many concurrent history queries: try again"));
    };
    let result = run_query(file, move |reader| {
        let _permit = permit;
        query.answer(reader)
    });
    let json = result.await.ok_or_else(internal_error)?.map_err(|error| failed(&error))?;
    let json = json.map_err(|_| internal_error())?;
    Ok(([(header::CONTENT_TYPE, JSON)], json).into_response())
}

/// The bytes of one read. They come from the page cache mostly, since they were just written.
const CHUNK_BYTES: usize = 128 * 1024;

async fn dump(State(history): State<HistoryQueries>, pairs: QueryResult) -> Answer {
    let (file, pairs) = open_request(&history, pairs)?;
    let window = read_window(&pairs).map_err(|problem| bad_request(&problem))?;
    let permit = history.dump_permits.try_acquire_owned();
    let permit =
        permit.map_err(|_| unavailable("another copy of the history is in progress: try again"))?;
    let result = run_query(file, move |reader| {
        let (dumped, file) = reader.dump_unnamed(window, LEAST_FREE)?;
        Ok((dumped.bytes, DumpBody::new(file, dumped.bytes, permit)))
    });
    let (bytes, body) = result.await.ok_or_else(internal_error)?.map_err(|error| failed(&error))?;
    let head = [
        (header::CONTENT_TYPE, "application/vnd.sqlite3"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"history.db\""),
    ];
    let length = [(header::CONTENT_LENGTH, bytes)];
    Ok((head, length, axum::body::Body::new(body)).into_response())
}

/// The chunks of the copy, as a blocking thread reads them. The permit is that thread's, which waits for the disk and
/// the client: there is at most one such thread.
struct DumpBody(mpsc::Receiver<io::Result<Bytes>>);

impl DumpBody {
    fn new(mut file: File, bytes: u64, permit: OwnedSemaphorePermit) -> Self {
        let (sender, chunks) = mpsc::channel(1);
        tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut left = bytes;
            // SQLite wrote through its own descriptor: the offset of this one is still 0.
            while left > 0 {
                let bytes = CHUNK_BYTES.min(usize::try_from(left).unwrap_or(CHUNK_BYTES));
                let mut chunk = vec![0; bytes];
                let read = file.read_exact(&mut chunk);
                // Sending fails once the client has disconnected.
                let failed = read.is_err();
                if sender.blocking_send(read.map(|()| chunk.into())).is_err() || failed {
                    return;
                }
                left -= bytes as u64;
            }
        });
        DumpBody(chunks)
    }
}

impl Body for DumpBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(cx).map(|chunk| Some(chunk?.map(Frame::data)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tokio::sync::Semaphore;

    use super::*;

    /// An empty pipe simulates a disk that hangs.
    #[test]
    fn hanging_disk_does_not_block_other_tasks() {
        let (disk, mut writes) = io::pipe().unwrap();
        let permits = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        // If a read blocked the only thread, the test would never end.
        let (mut also_writes, was_blocked) = (writes.try_clone().unwrap(), Arc::default());
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let blocked: Arc<AtomicBool> = Arc::clone(&was_blocked);
        let rescue = std::thread::spawn(move || {
            if receiver.recv_timeout(Duration::from_secs(10)).is_err() {
                blocked.store(true, Ordering::SeqCst);
                also_writes.write_all(b"12345").unwrap();
            }
        });
        let read = runtime.block_on(async {
            let body = DumpBody::new(std::os::fd::OwnedFd::from(disk).into(), 5, permit);
            let body = tokio::spawn(axum::body::to_bytes(axum::body::Body::new(body), 100));
            // The first chunk is requested before the other task runs.
            tokio::task::yield_now().await;
            let other = tokio::spawn(async move {
                // After a rescue the receiver is gone, and all is read.
                if sender.send(()).is_ok() {
                    writes.write_all(b"abcde").unwrap();
                }
            });
            other.await.unwrap();
            body.await.unwrap().unwrap()
        });
        rescue.join().unwrap();
        assert!(!was_blocked.load(Ordering::SeqCst), "a read of the disk blocked the others");
        assert_eq!(read, "abcde");
        assert_eq!(permits.available_permits(), 1);
    }
}
