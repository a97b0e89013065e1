//! A cable's course as a picture: errors at each end, what it carried, and what happened to it, on
//! one axis of time.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};

use ib_mad::label::abbreviate;

use super::Kind;
use super::clock::Clock;
use super::columns;
use super::course::Course;
use super::model::{Told, Window};

/// How wide the part with time in it is, in the picture's units.
const WIDE: f64 = 640.0;

/// What stands left of it: what a lane is.
const LEFT: f64 = 150.0;

/// How many letters of a usual width fit there.
const LETTERS: usize = 25;

/// How high a lane is, and what lies between two.
const HIGH: f64 = 44.0;
const GAP: f64 = 14.0;

/// One column every four units: an hour in sweeps of 15 s is 240.
const COLUMNS: usize = 160;

/// How many times stand below.
const TICKS: u32 = 4;

/// A lane of the picture.
struct Lane {
    title: String,
    unit: String,
    class: &'static str,
    columns: Vec<f64>,
}

/// The picture; nothing if there is nothing to draw.
pub fn of(course: Course<'_>, window: Window, clock: &Clock) -> Option<Markup> {
    let lanes = lanes(course, window);
    if window.length().is_zero() || lanes.is_empty() && course.events.is_empty() {
        return None;
    }
    let bottom = GAP * 2.0 + lanes.len() as f64 * (HIGH + GAP);
    let about = format!(
        "The course of {}: link errors, discards, traffic and events over time",
        course.place
    );
    Some(html! {
        svg .plot viewBox={ "0 0 " (LEFT + WIDE + 10.0) " " (bottom + 24.0) } role="img" aria-label=(about) {
            @for event in course.events { (mark(event, window, bottom, clock)) }
            @for (index, lane) in lanes.iter().enumerate() {
                (drawn(lane, GAP * 2.0 + index as f64 * (HIGH + GAP)))
            }
            line .axis x1=(LEFT) y1=(bottom) x2=(LEFT + WIDE) y2=(bottom) {}
            @for tick in 0..=TICKS { (ticked(tick, window, bottom, clock)) }
        }
    })
}

fn lanes(course: Course<'_>, window: Window) -> Vec<Lane> {
    let mut lanes: Vec<Lane> = Vec::new();
    for end in course.lanes(window, COLUMNS) {
        let sums = [("link errors", "bad", end.link_errors), ("discards", "watch", end.discards)];
        for (what, class, columns) in sums {
            let most = columns.iter().copied().fold(0.0, f64::max);
            if most > 0.0 {
                let unit = format!("{what}, at most {most:.0}");
                lanes.push(Lane { title: end.port.label(), unit, class, columns });
            }
        }
    }
    let a_column = window.length().as_secs_f64() / COLUMNS as f64;
    if let Some((port, directions)) = course.traffic() {
        for (series, way) in directions.into_iter().zip(["sent", "received"]) {
            let Some(series) = series else { continue };
            let rates: Vec<f64> = columns::spread(&series.steps, window, COLUMNS)
                .iter()
                .map(|bytes| bytes / a_column / 1e9)
                .collect();
            let most = rates.iter().copied().fold(0.0, f64::max);
            let title = format!("{} {way}", port.label());
            let unit = format!("at most {most:.3} GB/s");
            lanes.push(Lane { title, unit, class: "load", columns: rates });
        }
    }
    lanes
}

fn drawn(lane: &Lane, top: f64) -> Markup {
    let most = lane.columns.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let wide = WIDE / COLUMNS as f64;
    html! {
        text x="0" y=(top + 18.0) { title { (lane.title) } (abbreviate(&lane.title, LETTERS)) }
        text .unit x="0" y=(top + 36.0) { (lane.unit) }
        line .axis x1=(LEFT) y1=(top + HIGH) x2=(LEFT + WIDE) y2=(top + HIGH) {}
        @for (column, value) in lane.columns.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            // What is there at all can be seen.
            @let high = (value / most * HIGH).max(1.5);
            rect class=(lane.class) x=(rounded(LEFT + column as f64 * wide)) y=(rounded(top + HIGH - high))
                width=(wide) height=(rounded(high)) {}
        }
    }
}

fn mark(event: &Told, window: Window, bottom: f64, clock: &Clock) -> Markup {
    let x = rounded(place(event.at, window));
    let is_good = [Kind::LinkUp, Kind::ExpectedLoss].iter().any(|kind| kind.label() == event.kind);
    let class = if is_good { "mark good" } else { "mark" };
    html! {
        g class=(class) {
            title { (clock.tell(event.at)) ": " (event.kind) ": " (event.text) }
            line x1=(x) y1="8" x2=(x) y2=(bottom) {}
            circle cx=(x) cy="8" r="4" {}
        }
    }
}

fn ticked(tick: u32, window: Window, bottom: f64, clock: &Clock) -> Markup {
    let at = window.from + window.length() * tick / TICKS;
    let anchor = match tick {
        0 => "start",
        TICKS => "end",
        _ => "middle",
    };
    let told = if window.length() > Duration::from_secs(86_400) {
        clock.tell(at)
    } else {
        clock.tell_time(at)
    };
    html! {
        text .unit x=(rounded(place(at, window))) y=(bottom + 16.0) text-anchor=(anchor) { (told) }
    }
}

fn place(at: SystemTime, window: Window) -> f64 {
    let since = at.duration_since(window.from).unwrap_or_default().as_secs_f64();
    LEFT + WIDE * (since / window.length().as_secs_f64()).min(1.0)
}

/// To a tenth: more cannot be seen, and makes the page longer.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
