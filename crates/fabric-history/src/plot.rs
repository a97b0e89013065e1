//! A plot of a cable's timeline as SVG: errors at each end, traffic, and events, on one time axis.

use std::time::{Duration, SystemTime};

use maud::{Markup, html};

use ib_mad::label::abbreviate;

use super::EventKind;
use super::columns;
use super::link_timeline::LinkTimeline;
use super::local_clock::LocalClock;
use super::model::{Event, Window};

/// Width of the time axis, in the picture's units.
const WIDTH: f64 = 640.0;

/// Width of the labels to the left of it.
const LABEL_WIDTH: f64 = 150.0;

/// How many characters of usual width fit there.
const LABEL_CHARS: usize = 25;

/// Height of a row, and of the space between two.
const ROW_HEIGHT: f64 = 44.0;
const ROW_GAP: f64 = 14.0;

/// One column per four units: an hour of sweeps each 15 s has 240.
const COLUMNS: usize = 160;

/// Intervals between the ticks of the time axis.
const TICKS: u32 = 4;

/// A row of the picture.
struct Row {
    title: String,
    unit: String,
    class: &'static str,
    columns: Vec<f64>,
}

/// The plot; `None` if there is nothing to draw.
pub fn draw(timeline: LinkTimeline<'_>, window: Window, clock: &LocalClock) -> Option<Markup> {
    let rows = rows(timeline, window);
    if window.length().is_zero() || rows.is_empty() && timeline.events.is_empty() {
        return None;
    }
    let bottom = ROW_GAP * 2.0 + rows.len() as f64 * (ROW_HEIGHT + ROW_GAP);
    let about = format!(
        "The course of {}: link errors, discards, traffic and events over time",
        timeline.place
    );
    let right = LABEL_WIDTH + WIDTH;
    Some(html! {
        svg .plot viewBox={ "0 0 " (right + 10.0) " " (bottom + 24.0) } role="img" aria-label=(about) {
            @for event in timeline.events { (event_mark(event, window, bottom, clock)) }
            @for (index, row) in rows.iter().enumerate() {
                (bars(row, ROW_GAP * 2.0 + index as f64 * (ROW_HEIGHT + ROW_GAP)))
            }
            line .axis x1=(LABEL_WIDTH) y1=(bottom) x2=(right) y2=(bottom) {}
            @for index in 0..=TICKS { (tick(index, window, bottom, clock)) }
        }
    })
}

fn rows(timeline: LinkTimeline<'_>, window: Window) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for end in timeline.end_errors(window, COLUMNS) {
        let sums = [("link errors", "bad", end.link_errors), ("discards", "watch", end.discards)];
        for (what, class, columns) in sums {
            let max = columns.iter().copied().fold(0.0, f64::max);
            if max > 0.0 {
                let unit = format!("{what}, at most {max:.0}");
                rows.push(Row { title: end.port.label(), unit, class, columns });
            }
        }
    }
    let column_seconds = window.length().as_secs_f64() / COLUMNS as f64;
    if let Some((port, directions)) = timeline.traffic() {
        for (series, direction) in directions.into_iter().zip(["sent", "received"]) {
            let Some(series) = series else { continue };
            let mut columns = columns::resample(&series.steps, window, COLUMNS);
            for bytes in &mut columns {
                *bytes /= column_seconds * 1e9;
            }
            let max = columns.iter().copied().fold(0.0, f64::max);
            let title = format!("{} {direction}", port.label());
            rows.push(Row {
                title,
                unit: format!("at most {max:.3} GB/s"),
                class: "load",
                columns,
            });
        }
    }
    rows
}

fn bars(row: &Row, top: f64) -> Markup {
    let max = row.columns.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let width = WIDTH / COLUMNS as f64;
    let bottom = top + ROW_HEIGHT;
    html! {
        text x="0" y=(top + 18.0) { title { (row.title) } (abbreviate(&row.title, LABEL_CHARS)) }
        text .unit x="0" y=(top + 36.0) { (row.unit) }
        line .axis x1=(LABEL_WIDTH) y1=(bottom) x2=(LABEL_WIDTH + WIDTH) y2=(bottom) {}
        @for (column, value) in row.columns.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            // Every value above zero is visible.
            @let height = (value / max * ROW_HEIGHT).max(1.5);
            rect class=(row.class) x=(rounded(LABEL_WIDTH + column as f64 * width)) y=(rounded(bottom - height))
                width=(width) height=(rounded(height)) {}
        }
    }
}

fn event_mark(event: &Event, window: Window, bottom: f64, clock: &LocalClock) -> Markup {
    let x = rounded(x_of(event.at, window));
    let is_good =
        [EventKind::LinkUp, EventKind::ExpectedLoss].iter().any(|kind| kind.label() == event.kind);
    let class = if is_good { "mark good" } else { "mark" };
    html! {
        g class=(class) {
            title { (clock.format(event.at)) ": " (event.kind) ": " (event.text) }
            line x1=(x) y1="8" x2=(x) y2=(bottom) {}
            circle cx=(x) cy="8" r="4" {}
        }
    }
}

fn tick(index: u32, window: Window, bottom: f64, clock: &LocalClock) -> Markup {
    let at = window.from + window.length() * index / TICKS;
    let anchor = match index {
        0 => "start",
        TICKS => "end",
        _ => "middle",
    };
    let is_long = window.length() > Duration::from_secs(86_400);
    let label = if is_long { clock.format(at) } else { clock.format_time(at) };
    html! {
        text .unit x=(rounded(x_of(at, window))) y=(bottom + 16.0) text-anchor=(anchor) { (label) }
    }
}

fn x_of(at: SystemTime, window: Window) -> f64 {
    let since = at.duration_since(window.from).unwrap_or_default().as_secs_f64();
    LABEL_WIDTH + WIDTH * (since / window.length().as_secs_f64()).min(1.0)
}

/// Rounds to a tenth: more is not visible, and makes the page longer.
fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
