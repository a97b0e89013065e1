//! `/host`: the devices of this host.

mod readings;
mod roce;

use axum::response::Response;
use maud::{Markup, html};

use crate::state::PageState;
use fabric_api::LiveState;
use fabric_api::model::{Device, DevicePort, Host, MissingDevice, Module, Netdev};
use fabric_api::overview::overview;
use fabric_history::local_clock::LocalClock;
use ib_mad::port_state::PortState;
use ib_mad::{Counter, device, vendor};
use rdma_host::model::PortKind;

use super::components::{self, label_text, link_rate, plural};
use crate::page::{Live, Page, not_recorded, render};
use fabric_api::address;
use readings::{Readings, flow};
use roce::RocePort;

const TITLE: &str = "This host’s devices";

pub(super) async fn host(app: PageState) -> Response {
    if app.end().is_some() {
        let what =
            "The devices of this host are not recorded: only events and counters of their ports.";
        return not_recorded(TITLE, address::HOST, what, address::HOST);
    }
    render(move || {
        let live = &app.live;
        let overview = overview(&live.state);
        let readings = readings(live);
        let off = || html! { p { "Not read: the host collector is off (" code { "--no-collector.host" } "), or this is a demo whose scenario has no " code { "own-host" } "." } };
        let main = overview.host.as_ref().map_or_else(off, |host| host_page(host, readings));
        Page::new(TITLE, address::HOST, main).live(Live::Yes).respond()
    })
    .await
}

/// The two latest readings of this host.
pub(super) fn readings(live: &LiveState) -> Option<Readings<'_>> {
    let (previous, latest) = (live.previous_host.as_deref(), live.state.host.as_deref());
    previous.zip(latest).map(<[_; 2]>::from)
}

fn host_page(host: &Host, readings: Option<Readings<'_>>) -> Markup {
    let roce = |device: &Device, port: u8| RocePort::new(readings?, &device.device, port);
    html! {
        @match &host.read_at {
            None => p { "The devices have not been read yet." },
            Some(at) => p .quiet {
                (plural(host.devices.len(), "device"))
                @if !host.missing.is_empty() { ", " (host.missing.len()) " missing" }
                ", read " (components::ago(&LocalClock::now(), at))
            },
        }
        @if host.read_at.is_some() && host.devices.is_empty() && host.missing.is_empty() {
            p { "This host has no RDMA device, or its driver is not loaded." }
        }
        @for gone in &host.missing { (missing(gone, host.read_at.as_deref())) }
        @for device in &host.devices { section .card #(device.device) {
            h2 { (device.device) }
            p { @if device.hca_type.is_empty() { "Device " } @else { (product(&device.hca_type)) " " }
                @if device.guid.is_empty() { "(GUID not readable)" } @else { code { (device.guid) } }
                (kind(&device.kind, PortKind::Physical.label()))
                @if !device.firmware.is_empty() { ", firmware " (device.firmware) }
                @if let Some(fabric) = &device.fabric {
                    ", " a href=(address::node(fabric, &device.guid)) { (device.device) } " in fabric " bdi { (fabric) }
                }
            }
            @if !device.temperatures.is_empty() { p { "Temperature: " (temperatures(device)) } }
            @if !device.readable { p { strong { "Not readable: " } "the device did not respond in time, or the kernel lists no ports." } }
            @if !device.ports.is_empty() { (device_ports(device, readings)) }
            @for port in &device.ports { (saturated(port)) }
            @for it in device.ports.iter().filter_map(|port| roce(device, port.port)) { (roce::section(&it)) }
        } }
    }
}

/// The name of a product by its type: `ConnectX-7 (MT4129)`.
fn product(hca_type: &str) -> String {
    let id = hca_type.strip_prefix("MT").and_then(|id| id.parse().ok());
    match id.and_then(|id| device::name(vendor::NVIDIA, id)) {
        Some(name) => format!("{name} ({hca_type})"),
        None => hca_type.to_owned(),
    }
}

/// What a device or port is, unless that is the usual kind.
fn kind(label: &str, usual: &str) -> Markup {
    let known = PortKind::from_label(label).filter(|_| label != usual);
    html! { @if let Some(kind) = known { ", " abbr title=(kind.help()) { (label_text(label)) } } }
}

