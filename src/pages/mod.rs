//! Pages for people: what the fabric is like now, from the board, and what it was like, from the
//! recorder. Made by the server, readable without scripts; each has an address that an alert can name.

mod ask;
mod events;
mod host;
mod link;
mod links;
mod node;
mod overview;
pub mod page;
mod past;
mod search;
mod topology;
mod words;

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::http::header;
use axum::routing::get;

pub use crate::api::address;

use crate::api::archive::Archive;
use crate::metrics::{Exposition, Latest};
use page::Style;

/// What the pages are written from.
#[derive(Clone, Debug)]
pub struct Desk {
    latest: Latest,
    archive: Archive,
    telemetry_path: Arc<str>,
}

impl Desk {
    /// One with the latest board, and with the history's file, if there is one.
    pub fn new(latest: Latest, archive: Archive, telemetry_path: &str) -> Self {
        Desk { latest, archive, telemetry_path: telemetry_path.into() }
    }

    /// What was rendered last, with its board.
    pub fn exposition(&self) -> Arc<Exposition> {
        Arc::clone(&self.latest.borrow())
    }

    /// The history's file, and who may ask it.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// Where the metrics are.
    pub fn telemetry_path(&self) -> &str {
        &self.telemetry_path
    }
}

/// The routes.
pub fn router(desk: Desk) -> Router {
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
        .with_state(desk)
        .route(address::STYLE, get(style))
}

const LOOK: &str =
    concat!(include_str!("style.css"), include_str!("detail.css"), include_str!("topology.css"));

async fn style() -> Style {
    let kind = [(header::CONTENT_TYPE, "text/css"), (header::CACHE_CONTROL, "max-age=3600")];
    (kind, LOOK)
}

/// The address of the look, which is another one if that is: a browser that keeps it does not keep one of an
/// earlier version.
fn look() -> &'static str {
    static ADDRESS: OnceLock<String> = OnceLock::new();
    ADDRESS.get_or_init(|| format!("{}?{:08x}", address::STYLE, crc32fast::hash(LOOK.as_bytes())))
}
