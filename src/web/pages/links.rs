//! `/links`: the cables, the worst first: by verdict, by fabric, by name.

use std::num::NonZeroUsize;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use crate::health::Verdict;
use crate::health::evidence::grouped;
use crate::monitor::Board;
use crate::web::api::model::Link;
use crate::web::api::ranking::{Ranked, Wanted, ranked};

use super::page::{Page, problem, untold};
use super::words::{cable, count, lasting, rate, verdict};
use super::{Desk, address};

/// So many on a page.
const A_PAGE: usize = 100;

/// Which are wanted.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Ask {
    fabric: String,
    verdict: String,
    text: String,
    page: Option<NonZeroUsize>,
}

impl Ask {
    fn page(&self) -> usize {
        self.page.map_or(1, NonZeroUsize::get)
    }

    /// The address of another page of the same list.
    fn address(&self, page: usize) -> String {
        let number = if page == 1 { String::new() } else { page.to_string() };
        let pairs = [
            ("fabric", &*self.fabric),
            ("verdict", &self.verdict),
            ("text", &self.text),
            ("page", &number),
        ];
        address::with(address::LINKS, &pairs)
    }
}

pub(super) async fn get(
    State(desk): State<Desk>,
    ask: Result<Query<Ask>, QueryRejection>,
) -> Response {
    let title = "Links";
    let ask = match ask {
        Ok(Query(ask)) => ask,
        Err(rejection) => return problem(StatusCode::BAD_REQUEST, title, &rejection.body_text()),
    };
    let known = Verdict::ALL.into_iter().find(|verdict| verdict.label() == ask.verdict);
    if known.is_none() && !ask.verdict.is_empty() {
        let what = format!("No verdict is called {:?}.", ask.verdict);
        return problem(StatusCode::BAD_REQUEST, title, &what);
    }
    let exposition = desk.exposition();
    let names = names(exposition.board());
    if !ask.fabric.is_empty() && !names.contains(&ask.fabric) {
        let what = format!("No fabric is called {:?}.", ask.fabric);
        return problem(StatusCode::NOT_FOUND, title, &what);
    }
    let wanted = ask.clone();
    let listed = tokio::task::spawn_blocking(move || {
        let verdicts = known.as_slice();
        let wanted_ = Wanted { fabric: &wanted.fabric, verdicts, text: &wanted.text };
        let after = (wanted.page() - 1).saturating_mul(A_PAGE);
        ranked(&exposition.board().fabrics, &wanted_, after, A_PAGE)
    });
    let Ok(listed) = listed.await else { return untold() };
    Page::new(title, address::LINKS, page(&ask, &names, &listed)).answer()
}

fn names(board: &Board) -> Vec<String> {
    board.fabrics.iter().map(|observation| observation.fabric.clone()).collect()
}

fn page(ask: &Ask, names: &[String], listed: &Ranked) -> Markup {
    let several = names.len() > 1;
    let first = (ask.page() - 1).saturating_mul(A_PAGE);
    html! {
        (form(ask, names))
        @if listed.links.is_empty() {
            p { @if listed.found == 0 { "No cable is like that." } @else { "There are no so many cables." } }
        } @else {
            p .quiet {
                (count(listed.found, "cable", "cables")) ", the worst first"
                @if listed.found > listed.links.len() {
                    ": " (grouped(first + 1)) " to " (grouped(first + listed.links.len()))
                }
            }
            (table(&listed.links, several))
        }
        (pages(ask, listed.found))
    }
}

fn form(ask: &Ask, names: &[String]) -> Markup {
    let verdicts =
        [("", "Any"), ("bad", "Bad"), ("watch", "Watch"), ("unknown", "Unknown"), ("ok", "Ok")];
    html! { form .filter action=(address::LINKS) {
        label { "Verdict " select name="verdict" { @for (value, name) in verdicts {
            option value=(value) selected[ask.verdict == value] { (name) }
        } } }
        @if names.len() > 1 {
            label { "Fabric " select name="fabric" {
                option value="" { "Any" }
                @for name in names { option value=(name) selected[ask.fabric == *name] { (name) } }
            } }
        }
        label { "Node’s name " input name="text" value=(ask.text) autocomplete="off" spellcheck="false"; }
        button { "Show" }
    } }
}

fn table(links: &[Link], several: bool) -> Markup {
    html! { table .stack .links {
        thead { tr {
            th scope="col" { "Verdict" } th scope="col" { "Cable" }
            @if several { th scope="col" { "Fabric" } }
            th scope="col" { "Why" } th .n scope="col" { "Rate" } th .n scope="col" { "Flaps" } th scope="col" { "So" }
        } }
        tbody { @for link in links { tr {
            td data-label="Verdict" { (verdict(&link.verdict)) }
            th scope="row" data-label="Cable" { (cable(link)) }
            @if several { td data-label="Fabric" { bdi { (link.fabric) } } }
            td .why data-label="Why" { ul { @for because in &link.reasons { li { (because.evidence) } } } }
            td .n data-label="Rate" { @if let Some(bytes) = link.rate {
                span .whole { (rate(bytes)) } " " span .whole.quiet { (runs(link)) }
            } }
            td .n data-label="Flaps" { (link.flaps) }
            td .when data-label="So" { @if let Some(at) = &link.since { (lasting(at)) } }
        } } }
    } }
}

/// How it runs: `4x NDR`.
fn runs(link: &Link) -> String {
    let how = [&link.width, &link.speed].into_iter().flatten().map(|word| &**word);
    how.collect::<Vec<_>>().join(" ")
}

fn pages(ask: &Ask, found: usize) -> Markup {
    let (page, last) = (ask.page(), found.div_ceil(A_PAGE).max(1));
    html! { @if last > 1 { nav .pages aria-label="Pages of the list" {
        @if page > 1 { a rel="prev" href=(ask.address((page - 1).min(last))) { "Previous" } }
        span { "Page " (grouped(page)) " of " (grouped(last)) }
        @if page < last { a rel="next" href=(ask.address(page + 1)) { "Next" } }
    } } }
}
