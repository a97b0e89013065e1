//! Both ends of a link: their properties, counters and bit errors.

use std::time::Duration;

use maud::{Markup, html};

use crate::components;
use fabric_api::address;
use fabric_api::model::{Label, Link, LinkDetail, LinkPlane, Port, WindowErrors};
use fabric_history::local_clock::LocalClock;
use ib_fabric::aggregated_links::GroupSource;
use ib_health::bit_errors::ENOUGH;
use ib_health::outage::Downtime;
use ib_mad::Counter;
use ib_mad::counter::{CounterKind, CounterRow, LINK_ERRORS, TABLE};

/// A row of the table: its heading, and the cell of a port in the fabric of this name.
type EndsRow = (&'static str, fn(&Port, &str) -> Option<Markup>);

/// The rows. One without a cell for either end is left out.
const ROWS: [EndsRow; 22] = [
    ("Port", |port, fabric| {
        Some(html! {
            (components::node(fabric, &port.name.guid, &port.name.node)) ", " (components::node_kind(&port.name.node_type))
            ", " a href=(address::port_of_node(fabric, &port.name.guid, port.name.port)) { "port " (port.name.port) }
        })
    }),
    ("Node responds", |port, _| Some(html! { @if port.up { "yes" } @else { strong { "no" } } })),
    ("State", |port, _| {
        let (state, physical) = (port.state.as_deref()?, port.physical_state.as_deref()?);
        Some(html! { (state) span .quiet { ", " (physical) } })
    }),
    ("Width, speed", |port, _| {
        let (width, speed) = (port.width.as_deref()?, port.speed.as_deref()?);
        Some(
            html! { (width) " " (speed) @if let Some(rate) = port.rate { ", " (components::link_rate(rate)) } },
        )
    }),
    ("Supported by both ends", |port, _| {
        let best = port.supported_rate?;
        Some(html! {
            (components::link_rate(best))
            @if port.rate.is_some_and(|rate| rate < best) {
                @let is_fault = port.reasons.iter().any(|reason| reason == "width" || reason == "speed");
                " " span .quiet[!is_fault] .verdict[is_fault] .watch[is_fault] { "below capability" }
            }
        })
    }),
    ("Sends", |port, _| port.tx.as_ref().map(|flow| components::flow(Some(flow)))),
    ("Receives", |port, _| port.rx.as_ref().map(|flow| components::flow(Some(flow)))),
    ("FEC mode", |port, _| port.fec.as_deref().map(|fec| html! { (fec_name(fec)) })),
    ("Link error counters, sum", |port, _| {
        port.errors.map(|_| components::counter_sum(port, &LINK_ERRORS, port.errors))
    }),
    ("Discards", |port, _| {
        port.discards
            .map(|_| components::counter_sum(port, &[Counter::XmitDiscards], port.discards))
    }),
    ("Wait (PortXmitWait)", |port, _| {
        let is_known = port.wait_ratio.is_some();
        (is_known || port.wait_saturated).then(|| html! {
            (components::wait(port)) @if is_known { " of the time" }
            @if is_known && !port.tick_reported { " " span .quiet { "(tick length assumed: the device does not report it)" } }
        })
    }),
    ("Congestion", |port, fabric| match &port.congestion {
        Some(part) => Some(components::congestion(part, fabric)),
        None => port.wait_ratio.map(|_| html! { "none" }),
    }),
    ("Cable or module", |port, _| {
        let module = port.module.as_ref()?;
        Some(html! {
            (module.vendor) " " (module.part_number) ", serial number " (module.serial_number)
            span .quiet {
                @for fact in [&module.kind, &module.form_factor] { @if !fact.is_empty() { ", " (fact) } }
                @if let Some(meters) = module.length_meters { ", " (meters) " m" }
            }
        })
    }),
    ("Module temperature", |port, _| {
        let module = port.module.as_ref()?;
        let degrees = module.temperature?;
        Some(html! {
            (format!("{degrees:.0} °C"))
            @if let Some(alarm) = module.temperature_alarm {
                " " span .quiet { "(alarm above " (format!("{alarm:.0} °C")) ")" }
            }
        })
    }),
    ("Optical power", |port, _| {
        let module = port.module.as_ref()?;
        let powers = components::powers;
        (!module.rx_power.is_empty()).then(|| {
            html! {
                "rx " (powers(&module.rx_power)) "; tx " (powers(&module.tx_power))
                @if let Some(alarm) = module.rx_power_alarm {
                    " " span .quiet { "(rx alarm below " (format!("{alarm:.1} dBm")) ")" }
                }
            }
        })
    }),
    ("Last link down", |port, _| {
        let reason = port.link_down_reason.as_ref()?;
        let side = reason.side.as_ref().map(|side| format!("{side} side"));
        let words = side.into_iter().chain(reason.reason.clone()).collect::<Vec<_>>().join(", ");
        (!words.is_empty()).then(|| html! { (words) })
    }),
    ("No link because", |port, _| port.trouble.as_ref().map(|why| html! { (why) })),
    ("Reported BER", |port, _| {
        let ber = port.reported_ber.as_ref()?;
        let parts = [("raw", ber.raw), ("effective", ber.effective), ("symbol", ber.symbol)];
        let known: Vec<String> = (parts.into_iter())
            .filter_map(|(name, ratio)| match ratio? {
                0.0 => Some(format!("{name} 0")),
                ratio => Some(format!("{name} {ratio:e}")),
            })
            .collect();
        (!known.is_empty()).then(|| html! { (known.join(", ")) })
    }),
    ("Raw errors by lane", |port, _| {
        let ber = port.reported_ber.as_ref()?;
        let errors: Vec<String> =
            ber.lane_errors.iter().map(|errors| components::grouped(*errors)).collect();
        let is_any = ber.lane_errors.iter().any(|errors| *errors > 0);
        is_any.then(|| {
            html! {
                (errors.join(" · "))
                @if let Some(seconds) = ber.since_clear_seconds {
                    " " span .quiet { "in " (components::duration(Duration::from_secs(seconds))) }
                }
            }
        })
    }),
    ("FEC histogram", |port, _| {
        let last = port.fec_histogram.iter().rposition(|blocks| *blocks > 0)?;
        let bins: Vec<String> =
            port.fec_histogram[..=last].iter().map(|it| components::grouped(*it)).collect();
        Some(html! { (bins.join(" · ")) " " span .quiet { "blocks by bin from 0 on" } })
    }),
    ("Impossible values", |port, _| {
        (port.impossible_readings > 0).then(|| {
            html! {
                (port.impossible_readings) " ignored"
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
    ("Counter resets", |port, _| {
        (port.resets > 0).then(|| {
            html! {
                (port.resets) " (counters cleared, or device reset)"
                @if let Some(every) = port.cleared_every_seconds {
                    ", " strong { "a tool clears them every " (format!("{every:.0}")) " s or more often" }
                }
            }
        })
    }),
];

/// The planes of a link, if it has several, with what each of them is and counted.
pub(super) fn planes(detail: &LinkDetail) -> Markup {
    let Link { fabric, planes, planes_source, .. } = &detail.link;
    let is_guess = planes_source.as_deref() == Some(GroupSource::Guess.label());
    html! { @if !planes.is_empty() {
        h2 #planes { "Planes" }
        @if is_guess {
            p .quiet { "The devices do not report their planes: these are taken for one link because equal ports of the nodes of one switch lead to one peer." }
        }
        div .wide tabindex="0" role="group" aria-label="Planes" { table {
            thead { tr {
                @for name in ["Plane", "Verdict", "State", "Rate", "Port", "Port"] { th scope="col" { (name) } }
                th scope="col" .number { "Errors" }
            } }
            tbody { @for plane in planes { tr {
                th scope="row" { (plane.plane) }
                td {
                    (components::verdict(&plane.verdict))
                    @for reason in &plane.reasons { " " span .quiet { (components::label_text(reason)) } }
                }
                td { (match plane.up { Some(true) => "up", Some(false) => "down", None => "unknown" }) }
                td {
                    @if let Some(rate) = plane.rate { (components::link_rate(rate)) " " }
                    @if let (Some(width), Some(speed)) = (&plane.width, &plane.speed) { span .quiet { (width) " " (speed) } }
                }
                @for port in &plane.ports { td { (components::port(fabric, port)) } }
                td .number { (components::error_sum(plane.errors, false)) }
            } } }
        } }
    } }
}

pub(super) fn ends(detail: &LinkDetail, clock: &LocalClock) -> Markup {
    let (ports, fabric) = (&detail.ports, &*detail.link.fabric);
    // Of several planes, those of the worst one are shown.
    let is_shown = |it: &&LinkPlane| it.ports[0] == ports[0].name || it.ports[1] == ports[0].name;
    let plane = detail.link.planes.iter().find(is_shown).map(|plane| plane.plane);
    html! {
        h2 { "Both ends" @if let Some(plane) = plane { " of plane " (plane) } }
        div .wide tabindex="0" role="group" aria-label="Both ends" { table .ends {
            thead { tr {
                td {}
                @for port in ports { th scope="col" { (port.name.label()) } }
            } }
            tbody { @for (name, cell) in ROWS {
                @let cells = ports.each_ref().map(|port| cell(port, fabric));
                @if cells.iter().any(Option::is_some) { tr {
                    th scope="row" { (name) }
                    @for cell in cells { td { @if let Some(cell) = cell { (cell) } @else { span .quiet { "unknown" } } } }
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
        let down = Downtime { least, most }.to_string();
        (!most.is_zero()).then(|| format!(", {down} in total"))
    };
    html! {
        dl .facts {
            div { dt { "Unexpected link downs" } dd { (link.flaps) @if let Some(down) = down(link.down_seconds, link.down_max_seconds) { (down) } } }
            div { dt { "Expected link downs" } dd { (detail.expected_link_downs) @if let Some(down) = down(detail.expected_down_seconds, detail.expected_down_max_seconds) { (down) } } }
            div { dt { "Retrains" } dd { (detail.recoveries) } }
            div { dt { "Last link down or up" } dd {
                @match &link.last_change {
                    Some(last) => (components::timestamp_and_age(clock, last, detail.swept_at.as_deref())),
                    None => "none observed",
                }
            } }
            @if let Some(upstream) = &link.upstream {
                div { dt { "Packets marked bad come from the link into" } dd { (upstream) } }
            }
        }
    }
}

/// The counters of both ends except traffic, and bit error ratios with their limits.
pub(super) fn counters(detail: &LinkDetail, clock: &LocalClock) -> Markup {
    let ports = &detail.ports;
    // The counts of both ends, in the units of the metrics.
    let counts = |row: &CounterRow| ports.each_ref().map(|port| port.counters.get(row.metric));
    let read = TABLE.iter().filter(|row| row.kind != CounterKind::Traffic);
    let read: Vec<&CounterRow> =
        read.filter(|row| counts(row).iter().any(Option::is_some)).collect();
    let is_zero = |row: &&&CounterRow| counts(row).into_iter().flatten().all(|count| *count == 0);
    let (zero, nonzero): (Vec<&CounterRow>, Vec<&CounterRow>) = read.iter().partition(is_zero);
    html! {
        h2 { "Counters" }
        @if read.is_empty() {
            p .quiet { "The counters of both ends have not been read." }
        } @else if nonzero.is_empty() {
            p { "All counters that were read are 0." }
        } @else {
            (table(ports, &nonzero))
        }
        @if !zero.is_empty() {
            details {
                summary { (zero.len()) " counters are 0 or not read" }
                (table(ports, &zero))
            }
        }
        (bits(ports, clock, detail.swept_at.as_deref()))
    }
}

/// The usual name of a FEC mode, by its label.
fn fec_name(label: &str) -> &str {
    match label {
        "none" => "no FEC",
        "fire-code" => "Fire code",
        "rs" => "RS-FEC",
        "ll-rs" | "mlx-ll-rs" => "low-latency RS-FEC",
        "rs2" => "RS-FEC (544,514)",
        "strong-rs" => "strong RS-FEC",
        "adaptive-rs" => "adaptive RS-FEC",
        "cod" => "COD",
        "zero-latency" => "zero-latency FEC",
        "rs-544-plr" => "RS-FEC (544,514) with PLR",
        "rs-271-plr" => "RS-FEC (271,257) with PLR",
        label => label,
    }
}

fn table(ports: &[Port; 2], rows: &[&CounterRow]) -> Markup {
    html! {
        div .wide tabindex="0" role="group" aria-label="Counters" { table .counters {
            thead { tr {
                th scope="col" { "Counter" }
                @for port in ports { th .n scope="col" { (port.name.label()) } }
                th scope="col" { "Description" }
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
    let count = port.counters.get(row.metric).copied();
    let has = |names: &[Label]| names.iter().any(|name| name == row.metric);
    let least = "The counter was saturated at least once: the total is a lower bound.";
    html! {
        (components::counted(count, has(&port.saturated).then_some(least)))
        @if count > Some(0) && has(&port.saturated_now) { " " span .verdict.watch { "saturated" } }
    }
}

fn bits(ports: &[Port; 2], clock: &LocalClock, swept_at: Option<&str>) -> Markup {
    html! {
        h2 { "Bit errors" }
        @if ports.iter().all(|port| port.bit_errors.windows.is_empty()) {
            p .quiet { "Neither end has been observed long enough yet." }
        } @else {
            div .wide tabindex="0" role="group" aria-label="Bit errors" { table .stack.bits {
                thead { tr {
                    th scope="col" { "Received by" } th scope="col" { "Result" } th .n scope="col" { "Limit" }
                    th scope="col" { "Window" } th .n scope="col" { "Errors" } th .n scope="col" { "Observed" } th .n scope="col" { "BER" }
                } }
                @for port in ports { tbody { @for (nth, window) in port.bit_errors.windows.iter().enumerate() { tr {
                    @let all = port.bit_errors.windows.len();
                    @if nth == 0 {
                        th scope="rowgroup" rowspan=(all) data-label="Received by" { (port.name.label()) }
                        td rowspan=(all) data-label="Result" { (judgement(&port.bit_errors.level)) }
                        td .n rowspan=(all) data-label="Limit" { @if let Some(limit) = port.bit_errors.limit { (format!("{limit:.0e}")) } @else { "none" } }
                    }
                    td data-label="Window" { (window.window) }
                    td .n data-label="Errors" { (components::grouped(window.errors)) }
                    td .n data-label="Observed" { (components::duration(Duration::try_from_secs_f32(window.seconds.round()).unwrap_or_default())) }
                    td .n data-label="BER" { (ratio(port, window)) }
                } } } }
            } }
        }
        @for port in ports { @if let Some(pre_fec) = &port.pre_fec_ber {
            p .quiet {
                "Pre-FEC bit error ratio received by " (port.name.label()) ": " (format!("{:.1e}", pre_fec.ratio))
                ", limit " (format!("{:.0e}", pre_fec.limit))
                @if let Some((lane, share)) = pre_fec.lane.zip(pre_fec.lane_share) {
                    ", " (components::percent(share)) " of the errors on lane " (lane)
                }
                "."
                @if pre_fec.stale {
                    " The counter is saturated: this is the last known ratio"
                    @if let Some(at) = &pre_fec.measured_at { ", measured " (components::timestamp_and_age(clock, at, swept_at)) }
                    "."
                }
            }
        } }
    }
}

fn ratio(port: &Port, window: &WindowErrors) -> Markup {
    let limit = port.bit_errors.limit;
    let enough = limit.zip(port.rate).map(|(limit, rate)| ENOUGH / (limit * rate as f32 * 8.0));
    let enough = enough.filter(|enough| window.seconds < *enough);
    let needed = enough.and_then(|enough| Duration::try_from_secs_f32(enough.round()).ok());
    html! {
        @match (window.ratio, needed) {
            (None, Some(needed)) => span .quiet { "needs " (components::duration(needed)) },
            (None, None) => span .quiet { "insufficient data" },
            (Some(0.0), _) => "0",
            (Some(ratio), _) if limit.is_some_and(|limit| ratio > f64::from(limit)) => strong { (format!("{ratio:.1e}")) },
            (Some(ratio), _) => (format!("{ratio:.1e}")),
        }
    }
}

/// The verdict on all windows of a port together.
fn judgement(label: &str) -> Markup {
    let (class, text) = match label {
        "over" => ("bad", "above the limit"),
        "raised" => ("watch", "above half of the limit"),
        "fine" => ("ok", "ok"),
        _ => ("unknown", "unknown"),
    };
    html! { span class={ "verdict " (class) } { (text) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_api::model::BitErrors;

    /// At NDR, 1e-14 takes 625 s.
    #[test]
    fn empty_ratio_says_how_long_it_takes() {
        let bit_errors = BitErrors { limit: Some(1e-14), ..BitErrors::default() };
        let port = Port { rate: Some(50_000_000_000), bit_errors, ..Port::default() };
        let window = |seconds| WindowErrors { seconds, ..WindowErrors::default() };
        let text = |port: &Port, seconds| ratio(port, &window(seconds)).into_string();
        assert!(text(&port, 80.0).contains("needs 10m 25s"), "{}", text(&port, 80.0));
        // The counter is saturated.
        assert!(text(&port, 700.0).contains("insufficient data"));
        assert!(text(&Port::default(), 80.0).contains("insufficient data"));
    }
}
