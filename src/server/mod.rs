//! The routes of the exporter, and `/metrics`.

mod api;
mod changes;
mod history;
#[cfg(test)]
mod openapi_tests;
mod routes;

use std::path::PathBuf;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRef, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Router, middleware};

use crate::metrics::OwnMetrics;
use crate::metrics::selection::{Profile, Selection};
use crate::published::{Latest, Published};
use exporter_web::error_response::{bad_request, error_response, require_host, unbuilt};
use exporter_web::{Held, RequestClass, blocking};
use exposition::DocumentBody;
use fabric_api::route_desk::RouteDesk;
use fabric_api::{CROSSED, LINK_HOSTS, OPENAPI, ROUTE, address};
use fabric_history::history_query::DUMP;
use fabric_pages::{HistoryQueries, PageState, Problem, QueryResult};

/// The state that the handlers of the exporter's routes share.
#[derive(Clone, Debug)]
pub struct WebApp {
    latest: Latest,
    own: Arc<OwnMetrics>,
    telemetry_path: Arc<str>,
    history: HistoryQueries,
    /// What a scrape without parameters gets.
    pub profile: Profile,
    /// The address of Grafana, without a slash at the end.
    pub grafana: Option<Arc<str>>,
    /// Where questions about routes are asked.
    pub routes: RouteDesk,
}

impl WebApp {
    /// A state that serves what is published last, and the history in this file.
    pub fn new(
        latest: Latest,
        own: impl Into<Arc<OwnMetrics>>,
        path: &str,
        history: Option<PathBuf>,
    ) -> Self {
        let history = HistoryQueries::new(history.map(Arc::from));
        let profile = Profile::default();
        let telemetry_path = path.into();
        let (own, routes) = (own.into(), RouteDesk::default());
        WebApp { latest, own, telemetry_path, history, profile, grafana: None, routes }
    }

    fn published(&self) -> Arc<Published> {
        Arc::clone(&self.latest.borrow())
    }

    /// Its routes.
    pub fn router(self) -> Router {
        let api = api::router(self.latest.clone(), self.history.clone());
        let routes = routes::router(self.latest.clone(), self.routes.clone());
        Router::new()
            .route(&Arc::clone(&self.telemetry_path), get(metrics))
            .route("/-/healthy", get(|| async { "healthy\n" }))
            .route("/-/ready", get(ready))
            .merge(fabric_pages::router())
            .merge(changes::router())
            .with_state(self.clone())
            .merge(api)
            .merge(routes)
            .fallback(not_found)
            // It applies to all routes above.
            .method_not_allowed_fallback(method_not_allowed)
            .layer(middleware::from_fn_with_state(self, fabric_pages::frame::<WebApp>))
            .layer(middleware::from_fn(require_host))
    }
}

impl FromRef<WebApp> for PageState {
    fn from_ref(app: &WebApp) -> Self {
        PageState {
            live: Arc::clone(&app.published().live),
            history: app.history.clone(),
            telemetry_path: Arc::clone(&app.telemetry_path),
            grafana: app.grafana.clone(),
            routes: app.routes.clone(),
        }
    }
}

/// The paths of probes.
pub const PROBES: [&str; 2] = ["/-/healthy", "/-/ready"];

/// The limits of a request by its path, if the metrics have this path.
pub fn request_class(telemetry_path: &str, path: &str) -> RequestClass {
    match path {
        DUMP => RequestClass::Download,
        // Routes wait for the monitor, and must not keep others from being built meanwhile; few can wait at a time.
        address::STYLE | address::ICON | ROUTE | CROSSED | address::ROUTE | address::CROSSED => {
            RequestClass::Ready
        }
        _ if is_hosts_of_link(path) => RequestClass::Ready,
        _ if path.starts_with("/api/") => RequestClass::Api,
        _ if path == telemetry_path || PROBES.contains(&path) => RequestClass::Ready,
        _ => RequestClass::Page,
    }
}

/// Whether a path is that of the hosts whose packets cross a link.
fn is_hosts_of_link(path: &str) -> bool {
    let id = LINK_HOSTS
        .split_once("{id}")
        .and_then(|(before, after)| path.strip_prefix(before)?.strip_suffix(after));
    let of_page = address::LINK_HOSTS
        .split_once("{link}")
        .and_then(|(before, after)| path.strip_prefix(before)?.strip_suffix(after));
    id.or(of_page).is_some_and(|id| !id.contains('/'))
}

