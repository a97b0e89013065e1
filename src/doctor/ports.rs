//! Devices and their ports: whether there is a link, and if not, why; the firmware of devices; and IP over
//! InfiniBand: the mode and MTU of each interface, which should be the same on all of a host.

use std::collections::BTreeMap;

use ib_mad::Guid;
use ib_mad::port_state::{PhysicalState, PortState};
use rdma_host::model::{Device, DeviceInfo, IpoibMode, Netdev, Port, PortKind};

use super::Subject::{Firmware, Ipoib, Ports};
use super::cards;
use super::checked_host::{CheckedHost, HUNG_FIRMWARE, NO_DEVICE, is_infiniband, port_name};
use super::finding::{Finding, Level, bad, finding, grouped, note, ok, warn};

/// How many entries of a port's GID table are read: soft RoCE has 1,024, mlx5 256, and the interface's own
/// addresses come first.
const GIDS: usize = 64;

const NO_GID: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

pub fn check(host: &CheckedHost) -> Vec<Finding> {
    if host.devices.is_empty() {
        let place = host.settings().sysfs.join("class/infiniband");
        let found = format!("no RDMA device in {}", place.display());
        let above = [cards::check(host), cards::check_modules(host)].concat();
        let first = if above.iter().any(|finding| finding.level >= Level::Warn) {
            "resolve the errors above"
        } else {
            "if this host has an HCA, load its driver (lspci -k)"
        };
        let fix = format!(
            "{first}; in a container, mount the host's sysfs (-v /sys:/host/sys:ro) and set \
             --path.sysfs=/host/sys"
        );
        return vec![bad(Ports, "devices", found).expected("at least one device").fix(fix)];
    }
    let mut findings = Vec::new();
    for device in &host.devices {
        if !device.is_readable {
            let found = "not responding: it could not be read from sysfs within 2 s";
            let finding = bad(Ports, &*device.name, found);
            findings.push(finding.expected("a response within 2 s").fix(HUNG_FIRMWARE));
        }
        for port in &device.ports {
            findings.push(check_port(host, device, port));
            // A representor has no address of its own.
            let is_roce = port.link_layer == "Ethernet" && port.kind != PortKind::Representor;
            if is_roce && is_up(port) {
                findings.extend(check_gids(host, device, port));
                findings.extend(check_bond(device, port));
            }
        }
    }
    findings
}

fn is_up(port: &Port) -> bool {
    matches!(port.state, Some(PortState::Active | PortState::ActiveDefer))
}

fn rate(port: &Port) -> String {
    let gigabits = port.rate.map(|bytes| format!("{} Gb/s", bytes as f64 * 8.0 / 1e9));
    let speed = port.speed.map_or("", |speed| speed.label());
    // Ethernet drivers report the lanes and InfiniBand speed that come closest to their rate.
    let width = port.width.filter(|_| is_infiniband(port));
    let kind = width.map(|width| format!(" ({} {speed})", width.label()));
    gigabits.unwrap_or_else(|| "rate unknown".into()) + &kind.unwrap_or_default()
}

fn check_port(host: &CheckedHost, device: &Device, port: &Port) -> Finding {
    let what = port_name(device, port);
    let layer = if port.link_layer.is_empty() { "link layer unknown" } else { &*port.link_layer };
    let Some(state) = port.state else {
        return warn(Ports, what, format!("{layer}, state unknown"))
            .expected("a port state")
            .fix(format!("cat /sys/class/infiniband/{}/ports/{}/state", device.name, port.number));
    };
    let physical = port.physical_state.map_or("unknown", PhysicalState::name);
    let how = format!("{layer}, {}, physical state {physical}", state.name());
    if let Some(finding) = check_without_cable(host, device, port, &how) {
        return finding;
    }
    if is_up(port) {
        return ok(Ports, what, format!("{how}, {}", rate(port)));
    }
    let (found, expected, fix) = match state {
        // The subnet manager has its own finding.
        PortState::Init => {
            ("no subnet manager has configured it", "Active", "fix \"subnet manager\" below")
        }
        PortState::Armed => (
            "the subnet manager has not activated it yet",
            "Active",
            "run doctor again in a minute; if it persists, read the subnet manager's log",
        ),
        _ => return check_down(host, device, port, &how),
    };
    warn(Ports, what, format!("{how}: {found}")).expected(expected).fix(fix)
}

