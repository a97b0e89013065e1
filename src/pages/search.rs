//! `/search`: nodes, ports, links and devices by name, GUID or LID. A single hit redirects to its page.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::api::history_service::QueryResult;
use crate::api::model::{Hit, Search};
use crate::api::search::search;

use super::components::{counted, label_text};
use super::page::Page;
use super::query_params::{QueryParams, not_swept, render};
use super::{PageContext, address};

pub(super) async fn get(State(context): State<PageContext>, query: QueryResult) -> Response {
    let text = QueryParams::from(query).text("q");
    render(move || {
        let exposition = context.exposition();
        let result = search(exposition.board(), &text);
        if let (1, [hit]) = (result.found, &result.hits[..]) {
            return Redirect::to(&hit.page).into_response();
        }
        let main = page(&result, not_swept(&exposition.board().fabrics, None));
        let page = Page::new("Search", address::SEARCH, main);
        Page { search_text: &result.sought, ..page }.respond()
    })
    .await
}

fn page(result: &Search, not_swept: Option<&str>) -> Markup {
    html! {
        @if let Some(why) = not_swept { p { (why) } }
        @if result.sought.is_empty() {
            p { "Nodes, ports, cables and this host’s devices are found by what they are called." }
            dl .hints {
                div { dt { code { "leaf-3" } } dd { "a part of a node’s name" } }
                div { dt { code { "leaf-3[12]" } } dd { "a port of a node" } }
                div { dt { code { "0x0002c90300a1b2c3" } } dd { "the GUID of a node or a port, or how it begins" } }
                div { dt { code { "17" } " or " code { "0x11" } } dd { "a LID" } }
                div { dt { code { "0x…:5-0x…:1" } } dd { "a cable’s id, as metrics have it" } }
                div { dt { code { "mlx5_0" } } dd { "a device or an interface of this host" } }
            }
        } @else if result.found == 0 {
            p { "Nothing is called " q { bdi { (result.sought) } } "." }
            p { "Part of a name will do, a GUID with or without " code { "0x" } ", a LID, a cable’s id, or " code { "node[port]" } "." }
        } @else {
            p .quiet {
                (counted(result.found, "is", "are")) " called " q { bdi { (result.sought) } }
                @if result.found > result.hits.len() { ": the best " (result.hits.len()) }
            }
            (table(&result.hits))
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
            td .quiet data-label="Found by" { (label_text(&hit.by)) ", " (hit.fits) }
        } } }
    } }
}