/// A device that disappeared, at the address of which the alert InfinibandDeviceDown leads.
fn missing(gone: &MissingDevice, now: Option<&str>) -> Markup {
    html! { section .card #(gone.device) {
        h2 { (gone.device) " " span .verdict.bad { "missing" } }
        p {
            @if let Some(at) = &gone.since { "Missing since " (components::timestamp_and_age(&LocalClock::now(), at, now)) }
            @if !gone.guid.is_empty() { ", node GUID " code { (gone.guid) } }
        }
        p { "The kernel does not list this device any more: its driver was unloaded, or the device failed or was removed. Jobs on this host that need it fail." }
        p {
            "Check first whether the adapter is on the PCI bus (" code { "lspci" } ") and why the device went ("
            code { "dmesg -T | grep -iE 'mlx|infiniband|pcie|aer'" } "); see the "
            a href=(address::runbook("InfinibandDeviceDown")) { "runbook" } "."
        }
        p .quiet { "If it was removed on purpose, restart the exporter, or wait until it forgets the device (" code { "--fabric.forget-after" } ")." }
    } }
}

/// The counters of a port that have stopped counting, or once had.
fn saturated(port: &DevicePort) -> Markup {
    let list =
        |labels: Vec<&str>| labels.into_iter().map(label_text).collect::<Vec<_>>().join(", ");
    let now = list(port.saturated_now.iter().map(|it| &**it).collect());
    let before = port.saturated.iter().filter(|it| !port.saturated_now.contains(it));
    let before = list(before.map(|it| &**it).collect());
    html! {
        @if !now.is_empty() { p {
            strong { "Saturated: " } "counters of port " (port.port) " have reached their maximum and count no further: " (now) "."
        } }
        @if !before.is_empty() { p .quiet {
            "Counters of port " (port.port) " that were saturated before, so their totals are lower bounds: " (before) "."
        } }
    }
}

/// The temperatures of a device, in bold from the critical one on.
fn temperatures(device: &Device) -> Markup {
    html! { @for (index, it) in device.temperatures.iter().enumerate() {
        @let text = format!("{:.0} °C", it.celsius);
        @if index > 0 { ", " }
        (it.sensor) " "
        @if it.critical_celsius.is_some_and(|critical| it.celsius >= critical) { strong { (text) } } @else { (text) }
    } }
}

/// A cable or module in one line.
fn module(module: &Module) -> Markup {
    html! {
        (module.vendor) " " (module.part_number) ", serial number " (module.serial_number)
        @if let Some(celsius) = module.temperature { ", " (format!("{celsius:.0} °C")) }
        @if !module.rx_power.is_empty() { ", rx " (components::powers(&module.rx_power)) }
    }
}

fn device_ports(device: &Device, readings: Option<Readings<'_>>) -> Markup {
    let flow = |port: &DevicePort, counter| flow(readings, device, port, counter);
    let has_modules = device.ports.iter().any(|port| port.module.is_some());
    html! { table .stack.device {
        thead { tr {
            th .n scope="col" { "Port" } th scope="col" { "Link layer" } th scope="col" { "State" } th .n scope="col" { "Rate" }
            th .n scope="col" { "Tx" } th .n scope="col" { "Rx" } th .n.lid scope="col" { "LID" } th scope="col" { "Interfaces" }
            @if has_modules { th .module scope="col" { "Cable or module" } }
            th scope="col" { "Link" }
        } }
        tbody { @for port in &device.ports { tr {
            th .n scope="row" data-label="Port" { (port.port) (kind(&port.kind, &device.kind)) }
            td data-label="Link layer" { (port.link_layer) }
            td data-label="State" { (port_state(port)) (physical(port)) }
            td .n data-label="Rate" { @if let Some(bytes) = rate(port) { (link_rate(bytes)) } }
            td .n data-label="Tx" { (components::flow(flow(port, Counter::XmitData).as_ref())) }
            td .n data-label="Rx" { (components::flow(flow(port, Counter::RcvData).as_ref())) }
            td .n data-label="LID" { @if let Some(lid) = lid(port) { (lid) } }
            td data-label="Interfaces" { @for (nth, netdev) in port.netdevs.iter().enumerate() {
                @if nth > 0 { ", " }
                (interface(netdev))
            } }
            @if has_modules { td data-label="Cable or module" { @if let Some(it) = &port.module { (module(it)) } } }
            td data-label="Link" { @match port.link.as_ref().zip(port.link_fabric.as_deref()) {
                Some((link, fabric)) => a href=(address::link(fabric, link)) aria-label={ "link of " (device.device) " port " (port.port) } { "link" },
                None => "",
            } }
        } } }
    } }
}

/// The state of a port, in bold if it is not active.
fn port_state(port: &DevicePort) -> Markup {
    html! { @if port.state.starts_with("Active") { (port.state) } @else { strong { (port.state) } } }
}

