//! HTML pages: the latest state of the fabrics, from the snapshots, and their past, from the history. They are
//! rendered here, need no scripts, and each has an address that an alert can name.

pub(crate) mod components;
mod events;
mod frame;
mod host;
mod incidents;
mod link;
mod list;
mod node;
mod overview;
mod runbooks;
mod search;
mod topology;
mod traffic;

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::Query;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use exporter_web::work::{self, BuildError};
use fabric_history::history_query::Pairs;
use fabric_observation::Observation;
use maud::{Markup, html};

pub use crate::api::address;
use crate::api::history_service::QueryResult;
use crate::api::{self, Fabrics};
use crate::metrics::Exposition;
use crate::server::WebApp;
pub(crate) use frame::frame;

pub(crate) fn router() -> Router<WebApp> {
    Router::new()
        .route(address::OVERVIEW, get(overview::get))
        .route(address::LINKS, get(list::links::get))
        .route(address::SWITCHES, get(list::nodes::switches))
        .route(address::HOSTS, get(list::nodes::hosts))
        .route(address::MODULES, get(list::modules::get))
        .route(address::SEARCH, get(search::search))
        .route(address::HOST, get(host::host))
        .route(address::LINK, get(link::get))
        .route(address::NODE, get(node::get))
        .route(address::PORT, get(node::port))
        .route(address::TOPOLOGY, get(topology::get))
        .route(address::TRAFFIC, get(traffic::get))
        .route(address::EVENTS, get(events::get))
        .route(address::RUNBOOKS, get(runbooks::index))
        .route(address::RUNBOOK, get(runbooks::get))
        .route(address::STYLE, get(style))
        .route(address::ICON, get(frame::icon))
}

const CSS: &str =
    concat!(include_str!("style.css"), include_str!("detail.css"), include_str!("topology.css"));

async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css"), (header::CACHE_CONTROL, "max-age=3600")], CSS)
}

/// The address of the style sheet with its checksum: after an update browsers do not use a cached one.
static STYLE_ADDRESS: LazyLock<String> =
    LazyLock::new(|| format!("{}?{:08x}", address::STYLE, crc32fast::hash(CSS.as_bytes())));

/// What a page shows between the header and the footer, which [`frame`] adds.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// The heading, and the title of the window.
    pub title: String,
    /// The path of the navigation entry that it belongs to.
    pub section: &'static str,
    /// The text of the search, which is shown in its field again.
    pub search_text: String,
    /// Whether the browser loads it again by itself.
    pub live: Live,
    pub main: Markup,
}

/// Whether a browser loads a page again by itself; the parameter `refresh` of each address overrides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Live {
    /// It shows the present state.
    Yes,
    /// Only if it is asked to: text that is being typed into its form would be lost.
    Offered,
    /// It does not change.
    No,
}

impl Page {
    pub fn new(title: impl Into<String>, section: &'static str, main: Markup) -> Self {
        Page { title: title.into(), section, search_text: String::new(), live: Live::No, main }
    }

    pub fn live(self, live: Live) -> Self {
        Page { live, ..self }
    }

    pub fn respond(self) -> Response {
        self.respond_with(StatusCode::OK)
    }

    /// An empty response that carries the page to [`frame`].
    pub fn respond_with(self, status: StatusCode) -> Response {
        let mut response = status.into_response();
        response.extensions_mut().insert(self);
        response
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

/// A live page of one fabric, which the parameter `fabric` selects, with tabs for the others.
async fn fabric_page(
    app: &WebApp,
    query: QueryResult,
    title: &'static str,
    path: &'static str,
    section: impl FnOnce(&Exposition, &Arc<Observation>) -> Markup + Send + 'static,
) -> Answer {
    let query = QueryParams::from(query);
    let exposition = app.exposition();
    check_fabric(&exposition.board().fabrics, query.get("fabric"))?;
    let page = move || {
        let fabrics = &exposition.board().fabrics;
        let observation = api::selected(fabrics, query.get("fabric")).next();
        let shown = observation.map(|observation| &*observation.fabric);
        let main = html! {
            (components::fabric_tabs(path, fabrics, shown))
            @match not_swept(fabrics, shown) {
                Some(why) => p { (why) },
                None => @if let Some(it) = observation { (section(&exposition, it)) },
            }
        };
        Page::new(title, path, main).live(Live::Yes).respond()
    };
    Ok(render(page).await)
}

/// Renders a page on a blocking thread: that of a large fabric takes a while. The thread holds the permit of the request.
pub(crate) async fn render(page: impl FnOnce() -> Response + Send + 'static) -> Response {
    work::run(page).await.unwrap_or_else(|error| match error {
        BuildError::Busy => api::unbuilt(error),
        BuildError::Panicked => {
            let text = "Rendering this page failed. See the exporter's log.".into();
            Problem(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", text).into_response()
        }
    })
}
