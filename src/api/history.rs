//! `/api/v1/history/…`: what is asked of the history's file, from elsewhere.
//!
//! Whatever a question costs, a scrape does not wait for it: it is answered on a thread of its own,
//! by a reader of its own, and few are answered at once. Answers are bounded: events are told page by page,
//! and a course has so many readings at most.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path as Name, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use fabric_history::question::{DUMP, NoQuestion, PATH, Question};

use super::dump;
use crate::api::archive;
use crate::api::archive::{Archive, Said, status_of};
use exporter_web::refusal::{busy, refused, wrong};

/// How long one waits for others.
const PATIENCE: Duration = Duration::from_secs(20);

/// The routes. What is not one of the questions can have a route of its own below the same path.
pub(super) fn router(archive: Archive) -> Router {
    Router::new()
        .route(&format!("{PATH}/{{question}}"), get(ask))
        .route(DUMP, get(dump::dump))
        .with_state(archive)
}

async fn ask(State(archive): State<Archive>, Name(name): Name<String>, pairs: Said) -> Response {
    let (file, pairs) = match archive.asked(pairs) {
        Ok(asked) => asked,
        Err(refusal) => return refusal,
    };
    let question = match Question::read(&name, &pairs) {
        Ok(question) => question,
        Err(NoQuestion::Name(problem)) => return refused(StatusCode::NOT_FOUND, &problem),
        Err(NoQuestion::Words(problem)) => return wrong(&problem),
    };
    let seat = tokio::time::timeout(PATIENCE, archive.seats.acquire_owned()).await;
    let Ok(Ok(seat)) = seat else {
        return busy("too many ask the history at once: try again");
    };
    let answer = archive::answer(file, move |reader| {
        let _seat = seat;
        question.answer(reader)
    });
    match answer.await {
        Ok(Ok(Ok(json))) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Ok(Err(error)) => refused(status_of(&error), &error.to_string()),
        _ => refused(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be told"),
    }
}
