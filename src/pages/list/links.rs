//! `/links`: the links, the worst first, filtered by verdict, fabric and node name; and `/search`: nodes, ports, links
//! and devices by name, GUID or LID. A single hit redirects to its page.

use std::num::NonZeroUsize;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::api;
use crate::api::history_service::QueryResult;
use crate::api::links::{ListFilter, ranked};
use crate::api::model::{Hit, Link, Search, verdict_from};
use crate::server::WebApp;
use fabric_history::local_clock::LocalClock;
use fabric_observation::SharedState;
use ib_health::Verdict;

use super::components::{self, count, label_text, plural, verdict};
use super::{
    Answer, Live, Page, Problem, QueryParams, StatusCode, address, check_fabric, not_swept, render,
};

/// The links on a page.
const PAGE_LENGTH: usize = 100;

struct LinksQuery {
    fabric: Option<String>,
    verdict: Option<Verdict>,
    text: String,
    page: usize,
}

impl LinksQuery {
    fn parse(query: &QueryParams) -> Result<Self, String> {
        let verdict = query.parse("verdict", |label| {
            let labels = || Verdict::ALL.map(Verdict::label).join(", ");
            verdict_from(label).ok_or_else(|| format!("must be one of: {}", labels()))
        })?;
        let page = query.parse("page", |page| {
            page.parse().map_err(|_| "must be a positive integer".to_owned())
        })?;
        let (fabric, text) = (query.get("fabric").map(str::to_owned), query.text("text"));
        Ok(LinksQuery { fabric, verdict, text, page: page.map_or(1, NonZeroUsize::get) })
    }

    fn verdict(&self) -> &'static str {
        self.verdict.map_or("", Verdict::label)
    }

    /// The number of links on the pages before this one.
    fn skip(&self) -> usize {
        (self.page - 1).saturating_mul(PAGE_LENGTH)
    }

    fn address(&self, page: usize) -> String {
        let number = if page == 1 { String::new() } else { page.to_string() };
        let pairs = [
            ("fabric", self.fabric.as_deref().unwrap_or_default()),
            ("verdict", self.verdict()),
            ("text", &self.text),
            ("page", &number),
        ];
        address::with(address::LINKS, &pairs)
    }
}

pub(super) async fn links(State(app): State<WebApp>, query: QueryResult) -> Answer {
    let title = "Links";
    let query = LinksQuery::parse(&QueryParams::from(query))
        .map_err(|text| Problem(StatusCode::BAD_REQUEST, title, text))?;
    let exposition = app.exposition();
    check_fabric(&exposition.board().fabrics, query.fabric.as_deref())?;
    let page = move || {
        let board = exposition.board();
        let filter = ListFilter {
            fabric: query.fabric.as_deref(),
            verdicts: query.verdict.as_slice(),
            text: &query.text,
        };
        let (found, links) = ranked(&board.fabrics, &filter, query.skip(), PAGE_LENGTH);
        Page::new(title, address::LINKS, page(&query, board, found, &links))
            .live(Live::Offered)
            .respond()
    };
    Ok(render(page).await)
}

fn page(query: &LinksQuery, board: &SharedState, found: usize, links: &[Link]) -> Markup {
    let names: Vec<&str> = board.fabrics.iter().map(|it| &*it.fabric).collect();
    html! {
        (form(query, &names))
        @if let Some(why) = not_swept(&board.fabrics, query.fabric.as_deref()) {
            p { (why) }
        } @else if links.is_empty() {
            p { @if found == 0 { "No links match this filter." } @else { "This page is past the end of the list." } }
        } @else {
            p .quiet {
                (plural(found, "link")) ", worst first"
                @if found > links.len() {
                    ": " (count(query.skip() as u64 + 1)) " to " (count((query.skip() + links.len()) as u64))
                }
            }
            (table(links, names.len() > 1, &components::clock(board)))
        }
        (components::list_pager(query.page, found.div_ceil(PAGE_LENGTH), |page| query.address(page)))
    }
}

fn form(query: &LinksQuery, names: &[&str]) -> Markup {
    let [ok, unknown, watch, bad] = Verdict::ALL.map(Verdict::label);
    let name = |label: &str| components::verdict_text(label).to_owned();
    let verdicts = components::or_all(&[bad, watch, unknown, ok], name);
    html! { form .filter action=(address::LINKS) {
        (components::select_field("verdict", "Verdict", query.verdict(), &verdicts))
        (components::fabric_field(names, query.fabric.as_deref()))
        p {
            label for="text" { "Node" }
            input #text type="search" name="text" value=(query.text) placeholder="Part of the name" autocomplete="off" spellcheck="false";
        }
        p { button { "Apply" } }
    } }
}

fn table(links: &[Link], with_fabric: bool, clock: &LocalClock) -> Markup {
    html! { table .stack .links {
        thead { tr {
            th scope="col" { "Verdict" } th scope="col" { "Link" }
            @if with_fabric { th scope="col" { "Fabric" } }
            th scope="col" { "Reasons" } th .n scope="col" { "Rate" } th .n scope="col" { "Flaps" } th scope="col" { "Since" }
        } }
        tbody { @for link in links { tr {
            td data-label="Verdict" { (verdict(&link.verdict)) }
            th scope="row" data-label="Link" { (components::link(link)) }
            @if with_fabric { td data-label="Fabric" { bdi { (link.fabric) } } }
            td .why data-label="Reasons" { ul { @for because in &link.reasons { li { (because.evidence) } } } }
            td .n data-label="Rate" { @if let Some(bytes) = link.rate {
                span .whole { (components::bit_rate(bytes)) } " "
                span .whole.quiet { @if let Some(width) = &link.width { (width) " " } @if let Some(speed) = &link.speed { (speed) } }
            } }
            td .n data-label="Flaps" { (link.flaps) }
            td .when data-label="Since" { @if let Some(at) = &link.since { (components::ago(clock, at)) } }
        } } }
    } }
}

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
            th scope="col" { "Type" } th scope="col" { "Name" } th scope="col" { "GUID or ID" } th scope="col" { "Fabric" } th scope="col" { "Match" }
        } }
        tbody { @for hit in hits { tr {
            td data-label="Type" { (hit.kind) }
            th scope="row" data-label="Name" { a href=(hit.page) { bdi { (hit.name) } } }
            td data-label="GUID or ID" { code { (hit.id) } }
            td data-label="Fabric" { bdi { (hit.fabric) } }
            td .quiet data-label="Match" { (label_text(&hit.matched)) ", " (hit.quality) }
        } } }
    } }
}
