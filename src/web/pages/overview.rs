//! `/`: the fabric at a glance.

use axum::extract::State;
use axum::response::Response;
use maud::html;

use super::page::Page;
use super::{Desk, address};

pub(super) async fn get(State(desk): State<Desk>) -> Response {
    let exposition = desk.exposition();
    let main = html! {
        @for observation in &exposition.board().fabrics { p { (observation.fabric) } }
        p { a href=(desk.telemetry_path()) { "Metrics" } }
    };
    Page::new("The fabric at a glance", address::OVERVIEW, main).answer()
}
