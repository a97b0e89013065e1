//! What other programs ask: JSON.

mod dump;
mod history;
pub mod links;
pub mod model;

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::archive::{Archive, wrong};
use super::exposition::{Exposition, Latest};
use links::Ask;

/// Where the cables are told.
pub const LINKS: &str = "/api/v1/links";

/// The routes.
pub fn router(latest: Latest, archive: Archive) -> Router {
    let links = Router::new().route(LINKS, get(get_links)).with_state(latest);
    links.merge(history::router(archive))
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
    if let Some(problem) = unknown_fabric(&exposition, &ask) {
        return wrong(&problem);
    }
    // 60,000 ports are half a second: too long for a thread that serves others, too.
    let json = move || links::json(&exposition.board().fabrics, &ask);
    match tokio::task::spawn_blocking(json).await {
        Ok(Ok(json)) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "this cannot be told\n").into_response(),
    }
}

fn unknown_fabric(exposition: &Exposition, ask: &Ask) -> Option<String> {
    let asked = ask.fabric.as_deref()?;
    let fabrics = exposition.board().fabrics.iter();
    let names: Vec<&str> = fabrics.map(|observation| &*observation.fabric).collect();
    (!names.contains(&asked))
        .then(|| format!("no fabric is called {asked:?}; there are: {}", names.join(", ")))
}
