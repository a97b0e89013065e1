//! `/node/{guid}`: a node and its ports; and `/port/{guid}/{port}`, which redirects to a link or a port.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use axum::extract::Path;
use axum::response::{IntoResponse, Redirect};
use maud::{Markup, html};

use crate::query_params::QueryResult;
use crate::state::PageState;
use fabric_api::model::{Node, NodeDetail, Port};
use fabric_api::nodes::node_by_guid;
use fabric_api::traffic::bit_rate;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::Event;
use fabric_history::source::{EventFilter, SeriesDetail, SourceError};
use fabric_history::{Reader, Source, plot};
use ib_mad::counter::LINK_ERRORS;
use ib_mad::{Counter, Guid, PortKey, PortNumber};

use super::{components, rails};
use crate::history_queries;
use crate::page::{Answer, Live, Page, Problem, check_fabric, not_swept};
use crate::query_params::QueryParams;
use crate::window_choice::WindowChoice;
use axum::http::StatusCode;
use fabric_api::address;

const MAX_EVENTS: usize = 50;
const EVENT_WINDOW: WindowChoice = WindowChoice::WEEK;
const TRAFFIC_WINDOW: WindowChoice = WindowChoice::HOUR;
/// The values of a sparkline: one a minute.
const SPARKS: usize = 60;

pub async fn get(app: PageState, Path(guid): Path<String>, query: QueryResult) -> Answer {
    let (guid, detail) = find(&app, &guid, query)?;
    let fabric = detail.fabric.clone();
    let ends: Vec<PortKey> =
        detail.ports.iter().map(|port| PortKey::new(guid, port.name.port)).collect();
    let end = app.end();
    let past = history_queries::run(&app.history, move |reader| {
        let window = EVENT_WINDOW.until(end, reader)?;
        let filter = EventFilter { nodes: vec![guid], ..EventFilter::all(window) };
        let in_fabric = |event: &Event| event.fabric == fabric;
        let events = reader.latest(&filter, &in_fabric, 0, MAX_EVENTS)?;
        Ok((events, traffic_of(reader, &ends, &fabric, end)?))
    })
    .await;
    let (events, past) = match past {
        Ok((events, traffic)) => (Ok(events), traffic),
        Err(why) => (Err(why), Past::default()),
    };
    let clock = LocalClock::now();
    let main = html! {
        (gist(&detail, app.grafana.as_deref()))
        (facts(&detail, app.end().is_some(), &clock))
        (ports(&detail, &past))
        (rails::section(&detail))
        // Of the past no forwarding tables are known, and a node that is down has no routes.
        @if app.live.state.as_of.is_none() && detail.node.up { (routes(&detail)) }
        h2 { "Events" }
        @match &events {
            Err(why) => (why),
            Ok((events, _)) if events.is_empty() => p .quiet { "No events in the last " (EVENT_WINDOW.label) "." },
            Ok((events, more)) => {
                (components::event_table(&clock, events, false))
                @if *more {
                    @let guid = guid.to_string();
                    p { a href=(address::with(address::EVENTS, &[("fabric", &detail.fabric), ("q", &guid), ("window", EVENT_WINDOW.name)])) { "All events of this node" } }
                }
            }
        }
    };
    Ok(Page::new(&detail.node.node, "", main).live(Live::Yes).respond())
}

/// Where to ask for the links that packets of a host cross, and for its routes.
fn routes(detail: &NodeDetail) -> Markup {
    let (node, fabric) = (&detail.node, &*detail.fabric);
    html! { @if node.node_type == "ca" { p {
        a href=(address::with(address::CROSSED, &[("host", &node.guid), ("fabric", fabric)])) {
            "Ask which links its packets cross"
        }
        " · "
        a href=(address::with(address::ROUTE, &[("from", &node.node), ("fabric", fabric)])) {
            "Route to another node"
        }
    } } }
}

/// The bytes per second that ports sent and received in the last hour, or since records begin, in [`SPARKS`] equal
/// periods.
#[derive(Debug, Default)]
struct Past {
    ports: BTreeMap<PortNumber, [Vec<f64>; 2]>,
    /// The time of each value.
    period: Duration,
}

impl Past {
    /// The time of all values.
    fn minutes(&self) -> u64 {
        (self.period * SPARKS as u32).as_secs().div_ceil(60)
    }
}

fn traffic_of(
    reader: &Reader,
    ends: &[PortKey],
    fabric: &str,
    end: Option<SystemTime>,
) -> Result<Past, SourceError> {
    let window = TRAFFIC_WINDOW.recorded(end, reader)?;
    let mut past = Past { period: window.length() / SPARKS as u32, ..Past::default() };
    for series in reader.series(ends, SeriesDetail::All, window)? {
        let direction = match series.counter {
            Counter::XmitData => 0,
            Counter::RcvData => 1,
            _ => continue,
        };
        if series.port.fabric == fabric {
            let of_port = past.ports.entry(series.port.port).or_default();
            of_port[direction] = plot::rates(&series.steps, window, SPARKS);
        }
    }
    Ok(past)
}

