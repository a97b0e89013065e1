//! What a page is: its parts, the answer to a request that cannot be answered, and rendering on a blocking thread.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use exporter_web::blocking::{self, BuildError};
use exporter_web::error_response::unbuilt;
use fabric_api::{Fabrics, LiveState, address};
use fabric_observation::Observation;
use maud::{Markup, html};

use super::components;
use super::query_params::{QueryParams, QueryResult};
use super::state::PageState;

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
pub struct Problem(pub StatusCode, pub &'static str, pub String);

pub(crate) type Answer = Result<Response, Problem>;

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

/// A page of a moment of which the history has nothing to show; it leads to the present.
pub(crate) fn not_recorded(title: &str, section: &'static str, what: &str, path: &str) -> Response {
    let main = html! {
        p { (what) " " a href={ (path) "?at=" } { "Show the present" } }
    };
    Page::new(title, section, main).respond()
}

/// Fails where no fabric has the requested name.
pub(crate) fn check_fabric(fabrics: &Fabrics, name: Option<&str>) -> Result<(), Problem> {
    fabric_api::check_fabric(fabrics, name).map_err(|problem| {
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
    let mut selected = fabric_api::selected(fabrics, name);
    selected.all(|observation| observation.snapshot.is_none()).then_some(NOT_YET)
}

/// A live page of one fabric, which the parameter `fabric` selects, with tabs for the others.
pub(crate) async fn fabric_page(
    app: &PageState,
    query: QueryResult,
    title: &'static str,
    path: &'static str,
    section: impl FnOnce(&LiveState, &Arc<Observation>) -> Markup + Send + 'static,
) -> Answer {
    let query = QueryParams::from(query);
    let live = app.live.clone();
    check_fabric(&live.state.fabrics, query.get("fabric"))?;
    let page = move || {
        let fabrics = &live.state.fabrics;
        let observation = fabric_api::selected(fabrics, query.get("fabric")).next();
        let shown = observation.map(|observation| &*observation.fabric);
        let main = html! {
            (components::fabric_tabs(path, fabrics, shown))
            @match not_swept(fabrics, shown) {
                Some(why) => p { (why) },
                None => @if let Some(it) = observation { (section(&live, it)) },
            }
        };
        Page::new(title, path, main).live(Live::Yes).respond()
    };
    Ok(render(page).await)
}

/// Renders a page on a blocking thread: that of a large fabric takes a while. The thread holds the permit of the request.
pub(crate) async fn render(page: impl FnOnce() -> Response + Send + 'static) -> Response {
    blocking::run(page).await.unwrap_or_else(|error| match error {
        BuildError::Busy => unbuilt(error),
        BuildError::Panicked => {
            let text = "Rendering this page failed. See the exporter's log.".into();
            Problem(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", text).into_response()
        }
    })
}