/// The physical state after the state.
fn physical(port: &DevicePort) -> Markup {
    let is_made_up = port.link_layer == "Ethernet" && has_state(port, PortState::Down);
    html! { @if let Some(physical) = &port.physical_state { span .quiet { ", "
        @if is_made_up {
            abbr title="Ethernet drivers report Disabled for each port that is down." { (physical) }
        } @else { (physical) }
    } } }
}

fn has_state(port: &DevicePort, state: PortState) -> bool {
    port.state == state.name()
}

/// The rate of a port that has a link: without one, the files have that of a link that is not trained.
fn rate(port: &DevicePort) -> Option<u64> {
    port.rate.filter(|_| !has_state(port, PortState::Down))
}

/// The LID of a port that a subnet manager has configured: until then, the files have its last one.
fn lid(port: &DevicePort) -> Option<u16> {
    port.lid.filter(|_| !has_state(port, PortState::Down) && !has_state(port, PortState::Init))
}

/// An interface, its bond, and why it does not work.
fn interface(netdev: &Netdev) -> Markup {
    let problem = match (netdev.administratively_up, netdev.carrier) {
        (Some(false), _) => "administratively down",
        (_, Some(false)) => "no carrier",
        _ if matches!(&*netdev.operstate, "up" | "unknown" | "") => "",
        _ => &netdev.operstate,
    };
    html! {
        (netdev.netdev)
        @if let Some(bond) = &netdev.bond { " " span .quiet { "(in " (bond) ")" } }
        @if !problem.is_empty() { " " strong { (problem) } }
    }
}

/// A list of the devices, one line each, with what needs attention.
pub(super) fn devices(host: &Host, readings: Option<Readings<'_>>) -> Markup {
    let is_storm = |device: &Device, port: &DevicePort| {
        let roce = readings.and_then(|it| RocePort::new(it, &device.device, port.port));
        roce.is_some_and(|roce| roce.storms().next().is_some())
    };
    html! {
        @if host.devices.is_empty() && host.missing.is_empty() { p { "No RDMA device has been read yet." } } @else {
            ul .devices {
                @for gone in &host.missing { li {
                    a href=(address::device(&gone.device)) { (gone.device) } ": " span .verdict.bad { "missing" }
                    @if let Some(at) = &gone.since { " " (components::lasting(&LocalClock::now(), at)) }
                } }
                @for device in &host.devices { li {
                    a href=(address::device(&device.device)) { (device.device) }
                    @if !device.readable { ": " strong { "not readable" } }
                    @for port in &device.ports { span .whole {
                        " port " (port.port) " " (port_state(port))
                        @if has_state(port, PortState::Down) { (physical(port)) }
                        @if let Some(bytes) = rate(port) { " " (link_rate(bytes)) }
                        @if is_storm(device, port) { " " strong { "PFC storm" } }
                        @if !port.saturated_now.is_empty() { " " strong { "saturated counters" } }
                    } }
                } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use fabric_observation::host::{HostObservation, HostPortTotals};
    use ib_health::counter_status::CounterStatus;
    use ib_mad::{Moment, Reading};
    use rdma_host::testing::{port, snapshot};

    /// A device that has sent so many words at a second.
    fn read(second: u64, words: u64) -> HostObservation {
        let mut reading = Reading::empty(Moment::default() + Duration::from_secs(second));
        reading.set(Counter::XmitData, words);
        let counters = CounterStatus::default();
        HostObservation {
            snapshot: Some(snapshot("mlx5_0", vec![port(1)])),
            totals: vec![vec![HostPortTotals { reading, counters, reset_offsets: None }]],
            ..HostObservation::default()
        }
    }

    #[test]
    fn traffic_is_the_growth_between_two_readings() {
        let flow = |before: HostObservation, now: HostObservation, counter| {
            let port = DevicePort { port: 1, rate: Some(50_000_000_000), ..DevicePort::default() };
            let device = Device { device: "mlx5_0".into(), ..Device::default() };
            flow(Some([&before, &now]), &device, &port, counter)
        };
        // 12.5 GB/s for 10 s, at 400 Gb/s.
        let sent = flow(read(10, 1_000), read(20, 1_000 + 31_250_000_000), Counter::XmitData);
        let sent = sent.unwrap();
        assert!((sent.bytes_per_second - 1.25e10).abs() < 1.0, "{sent:?}");
        assert!((sent.utilization - 0.25).abs() < 1e-6, "{sent:?}");
        // Not read, and read once.
        assert_eq!(flow(read(10, 0), read(20, 0), Counter::RcvData), None);
        assert_eq!(flow(read(10, 0), read(10, 0), Counter::XmitData), None);
    }
}
