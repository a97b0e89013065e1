//! The past of a link, from the history: a plot of its counters, and its events.

use maud::{Markup, html};

use crate::pages::history_query::{self, HistoryAnswer, WindowChoice};
use crate::pages::{address, components};
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Cable, Event, Port, Series, Window};
use fabric_history::plot::LinkTimeline;
use fabric_history::source::{EventFilter, SeriesDetail, SourceError};
use fabric_history::{Reader, Source, plot};
use ib_fabric::topology::LinkId;

pub(super) const DEFAULT_WINDOW: WindowChoice = WindowChoice::HOURS_6;

/// The longest window of the page. Reports have longer ones.
const LONGEST: WindowChoice = WindowChoice::WEEK;

/// The most events shown. They are marks in the plot, and more would hide it.
const MAX_EVENTS: usize = 100;

/// A link's data from the history in a window.
#[derive(Debug)]
pub(super) struct LinkPast {
    window: Window,
    series: Vec<Series>,
    /// The latest first.
    events: Vec<Event>,
    more: bool,
    /// The link as it was last seen in the window.
    last: Option<Cable>,
}

impl LinkPast {
    /// Reads it from the history; of one fabric, if that is known.
    pub(super) fn read(
        reader: &Reader,
        id: LinkId,
        fabric: Option<&str>,
        window: WindowChoice,
    ) -> Result<Self, SourceError> {
        let window = window.until_now(reader)?;
        let cables = reader.cables(&id.ends(), window)?;
        let in_fabric = |end: &Port| fabric.is_none_or(|fabric| fabric == end.fabric);
        let last =
            cables.into_iter().find(|cable| cable.link() == id && cable.ends.iter().all(in_fabric));
        // Several fabrics may have had a link with this id: show one of them.
        let fabric = fabric.or(last.as_ref().map(|cable| &*cable.ends[0].fabric));
        let is_its = |other: &str| fabric.is_none_or(|fabric| fabric == other);
        let filter = EventFilter { ports: id.ends().to_vec(), ..EventFilter::all(window) };
        // Events of another link at one of these ports are not this link's.
        let matches = |it: &Event| is_its(&it.fabric) && it.link.is_none_or(|link| link == id);
        let (events, more) = reader.latest(&filter, &matches, 0, MAX_EVENTS)?;
        let mut series = reader.series(&id.ends(), SeriesDetail::All, window)?;
        series.retain(|series| is_its(&series.port.fabric));
        Ok(LinkPast { window, series, events, more, last })
    }
}

/// The plot and the events, or why there are none.
pub(super) fn section(
    past: &HistoryAnswer<LinkPast>,
    id: LinkId,
    fabric: Option<&str>,
    window: WindowChoice,
    clock: &LocalClock,
) -> Markup {
    let path = format!("/link/{id}");
    let fabric = fabric.unwrap_or_default();
    html! {
        h2 #course { "Over time" }
        @match past.ready() {
            Err(why) => (why),
            Ok(past) => {
                (history_query::window_links(window, LONGEST, &path, &[("fabric", fabric)]))
                (plot_section(past, id, clock))
                h2 { "Events" }
                @if past.events.is_empty() {
                    p .quiet { "Nothing happened to it in this window, as far as is recorded." }
                } @else {
                    (components::event_table(clock, &past.events, false))
                }
                @if past.more {
                    @let id = id.to_string();
                    p { a href=(address::with(address::EVENTS, &[("fabric", fabric), ("q", &id), ("window", window.name)])) { "All of its events" } }
                }
            }
        }
    }
}

fn plot_section(past: &LinkPast, id: LinkId, clock: &LocalClock) -> Markup {
    let earliest_first: Vec<Event> = past.events.iter().rev().cloned().collect();
    let place = past.last.as_ref().map_or_else(|| id.to_string(), Cable::label);
    let course =
        LinkTimeline { link: id, place: &place, series: &past.series, events: &earliest_first };
    html! {
        @match plot::draw(course, past.window, clock) {
            Some(picture) => {
                div .wide tabindex="0" role="group" aria-label="Course" { (picture) }
                p .quiet { "Times are of " (clock.zone()) "." @if course.end_errors(past.window, 1).is_empty() { " Neither end counted link errors or discards in this window." } }
            }
            None => p .quiet { "Nothing is recorded of it in this window." },
        }
    }
}
