//! `/search`: nodes, ports, links and devices by name, GUID or LID. A single hit redirects to its page.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::api;
use crate::api::history_service::QueryResult;
use crate::api::model::{Hit, Search};
use crate::server::WebApp;

use super::components::{self, label_text, plural};
use super::{Page, QueryParams, address, not_swept, render};

pub(super) async fn search(State(app): State<WebApp>, query: QueryResult) -> Response {
    let text = QueryParams::from(query).text("q");
    render(move || {
        let exposition = app.exposition();
        let result = api::search::search(exposition.board(), &text);
        if let (1, [hit]) = (result.found, &result.hits[..]) {
            return Redirect::to(&hit.page).into_response();
        }
        let main = search_page(&result, not_swept(&exposition.board().fabrics, None));
        let page = Page::new("Search", address::SEARCH, main);
        Page { search_text: result.query, ..page }.respond()
    })
    .await
}

fn search_page(result: &Search, not_swept: Option<&str>) -> Markup {
    html! {
        @if let Some(why) = not_swept { p { (why) } }
        @if result.query.is_empty() {
            p { "Search for nodes, ports, links and devices of this host:" }
            dl .hints {
                div { dt { code { "leaf-3" } } dd { "part of a node name" } }
                div { dt { code { "leaf-3[12]" } } dd { "port of a node" } }
                div { dt { code { "0x0002c90300a1b2c3" } } dd { "GUID of a node or port, or its beginning" } }
                div { dt { code { "17" } " or " code { "0x11" } } dd { "LID" } }
                div { dt { code { "0x…:5-0x…:1" } } dd { "link ID, as in the metric label " code { "link" } } }
                div { dt { code { "mlx5_0" } } dd { "device or interface of this host" } }
            }
        } @else if result.found == 0 {
            p { "No results for " q { bdi { (result.query) } } "." }
            p { "Enter part of a name, a GUID with or without " code { "0x" } ", a LID, a link ID, or " code { "node[port]" } "." }
        } @else {
            p .quiet {
                (plural(result.found, "result")) " for " q { bdi { (result.query) } }
                @if result.found > result.hits.len() { ", the best " (result.hits.len()) " are shown" }
            }
            (hits(&result.hits))
        }
    }
}

fn hits(hits: &[Hit]) -> Markup {
    html! { table .stack {
        thead { tr {
            th scope="col" { "Type" } th scope="col" { "Name" } th scope="col" { "State" } th scope="col" { "GUID or ID" } th scope="col" { "Fabric" } th scope="col" { "Match" }
        } }
        tbody { @for hit in hits { tr {
            td data-label="Type" { (hit.kind) }
            th scope="row" data-label="Name" { a href=(hit.page) { bdi { (hit.name) } } }
            td data-label="State" { @if let Some(state) = &hit.state { (components::state(state)) } }
            td data-label="GUID or ID" { code { (hit.id) } }
            td data-label="Fabric" { bdi { (hit.fabric) } }
            td .quiet data-label="Match" { (label_text(&hit.matched)) ", " (hit.quality) }
        } } }
    } }
}
