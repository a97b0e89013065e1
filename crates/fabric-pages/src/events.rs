//! `/events`: the recorded incidents and events, the latest first; and queries of the history for pages, with a permit of
//! their own and a short timeout.

use axum::http::StatusCode;
use maud::{Markup, html};

use crate::history_queries::{self, NoHistory};
use crate::query_params::QueryResult;
use crate::state::PageState;
use fabric_history::incidents::{Incident, Incidents, MAX_INCIDENTS};
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Event, Window};
use fabric_history::source::{EventFilter, SourceError};
use fabric_history::{EventKind, Reader};
use fabric_observation::SharedState;
use ib_fabric::topology::LinkId;
use ib_mad::Guid;

use crate::page::{Answer, Live, Page, Problem};
use crate::query_params::QueryParams;
use crate::window_choice::WindowChoice;
use crate::{components, incidents};
use fabric_api::{address, history_states};

const TITLE: &str = "Incidents and events";
/// The incidents or events on a page.
const PAGE_LENGTH: usize = 200;
const DEFAULT_WINDOW: WindowChoice = WindowChoice::DAY;
/// The last page. Older events need a narrower query.
const MAX_PAGE: usize = 500;

/// What the page lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum View {
    Incidents,
    Events,
}

impl View {
    const ALL: [(&str, View); 2] = [("incidents", View::Incidents), ("events", View::Events)];

    fn name(self) -> &'static str {
        if self == View::Incidents { "incidents" } else { "events" }
    }
}

#[derive(Clone, Debug)]
struct EventsQuery {
    view: View,
    fabric: Option<String>,
    kind: Option<EventKind>,
    text: String,
    window: WindowChoice,
    page: usize,
}

