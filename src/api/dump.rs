//! `/api/v1/history/dump`: a copy of a window of the history, written next to the history file and sent.
//!
//! One copy at a time is made or sent, since it is as large as the window; the last free bytes of the disk are
//! not used. The copy is a file without a name, so nothing is left of it. It is read on blocking threads: a slow
//! disk does not delay other requests.

use std::fs::File;
use std::io::Read;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;

use fabric_history::history_query::read_window;
use fabric_history::settings::LEAST_FREE;

use crate::api::history_service::{HistoryService, QueryResult, run_query, status_of};
use exporter_web::error_response::{bad_request, error_response, unavailable};

/// The bytes of one read. They come from the page cache mostly, since they were just written.
const CHUNK_BYTES: usize = 128 * 1024;

pub(super) async fn dump(State(history): State<HistoryService>, pairs: QueryResult) -> Response {
    let (file, pairs) = match history.open_request(pairs) {
        Ok(request) => request,
        Err(response) => return response,
    };
    let window = match read_window(&pairs) {
        Ok(window) => window,
        Err(problem) => return bad_request(&problem),
    };
    let Ok(permit) = history.dump_permits.try_acquire_owned() else {
        return unavailable("a copy is being made or fetched already: try again");
    };
    let result = run_query(file, move |reader| {
        let (dumped, file) = reader.dump_unnamed(window, LEAST_FREE)?;
        Ok(DumpBody::new(file, dumped.bytes, permit))
    });
    match result.await {
        Ok(Ok(body)) => {
            let head = [
                (header::CONTENT_TYPE, "application/vnd.sqlite3"),
                (header::CONTENT_DISPOSITION, "attachment; filename=\"history.db\""),
            ];
            (head, axum::body::Body::new(body)).into_response()
        }
        Ok(Err(error)) => error_response(status_of(&error), &error.to_string()),
        Err(_) => error_response(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be told"),
    }
}

/// The copy while it is sent.
struct DumpFile {
    file: File,
    /// No other copy is made until this is dropped. It moves with the file, also to a thread that waits for
    /// the disk: there is at most one such thread.
    _permit: OwnedSemaphorePermit,
}

/// The owner of the file.
enum DumpState {
    Idle(DumpFile),
    /// A blocking thread that reads a chunk.
    Reading(JoinHandle<(DumpFile, std::io::Result<Vec<u8>>)>),
    /// `None`: all is read, or a read failed.
    Done,
}

/// The body of the response: the bytes of the copy.
struct DumpBody {
    state: DumpState,
    left: u64,
}

impl DumpBody {
    fn new(file: File, bytes: u64, permit: OwnedSemaphorePermit) -> Self {
        // SQLite wrote through its own descriptor: the offset of this one is still 0.
        DumpBody { state: DumpState::Idle(DumpFile { file, _permit: permit }), left: bytes }
    }
}

impl Body for DumpBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut thread = match std::mem::replace(&mut self.state, DumpState::Done) {
            DumpState::Done => return Poll::Ready(None),
            DumpState::Reading(thread) => thread,
            DumpState::Idle(mut dump) => {
                let bytes = CHUNK_BYTES.min(usize::try_from(self.left).unwrap_or(CHUNK_BYTES));
                tokio::task::spawn_blocking(move || {
                    let mut chunk = vec![0; bytes];
                    let read = dump.file.read_exact(&mut chunk);
                    (dump, read.map(|()| chunk))
                })
            }
        };
        let Poll::Ready(read) = Pin::new(&mut thread).poll(cx) else {
            self.state = DumpState::Reading(thread);
            return Poll::Pending;
        };
        let (dump, read) = read.map_err(std::io::Error::other)?;
        let chunk = read?;
        self.left -= chunk.len() as u64;
        self.state = DumpState::Idle(dump);
        Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
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
        let (disk, mut writes) = std::io::pipe().unwrap();
        let permits = Arc::new(Semaphore::new(1));
        let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
        let body = DumpBody::new(std::os::fd::OwnedFd::from(disk).into(), 5, permit);
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
