//! `/host`: the devices of this host.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};

use crate::api::model::overview::{Device, DevicePort, Host};
use crate::api::overview::overview;
use fabric_history::local_clock::LocalClock;

use super::components::{self, bit_rate, counted};
use super::page::Page;
use super::query_params::render;
use super::{PageContext, address};

pub(super) async fn get(State(context): State<PageContext>) -> Response {
    render(move || {
        let overview = overview(context.exposition().board());
        let main = overview.host.as_ref().map_or_else(not_watched, page);
        Page::new("This host’s devices", address::HOST, main).respond()
    })
    .await
}

fn not_watched() -> Markup {
    html! { p { "This host’s own devices are not watched: the exporter runs with " code { "--no-collector.host" } ", or as a demo." } }
}

fn page(host: &Host) -> Markup {
    html! {
        @match &host.read_at {
            None => p { "They were not read yet." },
            Some(at) => p .quiet { (counted(host.devices.len(), "device", "devices")) ", read " (components::ago(&LocalClock::now(), at)) },
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
                    ": " a href=(address::node(fabric, &device.guid)) { "a node" } " of the fabric " bdi { (fabric) }
                }
            }
            @if !device.answers { p { strong { "It cannot be read: " } "it did not answer in time, or the kernel shows no ports of it." } }
            @if !device.ports.is_empty() { (ports(device)) }
        } }
    }
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
            td .n data-label="Rate" { @if let Some(bytes) = port.rate { (bit_rate(bytes)) } }
            td .n data-label="LID" { @if let Some(lid) = port.lid { (lid) } }
            td data-label="Interfaces" { (port.interfaces.join(", ")) }
            td data-label="Cable" { @match port.link.as_ref().zip(port.link_in.as_deref()) {
                Some((link, fabric)) => a href=(address::link(fabric, link)) { "its cable" },
                None => "",
            } }
        } } }
    } }
}

/// The state of a port, in bold if it is not active.
fn state(port: &DevicePort) -> Markup {
    html! { @if port.state.starts_with("Active") { (port.state) } @else { strong { (port.state) } } }
}

/// A list of the devices, one line each.
pub(super) fn summary(host: &Host) -> Markup {
    html! {
        @if host.devices.is_empty() { p { "No RDMA device on this host was read yet." } } @else {
            ul .devices { @for device in &host.devices { li {
                a href=(address::device(&device.device)) { (device.device) }
                @if !device.answers { ": " strong { "cannot be read" } }
                @for port in &device.ports {
                    span .whole { " port " (port.port) " " (state(port)) @if let Some(bytes) = port.rate { " " (bit_rate(bytes)) } }
                }
            } } }
        }
    }
}
