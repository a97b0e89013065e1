//! Both ends of a cable, side by side.

use std::time::Duration;

use maud::{Markup, html};

use crate::api::model::port::{LinkDetail, Port};
use crate::pages::words;
use fabric_history::clock::Clock;
use ib_health::evidence;
use ib_health::outage::Downtime;
use ib_mad::Counter;
use ib_mad::counter::LINK_ERRORS;

/// A line of the table: what it says, and what of an end.
type Line = (&'static str, fn(&Port, &str) -> Option<Markup>);

/// The table; lines that say nothing of either end are left out.
const LINES: [Line; 12] = [
    ("Port", |port, fabric| {
        Some(html! {
            (words::node(fabric, &port.name.guid, &port.name.node)) ", " (words::kind(&port.name.node_type))
            ", " (words::port_number(fabric, &port.name))
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
            html! { (width) " " (speed) @if let Some(rate) = port.rate { ", " (words::rate(rate)) } },
        )
    }),
    ("Both ends can do", |port, _| {
        let best = port.supported_rate?;
        Some(html! {
            (words::rate(best))
            @if port.rate.is_some_and(|rate| rate < best) {
                @let is_fault = port.reasons.iter().any(|reason| reason == "width" || reason == "speed");
                " " span .quiet[!is_fault] .verdict[is_fault] .watch[is_fault] { "runs slower" }
            }
        })
    }),
    ("Error correction", |port, _| port.fec.as_deref().map(|fec| html! { (fec) })),
    ("Link errors", |port, _| {
        port.read_at.as_ref().map(|_| words::summed(port, &LINK_ERRORS, Some(port.errors)))
    }),
    ("Discards", |port, _| {
        port.discards.map(|_| words::summed(port, &[Counter::XmitDiscards], port.discards))
    }),
    ("Waits to send", |port, _| {
        port.wait_ratio.map(|ratio| html! {
            (words::share(ratio)) " of the time"
            @if !port.tick_told { " " span .quiet { "(the device does not tell how long its tick is)" } }
        })
    }),
    ("Congestion", |port, fabric| match &port.congestion {
        Some(part) => Some(words::congestion(part, fabric)),
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
                        (words::plain(counter))
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

/// Both ends, and what the link went through.
pub(super) fn section(detail: &LinkDetail, clock: &Clock) -> Markup {
    let (ports, fabric) = (&detail.ports, &*detail.link.fabric);
    html! {
        h2 { "Both ends" }
        div .wide tabindex="0" role="group" aria-label="Both ends" { table .ends {
            thead { tr {
                td {}
                @for port in ports { th scope="col" { (port.name.label()) } }
            } }
            tbody { @for (name, tell) in LINES {
                @let cells = [0, 1].map(|end| tell(&ports[end], fabric));
                @if cells.iter().any(Option::is_some) { tr {
                    th scope="row" { (name) }
                    @for cell in cells { td { @if let Some(cell) = cell { (cell) } @else { span .quiet { "not known" } } } }
                } }
            } }
        } }
        (outages(detail, clock))
    }
}

fn outages(detail: &LinkDetail, clock: &Clock) -> Markup {
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
                    Some(last) => (words::since(clock, last, detail.swept_at.as_deref())),
                    None => "never, as far as is known",
                }
            } }
            @if let Some(upstream) = &link.upstream {
                div { dt { "Spoilt packets come from the link into" } dd { (upstream) } }
            }
        }
    }
}
