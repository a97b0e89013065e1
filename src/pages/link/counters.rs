//! The counters of both ends of a link, and their bit errors.

use maud::{Markup, html};

use crate::api::model::port::{LinkDetail, Port};
use crate::pages::components;
use fabric_history::local_clock::LocalClock;
use ib_mad::counter::{CounterKind, CounterRow, TABLE};

/// The counters of both ends except traffic, and bit error ratios with their limits.
pub(super) fn section(detail: &LinkDetail, clock: &LocalClock) -> Markup {
    let ports = &detail.ports;
    let rows = TABLE.iter().filter(|row| row.kind != CounterKind::Traffic);
    let read: Vec<&CounterRow> = rows
        .filter(|row| ports.iter().any(|port| port.counters.contains_key(row.metric)))
        .collect();
    let is_zero =
        |row: &&&CounterRow| ports.iter().all(|port| of(port, row).is_none_or(|count| count == 0));
    let (zero, nonzero): (Vec<&CounterRow>, Vec<&CounterRow>) = read.iter().partition(is_zero);
    html! {
        h2 { "Errors and waits" }
        @if read.is_empty() {
            p .quiet { "Neither end's counters were read." }
        } @else if nonzero.is_empty() {
            p { "Nothing was counted at either end." }
        } @else {
            (table(ports, &nonzero))
        }
        @if !zero.is_empty() {
            details {
                summary { (zero.len()) " counters stand at zero" }
                (table(ports, &zero))
            }
        }
        (bits(ports, clock, detail.swept_at.as_deref()))
    }
}

/// A counter of a port, in the unit of its metric.
fn of(port: &Port, row: &CounterRow) -> Option<u64> {
    port.counters.get(row.metric).copied()
}

fn table(ports: &[Port; 2], rows: &[&CounterRow]) -> Markup {
    html! {
        div .wide tabindex="0" role="group" aria-label="Counters" { table .counters {
            thead { tr {
                th scope="col" { "Counter" }
                @for port in ports { th .n scope="col" { (port.name.label()) } }
                th scope="col" { "What it counts" }
            } }
            tbody { @for row in rows { tr {
                th scope="row" { abbr title=(row.ibta) { (components::label_text(row.metric)) } }
                @for port in ports { td .n { (cell(port, row)) } }
                td .quiet { (row.help) }
            } } }
        } }
    }
}

fn cell(port: &Port, row: &CounterRow) -> Markup {
    let full = |names: &[crate::api::model::Label]| names.iter().any(|name| name == row.metric);
    html! {
        @match of(port, row) {
            None => span .quiet { "not read" },
            Some(0) => span .quiet { "0" },
            Some(count) => {
                @if full(&port.saturated) { abbr title="The field was full at least once: the total is a lower bound." { "≥ " } }
                (components::count(count))
                @if full(&port.stuck) { " " span .verdict.watch { "full" } }
            }
        }
    }
}

fn bits(ports: &[Port; 2], clock: &LocalClock, swept_at: Option<&str>) -> Markup {
    html! {
        h2 { "Wrong bits" }
        @if ports.iter().all(|port| port.bit_errors.windows.is_empty()) {
            p .quiet { "Neither end was watched for long enough yet." }
        } @else {
            div .wide tabindex="0" role="group" aria-label="Wrong bits" { table .bits {
                thead { tr {
                    th scope="col" { "Into" } th scope="col" { "Window" } th .n scope="col" { "Errors" }
                    th .n scope="col" { "Watched" } th .n scope="col" { "Ratio" } th .n scope="col" { "Limit" } th scope="col" { "Comes to" }
                } }
                @for port in ports { tbody { @for (nth, window) in port.bit_errors.windows.iter().enumerate() { tr {
                    @let all = port.bit_errors.windows.len();
                    @if nth == 0 { th scope="rowgroup" rowspan=(all) { (port.name.label()) } }
                    td { (window.window) }
                    td .n { (components::count(window.errors.into())) }
                    td .n { (format!("{:.0} s", window.seconds)) }
                    td .n { (ratio(port, window.ratio)) }
                    @if nth == 0 {
                        td .n rowspan=(all) { @if let Some(limit) = port.bit_errors.limit { (format!("{limit:.0e}")) } @else { "none" } }
                        td rowspan=(all) { (judgement(&port.bit_errors.judgement)) }
                    }
                } } } }
            } }
        }
        @for port in ports { @if let Some(mended) = &port.mended {
            p .quiet {
                "Error correction corrected " (format!("{:.1e}", mended.ratio)) " of the bits into " (port.name.label())
                "; the limit is " (format!("{:.0e}", mended.limit)) "."
                @if mended.stale {
                    " The counter is full: this is the last ratio that is known"
                    @if let Some(at) = &mended.measured_at { ", measured " (components::timestamp_and_age(clock, at, swept_at)) }
                    "."
                }
            }
        } }
    }
}

fn ratio(port: &Port, ratio: Option<f64>) -> Markup {
    let over = ratio.zip(port.bit_errors.limit).filter(|(ratio, limit)| *ratio > f64::from(*limit));
    html! {
        @match (ratio, over) {
            (None, _) => span .quiet { "too short to tell" },
            (Some(0.0), _) => "0",
            (Some(ratio), Some(_)) => strong { (format!("{ratio:.1e}")) },
            (Some(ratio), None) => (format!("{ratio:.1e}")),
        }
    }
}

/// The verdict on all windows of a port together.
fn judgement(label: &str) -> Markup {
    let class = match label {
        "over" => "bad",
        "raised" => "watch",
        "fine" => "ok",
        _ => "unknown",
    };
    html! { span class={ "verdict " (class) } { (label) } }
}
