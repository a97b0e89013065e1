//! `/api/v1/history/…`: what is asked of the history's file, from elsewhere.
//!
//! Whatever a question costs, a scrape does not wait for it: it is answered on a thread of its own,
//! by a reader of its own, and few are answered at once.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path as Name, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Semaphore;

use crate::history::Reader;
use crate::history::question::{DUMP, NoQuestion, PATH, Question};
use crate::history::source::AskError;

use super::dump;

/// How many questions are answered at once: each may hold what it tells in memory.
const AT_ONCE: usize = 4;

/// How long one waits for others.
const PATIENCE: Duration = Duration::from_secs(20);

/// The history's file, and who may ask it now.
#[derive(Clone, Debug)]
pub(super) struct Archive {
    pub(super) file: Option<Arc<Path>>,
    seats: Arc<Semaphore>,
    /// Of copies, one is made at a time.
    pub(super) copies: Arc<Semaphore>,
}

/// The routes. What is not one of the questions can have a route of its own below the same path.
pub(super) fn router(file: Option<Arc<Path>>) -> Router {
    let [seats, copies] = [AT_ONCE, 1].map(|seats| Arc::new(Semaphore::new(seats)));
    let archive = Archive { file, seats, copies };
    Router::new()
        .route(&format!("{PATH}/{{question}}"), get(ask))
        .route(DUMP, get(dump::dump))
        .with_state(archive)
}

async fn ask(
    State(archive): State<Archive>,
    Name(name): Name<String>,
    pairs: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Response {
    let Some(file) = archive.file else {
        let problem = "nothing is recorded here: the exporter was started without --history.file";
        return refused(StatusCode::NOT_FOUND, problem);
    };
    let pairs = match pairs {
        Ok(Query(pairs)) => pairs,
        Err(rejection) => return super::wrong(&rejection.body_text()),
    };
    let question = match Question::read(&name, &pairs) {
        Ok(question) => question,
        Err(NoQuestion::Name(problem)) => return refused(StatusCode::NOT_FOUND, &problem),
        Err(NoQuestion::Words(problem)) => return super::wrong(&problem),
    };
    let seat = tokio::time::timeout(PATIENCE, archive.seats.acquire_owned()).await;
    let Ok(Ok(seat)) = seat else {
        let problem = "too many ask the history at once: try again";
        return refused(StatusCode::SERVICE_UNAVAILABLE, problem);
    };
    // Who asked may be gone before the answer is there: the seat is taken until then all the same.
    let answer = move || {
        let _seat = seat;
        question.answer(&Reader::open(&file)?)
    };
    match tokio::task::spawn_blocking(answer).await {
        Ok(Ok(Ok(json))) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Ok(Err(error)) => refused(status_of(&error), &error.to_string()),
        _ => refused(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be told"),
    }
}

/// A damaged file stays so; what else keeps it from being read may be over soon.
pub(super) fn status_of(error: &AskError) -> StatusCode {
    match error {
        AskError::File(error) if error.is_damage() => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// No answer, and why not, in one line.
pub(super) fn refused(status: StatusCode, problem: &str) -> Response {
    (status, format!("{}\n", problem.replace('\n', " "))).into_response()
}
