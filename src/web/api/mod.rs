//! What other programs ask: JSON.

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
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::archive::Archive;
use super::exposition::Latest;
use super::refusal::{refused, wrong};
use links::Ask;
use serde::Deserialize;

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

async fn get_overview(State(latest): State<Latest>) -> Response {
    let exposition = Arc::clone(&latest.borrow());
    told(move || serde_json::to_vec(&overview::overview(exposition.board()))).await
}

/// What is searched for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sought {
    q: String,
}

async fn get_search(
    State(latest): State<Latest>,
    sought: Result<Query<Sought>, QueryRejection>,
) -> Response {
    let text = match sought {
        Ok(Query(Sought { q })) => q,
        Err(rejection) => return wrong(&rejection.body_text()),
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

async fn get_links(
    State(latest): State<Latest>,
    ask: Result<Query<Ask>, QueryRejection>,
) -> Response {
    let ask = match ask {
        Ok(Query(ask)) => ask,
        Err(rejection) => return wrong(&rejection.body_text()),
    };
    let exposition = Arc::clone(&latest.borrow());
    let fabrics = &exposition.board().fabrics;
    if let Some(problem) = detail::unknown_fabric(fabrics, ask.fabric.as_deref()) {
        return wrong(&problem);
    }
    // 60,000 ports are half a second: too long for a thread that serves others, too.
    told(move || links::json(&exposition.board().fabrics, &ask)).await
}
