//! `/route`, `/crossed` and `/link/{id}/hosts`: what the monitor of a fabric answers about routes of data packets. These
//! pages ask for requests to be sent to the fabric, so no browser loads them again by itself.

use std::time::Duration;

use axum::extract::Path;
use axum::http::StatusCode;
use display_text::natural_key;
use fabric_api::address;
use fabric_api::model::{
    CrossedLinks, HostsOfDirection, HostsOfLink, PortName, Route, RouteCable, Routes, TablesRead,
};
use fabric_api::route_desk::Unanswered;
use fabric_history::local_clock::LocalClock;
use ib_fabric::topology::LinkId;
use ib_health::verdict::Repair;
use maud::{Markup, html};

use crate::components::{self, label_text, plural, sentence};
use crate::page::{Answer, Page, Problem, check_fabric, not_recorded};
use crate::query_params::{QueryParams, QueryResult};
use crate::state::PageState;

/// Why there are no routes of the past.
const UNRECORDED: &str =
    "Forwarding tables are not recorded: routes are known of the present only.";

/// Titles of pages.
const CROSSED: &str = "Links that packets cross";
const HOSTS_OF_LINK: &str = "Hosts whose packets cross a link";

/// Why there is no answer.
fn unanswered(why: &Unanswered) -> Problem {
    let text = sentence(&why.to_string());
    match why {
        Unanswered::NotFound(_) => Problem(StatusCode::NOT_FOUND, "Not found", text),
        Unanswered::TooMany(_) => Problem(StatusCode::BAD_REQUEST, "Too many routes", text),
        _ => Problem(StatusCode::SERVICE_UNAVAILABLE, "No answer", text),
    }
}

