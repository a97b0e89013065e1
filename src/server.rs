//! The HTTP server.

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};

use super::api;
use super::pages::page::problem;
use super::pages::{self, Desk};
use crate::api::archive::{Archive, Said};
use crate::metrics::Latest;
use crate::metrics::body::{Packed, Unpacked};
use crate::metrics::negotiate;
use crate::metrics::process::Process;
use exporter_web::host;
use exporter_web::refusal::{refused, wrong};

/// The parameters by which other exporters choose among their collectors (node_exporter).
const CHOICES: [&str; 2] = ["collect[]", "exclude[]"];

/// What the handlers share.
#[derive(Clone, Debug)]
pub struct Site {
    latest: Latest,
    process: Process,
    telemetry_path: Arc<str>,
    archive: Archive,
}

impl Site {
    /// A site that serves the latest exposition.
    pub fn new(latest: Latest, process: Process, telemetry_path: &str) -> Self {
        Site { latest, process, telemetry_path: telemetry_path.into(), archive: Archive::new(None) }
    }

    /// The same with a history, in this file.
    #[must_use]
    pub fn with_history(self, file: Option<PathBuf>) -> Self {
        Site { archive: Archive::new(file.map(Arc::from)), ..self }
    }

    /// Its routes.
    pub fn router(self) -> Router {
        let api = api::router(self.latest.clone(), self.archive.clone());
        let desk = Desk::new(self.latest.clone(), self.archive.clone(), &self.telemetry_path);
        Router::new()
            .route(&Arc::clone(&self.telemetry_path), get(metrics))
            .route("/-/healthy", get(|| async { "healthy\n" }))
            .route("/-/ready", get(ready))
            .with_state(self)
            .merge(api)
            .merge(pages::router(desk))
            .fallback(nowhere)
            // Of all routes above.
            .method_not_allowed_fallback(not_allowed)
            .layer(middleware::from_fn(host::require))
    }
}

/// An address at which there is nothing: a page for people, a line for programs.
async fn nowhere(uri: Uri) -> Response {
    let what = format!("Nothing is at {}.", uri.path());
    if uri.path().starts_with("/api/") {
        return refused(StatusCode::NOT_FOUND, &format!("{what} What there is: {}", api::OPENAPI));
    }
    problem(StatusCode::NOT_FOUND, "No such page", &what)
}

/// axum adds the header Allow.
async fn not_allowed(method: Method, uri: Uri) -> Response {
    let problem = format!("{method} is not allowed at {}: GET and HEAD are", uri.path());
    refused(StatusCode::METHOD_NOT_ALLOWED, &problem)
}

async fn ready(State(site): State<Site>) -> (StatusCode, String) {
    match site.latest.borrow().unready() {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

async fn metrics(State(site): State<Site>, said: Said, headers: HeaderMap) -> Response {
    // Whoever asks for a part must not get the whole instead. Other parameters are ignored: a scrape
    // configuration may have its own (`params`).
    let pairs = said.map(|Query(pairs)| pairs).unwrap_or_default();
    if let Some((name, value)) = pairs.iter().find(|(name, _)| CHOICES.contains(&&**name)) {
        return wrong(&format!(
            "{name}: {value:?}: there are no collectors to choose from: each scrape has all metrics"
        ));
    }
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let format = negotiate::format(text(header::ACCEPT));
    let exposition = Arc::clone(&site.latest.borrow());
    let document = exposition.document(format, &site.process);
    let mut response = if negotiate::takes_gzip(text(header::ACCEPT_ENCODING)) {
        let gzip = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
        (gzip, Body::new(Packed::new(document))).into_response()
    } else {
        Body::new(Unpacked::new(document)).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert(header::VARY, HeaderValue::from_static("accept, accept-encoding"));
    response
}