/// A path without a route: a page for browsers, a line for programs.
async fn not_found(uri: Uri) -> Response {
    let path = uri.path();
    if path.starts_with("/api/") {
        let problem = format!("not found: {path}; see {OPENAPI} for the API");
        return error_response(StatusCode::NOT_FOUND, &problem);
    }
    let text = format!("No page at {path}. API: {OPENAPI}");
    Problem(StatusCode::NOT_FOUND, "Page not found", text).into_response()
}

/// axum adds the header Allow.
async fn method_not_allowed(method: Method, uri: Uri) -> Response {
    let problem = format!("{method} is not allowed for {}; allowed: GET, HEAD", uri.path());
    error_response(StatusCode::METHOD_NOT_ALLOWED, &problem)
}

async fn ready(State(app): State<WebApp>) -> (StatusCode, String) {
    match app.latest.borrow().unready() {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")),
    }
}

async fn metrics(State(app): State<WebApp>, query: QueryResult, headers: HeaderMap) -> Response {
    let selection = match query {
        Ok(Query(pairs)) => Selection::parse(&pairs, app.profile),
        Err(error) => Err(error.body_text()),
    };
    let selection = match selection {
        Ok(selection) => selection,
        Err(problem) => return bad_request(&problem),
    };
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let format = exposition::format(text(header::ACCEPT));
    let published = app.published();
    let document = if published.metrics.is_ready(&selection) {
        published.metrics.document(&selection, format, &app.own)
    } else {
        // The first scrape of a shard renders all shards: a second for 162,000 ports.
        let render = move || published.metrics.document(&selection, format, &app.own);
        match blocking::run(render).await {
            Ok(document) => document,
            Err(error) => return unbuilt(error),
        }
    };
    let mut response = if exposition::accepts_gzip(text(header::ACCEPT_ENCODING)) {
        let gzip = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
        (gzip, Body::new(DocumentBody::gzip(&document))).into_response()
    } else {
        Body::new(DocumentBody::plain(document)).into_response()
    };
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    headers.insert(header::VARY, HeaderValue::from_static("accept, accept-encoding"));
    // All scrapes share the compressed text.
    response.extensions_mut().insert(Held(0));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_scrapes_probes_and_files_need_no_permit() {
        for (path, class) in [
            ("/metrics", RequestClass::Ready),
            ("/-/healthy", RequestClass::Ready),
            ("/-/ready", RequestClass::Ready),
            (address::STYLE, RequestClass::Ready),
            (address::OVERVIEW, RequestClass::Page),
            (address::LINKS, RequestClass::Page),
            (address::TOPOLOGY, RequestClass::Page),
            ("/link/0x1:1-0x2:1", RequestClass::Page),
            // Nobody can choose a path that avoids the limit.
            ("/metrics/", RequestClass::Page),
            ("//links", RequestClass::Page),
            ("/api/v1/links", RequestClass::Api),
            // What the monitor answers does not occupy a permit while it is waited for.
            (ROUTE, RequestClass::Ready),
            (CROSSED, RequestClass::Ready),
            (address::ROUTE, RequestClass::Ready),
            (address::CROSSED, RequestClass::Ready),
            ("/api/v1/links/0x1:1-0x2:1/hosts", RequestClass::Ready),
            ("/link/0x1:1-0x2:1/hosts", RequestClass::Ready),
            ("/api/v1/links/a/b/hosts", RequestClass::Api),
            ("/api/v1/links/0x1:1-0x2:1", RequestClass::Api),
            (DUMP, RequestClass::Download),
        ] {
            assert_eq!(request_class("/metrics", path), class, "{path}");
        }
        assert_eq!(request_class("/scrape", "/metrics"), RequestClass::Page);
    }

    /// The telemetry path must not be one of these.
    #[test]
    fn page_paths_are_reserved_in_the_config() {
        use address::{
            CROSSED, EVENTS, HOST, HOSTS, ICON, LINK, LINKS, MODULES, NODE, PORT, ROUTE, RUNBOOK,
            RUNBOOKS, SEARCH, STYLE, SWITCHES, TOPOLOGY, TOPOLOGY_SVG, TRAFFIC,
        };
        let pages = [
            LINKS,
            SWITCHES,
            HOSTS,
            MODULES,
            TRAFFIC,
            LINK,
            NODE,
            PORT,
            TOPOLOGY,
            TOPOLOGY_SVG,
            EVENTS,
            HOST,
            SEARCH,
            RUNBOOKS,
            RUNBOOK,
            ROUTE,
            CROSSED,
            STYLE,
            ICON,
        ];
        for path in pages {
            let first = path.split('/').nth(1).unwrap();
            assert!(crate::config::RESERVED_PATHS.contains(&first), "{path}");
        }
    }
}
