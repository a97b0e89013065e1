//! Devices and their ports: whether there is a link, and if not, why; the firmware of devices; and IP over
//! InfiniBand: the mode and MTU of each interface, which should be the same on all of a host.

use std::collections::BTreeMap;

use ib_mad::port_state::{physical, state};
use rdma_host::model::{Device, IpoibMode, Netdev, Port, PortKind};

use super::Subject::{Firmware, Ipoib, Ports};
use super::{
    CheckedHost, Finding, HUNG_FIRMWARE, Level, NO_DEVICE, bad, cards, finding, grouped,
    is_infiniband, note, ok, port_name, warn,
};

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

fn rate(port: &Port) -> String {
    let gigabits = port.rate.map(|bytes| format!("{} Gb/s", bytes as f64 * 8.0 / 1e9));
    let speed = port.speed.map_or("", |speed| speed.label());
    let kind = port.width.map(|width| format!(" ({} {speed})", width.label()));
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
    let physical = port.physical_state.map_or("unknown", physical::name);
    let how = format!("{layer}, {}, physical state {physical}", state::name(state));
    if is_up(port) {
        return ok(Ports, what, format!("{how}, {}", rate(port)));
    }
    let (found, expected, fix) = match state {
        _ if device.kind == PortKind::VirtualFunction
            && device.info.guid.unwrap_or_default().0 == 0 =>
        {
            (
                "virtual function without a GUID",
                "a node GUID and a port GUID, set on the hypervisor",
                "on the hypervisor: ip link set <ibX> vf <N> node_guid <GUID>; … port_guid <GUID>; … state \
             auto",
            )
        }
        // The subnet manager has its own finding.
        state::INIT => {
            ("no subnet manager has configured it", "Active", "fix \"subnet manager\" below")
        }
        state::ARMED => (
            "the subnet manager has not activated it yet",
            "Active",
            "run doctor again in a minute; if it persists, read the subnet manager's log",
        ),
        _ => return check_down(host, device, port, &how),
    };
    warn(Ports, what, format!("{how}: {found}")).expected(expected).fix(fix)
}

fn check_down(host: &CheckedHost, device: &Device, port: &Port, how: &str) -> Finding {
    let what = port_name(device, port);
    let expected = "LinkUp, if the port is used";
    let mut ethernet = port.netdevs.iter().filter(|_| !is_infiniband(port));
    if let Some(netdev) = ethernet.find(|netdev| is_switched_off(host, netdev)) {
        let found = format!("{how}: interface {} is administratively down", netdev.name);
        return warn(Ports, what, found)
            .expected("interface up, if the port is used")
            .fix(format!("ip link set {} up", netdev.name));
    }
    if port.physical_state == Some(physical::DISABLED) && is_infiniband(port) {
        let (device, number) = (&device.name, port.number);
        return warn(Ports, what, format!("{how}: port was disabled by an administrator"))
            .expected(expected)
            .fix(format!("ibportstate -C {device} -P {number} -D 0 {number} enable"));
    }
    let why = if port.physical_state == Some(physical::POLLING) {
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

/// IFF_UP (kernel: include/uapi/linux/if.h): what `ip link set up` sets. `operstate` is down without a cable, too.
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
