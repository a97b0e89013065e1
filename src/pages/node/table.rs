//! A node's ports, line by line.

use maud::{Markup, html};

use crate::api::model::node::NodeDetail;
use crate::api::model::port::Port;
use crate::pages::{address, words};
use ib_fabric::topology::LinkId;
use ib_mad::Counter;
use ib_mad::counter::LINK_ERRORS;

/// The table.
pub(super) fn section(detail: &NodeDetail) -> Markup {
    html! {
        h2 { "Ports" }
        div .wide tabindex="0" role="group" aria-label="Ports" { table .ports {
            thead { tr {
                th .n scope="col" { "Port" } th scope="col" { "Leads to" } th scope="col" { "State" } th scope="col" { "Runs at" }
                th scope="col" { "Verdict" } th .n scope="col" { (words::link_errors()) } th .n scope="col" { "Discards" }
                th scope="col" { "Congestion" } th .n scope="col" { "Waits to send" }
            } }
            tbody { @for port in &detail.ports { (line(detail, port)) } }
        } }
    }
}

fn line(detail: &NodeDetail, port: &Port) -> Markup {
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
            td { (judged(detail, port)) }
            td .n { (words::summed(port, &LINK_ERRORS, Some(port.errors))) }
            td .n { (words::summed(port, &[Counter::XmitDiscards], port.discards)) }
            td {
                @if let Some(part) = &port.congestion { (words::congestion(part, &detail.fabric)) }
                @else if let Some(role) = words::far_congestion(port) { span .quiet { "other end: " (role) } }
            }
            td .n { @if let Some(ratio) = port.wait_ratio { (words::share(ratio)) } }
        }
    }
}

fn judged(detail: &NodeDetail, port: &Port) -> Markup {
    let link = port.link.as_deref().and_then(|link| link.parse::<LinkId>().ok());
    let reasons: Vec<String> = port.reasons.iter().map(|reason| words::plain(reason)).collect();
    html! {
        @if let (Some(verdict), Some(link)) = (&port.verdict, link) {
            a href=(address::link(&detail.fabric, link)) { (words::verdict(verdict)) }
            @if !reasons.is_empty() { span .quiet { " " (reasons.join(", ")) } }
        }
    }
}