impl EventsQuery {
    fn parse(query: &QueryParams) -> Result<Self, String> {
        let kind = query.parse("kind", |kind| {
            EventKind::from_label(kind)
                .ok_or_else(|| format!("must be one of: {}", EventKind::labels()))
        })?;
        let page = query.parse("page", |page| {
            let page = page.parse().ok().filter(|page| (1..=MAX_PAGE).contains(page));
            page.ok_or_else(|| format!("must be a number from 1 to {MAX_PAGE}"))
        })?;
        let view = query.parse("view", |name| {
            let view = View::ALL.into_iter().find(|(known, _)| *known == name);
            view.map(|(_, view)| view).ok_or_else(|| "must be incidents or events".to_owned())
        })?;
        // A kind is one of events.
        let default = if kind.is_some() { View::Events } else { View::Incidents };
        Ok(EventsQuery {
            view: view.unwrap_or(default),
            fabric: query.get("fabric").map(str::to_owned),
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
            ("view", self.view.name()),
            ("fabric", self.fabric.as_deref().unwrap_or_default()),
            ("kind", self.kind.map_or("", EventKind::label)),
            ("q", &self.text),
            ("window", self.window.name),
            ("page", &page),
        ];
        address::with(address::EVENTS, &pairs)
    }
}

/// What a page lists.
enum Listed {
    Incidents(Vec<Incident>),
    Events(Vec<Event>),
}

impl EventsQuery {
    /// What the page lists, the latest first, and whether there is more.
    fn read(&self, reader: &Reader, state: &SharedState) -> Result<(Listed, bool), SourceError> {
        let window = self.window.until(state.as_of, reader)?;
        let skip = (self.page - 1) * PAGE_LENGTH;
        let text = self.text.to_lowercase();
        let in_fabric = |name: &str| self.fabric.as_ref().is_none_or(|fabric| *fabric == name);
        if self.view == View::Incidents {
            let link = self.text.parse::<LinkId>().ok();
            let mut after = history_states(state);
            after.extend(reader.fabrics_beside(&after, window.to)?);
            let found = Incidents::find_until(reader, window, &after, MAX_INCIDENTS)?.incidents;
            let wanted = found.into_iter().rev().filter(|incident| {
                // An incident of several links in one cage has the id of the worst one.
                let has = |event: &Event| event.link == link;
                let is_of = link.is_some()
                    && (incident.link == link
                        || incident.link.is_some() && incident.events.iter().any(has));
                in_fabric(&incident.fabric) && (is_of || incidents::matches(incident, &text))
            });
            let mut page: Vec<Incident> = wanted.skip(skip).take(PAGE_LENGTH + 1).collect();
            let more = page.len() > PAGE_LENGTH;
            page.truncate(PAGE_LENGTH);
            return Ok((Listed::Incidents(page), more));
        }
        let (filter, by_text) = self.filter(window);
        let matches = |event: &Event| {
            let has = |field: &str| field.to_lowercase().contains(&text);
            in_fabric(&event.fabric) && (!by_text || has(&event.place) || has(&event.text))
        };
        let (events, more) = reader.latest(&filter, &matches, skip, PAGE_LENGTH)?;
        Ok((Listed::Events(events), more))
    }
}

pub(super) async fn get(app: PageState, query: QueryResult) -> Answer {
    let query = EventsQuery::parse(&QueryParams::from(query))
        .map_err(|text| Problem(StatusCode::BAD_REQUEST, TITLE, text))?;
    let (of, live) = (query.clone(), app.live.clone());
    let read = move |reader: &Reader| of.read(reader, &live.state);
    let answer = history_queries::run(&app.history, read).await;
    let mut fabrics = components::event_fabrics(&app.live.state);
    // The history may have fabrics that are not swept now.
    fabrics.extend(query.fabric.clone().filter(|name| !fabrics.contains(name)));
    let several_fabrics = query.fabric.is_none() && fabrics.len() > 1;
    let main = html! {
        @match &answer {
            Err(why) => (why),
            Ok((listed, more)) => { (form(&query, &fabrics)) (list(&query, listed, *more, several_fabrics)) },
        }
    };
    let page = Page::new(TITLE, address::EVENTS, main).live(Live::Offered);
    Ok(match answer {
        Err(NoHistory::Unavailable(_)) => page.respond_with(StatusCode::SERVICE_UNAVAILABLE),
        _ => page.respond(),
    })
}

fn form(query: &EventsQuery, fabrics: &[String]) -> Markup {
    let kinds: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.label()).collect();
    let kinds = components::or_all(&kinds, components::label_text);
    let windows = WindowChoice::ALL.map(|it| (it.name, format!("last {}", it.label)));
    let fabrics: Vec<&str> = fabrics.iter().map(String::as_str).collect();
    let views = View::ALL.map(|(name, _)| (name, name.to_owned()));
    let is_of_events = query.view == View::Events;
    html! {
        form .filter action=(address::EVENTS) {
            (components::select_field("view", "Show", query.view.name(), &views))
            @if is_of_events { (components::select_field("kind", "Event", query.kind.map_or("", EventKind::label), &kinds)) }
            p {
                label for="where" { "Node or link" }
                input #where type="search" name="q" value=(query.text) placeholder="Name, GUID or link ID" autocomplete="off" spellcheck="false";
            }
            (components::fabric_field(&fabrics, query.fabric.as_deref()))
            (components::select_field("window", "Period", query.window.name, &windows))
            p { button { "Apply" } }
        }
        @if let Some(kind) = query.kind { p .quiet { (kind.help()) } }
    }
}

fn list(query: &EventsQuery, listed: &Listed, more: bool, several_fabrics: bool) -> Markup {
    let (number, clock) = (query.page, &LocalClock::now());
    let previous = (number > 1).then(|| ("Newer", query.address(number - 1)));
    let next = (more && number < MAX_PAGE).then(|| ("Older", query.address(number + 1)));
    let (is_empty, table) = match listed {
        Listed::Incidents(listed) => {
            (listed.is_empty(), incidents::table(clock, listed, several_fabrics))
        }
        Listed::Events(events) => {
            (events.is_empty(), components::event_table(clock, events, several_fabrics))
        }
    };
    let what = query.view.name();
    html! {
        @if is_empty {
            p { @if number > 1 { "There is no page " (number) "." } @else { "No " (what) " in this period." } }
        } @else {
            p .quiet { "Latest first. Time zone: " (clock.zone()) "." }
            (table)
        }
        @if more || number > 1 {
            (components::pager(&format!("Pages of {what}"), &format!("Page {number}"), [previous, next]))
        }
    }
}
