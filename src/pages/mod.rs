//! HTML pages: the latest state of the fabrics, from the snapshots, and their past, from the history. They are
//! rendered here, need no scripts, and each has an address that an alert can name.

mod components;
mod events;
mod history_query;
mod host;
mod link;
mod links;
mod node;
mod overview;
pub mod page;
mod query_params;
mod search;
mod topology;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;

pub use crate::api::address;

use crate::api::history_service::HistoryService;
use crate::metrics::{Exposition, Latest};

/// The state that the handlers of the pages read.
#[derive(Clone, Debug)]
pub struct PageContext {
    /// The latest exposition with its snapshots.
    pub latest: Latest,
    /// The history.
    pub history: HistoryService,
    /// The path of the metrics.
    pub telemetry_path: Arc<str>,
}

impl PageContext {
    /// The latest exposition with its snapshots.
    pub fn exposition(&self) -> Arc<Exposition> {
        Arc::clone(&self.latest.borrow())
    }
}

/// The routes of all pages.
pub fn router(context: PageContext) -> Router {
    Router::new()
        .route(address::OVERVIEW, get(overview::get))
        .route(address::LINKS, get(links::get))
        .route(address::SEARCH, get(search::get))
        .route(address::HOST, get(host::get))
        .route(address::LINK, get(link::get))
        .route(address::NODE, get(node::get))
        .route(address::PORT, get(node::port))
        .route(address::TOPOLOGY, get(topology::get))
        .route(address::EVENTS, get(events::get))
        .with_state(context)
        .route(address::STYLE, get(style))
}

const CSS: &str =
    concat!(include_str!("style.css"), include_str!("detail.css"), include_str!("topology.css"));

async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css"), (header::CACHE_CONTROL, "max-age=3600")], CSS)
}

/// The address of the style sheet with its checksum: after an update browsers do not use a cached one.
fn style_address() -> &'static str {
    static ADDRESS: OnceLock<String> = OnceLock::new();
    ADDRESS.get_or_init(|| format!("{}?{:08x}", address::STYLE, crc32fast::hash(CSS.as_bytes())))
}
