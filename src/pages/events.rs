//! `/events`: the recorded events, the latest first.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use crate::api::history_service::QueryResult;
use fabric_history::EventKind;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Event, Window};
use fabric_history::source::EventFilter;
use ib_fabric::topology::LinkId;
use ib_mad::Guid;

use super::history_query::{self, HistoryAnswer, WindowChoice};
use super::page::{Page, Problem};
use super::query_params::QueryParams;
use super::{PageContext, address, components};

const TITLE: &str = "What happened";

/// The events on a page.
const PAGE_LENGTH: usize = 200;

const DEFAULT_WINDOW: WindowChoice = WindowChoice::DAY;

/// The last page. Older events need a narrower query.
const MAX_PAGE: usize = 500;

/// The query of the page.
#[derive(Clone, Debug)]
struct EventsQuery {
    fabric: Option<String>,
    kind: Option<EventKind>,
    text: String,
    window: WindowChoice,
    page: usize,
}

/// A page of events.
#[derive(Debug)]
struct EventsPage {
    events: Vec<Event>,
    more: bool,
}

impl EventsQuery {
    fn parse(query: &QueryParams) -> Result<Self, String> {
        let kind = query.parse("kind", |kind| {
            let labels =
                || EventKind::ALL.iter().map(|kind| kind.label()).collect::<Vec<_>>().join(", ");
            EventKind::from_label(kind).ok_or_else(|| format!("must be one of: {}", labels()))
        })?;
        let page = query.parse("page", |page| {
            let page = page.parse().ok().filter(|page| (1..=MAX_PAGE).contains(page));
            page.ok_or_else(|| format!("must be a number from 1 to {MAX_PAGE}"))
        })?;
        Ok(EventsQuery {
            fabric: query.fabric().map(str::to_owned),
            kind,
            text: query.text("q"),
            window: WindowChoice::parse(query, DEFAULT_WINDOW)?,
            page: page.unwrap_or(1),
        })
    }

    /// The filter for the history, and whether events have to contain the text as well. A GUID or a link id
    /// selects the events of that node or link, with any text.
    fn filter(&self, window: Window) -> (EventFilter, bool) {
        let mut filter = EventFilter::all(window);
        filter.kinds.extend(self.kind);
        if let Ok(link) = self.text.parse::<LinkId>() {
            filter.ports.extend(link.ends());
        } else if self.text.starts_with("0x")
            && let Ok(guid) = self.text.parse::<Guid>()
        {
            filter.nodes.push(guid);
        } else {
            return (filter, true);
        }
        (filter, false)
    }

    fn address(&self, page: usize) -> String {
        let page = page.to_string();
        let pairs = [
            ("fabric", self.fabric.as_deref().unwrap_or_default()),
            ("kind", self.kind.map_or("", EventKind::label)),
            ("q", &self.text),
            ("window", self.window.name),
            ("page", &page),
        ];
        address::with(address::EVENTS, &pairs)
    }
}

pub(super) async fn get(
    State(context): State<PageContext>,
    query: QueryResult,
) -> Result<Response, Problem> {
    let query = EventsQuery::parse(&QueryParams::from(query));
    let query = query.map_err(|text| Problem::bad_request(TITLE, text))?;
    let of = query.clone();
    let answer = history_query::run(&context.history, move |reader| {
        let window = of.window.until_now(reader)?;
        let (filter, by_text) = of.filter(window);
        let text = of.text.to_lowercase();
        let matches = |event: &Event| {
            let in_fabric = of.fabric.as_ref().is_none_or(|fabric| *fabric == event.fabric);
            let has = |field: &str| field.to_lowercase().contains(&text);
            in_fabric && (!by_text || has(&event.place) || has(&event.text))
        };
        let skip = (of.page - 1) * PAGE_LENGTH;
        let (events, more) = reader.latest(&filter, &matches, skip, PAGE_LENGTH)?;
        Ok(EventsPage { events, more })
    })
    .await;
    let clock = LocalClock::now();
    let mut fabrics = components::event_fabrics(context.exposition().board());
    // The history may have fabrics that are not swept now.
    fabrics.extend(query.fabric.clone().filter(|name| !fabrics.contains(name)));
    let several_fabrics = query.fabric.is_none() && fabrics.len() > 1;
    let main = html! {
        @match answer.ready() {
            Err(why) => (why),
            Ok(page) => { (form(&query, &fabrics)) (list(&query, page, &clock, several_fabrics)) },
        }
    };
    let page = Page::new(TITLE, address::EVENTS, main);
    Ok(match answer {
        HistoryAnswer::Unavailable(_) => page.respond_with(StatusCode::SERVICE_UNAVAILABLE),
        _ => page.respond(),
    })
}

fn form(query: &EventsQuery, fabrics: &[String]) -> Markup {
    html! {
        form .filter action=(address::EVENTS) {
            p {
                label for="kind" { "What" }
                select #kind name="kind" {
                    option value="" { "everything" }
                    @for kind in EventKind::ALL {
                        option value=(kind.label()) selected[query.kind == Some(*kind)] { (components::label_text(kind.label())) }
                    }
                }
            }
            p {
                label for="where" { "Where" }
                input #where type="search" name="q" value=(query.text) placeholder="Name, GUID or link" autocomplete="off" spellcheck="false";
            }
            (components::fabric_field(fabrics, query.fabric.as_deref().unwrap_or_default()))
            p {
                label for="window" { "In the last" }
                select #window name="window" {
                    @for WindowChoice { name, .. } in WindowChoice::ALL {
                        option value=(name) selected[name == query.window.name] { (name) }
                    }
                }
            }
            p { button { "Show" } }
        }
        @if let Some(kind) = query.kind { p .quiet { (kind.help()) } }
    }
}

fn list(
    query: &EventsQuery,
    page: &EventsPage,
    clock: &LocalClock,
    several_fabrics: bool,
) -> Markup {
    let number = query.page;
    let previous = (number > 1).then(|| ("Later", query.address(number - 1)));
    let next = (page.more && number < MAX_PAGE).then(|| ("Earlier", query.address(number + 1)));
    html! {
        @if page.events.is_empty() {
            p { @if number > 1 { "That is all: there is no page " (number) "." } @else { "Nothing of that kind happened, as far as is recorded." } }
        } @else {
            p .quiet { "The latest first. Times are of " (clock.zone()) "." }
            (components::event_table(clock, &page.events, several_fabrics))
        }
        @if page.more || number > 1 {
            (components::pager("Pages of events", previous, &format!("Page {number}"), next))
        }
    }
}
