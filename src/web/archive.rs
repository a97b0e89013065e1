//! The history's file, as it is asked by HTTP: who may ask it now, and whose fault it is if nothing can be told.

use std::path::Path;
use std::sync::Arc;

use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use axum::response::Response;
use tokio::sync::Semaphore;

use crate::history::source::AskError;

use super::refusal::{refused, wrong};

/// How many questions are answered at once: each may hold what it tells in memory.
const AT_ONCE: usize = 4;

/// What an address says, key by key.
pub type Pairs = Vec<(String, String)>;

/// The same, if it can be read.
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

/// A damaged file stays so; what else keeps it from being read may be over soon.
pub fn status_of(error: &AskError) -> StatusCode {
    match error {
        AskError::File(error) if error.is_damage() => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}
