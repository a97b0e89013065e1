//! `/link/{id}`: a link, its evidence, both of its ends, and its past.

mod counters;
mod course;
mod ends;
mod gone;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use crate::api::archive::QueryResult;
use crate::api::model::port::LinkDetail;
use crate::api::ports::link_by_id;
use fabric_history::clock::Clock;
use ib_fabric::topology::LinkId;

use super::ask::{QueryParams, check_fabric};
use super::page::{Page, Problem};
use super::past::{self, WindowChoice};
use super::{PageContext, address, words};

pub(super) async fn get(
    State(context): State<PageContext>,
    Path(id): Path<String>,
    query: QueryResult,
) -> Result<Response, Problem> {
    let id = id.parse::<LinkId>().map_err(|_| {
        let text = format!(
            "{id:?} is not the id of a cable. One is written as both of its ends, each a GUID and a port: \
             0x00aa000000000001:5-0x00aa000000000002:1."
        );
        Problem::not_found("No such link", text)
    })?;
    let query = QueryParams::from(query);
    let exposition = context.exposition();
    let fabrics = &exposition.board().fabrics;
    check_fabric(fabrics, query.fabric())?;
    let link = link_by_id(fabrics, query.fabric(), id);
    let fabric = link.as_ref().map(|link| &*link.link.fabric).or(query.fabric());
    let window = WindowChoice::parse(&query, course::DEFAULT_WINDOW)
        .map_err(|text| Problem::bad_request("No such window", text))?;
    let wanted_fabric = fabric.map(str::to_owned);
    let past = past::run(&context.history, move |reader| {
        course::LinkPast::read(reader, id, wanted_fabric.as_deref(), window)
    })
    .await;
    let clock = Clock::now();
    let past = course::section(&past, id, fabric, window, &clock);
    let Some(link) = link else {
        let main = html! { (gone::section(fabrics, query.fabric(), id)) (past) };
        let page = Page::new("No such link now", address::LINKS, main);
        return Ok(page.respond_with(StatusCode::NOT_FOUND));
    };
    let title = format!("{} – {}", link.ports[0].name.label(), link.ports[1].name.label());
    let main = html! {
        (gist(&link, &clock))
        (reasons(&link))
        (past)
        (ends::section(&link, &clock))
        (counters::section(&link, &clock))
    };
    Ok(Page::new(&title, address::LINKS, main).respond())
}

/// The verdict and the state of the link in two lines.
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
            @if let Some(since) = &link.since { " since " (words::timestamp_and_age(clock, since, now)) }
            " · " (carries)
            @if let (Some(width), Some(speed)) = (&link.width, &link.speed) {
                " · " (width) " " (speed)
                @if let Some(rate) = link.rate { ", " (words::bit_rate(rate)) }
            }
        }
        p .quiet {
            "Fabric " a href=(address::with(address::TOPOLOGY, &[("fabric", &link.fabric)])) { (link.fabric) }
            " · link " code { (link.link) }
            @if let Some(now) = now { " · as of " (words::timestamp_and_age(clock, now, None)) }
        }
    }
}

/// The reasons of the verdict, and the suggested repair.
fn reasons(detail: &LinkDetail) -> Markup {
    let link = &detail.link;
    html! {
        @if !link.reasons.is_empty() {
            h2 { "Why" }
            ul .reasons { @for because in &link.reasons { li {
                span class={ "verdict " (because.weight) } { (words::label_text(&because.reason)) }
                " " (because.evidence) "."
            } } }
        }
        @if let Some(repair) = &link.repair {
            p .repair { strong { "To try first: " } (repair.what) }
        }
    }
}
