//! `/topology`: how a fabric is wired.

use axum::extract::State;
use axum::response::Response;
use maud::html;

use crate::web::archive::Said;

use super::page::Page;
use super::{Desk, address};

pub(super) async fn get(State(_desk): State<Desk>, _said: Said) -> Response {
    Page::new("Topology", address::TOPOLOGY, html! {}).answer()
}
