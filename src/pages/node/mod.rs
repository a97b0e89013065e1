//! `/node/{guid}`: a switch or a host's adapter, and its ports; and `/port/{guid}/{port}`, which leads on.

mod plate;
mod table;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

use crate::api::archive::Said;
use crate::api::detail::in_fabrics;
use crate::api::model::node::NodeDetail;
use crate::api::nodes;
use fabric_history::clock::Clock;
use fabric_history::model::Told;
use fabric_history::source::Wanted;
use ib_fabric::topology::LinkId;
use ib_mad::{Guid, PortNumber};

use super::ask::{self, Asked};
use super::page::{Page, problem};
use super::past::{self, Choice};
use super::{Desk, address, words};

/// How many of its events are shown.
const MOST_EVENTS: usize = 50;

/// From how far back.
const LATELY: Choice = Choice::WEEK;

pub(super) async fn get(
    State(desk): State<Desk>,
    Path(text): Path<String>,
    said: Said,
) -> Response {
    let asked = Asked::from(said);
    let (guid, detail) = match find(&desk, &text, &asked) {
        Ok(found) => found,
        Err(refusal) => return refusal,
    };
    let fabric = detail.fabric.clone();
    let past = past::ask(desk.archive(), move |reader| {
        let window = LATELY.until_now(reader)?;
        let wanted = Wanted { nodes: vec![guid], ..Wanted::all(window) };
        let means = |told: &Told| told.fabric == fabric;
        Ok(reader.latest(&wanted, &means, 0, MOST_EVENTS)?)
    })
    .await;
    let clock = Clock::now();
    let main = html! {
        (gist(&detail))
        (plate::section(&detail))
        (facts(&detail, &clock))
        (table::section(&detail))
        h2 { "Events" }
        @match past.told() {
            Err(why) => (why),
            Ok((events, _)) if events.is_empty() => p .quiet { "Nothing happened here in the last " (LATELY.name) ", as far as is recorded." },
            Ok((events, more)) => {
                (words::events(&clock, events, false))
                @if *more {
                    @let guid = guid.to_string();
                    p { a href=(address::with(address::EVENTS, &[("fabric", &detail.fabric), ("q", &guid), ("window", LATELY.name)])) { "All of its events" } }
                }
            }
        }
    };
    Page::new(&detail.node.node, "", main).answer()
}

/// `/port/{guid}/{port}`: leads to the cable there, or else to the port on its node's page.
pub(super) async fn port(
    State(desk): State<Desk>,
    Path((text, number)): Path<(String, String)>,
    said: Said,
) -> Response {
    let (guid, detail) = match find(&desk, &text, &Asked::from(said)) {
        Ok(found) => found,
        Err(refusal) => return refusal,
    };
    let number = number.parse::<PortNumber>().ok();
    let Some(port) = detail.ports.iter().find(|port| Some(port.name.port) == number) else {
        let node = &detail.node;
        let what =
            format!("{} has the ports 1 to {}, and not this one.", node.node, node.port_count);
        return problem(StatusCode::NOT_FOUND, "No such port", &what);
    };
    let link = port.link.as_deref().and_then(|link| link.parse::<LinkId>().ok());
    let to = match link {
        Some(link) => address::link(&detail.fabric, link),
        None => address::port_of_node(&detail.fabric, (guid, port.name.port)),
    };
    Redirect::to(&to).into_response()
}

#[expect(clippy::result_large_err, reason = "a response, once a request")]
fn find(desk: &Desk, text: &str, asked: &Asked) -> Result<(Guid, NodeDetail), Response> {
    let Ok(guid) = text.parse::<Guid>() else {
        let what = format!(
            "{text:?} is no GUID. One is written as 0x and hexadecimal digits: 0x00aa000000000001. \
             The search finds nodes by their names, too."
        );
        return Err(problem(StatusCode::NOT_FOUND, "No such node", &what));
    };
    let exposition = desk.exposition();
    let fabrics = &exposition.board().fabrics;
    if let Some(refusal) = ask::unknown_fabric(fabrics, asked.fabric()) {
        return Err(refusal);
    }
    let found = in_fabrics(fabrics, asked.fabric(), |of| nodes::node(of, guid));
    found.map(|detail| (guid, detail)).ok_or_else(|| {
        let why = ask::not_swept(fabrics, asked.fabric()).unwrap_or(
            "One that is gone is remembered for --fabric.forget-after; its events stay in the history.",
        );
        let what = format!("No node has the GUID {guid}. {why}");
        problem(StatusCode::NOT_FOUND, "No such node", &what)
    })
}

fn gist(detail: &NodeDetail) -> Markup {
    let node = &detail.node;
    html! {
        p .gist {
            (words::kind(&node.node_type))
            @if let Some(device) = &node.device { ", " (device) }
            " · "
            @match (&*node.presence, node.up) {
                (_, true) => "is there and answers",
                ("found", false) => strong { "is there, and does not answer" },
                ("hidden", false) => strong { "is behind something that does not answer" },
                _ => strong { "is gone" },
            }
            @if let Some(worst) = node.verdicts.worst() {
                " · worst link " (words::verdict(worst.label()))
            }
        }
        p .quiet {
            "Fabric " a href=(address::with(address::TOPOLOGY, &[("fabric", &detail.fabric)])) { (detail.fabric) }
            " · links: " @if node.verdicts.count() == 0 { "none" } @else { (words::stats(&node.verdicts)) }
        }
    }
}

fn facts(detail: &NodeDetail, clock: &Clock) -> Markup {
    let node = &detail.node;
    let now = detail.swept_at.as_deref();
    html! {
        dl .facts {
            div { dt { "GUID" } dd { code { (node.guid) } } }
            @if node.system_guid != node.guid { div { dt { "System GUID" } dd { code { (node.system_guid) } } } }
            @if node.description != node.node { div { dt { "Calls itself" } dd { (node.description) } } }
            div { dt { "LID" } dd { @match node.lid { Some(lid) => (lid), None => "none" } } }
            div { dt { "Vendor, device" } dd { code { (node.vendor_id) } ", " (node.device_id) } }
            div { dt { "Ports" } dd { (node.port_count) } }
            @if node.node_type == "switch" {
                div { dt { "A tick of waiting" } dd {
                    @match node.tick { Some(tick) => { (u16::from(tick) + 1) " symbol times" }, None => "not told" }
                } }
            }
            @if let Some(found) = &node.last_found { div { dt { "Last found" } dd { (words::since(clock, found, now)) } } }
        }
    }
}
