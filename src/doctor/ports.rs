//! Devices and their ports: whether there is a link, and if not, why; the firmware of devices; and IP over
//! InfiniBand: the mode and MTU of each interface, which should be the same on all of a host.

use std::collections::BTreeMap;

use ib_mad::port_state::{physical, state};
use rdma_host::model::{Device, IpoibMode, Netdev, Port};

use super::Subject::{Firmware, Ipoib, Ports};
use super::{
    CheckedHost, Finding, HUNG_FIRMWARE, bad, grouped, is_infiniband, note, ok, port_name, warn,
};

/// How many entries of a port's GID table are read: soft RoCE has 1,024, mlx5 256, and the interface's own
/// addresses come first.
const GIDS: usize = 64;

const NO_GID: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

pub fn check(host: &CheckedHost) -> Vec<Finding> {
    if host.devices.is_empty() {
        let place = host.sysfs.join("class/infiniband");
        let found = format!("no RDMA device in {}", place.display());
        let fix = "resolve the errors above; in a container, mount the host's sysfs (-v \
                   /sys:/host/sys:ro) and set --path.sysfs=/host/sys";
        return vec![bad(Ports, "devices", found).expected("at least one device").fix(fix)];
    }
    let any_up = host.ports().any(|(_, port)| is_up(port));
    let mut findings = Vec::new();
    for device in &host.devices {
        if !device.is_readable {
            findings.push(unresponsive(device));
        }
        for port in &device.ports {
            findings.push(check_port(host, device, port, any_up));
            if !is_infiniband(port) && is_up(port) && port.link_layer == "Ethernet" {
                findings.extend(check_gids(host, device, port));
            }
        }
    }
    findings
}

fn is_up(port: &Port) -> bool {
    matches!(port.state, Some(state::ACTIVE | state::ACTIVE_DEFER))
}

fn unresponsive(device: &Device) -> Finding {
    bad(Ports, &*device.name, "not responding: it could not be read from sysfs within 2 s")
        .expected("a response within 2 s")
        .fix(HUNG_FIRMWARE)
}

fn rate(port: &Port) -> String {
    let gigabits = port.rate.map(|bytes| format!("{} Gb/s", bytes as f64 * 8.0 / 1e9));
    let kind = port.width.map(|width| {
        let speed = port.speed.map_or("", |speed| speed.label());
        format!(" ({} {speed})", width.label())
    });
    format!("{}{}", gigabits.unwrap_or_else(|| "rate unknown".into()), kind.unwrap_or_default())
}

fn check_port(host: &CheckedHost, device: &Device, port: &Port, any_up: bool) -> Finding {
    let what = port_name(device, port);
    let layer = if port.link_layer.is_empty() { "link layer unknown" } else { &*port.link_layer };
    let Some(state) = port.state else {
        return warn(Ports, what, format!("{layer}, state unknown"))
            .expected("a port state")
            .fix(format!("cat /sys/class/infiniband/{}/ports/{}/state", device.name, port.number));
    };
    let how = format!("{layer}, {}", states(state, port.physical_state));
    if is_up(port) {
        return ok(Ports, what, format!("{how}, {}", rate(port)));
    }
    if device.info.is_virtual && device.info.guid.unwrap_or_default().0 == 0 {
        return warn(Ports, what, format!("{how}: virtual function without a GUID"))
            .expected("a node GUID and a port GUID, set on the hypervisor")
            .fix(
                "on the hypervisor: ip link set <ibX> vf <N> node_guid <GUID>; … port_guid <GUID>; \
                 … state auto",
            );
    }
    if state == state::INIT {
        // The subnet manager has its own finding.
        return warn(Ports, what, format!("{how}: no subnet manager has configured it"))
            .expected("Active")
            .fix("fix \"subnet manager\" below");
    }
    if state == state::ARMED {
        return warn(Ports, what, format!("{how}: the subnet manager has not activated it yet"))
            .expected("Active")
            .fix("run doctor again in a minute; if it persists, read the subnet manager's log");
    }
    check_down(host, device, port, &what, &how, any_up)
}

fn states(state: u8, physical: Option<u8>) -> String {
    let name = match physical {
        Some(1) => "Sleep",
        Some(physical::POLLING) => "Polling",
        Some(physical::DISABLED) => "Disabled",
        Some(4) => "Training",
        Some(physical::LINK_UP) => "LinkUp",
        Some(6) => "LinkErrorRecovery",
        Some(7) => "PhyTest",
        None | Some(_) => "unknown",
    };
    format!("{}, physical state {name}", state::name(state))
}

