//! `/link/{id}`: a cable, both of its ends side by side, and what it went through.

mod counters;
mod course;
mod ends;
mod gone;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use crate::api::archive::Said;
use crate::api::detail::in_fabrics;
use crate::api::model::port::LinkDetail;
use crate::api::ports;
use fabric_history::clock::Clock;
use ib_fabric::topology::LinkId;

use super::ask::{self, Asked};
use super::page::{Page, problem};
use super::past::{self, Choice};
use super::{Desk, address, words};

pub(super) async fn get(State(desk): State<Desk>, Path(id): Path<String>, said: Said) -> Response {
    let Ok(id) = id.parse::<LinkId>() else {
        let what = format!(
            "{id:?} is not the id of a cable. One is written as both of its ends, each a GUID and a port: \
             0x00aa000000000001:5-0x00aa000000000002:1."
        );
        return problem(StatusCode::NOT_FOUND, "No such link", &what);
    };
    let asked = Asked::from(said);
    let exposition = desk.exposition();
    let fabrics = &exposition.board().fabrics;
    if let Some(refusal) = ask::unknown_fabric(fabrics, asked.fabric()) {
        return refusal;
    }
    let now = in_fabrics(fabrics, asked.fabric(), |of| {
        ports::find(of, id).map(|cable| ports::link(of, cable))
    });
    let fabric = now.as_ref().map(|now| now.link.fabric.clone());
    let fabric = fabric.or_else(|| asked.fabric().map(str::to_owned));
    let window = match Choice::asked(&asked, course::USUAL) {
        Ok(window) => window,
        Err(what) => return problem(StatusCode::BAD_REQUEST, "No such window", &what),
    };
    let of = fabric.clone();
    let past = past::ask(desk.archive(), move |reader| {
        course::Trend::read(reader, id, of.as_deref(), window)
    })
    .await;
    let clock = Clock::now();
    let history = course::section(&past, id, fabric.as_deref(), window, &clock);
    let Some(link) = now else {
        let known = gone::known(fabrics, asked.fabric(), id);
        let main = html! { (known) (history) };
        return Page::new("No such link now", address::LINKS, main)
            .answer_with(StatusCode::NOT_FOUND);
    };
    let title = format!("{} – {}", link.ports[0].name.label(), link.ports[1].name.label());
    let main = html! {
        (gist(&link, &clock))
        (why(&link))
        (history)
        (ends::section(&link, &clock))
        (counters::section(&link, &clock))
    };
    Page::new(&title, address::LINKS, main).answer()
}

/// What it comes to, in two lines.
fn gist(detail: &LinkDetail, clock: &Clock) -> Markup {
    let link = &detail.link;
    let now = detail.swept_at.as_deref();
    let carries = match link.up {
        Some(true) => "carries traffic",
        Some(false) => "carries nothing",
        None => "not known to carry traffic",
    };
    html! {
        p .gist {
            (words::verdict(&link.verdict))
            @if let Some(since) = &link.since { " since " (words::since(clock, since, now)) }
            " · " (carries)
            @if let (Some(width), Some(speed)) = (&link.width, &link.speed) {
                " · " (width) " " (speed)
                @if let Some(rate) = link.rate { ", " (words::rate(rate)) }
            }
        }
        p .quiet {
            "Fabric " a href=(address::with(address::TOPOLOGY, &[("fabric", &link.fabric)])) { (link.fabric) }
            " · link " code { (link.link) }
            @if let Some(now) = now { " · as of " (words::since(clock, now, None)) }
        }
    }
}

fn why(detail: &LinkDetail) -> Markup {
    let link = &detail.link;
    html! {
        @if !link.reasons.is_empty() {
            h2 { "Why" }
            ul .reasons { @for because in &link.reasons { li {
                span class={ "verdict " (because.weight) } { (words::plain(&because.reason)) }
                " " (because.evidence) "."
            } } }
        }
        @if let Some(repair) = &link.repair {
            p .repair { strong { "To try first: " } (repair.what) }
        }
    }
}
