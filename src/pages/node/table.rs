//! The table of a node's ports.

use maud::{Markup, html};

use crate::api::model::node::NodeDetail;
use crate::api::model::port::Port;
use crate::pages::{address, words};
use ib_mad::Counter;
use ib_mad::counter::LINK_ERRORS;

/// The table with its heading.
pub(super) fn section(detail: &NodeDetail) -> Markup {
    html! {
        h2 { "Ports" }
        div .wide tabindex="0" role="group" aria-label="Ports" { table .ports {
            thead { tr {
                th .n scope="col" { "Port" } th scope="col" { "Leads to" } th scope="col" { "State" } th scope="col" { "Runs at" }
                th scope="col" { "Verdict" } th .n scope="col" { (words::link_errors_heading()) } th .n scope="col" { "Discards" }
                th scope="col" { "Congestion" } th .n scope="col" { "Waits to send" }
            } }
            tbody { @for port in &detail.ports { (row(detail, port)) } }
        } }
    }
}

fn row(detail: &NodeDetail, port: &Port) -> Markup {
    html! {
        tr #{ "port-" (port.name.port) } {
            th .n scope="row" { (port.name.port) }
            td {
                @match &port.peer {
                    None => span .quiet { "no cable" },
                    Some(peer) => {
                        (words::port(&detail.fabric, &peer.name))
                        @if !peer.connected { span .quiet { " (no link now)" } }
                    }
                }
            }
            td {
                @match (&port.state, &port.physical_state) {
                    (Some(state), Some(physical)) => { (state) span .quiet { ", " (physical) } }
                    _ => span .quiet { "not known" },
                }
            }
            td { @if let (Some(width), Some(speed)) = (&port.width, &port.speed) { (width) " " (speed) } }
            td { (verdict(detail, port)) }
            td .n { (words::counter_sum(port, &LINK_ERRORS, Some(port.errors))) }
            td .n { (words::counter_sum(port, &[Counter::XmitDiscards], port.discards)) }
            td {
                @if let Some(part) = &port.congestion { (words::congestion(part, &detail.fabric)) }
                @else if let Some(role) = words::peer_congestion(port) { span .quiet { "other end: " (role) } }
            }
            td .n { @if let Some(ratio) = port.wait_ratio { (words::percent(ratio)) } }
        }
    }
}

fn verdict(detail: &NodeDetail, port: &Port) -> Markup {
    let reasons: Vec<String> = port.reasons.iter().map(|it| words::label_text(it)).collect();
    html! {
        @if let (Some(verdict), Some(link)) = (&port.verdict, &port.link) {
            a href=(address::link(&detail.fabric, link)) { (words::verdict(verdict)) }
            @if !reasons.is_empty() { span .quiet { " " (reasons.join(", ")) } }
        }
    }
}
