//! A table of both ends of a link.

use std::time::Duration;

use maud::{Markup, html};

use crate::api::model::port::{LinkDetail, Port};
use crate::pages::components;
use fabric_history::local_clock::LocalClock;
use ib_health::evidence;
use ib_health::outage::Downtime;
use ib_mad::Counter;
use ib_mad::counter::LINK_ERRORS;

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
            @if !port.tick_told { " " span .quiet { "(the device does not tell how long its tick is)" } }
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

/// The table, and the outages of the link.
pub(super) fn section(detail: &LinkDetail, clock: &LocalClock) -> Markup {
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
            div { dt { "Lost as expected" } dd { (detail.expected_losses) @if let Some(down) = down(detail.expected_down_seconds, detail.expected_down_max_seconds) { (down) } } }
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
