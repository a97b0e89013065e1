//! `/search`: what goes by a name, a GUID or a LID. If it is one thing, its page is shown at once.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::api::archive::Said;
use crate::api::model::search::{Hit, Search};
use crate::api::search::search;

use super::ask::{Asked, not_swept, written};
use super::page::Page;
use super::words::several;
use super::{Desk, address};

pub(super) async fn get(State(desk): State<Desk>, said: Said) -> Response {
    let title = "Search";
    let text = Asked::from(said).value("q").unwrap_or_default().to_owned();
    written(move || {
        let exposition = desk.exposition();
        let told = search(exposition.board(), &text);
        if let (1, [hit]) = (told.found, &told.hits[..]) {
            return Redirect::to(&hit.page).into_response();
        }
        Page {
            sought: &told.sought,
            ..Page::new(
                title,
                address::SEARCH,
                page(&told, not_swept(&exposition.board().fabrics, None)),
            )
        }
        .answer()
    })
    .await
}

fn page(told: &Search, not_swept: Option<&str>) -> Markup {
    html! {
        @if let Some(why) = not_swept { p { (why) } }
        @if told.sought.is_empty() {
            p { "Nodes, ports, cables and this host’s devices are found by what they are called." }
            dl .hints {
                div { dt { code { "leaf-3" } } dd { "a part of a node’s name" } }
                div { dt { code { "leaf-3[12]" } } dd { "a port of a node" } }
                div { dt { code { "0x0002c90300a1b2c3" } } dd { "the GUID of a node or a port, or how it begins" } }
                div { dt { code { "17" } " or " code { "0x11" } } dd { "a LID" } }
                div { dt { code { "0x…:5-0x…:1" } } dd { "a cable’s id, as metrics have it" } }
                div { dt { code { "mlx5_0" } } dd { "a device or an interface of this host" } }
            }
        } @else if told.found == 0 {
            p { "Nothing is called " q { bdi { (told.sought) } } "." }
            p { "Part of a name will do, a GUID with or without " code { "0x" } ", a LID, a cable’s id, or " code { "node[port]" } "." }
        } @else {
            p .quiet {
                (several(told.found, "is", "are")) " called " q { bdi { (told.sought) } }
                @if told.found > told.hits.len() { ": the best " (told.hits.len()) }
            }
            (table(&told.hits))
        }
    }
}

fn table(hits: &[Hit]) -> Markup {
    html! { table .stack {
        thead { tr {
            th scope="col" { "What" } th scope="col" { "Name" } th scope="col" { "GUID or id" } th scope="col" { "Fabric" } th scope="col" { "Found by" }
        } }
        tbody { @for hit in hits { tr {
            td data-label="What" { (hit.kind) }
            th scope="row" data-label="Name" { a href=(hit.page) { bdi { (hit.name) } } }
            td data-label="GUID or id" { code { (hit.id) } }
            td data-label="Fabric" { bdi { (hit.fabric) } }
            td .quiet data-label="Found by" { (hit.by.replace('_', " ")) ", " (hit.fits) }
        } } }
    } }
}
