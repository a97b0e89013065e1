//! `/changes`: what changed between two moments.

use std::time::SystemTime;

use axum::http::StatusCode;
use exporter_web::blocking;
use fabric_api::changes::{CABLE_EVENTS, CHANGES, CableEvents, NodeChangeKind, changes};
use fabric_api::model::{Changes, FabricChanges, LinkChange, NodeChange};
use fabric_api::{LiveState, address};
use fabric_history::Reader;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Event, Window};
use fabric_history::source::EventFilter;
use maud::{Markup, html};

use crate::components::{self, grouped, label_text, plural};
use crate::history_queries;
use crate::moment::{self, AT};
use crate::page::{Answer, Page, Problem, check_fabric};
use crate::query_params::{QueryParams, QueryResult};
use crate::state::PageState;

/// The parameter that names the first moment.
pub const DIFF: &str = "diff";
/// What is compared with the present if nothing is named.
pub(crate) const USUAL: &str = "24h";
/// Why a fabric has no changes.
pub(crate) const NOT_COMPARED: &str =
    "Not compared: this fabric is not recorded at one of the two times, or at both.";
/// The most changes of a fabric that a page lists.
const MOST: usize = 200;
/// The most counters of a link that a page lists.
const MOST_COUNTERS: usize = 4;
/// The most events of cables that are read.
const MOST_EVENTS: usize = 2_000;

/// What changed from the moment with this text until that of the state.
pub async fn find(app: &PageState, diff: &str, fabric: Option<String>) -> Result<Changes, Problem> {
    let before = moment::read_or_first(app, DIFF, diff).await?;
    // More may be recorded than was published when the request came.
    let recorded = before.past.neighbors.span.last.filter(|_| app.live.state.as_of.is_none());
    let now = app.live.now().max(recorded.unwrap_or(SystemTime::UNIX_EPOCH));
    if before.live.now() > now {
        let text = "diff: this time is later than the time of the page (at). It must be earlier.";
        return Err(Problem(StatusCode::BAD_REQUEST, "Invalid time", text.into()));
    }
    let window = Window { from: before.live.now(), to: now };
    let read = move |reader: &Reader| {
        let kinds = CABLE_EVENTS.to_vec();
        let filter = EventFilter { kinds, ..EventFilter::all(window) };
        let any = |_: &Event| true;
        let (events, is_more) = reader.latest(&filter, &any, 0, MOST_EVENTS)?;
        Ok(CableEvents { events, is_more })
    };
    let cables = history_queries::run(&app.history, read).await.map_err(moment::unavailable)?;
    let from_first_sweep = moment::time_of(app, DIFF, diff)? < before.past.at;
    let (before, after) = (before.live.clone(), app.live.clone());
    let compare = move || Changes {
        from_first_sweep,
        ..changes(&before, &after, fabric.as_deref(), &cables)
    };
    blocking::run(compare).await.map_err(|_| {
        let text = "Comparing the two moments failed. See the exporter’s log.".into();
        Problem(StatusCode::INTERNAL_SERVER_ERROR, "Internal error", text)
    })
}

pub(super) async fn get(app: PageState, query: QueryResult) -> Answer {
    let query = QueryParams::from(query);
    check_fabric(&app.live.state.fabrics, query.get("fabric"))?;
    let diff = query.get(DIFF).unwrap_or(USUAL).to_owned();
    let found = find(&app, &diff, query.get("fabric").map(str::to_owned)).await?;
    let clock = LocalClock::now();
    let main = html! {
        (form(&found, &app.live, query.get("fabric"), &clock))
        @if !found.cables_complete {
            p { "Only the latest " (MOST_EVENTS) " events of replaced and moved cables are shown. Choose a shorter time for earlier ones." }
        }
        @for fabric in &found.fabrics { (section(fabric, &found, found.fabrics.len() > 1)) }
    };
    Ok(Page::new("What changed", "", main).respond())
}

fn local(clock: &LocalClock, time: &str) -> String {
    humantime::parse_rfc3339(time).map_or_else(|_| time.to_owned(), |time| clock.format(time))
}

