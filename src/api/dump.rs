//! `/api/v1/history/dump`: a copy of a window, made beside the history and given away.
//!
//! One is made or given away at a time, for each is as large as the window; the disk's last bytes are left
//! alone. The copy has no name while it is written and given away, so that nothing stays of it. It is read
//! on threads that may wait for a disk: those that serve others do not.

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

use fabric_history::question::read_window;
use fabric_history::settings::LEAST_FREE;

use crate::api::archive;
use crate::api::archive::{Archive, Said, status_of};
use exporter_web::refusal::{busy, refused, wrong};

/// How much is read at a time: from memory, mostly, for it was just written.
const CHUNK: usize = 128 * 1024;

pub(super) async fn dump(State(archive): State<Archive>, pairs: Said) -> Response {
    let (file, pairs) = match archive.asked(pairs) {
        Ok(asked) => asked,
        Err(refusal) => return refusal,
    };
    let window = match read_window(&pairs) {
        Ok(window) => window,
        Err(problem) => return wrong(&problem),
    };
    let Ok(seat) = archive.copies.try_acquire_owned() else {
        return busy("a copy is being made or fetched already: try again");
    };
    let made = archive::answer(file, move |reader| {
        let (dumped, file) = reader.dump_unnamed(window, LEAST_FREE)?;
        Ok(Copied::new(file, dumped.bytes, seat))
    });
    match made.await {
        Ok(Ok(copied)) => {
            let head = [
                (header::CONTENT_TYPE, "application/vnd.sqlite3"),
                (header::CONTENT_DISPOSITION, "attachment; filename=\"history.db\""),
            ];
            (head, axum::body::Body::new(copied)).into_response()
        }
        Ok(Err(error)) => refused(status_of(&error), &error.to_string()),
        Err(_) => refused(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be told"),
    }
}

/// A file that is read.
struct Source {
    file: File,
    /// Nobody else has a copy made before this is gone. It goes with the file, also to a thread that waits
    /// for a disk: there is one such thread at most.
    _seat: OwnedSemaphorePermit,
}

/// Who has the file at present.
enum Reading {
    Idle(Source),
    /// A thread that reads from it.
    Busy(JoinHandle<(Source, std::io::Result<Vec<u8>>)>),
    /// Nobody: all is read, or it cannot be.
    Over,
}

/// A copy on its way to who asked for it.
struct Copied {
    reading: Reading,
    left: u64,
}

impl Copied {
    fn new(file: File, bytes: u64, seat: OwnedSemaphorePermit) -> Self {
        // SQLite wrote it by a descriptor of its own: this one is still at its beginning.
        let source = Source { file, _seat: seat };
        Copied { reading: Reading::Idle(source), left: bytes }
    }
}

impl Body for Copied {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut thread = match std::mem::replace(&mut self.reading, Reading::Over) {
            Reading::Over => return Poll::Ready(None),
            Reading::Busy(thread) => thread,
            Reading::Idle(mut source) => {
                let bytes = CHUNK.min(usize::try_from(self.left).unwrap_or(CHUNK));
                tokio::task::spawn_blocking(move || {
                    let mut chunk = vec![0; bytes];
                    let read = source.file.read_exact(&mut chunk);
                    (source, read.map(|()| chunk))
                })
            }
        };
        let Poll::Ready(read) = Pin::new(&mut thread).poll(cx) else {
            self.reading = Reading::Busy(thread);
            return Poll::Pending;
        };
        let (source, read) = read.map_err(std::io::Error::other)?;
        let chunk = read?;
        self.left -= chunk.len() as u64;
        self.reading = Reading::Idle(source);
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

    /// A disk that hangs: a pipe into which nobody writes yet.
    #[test]
    fn a_disk_that_hangs_keeps_nobody_else_waiting() {
        let (disk, mut writes) = std::io::pipe().unwrap();
        let seats = Arc::new(Semaphore::new(1));
        let seat = Arc::clone(&seats).try_acquire_owned().unwrap();
        let copied = Copied::new(std::os::fd::OwnedFd::from(disk).into(), 5, seat);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        // Where a read holds up the only thread, the test would never end by itself.
        let (mut also_writes, is_held_up) = (writes.try_clone().unwrap(), Arc::default());
        let (tell, told) = std::sync::mpsc::channel::<()>();
        let held_up: Arc<AtomicBool> = Arc::clone(&is_held_up);
        let rescue = std::thread::spawn(move || {
            if told.recv_timeout(Duration::from_secs(10)).is_err() {
                held_up.store(true, Ordering::SeqCst);
                also_writes.write_all(b"12345").unwrap();
            }
        });
        let read = runtime.block_on(async {
            let body = tokio::spawn(axum::body::to_bytes(axum::body::Body::new(copied), 100));
            // The reader is asked for its first bytes before anybody else has a turn.
            tokio::task::yield_now().await;
            let other = tokio::spawn(async move {
                // After a rescue nobody listens any more, and all is read.
                if tell.send(()).is_ok() {
                    writes.write_all(b"abcde").unwrap();
                }
            });
            other.await.unwrap();
            body.await.unwrap().unwrap()
        });
        rescue.join().unwrap();
        assert!(!is_held_up.load(Ordering::SeqCst), "a read of the disk held up the others");
        assert_eq!(read, "abcde");
        assert_eq!(seats.available_permits(), 1);
    }
}
