//! `/host`: this host's own devices.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use crate::api::model::overview::{Device, DevicePort, Host};
use crate::api::overview::overview;
use fabric_history::clock::Clock;

use super::ask::written;
use super::page::Page;
use super::words::{self, rate, several};
use super::{Desk, address};

pub(super) async fn get(State(desk): State<Desk>) -> Response {
    written(move || {
        let told = overview(desk.exposition().board());
        let main = told.host.as_ref().map_or_else(unwatched, page);
        Page::new("This host’s devices", address::HOST, main).answer()
    })
    .await
}

fn unwatched() -> Markup {
    html! { p { "This host’s own devices are not watched: the exporter runs with " code { "--no-collector.host" } ", or as a demo." } }
}

fn page(host: &Host) -> Markup {
    html! {
        @match &host.read_at {
            None => p { "They were not read yet." },
            Some(at) => p .quiet { (several(host.devices.len(), "device", "devices")) ", read " (words::ago(&Clock::now(), at)) },
        }
        @if host.read_at.is_some() && host.devices.is_empty() {
            p { "There is no RDMA device on this host, or its driver is not loaded." }
        }
        @for device in &host.devices { section .card #(device.device) {
            h2 { (device.device) }
            p { @if device.hca_type.is_empty() { "Device " } @else { (device.hca_type) " " }
                code { (device.guid) }
                @if !device.firmware.is_empty() { ", firmware " (device.firmware) }
                @if let Some(fabric) = &device.node_in {
                    ": " a href=(node(fabric, device)) { "a node" } " of the fabric " bdi { (fabric) }
                }
            }
            @if !device.answers { p { strong { "It cannot be read: " } "it did not answer in time, or the kernel shows no ports of it." } }
            @if !device.ports.is_empty() { (ports(device)) }
        } }
    }
}

fn node(fabric: &str, device: &Device) -> String {
    address::with(&format!("/node/{}", device.guid), &[("fabric", fabric)])
}

fn ports(device: &Device) -> Markup {
    html! { table .stack {
        thead { tr {
            th .n scope="col" { "Port" } th scope="col" { "Layer" } th scope="col" { "State" } th .n scope="col" { "Rate" }
            th .n scope="col" { "LID" } th scope="col" { "Interfaces" } th scope="col" { "Cable" }
        } }
        tbody { @for port in &device.ports { tr {
            th .n scope="row" data-label="Port" { (port.port) }
            td data-label="Layer" { (port.link_layer) }
            td data-label="State" { (state(port)) }
            td .n data-label="Rate" { @if let Some(bytes) = port.rate { (rate(bytes)) } }
            td .n data-label="LID" { @if let Some(lid) = port.lid { (lid) } }
            td data-label="Interfaces" { (port.interfaces.join(", ")) }
            td data-label="Cable" { @match port.link.as_ref().zip(port.link_in.as_deref()) {
                Some((link, fabric)) => a href=(address::with(&format!("/link/{link}"), &[("fabric", fabric)])) { "its cable" },
                None => "",
            } }
        } } }
    } }
}

/// The state, which stands out where it is not as it should be.
fn state(port: &DevicePort) -> Markup {
    html! { @if port.state.starts_with("Active") { (port.state) } @else { strong { (port.state) } } }
}

/// The devices in a line each.
pub(super) fn in_short(host: &Host) -> Markup {
    html! {
        @if host.devices.is_empty() { p { "No RDMA device on this host was read yet." } } @else {
            ul .devices { @for device in &host.devices { li {
                a href=(address::device(&device.device)) { (device.device) }
                @if !device.answers { ": " strong { "cannot be read" } }
                @for port in &device.ports {
                    span .whole { " port " (port.port) " " (state(port)) @if let Some(bytes) = port.rate { " " (rate(bytes)) } }
                }
            } } }
        }
    }
}