/// The finding of a port whose state is not that of a cable, unless it is as it should be.
fn check_without_cable(
    host: &CheckedHost,
    device: &Device,
    port: &Port,
    how: &str,
) -> Option<Finding> {
    let what = port_name(device, port);
    let note_that = |why: String| Some(note(Ports, &*what, format!("{how}: {why}")));
    match port.kind {
        PortKind::Smi => {
            let parent = device.parent.as_deref().unwrap_or("another device");
            note_that(format!("plane {} of {parent}, whose state it has", port.number))
        }
        PortKind::NvlinkBridge => {
            let why = "manages NVSwitches; NVLink Subnet Manager (NVLSM) serves it".to_owned();
            Some(note_that(why)?.fix(exclude_all(host, port.kind)))
        }
        _ if is_up(port) => None,
        PortKind::Restricted => {
            let why = "this function refuses to read counters, as bridges to NVSwitches do, which NVLink Subnet \
                       Manager (NVLSM) serves"
                .to_owned();
            Some(note_that(why)?.fix(format!("if it is one: {}", exclude_all(host, port.kind))))
        }
        PortKind::SecondFunction => {
            let function = |it: &DeviceInfo| {
                let (_, function) = it.bus_address.rsplit_once('.')?;
                Some((it.system_guid?, function.to_owned()))
            };
            let first = adapter_of(host, device, function);
            note_that(format!("another PCI function for the port of {first} (Socket Direct)"))
        }
        PortKind::Representor => {
            note_that("leads to a virtual function or sub-function, which is not used".into())
        }
        PortKind::SubFunction => {
            let fix =
                "devlink port function set <PORT> state active   # devlink port show lists them";
            Some(note_that("sub-function without a link".into())?.fix(fix))
        }
        _ => check_virtual(host, device, port, &what, how),
    }
}

/// The finding of a port of a virtual function that is not used. In a guest it looks like the port of an adapter,
/// except that it is down while its link is up: its state is set on the hypervisor.
fn check_virtual(
    host: &CheckedHost,
    device: &Device,
    port: &Port,
    what: &str,
    how: &str,
) -> Option<Finding> {
    let is_function = port.kind == PortKind::VirtualFunction;
    let is_down = port.state == Some(PortState::Down);
    let has_link = port.physical_state == Some(PhysicalState::LinkUp);
    let why = if is_function && is_infiniband(port) && device.info.guid == Some(Guid(0)) {
        (
            "virtual function without a GUID",
            "a node GUID and a port GUID, set on the hypervisor, if the function is used",
            "on the hypervisor: ip link set <ibX> vf <N> node_guid <GUID>; … port_guid <GUID>; … state auto",
        )
    } else if is_down && (is_function || has_link && is_infiniband(port)) {
        (
            "virtual port, whose state is set on the hypervisor",
            "Active, if the virtual function is used",
            "on the hypervisor: ip link set <interface of the adapter> vf <N> state auto",
        )
    } else if is_function && port.state == Some(PortState::Init) {
        (
            "the subnet manager has not configured the virtual port",
            "Active, if the virtual function is used",
            "enable virtualization in the subnet manager (NVIDIA's OpenSM: virt_enabled 2)",
        )
    } else {
        return None;
    };
    // A host with the adapter itself may keep functions for guests.
    let has_adapter = host.ports().any(|(_, port)| port.kind.has_cable() && is_up(port));
    let level = if has_adapter { Level::Note } else { Level::Warn };
    let (found, expected, fix) = why;
    Some(finding(level, Ports, what, format!("{how}: {found}")).expected(expected).fix(fix))
}

/// The device of an adapter that has something in common with a device of another kind.
fn adapter_of<T: PartialEq>(
    host: &CheckedHost,
    device: &Device,
    key: impl Fn(&DeviceInfo) -> T,
) -> String {
    let is_it =
        |other: &&Device| other.kind == PortKind::Physical && key(&other.info) == key(&device.info);
    host.devices.iter().find(is_it).map_or("another device".into(), |it| it.name.to_string())
}

/// How to leave out all devices of a kind.
fn exclude_all(host: &CheckedHost, kind: PortKind) -> String {
    let devices = host.devices.iter().filter(|device| device.kind == kind);
    let names: Vec<&str> = devices.map(|device| &*device.name).collect();
    format!("--host.device-exclude='{}'   # leaves it out of metrics and pages", names.join("|"))
}