/// The route between two nodes, with a form; without both nodes, the form alone.
pub(super) async fn route(app: PageState, query: QueryResult) -> Answer {
    if app.end().is_some() {
        return Ok(not_recorded("Route", "", UNRECORDED, address::ROUTE));
    }
    let query = QueryParams::from(query);
    let fabrics = app.live.state.fabrics.clone();
    check_fabric(&fabrics, query.get("fabric"))?;
    let (from, to) = (query.text("from"), query.text("to"));
    let fabric = query.text("fabric");
    let form = html! {
        form .filter action=(address::ROUTE) {
            @if !fabric.is_empty() { input type="hidden" name="fabric" value=(fabric); }
            p { label for="from" { "From" } input #from name="from" value=(from) autocomplete="off" spellcheck="false"; }
            p { label for="to" { "To" } input #to name="to" value=(to) autocomplete="off" spellcheck="false"; }
            p { button { "Show the route" } }
        }
    };
    let answer = if from.is_empty() || to.is_empty() {
        html! { p .quiet {
            "Names, GUIDs, LIDs, ports such as " code { "leaf-3[12]" } ", or hosts. The exporter reads the forwarding "
            "tables of the switches on the way, at most 2,000 requests."
        } }
    } else {
        match app.routes.routes(&fabrics, query.get("fabric"), [&from, &to]).await {
            Ok(found) => routes(&found),
            Err(why) => {
                let Problem(status, _, text) = unanswered(&why);
                let main = html! { (form) p { (text) } };
                return Ok(Page::new("Route", "", main).respond_with(status));
            }
        }
    };
    let back = address::with(address::ROUTE, &[("from", &to), ("to", &from), ("fabric", &fabric)]);
    let main = html! {
        (form)
        (answer)
        @if !from.is_empty() && !to.is_empty() { p { a href=(back) { "The way back" } } }
    };
    Ok(Page::new("Route", "", main).respond())
}

fn routes(found: &Routes) -> Markup {
    html! {
        @for route in &found.routes {
            @if found.routes.len() > 1 { h2 { "To LID " (route.lid) } }
            (one_route(&found.fabric, route))
        }
        @if found.may_differ { p { "With adaptive routing packets may cross other cables, too." } }
        (read(&found.tables))
    }
}

fn one_route(fabric: &str, route: &Route) -> Markup {
    let cables: Vec<&RouteCable> = route.hops.iter().filter_map(|hop| hop.cable.as_ref()).collect();
    html! {
        @if cables.is_empty() && route.broken.is_none() { p { "The packets do not leave the node." } }
        @if !cables.is_empty() { table .stack {
            thead { tr {
                th scope="col" { "Cable" } th scope="col" { "Verdict" } th scope="col" { "Reason" } th scope="col" { "Try first" }
            } }
            tbody { @for cable in cables { tr { (cable_cells(fabric, cable)) } } }
        } }
        @if let Some(broken) = &route.broken { p { strong {
            "The route ends " @if let Some(node) = &broken.node { "at " (node) } ": " (broken.description) "."
        } } }
    }
}

/// A cable in the direction in which packets cross it, with its verdict.
fn cable_cells(fabric: &str, cable: &RouteCable) -> Markup {
    let reasons: Vec<String> = cable.reasons.iter().map(|it| label_text(it)).collect();
    let repair = cable.repair.as_ref().filter(|it| it.repair != Repair::None.label());
    html! {
        th scope="row" data-label="Cable" { a .cable href=(address::link(fabric, &cable.link)) {
            bdi { (cable.from.label()) } " → " wbr; bdi { (cable.to.label()) }
        } }
        td data-label="Verdict" { (components::link_verdict(&cable.verdict, cable.learning.as_ref())) }
        td data-label="Reason" { @if cable.learning.is_none() { (reasons.join(", ")) } }
        td data-label="Try first" { @if let Some(repair) = repair { (label_text(&repair.repair)) } }
    }
}

/// What was read for an answer, and what was not.
fn read(tables: &TablesRead) -> Markup {
    html! {
        @if let Some(limit) = &tables.limit { p { strong { (sentence(limit)) } " Ask again in a minute: what was read is kept." } }
        @if !tables.unread.is_empty() {
            p { "Tables that were not read:" }
            ul { @for unread in &tables.unread { li { (unread.switch.node) ": " (unread.cause) } } }
        }
        p .quiet {
            @match &tables.read_at {
                Some(at) => { "Forwarding tables read at " (components::timestamp_and_age(&LocalClock::now(), at, None))
                    @if let Some(age) = tables.age_seconds { " (" (components::duration(Duration::try_from_secs_f64(age.round()).unwrap_or_default())) " ago)" } },
                None => "No forwarding table was needed",
            }
            "; " (plural(tables.requests, "request")) " sent for this answer."
        }
    }
}

/// The links that packets of a host cross.
pub(super) async fn crossed(app: PageState, query: QueryResult) -> Answer {
    if app.end().is_some() {
        return Ok(not_recorded(CROSSED, address::LINKS, UNRECORDED, address::CROSSED));
    }
    let query = QueryParams::from(query);
    let fabrics = app.live.state.fabrics.clone();
    check_fabric(&fabrics, query.get("fabric"))?;
    let host = query.text("host");
    if host.is_empty() {
        let fabric = query.text("fabric");
        let main = html! {
            form .filter action=(address::CROSSED) {
                @if !fabric.is_empty() { input type="hidden" name="fabric" value=(fabric); }
                p { label for="host" { "Host" } input #host name="host" autocomplete="off" spellcheck="false"; }
                p { button { "Show the links" } }
            }
            p .quiet {
                "A name or GUID. The exporter reads the forwarding tables of the switches on the way, at most 2,000 "
                "requests."
            }
        };
        return Ok(Page::new(CROSSED, address::LINKS, main).respond());
    }
    let found = app.routes.crossed(&fabrics, query.get("fabric"), &host).await;
    let found = found.map_err(|why| unanswered(&why))?;
    let names: Vec<&str> = found.nodes.iter().map(|node| &*node.node).collect();
    let title = format!("Links that packets of {} cross", names.join(", "));
    Ok(Page::new(title, address::LINKS, crossed_links(&found)).respond())
}

fn crossed_links(found: &CrossedLinks) -> Markup {
    let why = match &found.tables.limit {
        Some(limit) => sentence(limit),
        None => "Tables were not read.".into(),
    };
    html! {
        p .quiet {
            (plural(found.links.len(), "link")) ", the worst first. Cables of other hosts are left out."
        }
        @if found.unknown_routes > 0 { p { strong {
            (plural(found.unknown_routes, "route")) " not known: there may be more links. " (why)
        } } }
        @if found.broken_routes > 0 { p {
            (plural(found.broken_routes, "route")) " do not reach the destination, by the tables."
        } }
        @if found.may_differ { p { "With adaptive routing packets may cross other links, too." } }
        table .stack {
            thead { tr {
                th scope="col" { "Cable" } th scope="col" { "Verdict" } th scope="col" { "Reason" } th scope="col" { "Try first" }
                th scope="col" { "Packets" }
            } }
            tbody { @for link in &found.links { tr {
                (cable_cells(&found.fabric, &link.cable))
                td data-label="Packets" { @match (link.sends, link.receives) {
                    (true, true) => "sent and received", (true, false) => "sent", _ => "received",
                } }
            } } }
        }
        (read(&found.tables))
    }
}

/// The hosts whose packets cross a link.
pub(super) async fn hosts_of_link(
    app: PageState,
    Path(id): Path<String>,
    query: QueryResult,
) -> Answer {
    if app.end().is_some() {
        let path = format!("/link/{id}/hosts");
        return Ok(not_recorded(HOSTS_OF_LINK, address::LINKS, UNRECORDED, &path));
    }
    let query = QueryParams::from(query);
    let fabrics = app.live.state.fabrics.clone();
    check_fabric(&fabrics, query.get("fabric"))?;
    let link = id.parse::<LinkId>().map_err(|error| {
        Problem(StatusCode::NOT_FOUND, "Link not found", format!("{id:?} is {error}."))
    })?;
    let found = app.routes.hosts(&fabrics, query.get("fabric"), link).await;
    let found = found.map_err(|why| unanswered(&why))?;
    Ok(Page::new(HOSTS_OF_LINK, address::LINKS, hosts(&found)).respond())
}

fn hosts(found: &HostsOfLink) -> Markup {
    let label =
        found.directions.first().map(|it| [&it.from, &it.to].map(PortName::label).join(" – "));
    html! {
        p { a href=(address::link(&found.fabric, &found.link)) { bdi { (label.as_deref().unwrap_or(&found.link)) } } }
        p {
            "Packets of " strong { (plural(found.hosts.len(), "host")) } " cross it"
            @if found.incomplete { " at least: tables that decide about others were not read" } "."
            @if found.may_differ { " With adaptive routing packets of others may cross it, too." }
        }
        @for direction in &found.directions { (one_direction(direction)) }
        (read(&found.tables))
    }
}

fn one_direction(direction: &HostsOfDirection) -> Markup {
    let list = |names: &[String]| {
        let mut sorted: Vec<&str> = names.iter().map(|name| &**name).collect();
        sorted.sort_by_cached_key(|name| natural_key(name));
        if sorted.is_empty() { "none".to_owned() } else { sorted.join(", ") }
    };
    html! {
        h2 { bdi { (direction.from.label()) } " → " bdi { (direction.to.label()) } }
        dl .facts {
            div { dt { (plural(direction.senders.len(), "sender")) } dd { (list(&direction.senders)) } }
            div { dt { (plural(direction.receivers.len(), "receiver")) } dd { (list(&direction.receivers)) } }
            @if direction.undecided > 0 { div { dt { "Not known" } dd { (plural(direction.undecided, "host")) } } }
        }
    }
}