fn check_down(
    host: &CheckedHost,
    device: &Device,
    port: &Port,
    what: &str,
    how: &str,
    any_up: bool,
) -> Finding {
    let ethernet = port.netdevs.iter().filter(|_| !is_infiniband(port));
    if let Some(netdev) = ethernet.into_iter().find(|netdev| is_switched_off(host, netdev)) {
        let found = format!("{how}: interface {} is administratively down", netdev.name);
        return warn(Ports, what, found)
            .expected("interface up, if the port is used")
            .fix(format!("ip link set {} up", netdev.name));
    }
    if port.physical_state == Some(physical::DISABLED) && is_infiniband(port) {
        return warn(Ports, what, format!("{how}: port was disabled by an administrator"))
            .expected("LinkUp, if the port is used")
            .fix(format!(
                "ibportstate -C {} -P {} -D 0 {} enable",
                device.name, port.number, port.number
            ));
    }
    let found = if port.physical_state == Some(physical::POLLING) {
        format!("{how}: no signal from the other end")
    } else {
        format!("{how}: no link")
    };
    let fix = "plug in or replace the cable; check that the port at its other end is enabled";
    // On a card with two ports one is often not connected.
    let finding = if device.ports.iter().any(is_up) {
        note(Ports, what, format!("{found}; another port of this device is up"))
    } else if any_up {
        warn(Ports, what, found)
    } else {
        bad(Ports, what, found)
    };
    finding.expected("LinkUp, if the port is used").fix(fix)
}

/// IFF_UP (kernel: include/uapi/linux/if.h): what `ip link set up` sets. `operstate` is down without
/// a cable, too.
const IFF_UP: u64 = 1;

fn is_switched_off(host: &CheckedHost, netdev: &Netdev) -> bool {
    let flags = host.directory(&format!("class/net/{}", netdev.name)).and_then(|directory| {
        u64::from_str_radix(directory.text("flags").strip_prefix("0x")?, 16).ok()
    });
    flags.is_some_and(|flags| flags & IFF_UP == 0)
}

/// RoCE: the versions of its GIDs, of which version 2 is routable, and its interface.
fn check_gids(host: &CheckedHost, device: &Device, port: &Port) -> Option<Finding> {
    let path = format!("class/infiniband/{}/ports/{}", device.name, port.number);
    let (types, gids) = (
        host.directory(&format!("{path}/gid_attrs/types"))?,
        host.directory(&format!("{path}/gids"))?,
    );
    let mut versions: Vec<String> = (0..GIDS)
        .map(|index| index.to_string())
        .filter(|index| !matches!(&*gids.text(index), "" | NO_GID))
        .map(|index| types.text(&index))
        .filter(|version| !version.is_empty())
        .collect();
    let netdevs: Vec<&str> = port.netdevs.iter().map(|netdev| &*netdev.name).collect();
    let what = format!("{} GIDs", port_name(device, port));
    // GIDs of iWARP have no version.
    if device.info.node_type == "rnic" {
        return None;
    }
    let count = versions.len();
    versions.sort_unstable();
    versions.dedup();
    if versions.iter().any(|version| version == "RoCE v2") {
        let found = format!("{count} ({}) on {}", versions.join(", "), netdevs.join(", "));
        return Some(ok(Ports, what, found));
    }
    let found = if count == 0 { "none".to_owned() } else { versions.join(", ") };
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
        let found = if host.devices.is_empty() {
            "not checked: no RDMA device"
        } else {
            "not checked: no device reports a firmware version"
        };
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
    let ports = host.infiniband_ports();
    let interfaces: Vec<(String, &Netdev)> = ports
        .flat_map(|(device, port)| port.netdevs.iter().map(|it| (port_name(device, port), it)))
        .collect();
    if interfaces.is_empty() {
        return vec![ok(Ipoib, "interfaces", "none; the exporter does not need IPoIB")];
    }
    let mut findings: Vec<Finding> =
        interfaces.iter().map(|(on, netdev)| check_interface(on, netdev)).collect();
    let all: Vec<&Netdev> = interfaces.iter().map(|(_, netdev)| *netdev).collect();
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
