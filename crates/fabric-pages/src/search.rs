//! `/search`: nodes, ports, links and devices by name, GUID or LID; cables and modules by serial or part number, also
//! where they were before. A single hit redirects to its page.

use std::time::Duration;

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::query_params::QueryResult;
use crate::state::PageState;
use fabric_api::model::{Hit, Search};
use fabric_api::search;

use exporter_web::blocking;
use exporter_web::error_response::unbuilt;
use fabric_history::cable_life::{CableLife, MIN_PREFIX};
use fabric_history::local_clock::LocalClock;
use fabric_history::{Reader, Source};

use super::components::{self, label_text, plural};
use crate::history_queries;
use crate::page::{Page, not_swept, render};
use crate::query_params::QueryParams;
use fabric_api::address;

/// How long the page waits for the history.
const HISTORY_TIMEOUT: Duration = Duration::from_millis(500);

pub(super) async fn search(app: PageState, query: QueryResult) -> Response {
    let text = QueryParams::from(query).text("q");
    let (live, terms) = (app.live.clone(), text.clone());
    let result = blocking::run(move || search::search(&live.state, &terms)).await;
    let result = match result {
        Ok(result) => result,
        Err(error) => return unbuilt(error),
    };
    // Every text may be a serial number of a cable that is gone; only one that means nothing else is looked up.
    let is_of_cable = |hit: &Hit| [search::SERIAL, search::PART].contains(&&*hit.matched);
    let mut former = None;
    if text.trim().len() >= MIN_PREFIX && result.hits.iter().all(is_of_cable) {
        let called = text.trim().to_owned();
        let find = move |reader: &Reader| reader.cable(&called);
        former = history_queries::run_within(HISTORY_TIMEOUT, &app.history, find).await.ok();
    }
    let former = former.and_then(|found| found.life).filter(CableLife::has_left_a_place);
    render(move || {
        let live = app.live.clone();
        if let (1, [hit], None) = (result.found, &result.hits[..], &former) {
            return Redirect::to(&hit.page).into_response();
        }
        let clock = components::clock(&live.state);
        let not_swept = not_swept(&live.state.fabrics, None);
        let main = html! {
            (search_page(&result, former.is_some(), not_swept))
            @if let Some(life) = &former { (former_places(life, &clock)) }
        };
        let page = Page::new("Search", address::SEARCH, main);
        Page { search_text: result.query, ..page }.respond()
    })
    .await
}

/// Where a cable or module was, by the history.
fn former_places(life: &CableLife, clock: &LocalClock) -> Markup {
    html! { section aria-labelledby="former" {
        h2 #former { "Where " bdi { (life.serial) } " was" }
        table .stack {
            thead { tr {
                th scope="col" { "Port" } th scope="col" { "Other end" } th scope="col" { "Until" }
                th scope="col" { "Worst verdict" } th .n scope="col" { "Link downs" }
            } }
            tbody { @for place in life.places.iter().rev() { tr {
                th scope="row" data-label="Port" {
                    a href=(address::port_of_node(&place.port.fabric, place.port.guid, place.port.port)) {
                        bdi { (place.port.label()) }
                    }
                }
                td data-label="Other end" { @if let Some(peer) = &place.peer { bdi { (peer.label()) } } }
                td data-label="Until" { @match place.until {
                    Some(until) => (clock.format(until)), None => "still there",
                } }
                td data-label="Worst verdict" { @if let Some(worst) = place.worst_verdict {
                    (components::verdict(worst.label()))
                } }
                td .n data-label="Link downs" { (components::grouped(place.link_downs)) }
            } } }
        }
        p .quiet { code { "fabric-exporter history cable " (life.serial) } " lists its events and errors." }
    } }
}

fn search_page(result: &Search, has_former: bool, not_swept: Option<&str>) -> Markup {
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
                div { dt { code { "MT2135VS01234" } } dd { "serial or part number of a cable or module, or at least four characters of its beginning" } }
                div { dt { code { "mlx5_0" } } dd { "device or interface of this host" } }
            }
        } @else if result.found == 0 && has_former {
            p { "No port has it now." }
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
