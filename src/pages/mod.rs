//! HTML pages: the latest state of the fabrics, from the snapshots, and their past, from the history. They are
//! rendered here, need no scripts, and each has an address that an alert can name.

mod components;
mod events;
mod link;
mod lists;
mod modules;
mod node;
mod overview;
mod runbooks;
mod topology;

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Query;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fabric_history::history_query::Pairs;
use maud::{DOCTYPE, Markup, html};

pub use crate::api::address;
use crate::api::history_service::QueryResult;
use crate::api::{self, Fabrics};
use crate::server::WebApp;

pub(crate) fn router() -> Router<WebApp> {
    Router::new()
        .route(address::OVERVIEW, get(overview::get))
        .route(address::LINKS, get(lists::links))
        .route(address::MODULES, get(modules::get))
        .route(address::SEARCH, get(lists::search))
        .route(address::HOST, get(node::host))
        .route(address::LINK, get(link::get))
        .route(address::NODE, get(node::get))
        .route(address::PORT, get(node::port))
        .route(address::TOPOLOGY, get(topology::get))
        .route(address::EVENTS, get(events::get))
        .route(address::RUNBOOKS, get(runbooks::index))
        .route(address::RUNBOOK, get(runbooks::get))
        .route(address::STYLE, get(style))
}

const CSS: &str =
    concat!(include_str!("style.css"), include_str!("detail.css"), include_str!("topology.css"));

async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css"), (header::CACHE_CONTROL, "max-age=3600")], CSS)
}

/// The address of the style sheet with its checksum: after an update browsers do not use a cached one.
static STYLE_ADDRESS: LazyLock<String> =
    LazyLock::new(|| format!("{}?{:08x}", address::STYLE, crc32fast::hash(CSS.as_bytes())));

/// The Content-Security-Policy of all pages. Names from the fabric are escaped; if one got through, it could
/// still do nothing.
const POLICY: &str = "default-src 'none'; style-src 'self'; img-src 'self' data:; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const NAVIGATION: [(&str, &str); 6] = [
    (address::OVERVIEW, "Overview"),
    (address::LINKS, "Links"),
    (address::TOPOLOGY, "Topology"),
    (address::MODULES, "Modules"),
    (address::EVENTS, "Events"),
    (address::HOST, "This host"),
];

#[derive(Debug)]
pub(crate) struct Page<'a> {
    /// The heading, and the title of the window.
    pub title: &'a str,
    /// The path of the navigation entry that it belongs to.
    pub section: &'a str,
    /// The text of the search, which is shown in its field again.
    pub search_text: &'a str,
    pub main: Markup,
}

impl<'a> Page<'a> {
    pub fn new(title: &'a str, section: &'a str, main: Markup) -> Self {
        Page { title, section, search_text: "", main }
    }

    pub fn respond(&self) -> Response {
        self.respond_with(StatusCode::OK)
    }

    pub fn respond_with(&self, status: StatusCode) -> Response {
        let head = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
            (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            // Each load shows the latest state.
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
            (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        ];
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) " · fabric-exporter" }
                    link rel="stylesheet" href=(*STYLE_ADDRESS);
                    // Without it browsers request /favicon.ico.
                    link rel="icon" href="data:,";
                }
                body {
                    a .skip href="#main" { "Skip to content" }
                    header {
                        nav aria-label="Pages" { ul {
                            @for (path, name) in NAVIGATION { li {
                                a href=(path) aria-current=[(path == self.section).then_some("page")] { (name) }
                            } }
                        } }
                        form action=(address::SEARCH) role="search" {
                            label .unseen for="q" { "Search by name, GUID, LID or node[port]" }
                            input #q type="search" name="q" value=(self.search_text) placeholder="Name, GUID or LID" autocomplete="off" spellcheck="false";
                            button { "Search" }
                        }
                    }
                    main #main tabindex="-1" {
                        h1 { (self.title) }
                        (self.main)
                    }
                    footer { p {
                        "fabric-exporter " (env!("CARGO_PKG_VERSION")) " · " a href=(address::RUNBOOKS) { "Runbooks" }
                    } }
                }
            }
        };
        (status, head, page.into_string()).into_response()
    }
}

/// A page for a request that cannot be answered: its status, title and text.
#[derive(Debug)]
pub(crate) struct Problem(pub StatusCode, pub &'static str, pub String);

type Answer = Result<Response, Problem>;

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let Problem(status, title, text) = self;
        let main = html! {
            p { (text) }
            p { a href=(address::OVERVIEW) { "Back to the overview" } }
        };
        Page::new(title, "", main).respond_with(status)
    }
}

/// The query parameters of a page. An empty value counts as missing.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryParams(Pairs);

impl From<QueryResult> for QueryParams {
    /// A query that cannot be decoded has no parameters: the page is shown nevertheless.
    fn from(query: QueryResult) -> Self {
        QueryParams(query.map(|Query(pairs)| pairs).unwrap_or_default())
    }
}

impl QueryParams {
    pub fn get(&self, key: &str) -> Option<&str> {
        let mut values = self.0.iter().filter(|(has, _)| has == key).map(|(_, value)| value.trim());
        values.find(|value| !value.is_empty())
    }

    /// The value of a parameter, or an empty text.
    pub fn text(&self, key: &str) -> String {
        self.get(key).unwrap_or_default().to_owned()
    }

    /// The value of a parameter, parsed. The error names the parameter and the value.
    pub fn parse<T>(
        &self,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let Some(value) = self.get(key) else { return Ok(None) };
        parse(value).map(Some).map_err(|error| format!("{key}: {value:?} {error}."))
    }
}

/// Fails where no fabric has the requested name.
pub(crate) fn check_fabric(fabrics: &Fabrics, name: Option<&str>) -> Result<(), Problem> {
    api::check_fabric(fabrics, name).map_err(|problem| {
        Problem(StatusCode::NOT_FOUND, "Fabric not found", components::sentence(&problem))
    })
}

pub(crate) const NOT_YET: &str =
    "The first sweep is not finished yet. Reload this page in a moment.";

/// Why there is nothing to show of the selected fabrics; `None` if there is.
pub(crate) fn not_swept(fabrics: &Fabrics, name: Option<&str>) -> Option<&'static str> {
    if fabrics.is_empty() {
        return Some(
            "This exporter sweeps no fabric. It reports only the devices of its own host.",
        );
    }
    let mut selected = api::selected(fabrics, name);
    selected.all(|observation| observation.snapshot.is_none()).then_some(NOT_YET)
}

/// Renders a page on a blocking thread: that of a large fabric takes a while.
pub(crate) async fn render(page: impl FnOnce() -> Response + Send + 'static) -> Response {
    tokio::task::spawn_blocking(page).await.unwrap_or_else(|_| {
        let text = "Rendering this page failed. See the exporter's log.";
        Problem(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", text.into()).into_response()
    })
}
