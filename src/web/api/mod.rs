//! What other programs ask: JSON.

pub mod detail;
mod dump;
mod history;
pub mod links;
pub mod model;
pub mod nodes;
pub mod ports;
pub mod topology;

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::archive::{Archive, wrong};
use super::exposition::Latest;
use links::Ask;

/// Where the cables are told.
pub const LINKS: &str = "/api/v1/links";

/// The routes.
pub fn router(latest: Latest, archive: Archive) -> Router {
    let links = Router::new().route(LINKS, get(get_links)).with_state(latest.clone());
    links.merge(detail::router(latest)).merge(history::router(archive))
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
    let json = move || links::json(&exposition.board().fabrics, &ask);
    match tokio::task::spawn_blocking(json).await {
        Ok(Ok(json)) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "this cannot be told\n").into_response(),
    }
}
