//! `/links`: the cables, the worst first: by verdict, by fabric, by name.

use std::num::NonZeroUsize;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use crate::api::archive::Said;
use crate::api::model::Link;
use crate::api::ranking::{Ranked, Wanted, ranked};
use fabric_history::clock::Clock;
use fabric_observation::SharedState;
use ib_health::Verdict;

use super::ask::{Asked, not_swept, unknown_fabric, written};
use super::page::{Page, problem};
use super::words::{self, cable, count, rate, several, verdict};
use super::{Desk, address};

/// So many on a page.
const A_PAGE: usize = 100;

/// Which are wanted.
#[derive(Clone, Debug, Default)]
struct Ask {
    fabric: String,
    verdict: Option<Verdict>,
    text: String,
    page: Option<NonZeroUsize>,
}

impl Ask {
    fn read(asked: &Asked) -> Result<Self, String> {
        let verdict = asked.read("verdict", |label| {
            let known = Verdict::ALL.into_iter().find(|verdict| verdict.label() == label);
            let labels = || Verdict::ALL.map(Verdict::label).join(", ");
            known.ok_or_else(|| format!("must be one of: {}", labels()))
        })?;
        let page = asked.read("page", |page| {
            page.parse().map_err(|_| "must be a number from 1 on".to_owned())
        })?;
        let text = |name| asked.value(name).unwrap_or_default().to_owned();
        Ok(Ask { fabric: text("fabric"), verdict, text: text("text"), page })
    }

    fn verdict(&self) -> &'static str {
        self.verdict.map_or("", Verdict::label)
    }

    /// The fabric that it names.
    fn fabric(&self) -> Option<&str> {
        Some(&*self.fabric).filter(|name| !name.is_empty())
    }

    fn page(&self) -> usize {
        self.page.map_or(1, NonZeroUsize::get)
    }

    /// The address of another page of the same list.
    fn address(&self, page: usize) -> String {
        let number = if page == 1 { String::new() } else { page.to_string() };
        let pairs = [
            ("fabric", &*self.fabric),
            ("verdict", self.verdict()),
            ("text", &self.text),
            ("page", &number),
        ];
        address::with(address::LINKS, &pairs)
    }
}

pub(super) async fn get(State(desk): State<Desk>, said: Said) -> Response {
    let title = "Links";
    let ask = match Ask::read(&Asked::from(said)) {
        Ok(ask) => ask,
        Err(what) => return problem(StatusCode::BAD_REQUEST, title, &what),
    };
    let exposition = desk.exposition();
    let fabrics = &exposition.board().fabrics;
    if let Some(refusal) = unknown_fabric(fabrics, ask.fabric()) {
        return refusal;
    }
    written(move || {
        let board = exposition.board();
        let wanted =
            Wanted { fabric: &ask.fabric, verdicts: ask.verdict.as_slice(), text: &ask.text };
        let after = (ask.page() - 1).saturating_mul(A_PAGE);
        let listed = ranked(&board.fabrics, &wanted, after, A_PAGE);
        Page::new(title, address::LINKS, page(&ask, board, &listed)).answer()
    })
    .await
}

fn page(ask: &Ask, board: &SharedState, listed: &Ranked) -> Markup {
    let names: Vec<&str> = board.fabrics.iter().map(|it| &*it.fabric).collect();
    let first = (ask.page() - 1).saturating_mul(A_PAGE);
    html! {
        (form(ask, &names))
        @if let Some(why) = not_swept(&board.fabrics, ask.fabric()) {
            p { (why) }
        } @else if listed.links.is_empty() {
            p { @if listed.found == 0 { "No cable is like that." } @else { "There are not so many cables." } }
        } @else {
            p .quiet {
                (several(listed.found, "cable", "cables")) ", the worst first"
                @if listed.found > listed.links.len() {
                    ": " (count(first as u64 + 1)) " to " (count((first + listed.links.len()) as u64))
                }
            }
            (table(&listed.links, names.len() > 1, &words::now(board)))
        }
        (pages(ask, listed.found))
    }
}

fn form(ask: &Ask, names: &[&str]) -> Markup {
    let verdicts =
        [("", "any"), ("bad", "bad"), ("watch", "watch"), ("unknown", "unknown"), ("ok", "ok")];
    html! { form .filter action=(address::LINKS) {
        p {
            label for="verdict" { "Verdict" }
            select #verdict name="verdict" { @for (value, name) in verdicts {
                option value=(value) selected[ask.verdict() == value] { (name) }
            } }
        }
        @if names.len() > 1 { p {
            label for="fabric" { "Fabric" }
            select #fabric name="fabric" {
                option value="" { "all" }
                @for name in names { option value=(name) selected[ask.fabric == *name] { (name) } }
            }
        } }
        p {
            label for="text" { "Node" }
            input #text type="search" name="text" value=(ask.text) placeholder="Part of its name" autocomplete="off" spellcheck="false";
        }
        p { button { "Show" } }
    } }
}

fn table(links: &[Link], with_fabric: bool, clock: &Clock) -> Markup {
    html! { table .stack .links {
        thead { tr {
            th scope="col" { "Verdict" } th scope="col" { "Cable" }
            @if with_fabric { th scope="col" { "Fabric" } }
            th scope="col" { "Why" } th .n scope="col" { "Rate" } th .n scope="col" { "Flaps" } th scope="col" { "So" }
        } }
        tbody { @for link in links { tr {
            td data-label="Verdict" { (verdict(&link.verdict)) }
            th scope="row" data-label="Cable" { (cable(link)) }
            @if with_fabric { td data-label="Fabric" { bdi { (link.fabric) } } }
            td .why data-label="Why" { ul { @for because in &link.reasons { li { (because.evidence) } } } }
            td .n data-label="Rate" { @if let Some(bytes) = link.rate {
                span .whole { (rate(bytes)) } " " span .whole.quiet { (runs(link)) }
            } }
            td .n data-label="Flaps" { (link.flaps) }
            td .when data-label="So" { @if let Some(at) = &link.since { (words::lasting(clock, at)) } }
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
    html! { @if last > 1 { nav .leaf aria-label="Pages of the list" { ul {
        @if page > 1 { li { a rel="prev" href=(ask.address((page - 1).min(last))) { "Worse" } } }
        li aria-current="page" { "Page " (count(page as u64)) " of " (count(last as u64)) }
        @if page < last { li { a rel="next" href=(ask.address(page + 1)) { "Better" } } }
    } } } }
}
