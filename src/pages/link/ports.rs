//! Both ends of a link: what is known of them, their counters, and their bit errors.

use std::time::Duration;

use maud::{Markup, html};

use crate::api::model::{Label, LinkDetail, Port};
use crate::pages::components;
use fabric_history::local_clock::LocalClock;
use ib_health::evidence;
use ib_health::outage::Downtime;
use ib_mad::Counter;
use ib_mad::counter::{CounterKind, CounterRow, LINK_ERRORS, TABLE};

/// A row of the table: its heading, and the cell of a port in the fabric of this name.
type EndsRow = (&'static str, fn(&Port, &str) -> Option<Markup>);

/// The rows. One without a cell for either end is left out.
const ROWS: [EndsRow; 12] = [
    ("Port", |port, fabric| {
        Some(html! {
            (components::node(fabric, &port.name.guid, &port.name.node)) ", " (components::node_kind(&port.name.node_type))
            ", " (components::port_number(fabric, &port.name))
        })
    }),
    ("Node answers", |port, _| Some(html! { @if port.up { "yes" } @else { strong { "no" } } })),
    ("State", |port, _| {
        let (state, physical) = (port.state.as_deref()?, port.physical_state.as_deref()?);
        Some(html! { (state) span .quiet { ", " (physical) } })
    }),
    ("Runs at", |port, _| {
        let (width, speed) = (port.width.as_deref()?, port.speed.as_deref()?);
        Some(
            html! { (width) " " (speed) @if let Some(rate) = port.rate { ", " (components::bit_rate(rate)) } },
        )
    }),
    ("Both ends can do", |port, _| {
        let best = port.supported_rate?;
        Some(html! {
            (components::bit_rate(best))
            @if port.rate.is_some_and(|rate| rate < best) {
                @let is_fault = port.reasons.iter().any(|reason| reason == "width" || reason == "speed");
                " " span .quiet[!is_fault] .verdict[is_fault] .watch[is_fault] { "runs slower" }
            }
        })
    }),
    ("Error correction", |port, _| port.fec.as_deref().map(|fec| html! { (fec) })),
    ("Link errors", |port, _| {
        port.read_at
            .as_ref()
            .map(|_| components::counter_sum(port, &LINK_ERRORS, Some(port.errors)))
    }),
    ("Discards", |port, _| {
        port.discards
            .map(|_| components::counter_sum(port, &[Counter::XmitDiscards], port.discards))
    }),
    ("Waits to send", |port, _| {
        port.wait_ratio.map(|ratio| html! {
            (components::percent(ratio)) " of the time"
            @if !port.tick_reported { " " span .quiet { "(the device does not tell how long its tick is)" } }
        })
    }),
    ("Congestion", |port, fabric| match &port.congestion {
        Some(part) => Some(components::congestion(part, fabric)),
        None => port.wait_ratio.map(|_| html! { "none" }),
    }),
    ("Impossible values", |port, _| {
        (port.impossible_readings > 0).then(|| {
            html! {
                (port.impossible_readings) " dropped"
                @if !port.impossible.is_empty() {
                    "; now: "
                    @for (nth, counter) in port.impossible.iter().enumerate() {
                        @if nth > 0 { ", " }
                        (components::label_text(counter))
                    }
                }
            }
        })
    }),
    ("Counters fell", |port, _| {
        (port.resets > 0)
            .then(|| html! { (port.resets) " times: cleared, or the device was reset" })
    }),
];

pub(super) fn ends(detail: &LinkDetail, clock: &LocalClock) -> Markup {
    let (ports, fabric) = (&detail.ports, &*detail.link.fabric);
    html! {
        h2 { "Both ends" }
        div .wide tabindex="0" role="group" aria-label="Both ends" { table .ends {
            thead { tr {
                td {}
                @for port in ports { th scope="col" { (port.name.label()) } }
            } }
            tbody { @for (name, cell) in ROWS {
                @let cells = ports.each_ref().map(|port| cell(port, fabric));
                @if cells.iter().any(Option::is_some) { tr {
                    th scope="row" { (name) }
                    @for cell in cells { td { @if let Some(cell) = cell { (cell) } @else { span .quiet { "not known" } } } }
                } }
            } }
        } }
        (outages(detail, clock))
    }
}

fn outages(detail: &LinkDetail, clock: &LocalClock) -> Markup {
    let link = &detail.link;
    let down = |least: f64, most: f64| {
        let [least, most] =
            [least, most].map(|it| Duration::try_from_secs_f64(it).unwrap_or_default());
        let down = evidence::downtime(Downtime { least, most });
        (!most.is_zero()).then(|| format!(", {down} in all"))
    };
    html! {
        dl .facts {
            div { dt { "Lost by its own fault" } dd { (link.flaps) @if let Some(down) = down(link.down_seconds, link.down_max_seconds) { (down) } } }
            div { dt { "Lost as expected" } dd { (detail.expected_link_downs) @if let Some(down) = down(detail.expected_down_seconds, detail.expected_down_max_seconds) { (down) } } }
            div { dt { "Retrained by itself" } dd { (detail.recoveries) } }
            div { dt { "Went down or came up last" } dd {
                @match &link.last_change {
                    Some(last) => (components::timestamp_and_age(clock, last, detail.swept_at.as_deref())),
                    None => "never, as far as is known",
                }
            } }
            @if let Some(upstream) = &link.upstream {
                div { dt { "Spoilt packets come from the link into" } dd { (upstream) } }
            }
        }
    }
}

/// The counters of both ends except traffic, and bit error ratios with their limits.
pub(super) fn counters(detail: &LinkDetail, clock: &LocalClock) -> Markup {
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
    let full = |names: &[Label]| names.iter().any(|name| name == row.metric);
    html! {
        @match of(port, row) {
            None => span .quiet { "not read" },
            Some(0) => span .quiet { "0" },
            Some(count) => {
                @if full(&port.saturated) { abbr title="The field was full at least once: the total is a lower bound." { "≥ " } }
                (components::count(count))
                @if full(&port.saturated_now) { " " span .verdict.watch { "full" } }
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
                        td rowspan=(all) { (judgement(&port.bit_errors.level)) }
                    }
                } } } }
            } }
        }
        @for port in ports { @if let Some(mended) = &port.pre_fec_ber {
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
