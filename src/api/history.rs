//! `/api/v1/history/…`: queries of the history file.
//!
//! A query never delays a scrape: it runs on a thread of its own with a reader of its own, few run at a time,
//! and answers are bounded: events are paged, and a series has a maximum number of readings.

use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use fabric_history::question::{DUMP, NoQuestion, PATH, Question};

use super::{JSON, dump};
use crate::api::archive::{HistoryService, QueryResult, run_query, status_of};
use exporter_web::refusal::{busy, refused, wrong};

/// How long a query waits for a permit.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The routes. The dump has its own below the path of the queries.
pub(super) fn router(history: HistoryService) -> Router {
    Router::new()
        .route(&format!("{PATH}/{{question}}"), get(query))
        .route(DUMP, get(dump::dump))
        .with_state(history)
}

async fn query(
    State(history): State<HistoryService>,
    Path(name): Path<String>,
    pairs: QueryResult,
) -> Response {
    let (file, pairs) = match history.open_request(pairs) {
        Ok(request) => request,
        Err(response) => return response,
    };
    let query = match Question::read(&name, &pairs) {
        Ok(query) => query,
        Err(NoQuestion::Name(problem)) => return refused(StatusCode::NOT_FOUND, &problem),
        Err(NoQuestion::Words(problem)) => return wrong(&problem),
    };
    let permit = tokio::time::timeout(PERMIT_TIMEOUT, history.query_permits.acquire_owned()).await;
    let Ok(Ok(permit)) = permit else {
        return busy("too many ask the history at once: try again");
    };
    let result = run_query(file, move |reader| {
        let _permit = permit;
        query.answer(reader)
    });
    match result.await {
        Ok(Ok(Ok(json))) => ([(header::CONTENT_TYPE, JSON)], json).into_response(),
        Ok(Err(error)) => refused(status_of(&error), &error.to_string()),
        _ => refused(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be told"),
    }
}
