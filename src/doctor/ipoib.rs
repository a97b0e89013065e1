//! IP over InfiniBand: how each interface sends, and whether those of a host are alike.

use std::collections::BTreeMap;

use rdma_host::model::{Device, IpoibMode, Netdev, Port};

use super::finding::{Finding, Subject};
use super::host::{Host, port_name};

const SUBJECT: Subject = Subject::Ipoib;

/// The most that a datagram carries: the link's 4 KiB less IPoIB's header of 4 bytes (RFC 4391, 4).
const MOST_DATAGRAM: u64 = 4092;

/// An interface, and the port that it is on.
struct Interface<'a> {
    device: &'a Device,
    port: &'a Port,
    netdev: &'a Netdev,
}

/// Looks at the interfaces.
pub fn check(host: &Host) -> Vec<Finding> {
    let interfaces: Vec<Interface<'_>> = host
        .infiniband_ports()
        .flat_map(|(device, port)| {
            port.netdevs.iter().map(move |netdev| Interface { device, port, netdev })
        })
        .collect();
    if interfaces.is_empty() {
        return vec![Finding::ok(SUBJECT, "interfaces", "none; the exporter needs none")];
    }
    let mut findings: Vec<Finding> = interfaces.iter().map(Interface::finding).collect();
    findings.extend(unlike("mode", &interfaces, |netdev| netdev.ipoib.map(|it| it.label().into())));
    findings.extend(unlike("MTU", &interfaces, |netdev| netdev.mtu.map(|mtu| mtu.to_string())));
    findings
}

impl Interface<'_> {
    fn finding(&self) -> Finding {
        let Netdev { name, ipoib, operstate, mtu, .. } = self.netdev;
        let mode = ipoib.map_or("mode unknown", IpoibMode::label);
        let size = mtu.map_or_else(|| "unknown".into(), |mtu| mtu.to_string());
        let state = if operstate.is_empty() { "state unknown" } else { operstate };
        let on = port_name(self.device, self.port);
        let found = format!("on {on}: {mode}, MTU {size}, {state}");
        if *ipoib == Some(IpoibMode::Datagram) && mtu.is_some_and(|mtu| mtu > MOST_DATAGRAM) {
            return Finding::warn(SUBJECT, &**name, found)
                .wanted(format!("{MOST_DATAGRAM} at the most: no datagram carries more"))
                .mend(format!("ip link set {name} mtu 2044"));
        }
        if operstate == "down" {
            return Finding::note(SUBJECT, &**name, found)
                .wanted("up, if IP is used on the fabric")
                .mend(format!("ip link set {name} up"));
        }
        Finding::ok(SUBJECT, &**name, found)
    }
}

/// Tells where interfaces differ in something that like ones have alike. Which of them is wrong the
/// others say, by their number.
fn unlike(
    what: &str,
    interfaces: &[Interface<'_>],
    value: impl Fn(&Netdev) -> Option<String>,
) -> Option<Finding> {
    let mut by_value: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for interface in interfaces {
        if let Some(value) = value(interface.netdev) {
            by_value.entry(value).or_default().push(&interface.netdev.name);
        }
    }
    if by_value.len() < 2 {
        return None;
    }
    let told: Vec<String> =
        by_value.iter().map(|(value, names)| format!("{value}: {}", names.join(" "))).collect();
    let (usual, _) = by_value.iter().max_by_key(|(_, names)| names.len())?;
    let mend = match what {
        "mode" => {
            format!("echo {usual} > /sys/class/net/<interface>/mode, and in its configuration")
        }
        _ => format!("ip link set <interface> mtu {usual}, and in its configuration"),
    };
    Some(
        Finding::warn(SUBJECT, what, format!("differs: {}", told.join("; ")))
            .wanted("one for all that are in one IP network: large packets are lost between unlike ones")
            .mend(mend),
    )
}