/// What a port sent or received: the direction with more of it.
fn sparkline(port: &Port, past: &Past) -> Markup {
    let Some(of_port) = past.ports.get(&port.name.port) else { return html! {} };
    let sum = |rates: &[f64]| rates.iter().sum::<f64>();
    let is_sender = sum(&of_port[0]) >= sum(&of_port[1]);
    let (rates, word) = if is_sender { (&of_port[0], "sent") } else { (&of_port[1], "received") };
    let most = rates.iter().copied().fold(0.0, f64::max);
    components::sparkline(rates, &format!("{word}, up to {}", bit_rate(most)))
}

/// `/port/{guid}/{port}`: redirects to the link of a port, or else to the port on the page of its node.
pub(super) async fn port(
    app: PageState,
    Path((guid, number)): Path<(String, String)>,
    query: QueryResult,
) -> Answer {
    let (guid, detail) = find(&app, &guid, query)?;
    let number = number.parse::<PortNumber>().ok();
    let port = detail.ports.iter().find(|port| Some(port.name.port) == number);
    let port = port.ok_or_else(|| {
        let node = &detail.node;
        let text = format!("{} has ports 1 to {}.", node.node, node.port_count);
        Problem(StatusCode::NOT_FOUND, "Port not found", text)
    })?;
    let to = match &port.link {
        Some(link) => address::link(&detail.fabric, link),
        None => address::port_of_node(&detail.fabric, guid, port.name.port),
    };
    Ok(Redirect::to(&to).into_response())
}

fn find(app: &PageState, guid: &str, query: QueryResult) -> Result<(Guid, NodeDetail), Problem> {
    let not_found = |text| Problem(StatusCode::NOT_FOUND, "Node not found", text);
    let parsed = guid.parse::<Guid>().map_err(|_| {
        not_found(format!(
            "{guid:?} is not a GUID such as 0x00aa000000000001. To find a node by name, use the search."
        ))
    })?;
    let query = QueryParams::from(query);
    let live = &app.live;
    let fabrics = &live.state.fabrics;
    check_fabric(fabrics, query.get("fabric"))?;
    let detail = node_by_guid(fabrics, query.get("fabric"), parsed).ok_or_else(|| {
        let why = not_swept(fabrics, query.get("fabric")).unwrap_or(
            "A node that left the fabric is shown for the time of --fabric.forget-after; its events \
             stay in the history.",
        );
        not_found(format!("No node has the GUID {parsed}. {why}"))
    })?;
    Ok((parsed, detail))
}

fn gist(detail: &NodeDetail, grafana: Option<&str>) -> Markup {
    let node = &detail.node;
    html! {
        p .gist {
            (components::node_kind(&node.node_type))
            @if let Some(device) = &node.device { ", " (device) }
            " · "
            @match (&*node.presence, node.up) {
                (_, true) => "up",
                ("found", false) => strong { "down: does not respond" },
                ("hidden", false) => strong { "down: behind a node that does not respond" },
                _ => strong { "down: missing from the fabric" },
            }
            @if !node.up { (components::down(&clock_of(detail), &detail.fabric, node)) }
            " · worst link " (components::verdict(node.verdicts.worst_shown()))
        }
        p .quiet {
            "Fabric " a href=(address::with(address::TOPOLOGY, &[("fabric", &detail.fabric)])) { (detail.fabric) }
            " · links: " @if node.verdicts.count() == 0 { "none" } @else { (components::verdict_counts(&node.verdicts)) }
            @if let Some(url) = grafana {
                // A host has no dashboard of its own: that of cables finds its links by name.
                @let (state, key, value) = if node.node_type == "switch" { ("switch", "switch", &node.guid) } else { ("cable", "node", &node.node) };
                " · " a href=(address::dashboard(url, state, &[("fabric", &detail.fabric), (key, value)])) { "Grafana" }
            }
        }
    }
}

/// The present, not before the sweep: a simulated clock may be ahead of ours.
fn clock_of(detail: &NodeDetail) -> LocalClock {
    let swept = detail.swept_at.as_deref().and_then(|at| humantime::parse_rfc3339(at).ok());
    LocalClock::now().not_before(swept.unwrap_or(SystemTime::UNIX_EPOCH))
}

fn facts(detail: &NodeDetail, is_past: bool, clock: &LocalClock) -> Markup {
    let node = &detail.node;
    let now = detail.swept_at.as_deref();
    html! {
        dl .facts {
            div { dt { "GUID" } dd { code { (node.guid) } } }
            @if node.system_guid != node.guid { div { dt { "SystemImageGUID" } dd { code { (node.system_guid) } } } }
            @if node.description != node.node { div { dt { "NodeDescription" } dd { (node.description) } } }
            @if !is_past { div { dt { "LID" } dd { @match node.lid { Some(lid) => (lid), None => "none" } } } }
            div { dt { "Vendor ID, device ID" } dd { code { (node.vendor_id) } ", " code { (format!("{:#06x}", node.device_id)) } " (" (node.device_id) ")" } }
            div { dt { "Ports" } dd { (node.port_count) } }
            @if node.node_type == "switch" {
                div { dt { "PortXmitWait tick" } dd {
                    @match node.tick { Some(tick) => { (u16::from(tick) + 1) " symbol times" }, None => "not reported" }
                } }
            }
            @if let Some(firmware) = &node.firmware {
                div { dt { "Firmware" } dd { (firmware) @if let Some(psid) = &node.psid { " (PSID " (psid) ")" } } }
            }
            @if let Some(uptime) = node.uptime_seconds {
                div { dt { "Device uptime" } dd { (humantime::format_duration(Duration::from_secs(uptime.into()))) } }
            }
            @if !node.fans.is_empty() { div { dt { "Fans" } dd { (fans(node)) } } }
            @if let Some(degrees) = node.temperature { div { dt { "ASIC temperature" } dd { (format!("{degrees:.0} °C")) } } }
            @if let Some(found) = &node.last_found { div { dt { "Last discovered" } dd { (components::timestamp_and_age(clock, found, now)) } } }
        }
    }
}

