//! The history's file, as it is asked by HTTP: who may ask it now, for how long, and whose fault it is if
//! nothing can be told.

use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use axum::response::Response;
use rusqlite::InterruptHandle;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinError};

use fabric_history::query::Pairs;
use fabric_history::source::AskError;
use fabric_history::{HistoryError, Reader};

use exporter_web::refusal::{refused, wrong};

/// How many questions are answered at once: each may hold what it tells in memory.
const AT_ONCE: usize = 4;

/// How many readings one answer may have: 40 bytes each in memory, and some 30 as JSON. It is what 256 ports
/// count of everything in three quarters of an hour, sweep by sweep. Four such answers take 140 MB.
const MOST_STEPS: usize = 500_000;

/// How often a question that nobody waits for is interrupted until it ends. SQLite forgets an interrupt that
/// comes between two statements.
const INTERRUPT_EVERY: Duration = Duration::from_millis(10);

/// What an address says, if it can be read.
pub type Said = Result<Query<Pairs>, QueryRejection>;

/// The history's file, and who may ask it now.
#[derive(Clone, Debug)]
pub struct Archive {
    file: Option<Arc<Path>>,
    /// Of questions, so many are answered at once.
    pub seats: Arc<Semaphore>,
    /// Of copies, one is made at a time.
    pub copies: Arc<Semaphore>,
}

impl Archive {
    /// That of a file, if anything is recorded.
    pub fn new(file: Option<Arc<Path>>) -> Self {
        let [seats, copies] = [AT_ONCE, 1].map(|seats| Arc::new(Semaphore::new(seats)));
        Archive { file, seats, copies }
    }

    /// The file, if anything is recorded.
    pub fn file(&self) -> Option<&Arc<Path>> {
        self.file.as_ref()
    }

    /// The file and what is asked of it, or why it cannot be.
    #[expect(clippy::result_large_err, reason = "a response, once a request")]
    pub fn asked(&self, said: Said) -> Result<(Arc<Path>, Pairs), Response> {
        let Some(file) = &self.file else {
            let problem =
                "nothing is recorded here: the exporter was started without --history.file";
            return Err(refused(StatusCode::NOT_FOUND, problem));
        };
        let Query(pairs) = said.map_err(|rejection| wrong(&rejection.body_text()))?;
        Ok((Arc::clone(file), pairs))
    }
}

/// Asks a file, by a reader of its own on a thread of its own. When nobody waits for the answer any more,
/// because the client is gone or it took too long, the reader is interrupted: what the question holds, such
/// as its seat, is free again soon after.
pub async fn answer<T: Send + 'static>(
    file: Arc<Path>,
    question: impl FnOnce(&Reader) -> Result<T, AskError> + Send + 'static,
) -> Result<Result<T, AskError>, JoinError> {
    let reading = Arc::new(OnceLock::new());
    let weak = Arc::downgrade(&reading);
    let thread = tokio::task::spawn_blocking(move || {
        let reader = Reader::open(&file)?.limited(MOST_STEPS);
        // It is set once.
        let _ = reading.set(reader.interrupt_handle());
        question(&reader)
    });
    let _interrupted = Interrupted { thread: thread.abort_handle(), reading: weak };
    thread.await
}

/// Interrupts a question that goes on when this is dropped.
struct Interrupted {
    thread: AbortHandle,
    /// There as long as the question is answered; filled once its reader is open.
    reading: Weak<OnceLock<InterruptHandle>>,
}

impl Drop for Interrupted {
    fn drop(&mut self) {
        // One that has not begun does not begin any more.
        self.thread.abort();
        let reading = std::mem::take(&mut self.reading);
        if reading.strong_count() == 0 {
            return;
        }
        // Without a runtime the process ends.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            while let Some(reading) = reading.upgrade() {
                if let Some(reader) = reading.get() {
                    reader.interrupt();
                }
                drop(reading);
                tokio::time::sleep(INTERRUPT_EVERY).await;
            }
        });
    }
}

/// A damaged file stays so, and who asks for too much may ask for less; what else keeps the file from being
/// read may be over soon.
pub fn status_of(error: &AskError) -> StatusCode {
    match error {
        AskError::File(HistoryError::TooMuch { .. }) => StatusCode::BAD_REQUEST,
        AskError::File(error) if error.is_damage() => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}