fn check_down(host: &CheckedHost, device: &Device, port: &Port, how: &str) -> Finding {
    let what = port_name(device, port);
    let expected = "LinkUp, if the port is used";
    let mut ethernet = port.netdevs.iter().filter(|_| !is_infiniband(port));
    let is_off = |netdev: &&Netdev| netdev.bond.is_none() && netdev.is_admin_up == Some(false);
    if let Some(netdev) = ethernet.find(is_off) {
        let found = format!("{how}: interface {} is administratively down", netdev.name);
        // The spare port of an adapter is often set down on purpose.
        let level =
            if host.ports().any(|(_, port)| is_up(port)) { Level::Note } else { Level::Warn };
        return finding(level, Ports, what, found)
            .expected("interface up, if the port is used")
            .fix(format!("ip link set {} up", netdev.name));
    }
    if port.physical_state == Some(PhysicalState::Disabled) && is_infiniband(port) {
        let (device, number) = (&device.name, port.number);
        return warn(Ports, what, format!("{how}: port was disabled by an administrator"))
            .expected(expected)
            .fix(format!("ibportstate -C {device} -P {number} -D 0 {number} enable"));
    }
    let why = if port.physical_state == Some(PhysicalState::Polling) {
        "no signal from the other end"
    } else {
        "no link"
    };
    let (level, more) = if device.ports.iter().any(is_up) {
        // On a card with two ports one is often not connected.
        (Level::Note, "; another port of this device is up")
    } else if host.ports().any(|(_, port)| is_up(port)) || !host.sweeps() {
        (Level::Warn, "")
    } else {
        (Level::Bad, "")
    };
    finding(level, Ports, what, format!("{how}: {why}{more}"))
        .expected(expected)
        .fix("plug in or replace the cable; check that the port at its other end is enabled")
}

/// Whether each member of the port's bond has a link. The port stays Active, with the same rate, as long as one has.
fn check_bond(device: &Device, port: &Port) -> Option<Finding> {
    let members = || port.netdevs.iter().filter(|netdev| netdev.bond.is_some());
    let bond = members().next()?.bond.as_deref()?;
    let what = format!("{} {bond}", port_name(device, port));
    let names = |of: &dyn Fn(&Netdev) -> bool| -> Vec<String> {
        members().filter(|netdev| of(netdev)).map(|netdev| netdev.name.to_string()).collect()
    };
    let is_off = |netdev: &Netdev| netdev.is_admin_up == Some(false);
    let off = names(&is_off);
    let lost =
        names(&|netdev| !is_off(netdev) && !netdev.carrier.unwrap_or(netdev.operstate != "down"));
    let each = |names: &[String], is: &str| {
        let each: Vec<String> = names.iter().map(|name| format!("member {name} {is}")).collect();
        each.join(", ")
    };
    if !lost.is_empty() {
        let finding = warn(Ports, what, each(&lost, "has no carrier"))
            .expected("a carrier on each member; now the bond has less bandwidth and redundancy")
            .fix(format!(
                "plug in or replace the cable of {}; check the switch port at its other end",
                lost.join(", ")
            ));
        return Some(finding);
    }
    if !off.is_empty() {
        let found = each(&off, "is administratively down");
        let fix = off.iter().map(|name| format!("ip link set {name} up"));
        return Some(note(Ports, what, found).fix(fix.collect::<Vec<_>>().join("; ")));
    }
    Some(ok(Ports, what, format!("all members have a link: {}", names(&|_| true).join(", "))))
}