/// The slowest and the fastest fan, and those that are out of range.
fn fans(node: &Node) -> Markup {
    let speeds = || node.fans.iter().map(|fan| fan.rpm);
    let out: Vec<String> = (node.fans.iter())
        .filter(|fan| fan.out_of_range)
        .map(|fan| format!("fan {} at {} rpm", fan.number, fan.rpm))
        .collect();
    html! {
        (node.fans.len())
        @if let Some((least, most)) = speeds().min().zip(speeds().max()) { ", " (least) " to " (most) " rpm" }
        @if !out.is_empty() { ", " strong { "out of range: " (out.join(", ")) } }
    }
}

fn ports(detail: &NodeDetail, past: &Past) -> Markup {
    html! {
        h2 { "Ports" }
        div .wide tabindex="0" role="group" aria-label="Ports" { table .stack.ports {
            thead { tr {
                th .n scope="col" { "Port" } th scope="col" { "Neighbor" } th scope="col" { "State" } th scope="col" { "Width, speed" }
                th scope="col" { "Verdict" }
                th .n scope="col" { abbr title="Sent, and the share of the bandwidth" { "Tx" } } th .n scope="col" { abbr title="Received, and the share of the bandwidth" { "Rx" } }
                @if !past.ports.is_empty() { th scope="col" { "Last " (past.minutes()) " min" } }
                th .n scope="col" { abbr title="Sum of corrupted data, buffer overruns, retrains and link downs. Corrupted data is the largest of: symbol errors, uncorrectable FEC blocks, local link integrity errors, receive errors except packets marked bad upstream." { "Link errors" } }
                th .n scope="col" { "Discards" }
                th scope="col" { "Congestion" } th .n scope="col" { abbr title="Share of time in which the port had data to send but sent none (PortXmitWait)" { "Wait" } }
            } }
            tbody { @for port in &detail.ports { (port_row(detail, port, past)) } }
        } }
    }
}

fn port_row(detail: &NodeDetail, port: &Port, past: &Past) -> Markup {
    let reasons: Vec<String> = port.reasons.iter().map(|it| components::label_text(it)).collect();
    html! {
        tr #{ "port-" (port.name.port) } {
            th .n scope="row" data-label="Port" { (port.name.port) }
            td data-label="Neighbor" {
                @match &port.peer {
                    None => span .quiet { "not connected" },
                    Some(peer) => {
                        span .whole {
                            (components::port(&detail.fabric, &peer.name))
                            @if !peer.connected { span .quiet { " (link down)" } }
                        }
                    }
                }
            }
            td data-label="State" {
                @match (&port.state, &port.physical_state) {
                    // Most ports: the columns after it need the space.
                    (Some(state), Some(physical)) if state == "Active" && physical == "LinkUp" => (state),
                    (Some(state), Some(physical)) => { span .whole { (state) span .quiet { ", " (physical) } } }
                    _ => span .quiet { "unknown" },
                }
            }
            td data-label="Width, speed" { @if let (Some(width), Some(speed)) = (&port.width, &port.speed) { span .whole { (width) " " (speed) } } }
            td data-label="Verdict" { @if let (Some(verdict), Some(link)) = (&port.verdict, &port.link) {
                a href=(address::link(&detail.fabric, link)) { (components::link_verdict(verdict, port.learning.as_ref())) }
                @if !reasons.is_empty() && port.learning.is_none() { span .quiet { " " (reasons.join(", ")) } }
            } }
            td .n data-label="Tx" { (components::flow(port.tx.as_ref())) }
            td .n data-label="Rx" { (components::flow(port.rx.as_ref())) }
            @if !past.ports.is_empty() { td data-label="Traffic" { (sparkline(port, past)) } }
            td .n data-label="Link errors" { (components::counter_sum(port, &LINK_ERRORS, port.errors)) }
            td .n data-label="Discards" { (components::counter_sum(port, &[Counter::XmitDiscards], port.discards)) }
            td data-label="Congestion" {
                @if let Some(part) = &port.congestion { (components::congestion(part, &detail.fabric)) }
                @else if let Some(role) = components::peer_congestion(port) { span .quiet { (role) " at the other end" } }
            }
            td .n data-label="Wait" { (components::wait(port)) }
        }
    }
}
