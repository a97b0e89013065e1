//! `/events`: what happened lately, the latest first.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use crate::api::archive::Said;
use fabric_history::Kind;
use fabric_history::clock::Clock;
use fabric_history::model::{Told, Window};
use fabric_history::source::Wanted;
use ib_fabric::topology::LinkId;
use ib_mad::Guid;

use super::ask::Asked;
use super::page::{Page, problem};
use super::past::{self, Choice, Past};
use super::{Desk, address, words};

const TITLE: &str = "What happened";

/// How many are on a page.
const ON_A_PAGE: usize = 200;

/// The window that is shown when none is chosen.
const USUAL: Choice = Choice::DAY;

/// How far one can leaf: what is further back is found by a narrower question.
const MOST_PAGES: usize = 500;

/// What is asked for.
#[derive(Clone, Debug)]
struct Ask {
    fabric: Option<String>,
    kind: Option<Kind>,
    sought: String,
    window: Choice,
    page: usize,
}

/// A page of events.
#[derive(Debug)]
struct Found {
    events: Vec<Told>,
    more: bool,
}

impl Ask {
    fn read(asked: &Asked) -> Result<Self, String> {
        let kind = asked.read("kind", |kind| {
            let labels =
                || Kind::ALL.iter().map(|kind| kind.label()).collect::<Vec<_>>().join(", ");
            Kind::from_label(kind).ok_or_else(|| format!("must be one of: {}", labels()))
        })?;
        let page = asked.read("page", |page| {
            let page = page.parse().ok().filter(|page| (1..=MOST_PAGES).contains(page));
            page.ok_or_else(|| format!("must be a number from 1 to {MOST_PAGES}"))
        })?;
        Ok(Ask {
            fabric: asked.fabric().map(str::to_owned),
            kind,
            sought: asked.value("q").unwrap_or_default().to_owned(),
            window: Choice::asked(asked, USUAL)?,
            page: page.unwrap_or(1),
        })
    }

    /// The same for the history. A GUID and a cable's id mean what happened there, whatever is written of it.
    fn wanted(&self, window: Window) -> (Wanted, bool) {
        let mut wanted = Wanted::all(window);
        wanted.kinds.extend(self.kind);
        if let Ok(link) = self.sought.parse::<LinkId>() {
            wanted.ports.extend(link.ends());
        } else if self.sought.starts_with("0x")
            && let Ok(guid) = self.sought.parse::<Guid>()
        {
            wanted.nodes.push(guid);
        } else {
            return (wanted, true);
        }
        (wanted, false)
    }

    fn address(&self, page: usize) -> String {
        let page = page.to_string();
        let pairs = [
            ("fabric", self.fabric.as_deref().unwrap_or_default()),
            ("kind", self.kind.map_or("", Kind::label)),
            ("q", &self.sought),
            ("window", self.window.name),
            ("page", &page),
        ];
        address::with(address::EVENTS, &pairs)
    }
}

pub(super) async fn get(State(desk): State<Desk>, said: Said) -> Response {
    let ask = match Ask::read(&Asked::from(said)) {
        Ok(ask) => ask,
        Err(what) => return problem(StatusCode::BAD_REQUEST, TITLE, &what),
    };
    let of = ask.clone();
    let past = past::ask(desk.archive(), move |reader| {
        let window = of.window.until_now(reader)?;
        let (wanted, by_text) = of.wanted(window);
        let sought = of.sought.to_lowercase();
        let means = |told: &Told| {
            let of_fabric = of.fabric.as_ref().is_none_or(|fabric| *fabric == told.fabric);
            let has = |text: &str| text.to_lowercase().contains(&sought);
            of_fabric && (!by_text || has(&told.place) || has(&told.text))
        };
        let skip = (of.page - 1) * ON_A_PAGE;
        let (events, more) = reader.latest(&wanted, &means, skip, ON_A_PAGE)?;
        Ok(Found { events, more })
    })
    .await;
    let clock = Clock::now();
    let mut fabrics = words::recorded(desk.exposition().board());
    // The history may know more.
    fabrics.extend(ask.fabric.clone().filter(|asked| !fabrics.contains(asked)));
    let of_several = ask.fabric.is_none() && fabrics.len() > 1;
    let main = html! {
        @match past.told() {
            Err(why) => (why),
            Ok(found) => { (form(&ask, &fabrics)) (listed(&ask, found, &clock, of_several)) },
        }
    };
    let silent = matches!(past, Past::Silent(_));
    let page = Page::new(TITLE, address::EVENTS, main);
    if silent { page.answer_with(StatusCode::SERVICE_UNAVAILABLE) } else { page.answer() }
}

fn form(ask: &Ask, fabrics: &[String]) -> Markup {
    html! {
        form .filter action=(address::EVENTS) {
            p {
                label for="kind" { "What" }
                select #kind name="kind" {
                    option value="" { "everything" }
                    @for kind in Kind::ALL {
                        option value=(kind.label()) selected[ask.kind == Some(*kind)] { (words::plain(kind.label())) }
                    }
                }
            }
            p {
                label for="where" { "Where" }
                input #where type="search" name="q" value=(ask.sought) placeholder="Name, GUID or link" autocomplete="off" spellcheck="false";
            }
            @if fabrics.len() > 1 { p {
                label for="fabric" { "Fabric" }
                select #fabric name="fabric" {
                    option value="" { "all" }
                    @for fabric in fabrics {
                        option value=(fabric) selected[ask.fabric.as_ref() == Some(fabric)] { (fabric) }
                    }
                }
            } }
            p {
                label for="window" { "In the last" }
                select #window name="window" {
                    @for Choice { name, .. } in Choice::ALL {
                        option value=(name) selected[name == ask.window.name] { (name) }
                    }
                }
            }
            p { button { "Show" } }
        }
        @if let Some(kind) = ask.kind { p .quiet { (kind.help()) } }
    }
}

fn listed(ask: &Ask, found: &Found, clock: &Clock, of_several: bool) -> Markup {
    html! {
        @if found.events.is_empty() {
            p { @if ask.page > 1 { "That is all: there is no page " (ask.page) "." } @else { "Nothing of that kind happened, as far as is recorded." } }
        } @else {
            p .quiet { "The latest first. Times are of " (clock.zone()) "." }
            (words::events(clock, &found.events, of_several))
        }
        @if found.more || ask.page > 1 {
            nav .leaf aria-label="Pages of events" { ul {
                @if ask.page > 1 { li { a rel="prev" href=(ask.address(ask.page - 1)) { "Later" } } }
                li aria-current="page" { "Page " (ask.page) }
                @if found.more && ask.page < MOST_PAGES { li { a rel="next" href=(ask.address(ask.page + 1)) { "Earlier" } } }
            } }
        }
    }
}
