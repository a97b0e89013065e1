//! Devices and their ports: is there a link, and what keeps it away?

use ib_mad::port_state::{physical, state};
use rdma_host::model::{Device, Netdev, Port};

use super::finding::{Finding, Subject};
use super::host::{Host, is_infiniband, port_name};

const SUBJECT: Subject = Subject::Ports;

/// How many entries of a port's table of GIDs are looked at: soft RoCE has 1,024, mlx5 256, and the
/// interface's own addresses come first.
const GIDS: usize = 64;

/// A GID that nobody set.
const NO_GID: &str = "0000:0000:0000:0000:0000:0000:0000:0000";

/// Looks at devices and ports.
pub fn check(host: &Host) -> Vec<Finding> {
    if host.devices.is_empty() {
        let place = host.sysfs.join("class/infiniband");
        let found = format!("no RDMA device in {}", place.display());
        let finding = Finding::bad(SUBJECT, "devices", found);
        let mend = "mend what stands above, or let the container see the host's sysfs";
        return vec![finding.wanted("one device at least").mend(mend)];
    }
    let any_up = host.ports().any(|(_, port)| is_up(port));
    let mut findings = Vec::new();
    for device in &host.devices {
        if !device.answers {
            findings.push(silent(device));
        }
        for port in &device.ports {
            findings.push(of_port(host, device, port, any_up));
            if !is_infiniband(port) && is_up(port) && port.link_layer == "Ethernet" {
                findings.extend(roce(host, device, port));
            }
        }
    }
    findings
}

fn is_up(port: &Port) -> bool {
    matches!(port.state, Some(state::ACTIVE | state::ACTIVE_DEFER))
}

fn silent(device: &Device) -> Finding {
    Finding::bad(SUBJECT, &*device.name, "does not answer: it could not be read within 2 s")
        .wanted("a device that answers its driver")
        .mend("dmesg | grep -i -e mlx -e infiniband   # a firmware that hangs wants a reset, or a cold start")
}

/// How fast it runs, in the words of sysfs.
fn rate(port: &Port) -> String {
    let gigabits = port.rate.map(|bytes| format!("{} Gb/s", bytes as f64 * 8.0 / 1e9));
    let kind = port.width.map(|width| {
        let speed = port.speed.map_or("", |speed| speed.label());
        format!(" ({} {speed})", width.label())
    });
    format!("{}{}", gigabits.unwrap_or_else(|| "rate unknown".into()), kind.unwrap_or_default())
}

fn of_port(host: &Host, device: &Device, port: &Port, any_up: bool) -> Finding {
    let what = port_name(device, port);
    let layer = if port.link_layer.is_empty() { "link layer unknown" } else { &*port.link_layer };
    let Some(state) = port.state else {
        return Finding::warn(SUBJECT, what, format!("{layer}: does not tell its state"))
            .wanted("a state")
            .mend(format!(
                "cat /sys/class/infiniband/{}/ports/{}/state",
                device.name, port.number
            ));
    };
    let how = format!("{layer}, {}", standing(state, port.physical_state));
    if is_up(port) {
        return Finding::ok(SUBJECT, what, format!("{how}, {}", rate(port)));
    }
    if device.about.is_virtual && device.about.guid.unwrap_or_default().0 == 0 {
        return Finding::warn(SUBJECT, what, format!("{how}: a virtual function without a GUID"))
            .wanted("a node GUID and a port GUID, which the host of the card gives it")
            .mend("on that host: ip link set <ibX> vf <N> node_guid <GUID>; … port_guid <GUID>; … state auto");
    }
    if state == state::INIT {
        // The subnet manager's own line says more.
        return Finding::warn(SUBJECT, what, format!("{how}: a link that nobody configured"))
            .wanted("Active")
            .mend("see the subnet manager, below");
    }
    if state == state::ARMED {
        return Finding::warn(SUBJECT, what, format!("{how}: half configured"))
            .wanted("Active")
            .mend("wait; if it stays so, look at the subnet manager's log");
    }
    down(host, device, port, &what, &how, any_up)
}

fn standing(state: u8, physical: Option<u8>) -> String {
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

/// A port without a link: nobody at the other end, or somebody switched it off.
fn down(host: &Host, device: &Device, port: &Port, what: &str, how: &str, any_up: bool) -> Finding {
    let ethernet = port.netdevs.iter().filter(|_| !is_infiniband(port));
    if let Some(netdev) = ethernet.into_iter().find(|netdev| is_switched_off(host, netdev)) {
        let found = format!("{how}: its interface {} is switched off", netdev.name);
        return Finding::warn(SUBJECT, what, found)
            .wanted("the interface up, if the port is used")
            .mend(format!("ip link set {} up", netdev.name));
    }
    if port.physical_state == Some(physical::DISABLED) && is_infiniband(port) {
        return Finding::warn(SUBJECT, what, format!("{how}: somebody switched it off"))
            .wanted("LinkUp, if the port is used")
            .mend(format!(
                "ibportstate -C {} -P {} -D 0 {} enable",
                device.name, port.number, port.number
            ));
    }
    let found = if port.physical_state == Some(physical::POLLING) {
        format!("{how}: looks for a partner, and nobody answers")
    } else {
        format!("{how}: no link")
    };
    let mend = "plug the cable in or change it; look at the port of the switch at its other end";
    // On a card of two ports one is often left empty.
    let finding = if device.ports.iter().any(is_up) {
        Finding::note(SUBJECT, what, format!("{found}; the device's other port is up"))
    } else if any_up {
        Finding::warn(SUBJECT, what, found)
    } else {
        Finding::bad(SUBJECT, what, found)
    };
    finding.wanted("LinkUp, if the port is used").mend(mend)
}

/// IFF_UP (kernel: include/uapi/linux/if.h): what `ip link set up` sets. `operstate` is down without
/// a cable, too.
const IFF_UP: u64 = 1;

fn is_switched_off(host: &Host, netdev: &Netdev) -> bool {
    let flags = host.directory(&format!("class/net/{}", netdev.name)).and_then(|directory| {
        u64::from_str_radix(directory.text("flags").strip_prefix("0x")?, 16).ok()
    });
    flags.is_some_and(|flags| flags & IFF_UP == 0)
}

/// RoCE: its GIDs, of which version 2 goes through routers, and the interface that it runs on.
fn roce(host: &Host, device: &Device, port: &Port) -> Option<Finding> {
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
    // iWARP has GIDs of its own kind.
    if device.about.node_type == "rnic" {
        return None;
    }
    let count = versions.len();
    versions.sort_unstable();
    versions.dedup();
    if versions.iter().any(|version| version == "RoCE v2") {
        let found = format!("{count} ({}) on {}", versions.join(", "), netdevs.join(", "));
        return Some(Finding::ok(SUBJECT, what, found));
    }
    let found = if count == 0 { "none".to_owned() } else { versions.join(", ") };
    let netdev = netdevs.first().copied().unwrap_or("<interface>");
    Some(
        Finding::warn(SUBJECT, what, format!("{found}: no entry for RoCE v2"))
            .wanted("one of RoCE v2: programs that ask for it find no address to send from")
            .mend(format!("ip addr add <ADDRESS>/<LENGTH> dev {netdev}")),
    )
}
