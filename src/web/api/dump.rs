//! `/api/v1/history/dump`: a copy of a window, made beside the history and given away.
//!
//! One is made or given away at a time, for each is as large as the window; the disk's last bytes are left
//! alone. The copy has no name any more while it is given away, so that nothing stays of it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use crate::config::LEAST_FREE;
use crate::history::file::with_suffix;
use crate::history::model::Window;
use crate::history::question::read_window;
use crate::history::{HistoryError, Reader};

use crate::web::archive::{Archive, Said, status_of};
use crate::web::refusal::{busy, refused, wrong};

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
    match tokio::task::spawn_blocking(move || Copied::make(&file, window, seat)).await {
        Ok(Ok(copied)) => {
            let head = [
                (header::CONTENT_TYPE, "application/vnd.sqlite3"),
                (header::CONTENT_DISPOSITION, "attachment; filename=\"history.db\""),
            ];
            (head, axum::body::Body::new(copied)).into_response()
        }
        Ok(Err(error)) => {
            let problem = error.to_string();
            refused(status_of(&error.into()), &problem)
        }
        Err(_) => refused(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be told"),
    }
}

/// A copy on its way to who asked for it.
struct Copied {
    file: File,
    left: u64,
    /// Nobody else has one made before this is gone.
    _seat: OwnedSemaphorePermit,
}

impl Copied {
    fn make(
        history: &Arc<Path>,
        window: Window,
        seat: OwnedSemaphorePermit,
    ) -> Result<Self, HistoryError> {
        let copy = beside(history);
        let dumped = Reader::open(history)?.dump(window, &copy, LEAST_FREE)?;
        let open = || {
            let file = File::open(&copy);
            std::fs::remove_file(&copy)?;
            file
        };
        match open() {
            Ok(file) => Ok(Copied { file, left: dumped.bytes, _seat: seat }),
            Err(error) => Err(HistoryError::Io { path: copy.clone(), doing: "read it", error }),
        }
    }
}

/// Where a copy is made. What is left of those that were in the making when an exporter was killed is
/// removed.
fn beside(history: &Path) -> PathBuf {
    let copy = with_suffix(history, ".copy");
    let folder = history.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = copy.file_name().unwrap_or_default().as_encoded_bytes();
    for left in std::fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten()
    {
        if left.file_name().as_encoded_bytes().starts_with(name) {
            // What stays is in nobody's way.
            let _ = std::fs::remove_file(left.path());
        }
    }
    copy
}

impl Body for Copied {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut chunk = vec![0; CHUNK.min(usize::try_from(self.left).unwrap_or(CHUNK))];
        if let Err(error) = self.file.read_exact(&mut chunk) {
            return Poll::Ready(Some(Err(error)));
        }
        self.left -= chunk.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(chunk.into()))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
