//! The rails of a host on the page of each of its HCAs.

use fabric_api::address;
use fabric_api::model::{NodeDetail, Rail};
use fabric_api::traffic::bit_rate;
use maud::{Markup, html};

use crate::components;

/// The section; nothing for a node that is no rail.
pub(super) fn section(detail: &NodeDetail) -> Markup {
    let (Some(host), false) = (&detail.node.host, detail.rails.is_empty()) else {
        return html! {};
    };
    html! {
        h2 #rails { "Rails of " (host) }
        div .wide tabindex="0" role="group" aria-label="Rails" { table .stack {
            thead { tr {
                th scope="col" { "Rail" } th scope="col" { "Switch" } th scope="col" { "State" } th scope="col" { "Worst link" }
                th .n scope="col" { "Tx" } th .n scope="col" { "Rx" }
                th .n scope="col" { abbr title="Sent and received between the latest two readings, compared with the median of the host's rails: 100% is as much. Jobs may use some rails only." { "Of median" } }
            } }
            tbody { @for rail in &detail.rails { (row(detail, rail)) } }
        } }
    }
}

fn row(detail: &NodeDetail, rail: &Rail) -> Markup {
    let rate = |bytes: Option<f64>| bytes.map_or_else(|| "unknown".into(), bit_rate);
    html! {
        tr {
            th scope="row" data-label="Rail" {
                @if rail.name.guid == detail.node.guid { (rail.rail) }
                @else { a href=(node_page(detail, &rail.name.guid)) { (rail.rail) } }
            }
            td data-label="Switch" {
                @if rail.switches.is_empty() { span .quiet { "not connected" } }
                @for (nth, switch) in rail.switches.iter().enumerate() {
                    @if nth > 0 { ", " }
                    a href=(node_page(detail, &switch.guid)) { (switch.node) }
                }
            }
            td data-label="State" { @if rail.up { "up" } @else { strong { "down" } } }
            td data-label="Worst link" { (components::verdict(rail.verdicts.worst_shown())) }
            td .n data-label="Tx" { (rate(rail.sent)) }
            td .n data-label="Rx" { (rate(rail.received)) }
            td .n data-label="Of median" { @if let Some(ratio) = rail.ratio { (format!("{:.0}%", ratio * 100.0)) } }
        }
    }
}

fn node_page(detail: &NodeDetail, guid: &str) -> String {
    address::node(&detail.fabric, guid)
}