/// RoCE: the versions of its GIDs, of which version 2 is routable, and its interface.
fn check_gids(host: &CheckedHost, device: &Device, port: &Port) -> Option<Finding> {
    let path = format!("class/infiniband/{}/ports/{}", device.name, port.number);
    let types = host.directory(&format!("{path}/gid_attrs/types"))?;
    let gids = host.directory(&format!("{path}/gids"))?;
    // GIDs of iWARP have no version.
    if device.info.node_type == "rnic" {
        return None;
    }
    let mut versions: Vec<String> = (0..GIDS)
        .map(|index| index.to_string())
        .filter(|index| !matches!(&*gids.text(index), "" | NO_GID))
        .map(|index| types.text(&index))
        .filter(|version| !version.is_empty())
        .collect();
    let netdevs: Vec<&str> = port.netdevs.iter().map(|netdev| &*netdev.name).collect();
    let what = format!("{} GIDs", port_name(device, port));
    let count = versions.len();
    versions.sort_unstable();
    versions.dedup();
    let listed = versions.join(", ");
    if versions.iter().any(|version| version == "RoCE v2") {
        return Some(ok(Ports, what, format!("{count} ({listed}) on {}", netdevs.join(", "))));
    }
    let found = if count == 0 { "none" } else { &listed };
    let netdev = netdevs.first().copied().unwrap_or("<interface>");
    Some(
        warn(Ports, what, format!("{found}: no RoCE v2 GID"))
            .expected("a RoCE v2 GID; programs that use RoCE v2 have no source address otherwise")
            .fix(format!("ip addr add <ADDRESS>/<LENGTH> dev {netdev}")),
    )
}

/// Compares the firmware of devices of one type. Only of this host: SMPs return the hardware revision of a node,
/// and no firmware version.
pub fn check_firmware(host: &CheckedHost) -> Vec<Finding> {
    // By type and board: the same type on a board of another vendor has its own firmware.
    let mut kinds: BTreeMap<(&str, &str), BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for device in &host.devices {
        let info = &*device.info;
        // Soft RoCE has none.
        if info.hca_type.is_empty() || info.firmware.is_empty() {
            continue;
        }
        let versions = kinds.entry((&info.hca_type, &info.board)).or_default();
        versions.entry(&info.firmware).or_default().push(&device.name);
    }
    if kinds.is_empty() {
        let unknown = "not checked: no device reports a firmware version";
        let found = if host.devices.is_empty() { NO_DEVICE } else { unknown };
        return vec![note(Firmware, "devices", found)];
    }
    kinds.iter().map(|((kind, board), versions)| check_versions(kind, board, versions)).collect()
}

fn check_versions(kind: &str, board: &str, versions: &BTreeMap<&str, Vec<&str>>) -> Finding {
    let what = if board.is_empty() { kind.to_owned() } else { format!("{kind} {board}") };
    let list = grouped(versions);
    if versions.len() < 2 {
        return ok(Firmware, what, list);
    }
    let fix = if kind.starts_with("MT") {
        "mlxfwmanager --online -u, or mstflint -d <device> -i <image> burn; then reset the adapter"
    } else {
        "update with the vendor's firmware tool, then reset the adapter"
    };
    warn(Firmware, what, format!("versions differ: {list}"))
        .expected("the same version on all devices of this type")
        .fix(fix)
}

/// The largest MTU in datagram mode: the link's 4 KiB less IPoIB's header of 4 bytes (RFC 4391, 4).
const MAX_DATAGRAM_MTU: u64 = 4092;

pub fn check_ipoib(host: &CheckedHost) -> Vec<Finding> {
    let (mut findings, mut all) = (Vec::new(), Vec::new());
    for (device, port) in host.infiniband_ports() {
        let on = port_name(device, port);
        findings.extend(port.netdevs.iter().map(|netdev| check_interface(&on, netdev)));
        all.extend(&*port.netdevs);
    }
    if findings.is_empty() {
        return vec![ok(Ipoib, "interfaces", "none; the exporter does not need IPoIB")];
    }
    findings.extend(difference("mode", &all, |netdev| netdev.ipoib.map(|it| it.label().into())));
    findings.extend(difference("MTU", &all, |netdev| netdev.mtu.map(|mtu| mtu.to_string())));
    findings
}

fn check_interface(on: &str, netdev: &Netdev) -> Finding {
    let Netdev { name, ipoib, operstate, mtu, .. } = netdev;
    let mode = ipoib.map_or("mode unknown", IpoibMode::label);
    let size = mtu.map_or_else(|| "unknown".into(), |mtu| mtu.to_string());
    let state = if operstate.is_empty() { "state unknown" } else { operstate };
    let found = format!("on {on}: {mode}, MTU {size}, {state}");
    if *ipoib == Some(IpoibMode::Datagram) && mtu.is_some_and(|mtu| mtu > MAX_DATAGRAM_MTU) {
        return warn(Ipoib, &**name, found)
            .expected(format!("at most {MAX_DATAGRAM_MTU}, the limit of datagram mode"))
            .fix(format!("ip link set {name} mtu 2044"));
    }
    if operstate == "down" {
        return note(Ipoib, &**name, found)
            .expected("up, if IP over InfiniBand is used")
            .fix(format!("ip link set {name} up"));
    }
    ok(Ipoib, &**name, found)
}

