//! A cable's course: what the recorder has of it.

use maud::{Markup, html};

use crate::pages::past;
use crate::pages::past::{Choice, Past};
use crate::pages::{address, words};
use fabric_history::clock::Clock;
use fabric_history::course::Course;
use fabric_history::model::{Cable, Port, Series, Told, Window};
use fabric_history::source::{AskError, Detail, Wanted};
use fabric_history::{Reader, Source, plot};
use ib_fabric::topology::LinkId;

/// The window that is shown when none is chosen.
pub(super) const USUAL: Choice = Choice::HOURS_6;

/// The longest one: what is older is told by reports.
const LONGEST: Choice = Choice::WEEK;

/// How many events are shown; more would hide the course that they are marks on.
const MOST_EVENTS: usize = 100;

/// What the recorder has of a cable.
#[derive(Debug)]
pub(super) struct Trend {
    window: Window,
    series: Vec<Series>,
    /// The latest first.
    events: Vec<Told>,
    more: bool,
    /// The cable as it was when it was last seen in the window.
    last: Option<Cable>,
}

impl Trend {
    /// Asks for it; of one fabric, if that is known.
    pub(super) fn read(
        reader: &Reader,
        id: LinkId,
        fabric: Option<&str>,
        window: Choice,
    ) -> Result<Self, AskError> {
        let window = window.until_now(reader)?;
        let cables = reader.cables(&id.ends(), window)?;
        let is_meant = |end: &Port| fabric.is_none_or(|fabric| fabric == end.fabric);
        let last =
            cables.into_iter().find(|cable| cable.link() == id && cable.ends.iter().all(is_meant));
        // Several fabrics may have had such a cable: what is told is of one.
        let fabric = fabric.or(last.as_ref().map(|cable| &*cable.ends[0].fabric));
        let is_its = |other: &str| fabric.is_none_or(|fabric| fabric == other);
        let wanted = Wanted { ports: id.ends().to_vec(), ..Wanted::all(window) };
        // What befell another cable at one of these ports is that cable's.
        let means = |told: &Told| is_its(&told.fabric) && told.link.is_none_or(|link| link == id);
        let (events, more) = reader.latest(&wanted, &means, 0, MOST_EVENTS)?;
        let mut series = reader.series(&id.ends(), Detail::All, window)?;
        series.retain(|series| is_its(&series.port.fabric));
        Ok(Trend { window, series, events, more, last })
    }
}

/// The course over time, and what happened.
pub(super) fn section(
    past: &Past<Trend>,
    id: LinkId,
    fabric: Option<&str>,
    window: Choice,
    clock: &Clock,
) -> Markup {
    let path = format!("/link/{id}");
    let fabric = fabric.unwrap_or_default();
    html! {
        h2 #course { "Over time" }
        @match past.told() {
            Err(why) => (why),
            Ok(trend) => {
                (past::windows(window, LONGEST, &path, &[("fabric", fabric)]))
                (drawn(trend, id, clock))
                h2 { "Events" }
                @if trend.events.is_empty() {
                    p .quiet { "Nothing happened to it in this window, as far as is recorded." }
                } @else {
                    (words::events(clock, &trend.events, false))
                }
                @if trend.more {
                    @let id = id.to_string();
                    p { a href=(address::with(address::EVENTS, &[("fabric", fabric), ("q", &id), ("window", window.name)])) { "All of its events" } }
                }
            }
        }
    }
}

fn drawn(trend: &Trend, id: LinkId, clock: &Clock) -> Markup {
    let earliest_first: Vec<Told> = trend.events.iter().rev().cloned().collect();
    let place = trend.last.as_ref().map_or_else(|| id.to_string(), Cable::label);
    let course = Course { link: id, place: &place, series: &trend.series, events: &earliest_first };
    html! {
        @match plot::of(course, trend.window, clock) {
            Some(picture) => {
                div .wide tabindex="0" role="group" aria-label="Course" { (picture) }
                p .quiet { "Times are of " (clock.zone()) "." @if course.lanes(trend.window, 1).is_empty() { " Neither end counted link errors or discards in this window." } }
            }
            None => p .quiet { "Nothing is recorded of it in this window." },
        }
    }
}
