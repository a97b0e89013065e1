//! What other programs ask: JSON.

pub mod address;
pub mod archive;
pub mod detail;
mod dump;
mod history;
pub mod links;
pub mod model;
pub mod nodes;
#[cfg(test)]
mod openapi;
pub mod overview;
pub mod ports;
pub mod ranking;
pub mod search;
pub mod topology;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use fabric_history::query;

use crate::api::archive::{Archive, Said};
use crate::metrics::Latest;
use exporter_web::refusal::{refused, wrong};
use links::Ask;

/// Where the cables are told.
pub const LINKS: &str = "/api/v1/links";
/// Where everything is told at a glance.
pub const OVERVIEW: &str = "/api/v1/overview";
/// Where one searches.
pub const SEARCH: &str = "/api/v1/search";
/// What can be asked, for programs that make clients of it.
pub const OPENAPI: &str = "/api/v1/openapi.json";

/// The routes.
pub fn router(latest: Latest, archive: Archive) -> Router {
    Router::new()
        .route(LINKS, get(get_links))
        .route(OVERVIEW, get(get_overview))
        .route(SEARCH, get(get_search))
        .with_state(latest.clone())
        .route(
            OPENAPI,
            get(async || ([(header::CONTENT_TYPE, JSON)], include_str!("openapi.json"))),
        )
        .merge(detail::router(latest))
        .merge(history::router(archive))
}

const JSON: &str = "application/json";

/// What an address asks for, or the refusal of one that is wrong: a parameter that is not known is refused,
/// for a mistyped one would widen the answer without a word.
#[expect(clippy::result_large_err, reason = "a response, once a request")]
fn asked<T>(
    said: Said,
    read: impl FnOnce(&[(String, String)]) -> Result<T, String>,
) -> Result<T, Response> {
    let Query(pairs) = said.map_err(|rejection| wrong(&rejection.body_text()))?;
    read(&pairs).map_err(|problem| wrong(&problem))
}

async fn get_overview(State(latest): State<Latest>, said: Said) -> Response {
    if let Err(refusal) = asked(said, |pairs| query::Query::new(pairs, &[]).map(drop)) {
        return refusal;
    }
    let exposition = Arc::clone(&latest.borrow());
    told(move || serde_json::to_vec(&overview::overview(exposition.board()))).await
}

async fn get_search(State(latest): State<Latest>, said: Said) -> Response {
    let read = |pairs: &[(String, String)]| {
        query::Query::new(pairs, &["q"])?.required("q").map(str::to_owned)
    };
    let text = match asked(said, read) {
        Ok(text) => text,
        Err(refusal) => return refusal,
    };
    let exposition = Arc::clone(&latest.borrow());
    told(move || serde_json::to_vec(&search::search(exposition.board(), &text))).await
}

/// What takes its time is put together on a thread that serves nobody else.
async fn told(tell: impl FnOnce() -> serde_json::Result<Vec<u8>> + Send + 'static) -> Response {
    match tokio::task::spawn_blocking(tell).await {
        Ok(Ok(json)) => ([(header::CONTENT_TYPE, JSON)], json).into_response(),
        _ => refused(StatusCode::INTERNAL_SERVER_ERROR, "this cannot be told"),
    }
}

async fn get_links(State(latest): State<Latest>, said: Said) -> Response {
    let ask = match asked(said, Ask::read) {
        Ok(ask) => ask,
        Err(refusal) => return refusal,
    };
    let exposition = Arc::clone(&latest.borrow());
    let fabrics = &exposition.board().fabrics;
    if let Some(problem) = detail::unknown_fabric(fabrics, ask.fabric.as_deref()) {
        return wrong(&format!("fabric: {problem}"));
    }
    // 60,000 ports are half a second: too long for a thread that serves others, too.
    told(move || links::json(&exposition.board().fabrics, &ask)).await
}