fn form(found: &Changes, live: &LiveState, fabric: Option<&str>, clock: &LocalClock) -> Markup {
    let is_now = live.state.as_of.is_none();
    let to = if is_now { String::new() } else { local(clock, &found.to) };
    html! {
        p .gist {
            "From " strong { (local(clock, &found.from)) } " to "
            strong { @if is_now { "now" } @else { (to) } } ". Time zone: " (clock.zone()) "."
            @if found.from_first_sweep { " Nothing earlier is recorded." }
        }
        form .filter {
            @if let Some(fabric) = fabric { input type="hidden" name="fabric" value=(fabric); }
            p { label for="diff" { "From" } input #diff name=(DIFF) value=(local(clock, &found.from)) autocomplete="off" spellcheck="false"; }
            p { label for="to" { "To" } input #to name=(AT) value=(to) placeholder="now" autocomplete="off" spellcheck="false"; }
            p { button { "Compare" } }
        }
    }
}

fn section(fabric: &FabricChanges, found: &Changes, are_several: bool) -> Markup {
    let map = address::with(
        address::TOPOLOGY,
        &[("fabric", &fabric.fabric), ("mask", "changes"), (DIFF, &found.from)],
    );
    html! {
        @if are_several { h2 { bdi { (fabric.fabric) } } }
        @if !fabric.known {
            p { (NOT_COMPARED) }
        } @else {
            p { (summary(fabric)) " " a href=(map) { "On the map" } }
            @if !fabric.links.is_empty() { (links(fabric)) }
            @if !fabric.nodes.is_empty() { (nodes(fabric)) }
        }
    }
}

fn summary(fabric: &FabricChanges) -> String {
    let [nodes, links] = [fabric.nodes.len(), fabric.links.len()];
    let totals = format!(
        "Nodes: {} before, {} after. Links: {} before, {} after.",
        grouped(fabric.nodes_at[0] as u64),
        grouped(fabric.nodes_at[1] as u64),
        grouped(fabric.links_at[0] as u64),
        grouped(fabric.links_at[1] as u64)
    );
    match (links, nodes) {
        (0, 0) => format!("Nothing changed. {totals}"),
        (links, nodes) => {
            format!("{} and {} changed. {totals}", plural(links, "link"), plural(nodes, "node"))
        }
    }
}

fn links(fabric: &FabricChanges) -> Markup {
    html! {
        h2 { "Links" }
        div .wide tabindex="0" role="group" aria-label="Links that changed" { table .stack {
            thead { tr {
                th scope="col" { "Link" } th scope="col" { "Change" } th scope="col" { "Before" } th scope="col" { "After" }
                th scope="col" { "New errors" } th scope="col" { "Cable" }
            } }
            tbody { @for link in fabric.links.iter().take(MOST) { tr { (link_cells(&fabric.fabric, link)) } } }
        } }
        (more(fabric.links.len()))
    }
}

fn link_cells(fabric: &str, link: &LinkChange) -> Markup {
    let names: Vec<String> = link.changes.iter().map(|change| label_text(change)).collect();
    let is_gone = link.verdicts[1].is_none();
    let at = |moment: usize| {
        html! {
            @match &link.verdicts[moment] {
                Some(verdict) => {
                    span .whole {
                        (components::verdict(verdict))
                        @if let Some(rate) = &link.rates[moment] { " " (rate) }
                    }
                }
                None => @if moment == 0 && link.moved_from.is_some() { bdi { (link.moved_from.as_deref().unwrap_or_default()) } } @else { span .quiet { "not there" } },
            }
        }
    };
    html! {
        th scope="row" data-label="Link" {
            @if is_gone { bdi { (link.name) } } @else { a href=(address::link(fabric, &link.link)) { bdi { (link.name) } } }
        }
        td data-label="Change" { (names.join(", ")) }
        td data-label="Before" { (at(0)) }
        td data-label="After" { (at(1)) }
        td data-label="New errors" {
            @for (counter, by) in most_increased(link) { div .whole { (label_text(counter)) " +" (grouped(by)) } }
            @if link.errors.len() > MOST_COUNTERS { div .quiet { "and " (plural(link.errors.len() - MOST_COUNTERS, "other counter")) } }
        }
        td data-label="Cable" { @for text in &link.cable { div { (text) } } }
    }
}

/// The counters that increased most.
fn most_increased(link: &LinkChange) -> Vec<(&str, u64)> {
    let mut errors: Vec<(&str, u64)> = link.errors.iter().map(|(it, by)| (&**it, *by)).collect();
    errors.sort_by_key(|(_, by)| std::cmp::Reverse(*by));
    errors.truncate(MOST_COUNTERS);
    errors
}

fn nodes(fabric: &FabricChanges) -> Markup {
    html! {
        h2 { "Nodes" }
        table .stack {
            thead { tr { th scope="col" { "Node" } th scope="col" { "Change" } th scope="col" { "Name before" } } }
            tbody { @for node in fabric.nodes.iter().take(MOST) { tr { (node_cells(&fabric.fabric, node)) } } }
        }
        (more(fabric.nodes.len()))
    }
}

fn node_cells(fabric: &str, node: &NodeChange) -> Markup {
    let is_gone = node.change == NodeChangeKind::Removed.label();
    html! {
        th scope="row" data-label="Node" {
            @if is_gone { bdi { (node.node) } } @else { (components::node(fabric, &node.guid, &node.node)) }
        }
        td data-label="Change" { (label_text(&node.change)) }
        td data-label="Name before" { @if let Some(name) = &node.name_before { bdi { (name) } } }
    }
}

fn more(count: usize) -> Markup {
    html! { @if count > MOST {
        p .quiet { (grouped((count - MOST) as u64)) " more. All of them: " code { (CHANGES) } "." }
    } }
}