/// A finding if the interfaces differ in a value. The most frequent value is the suggested one.
fn difference(
    what: &str,
    interfaces: &[&Netdev],
    value: impl Fn(&Netdev) -> Option<String>,
) -> Option<Finding> {
    let mut by_value: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for netdev in interfaces {
        if let Some(value) = value(netdev) {
            by_value.entry(value).or_default().push(&netdev.name);
        }
    }
    if by_value.len() < 2 {
        return None;
    }
    let (usual, _) = by_value.iter().max_by_key(|(_, names)| names.len())?;
    let fix = match what {
        "mode" => format!("echo {usual} > /sys/class/net/<interface>/mode; also in its config"),
        _ => format!("ip link set <interface> mtu {usual}; also in its config"),
    };
    Some(
        warn(Ipoib, what, format!("differs: {}", grouped(&by_value)))
            .expected("the same in one IP network; otherwise large packets are lost")
            .fix(fix),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::{manager, permissions};
    use rdma_host::testing;

    /// An adapter that is Active, and a device of some kind whose port has a state.
    fn host(
        kind: PortKind,
        port_state: PortState,
        physical_state: PhysicalState,
        layer: &str,
    ) -> CheckedHost {
        let device = |name, kind, state, physical_state, layer: &str| {
            let mut port = testing::port(1);
            (port.kind, port.state, port.physical_state) =
                (kind, Some(state), Some(physical_state));
            port.link_layer = layer.to_owned();
            let mut device = testing::snapshot(name, vec![port]).devices.remove(0);
            device.kind = kind;
            device
        };
        let adapter = device(
            "mlx5_0",
            PortKind::Physical,
            PortState::Active,
            PhysicalState::LinkUp,
            "InfiniBand",
        );
        let other = device("mlx5_9", kind, port_state, physical_state, layer);
        CheckedHost::with(vec![adapter, other])
    }

    #[test]
    fn ports_without_a_cable_get_no_advice_about_one() {
        let states = [
            (PortState::Down, PhysicalState::Polling),
            (PortState::Down, PhysicalState::Disabled),
            (PortState::Down, PhysicalState::LinkUp),
            (PortState::Init, PhysicalState::LinkUp),
        ];
        for kind in PortKind::ALL.into_iter().filter(|kind| !kind.has_cable()) {
            for (port_state, physical_state) in states {
                for layer in ["InfiniBand", "Ethernet"] {
                    let host = host(kind, port_state, physical_state, layer);
                    let mut findings = check(&host);
                    findings.extend(manager::check(&host));
                    findings.extend(permissions::check_partitions(&host));
                    findings.retain(|finding| finding.what.starts_with("mlx5_9"));
                    let [finding] = &*findings else { panic!("{findings:#?}") };
                    assert_eq!(finding.level, Level::Note, "{finding:#?}");
                    let text = format!("{finding:?}");
                    for advice in ["cable", "ibportstate", "opensm", "subnet manager\\\" below"] {
                        assert!(!text.contains(advice), "{advice}: {finding:#?}");
                    }
                }
            }
        }
    }

    #[test]
    fn bridge_to_nvswitches_may_be_excluded() {
        for port_state in [PortState::Active, PortState::Init, PortState::Down] {
            let host =
                host(PortKind::NvlinkBridge, port_state, PhysicalState::LinkUp, "InfiniBand");
            let findings = check(&host);
            let finding = findings.last().unwrap();
            assert_eq!(finding.level, Level::Note);
            let says = "manages NVSwitches; NVLink Subnet Manager (NVLSM) serves it";
            assert!(finding.found.contains(says), "{finding:?}");
            assert!(finding.fix.as_ref().unwrap().contains("--host.device-exclude='mlx5_9'"));
        }
        // It works: nothing to say.
        let host =
            host(PortKind::Restricted, PortState::Active, PhysicalState::LinkUp, "InfiniBand");
        assert_eq!(check(&host).last().unwrap().level, Level::Ok);
    }
}
