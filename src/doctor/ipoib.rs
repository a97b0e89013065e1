//! IP over InfiniBand: the mode and MTU of each interface, which should be the same on all of a host.

use std::collections::BTreeMap;

use rdma_host::model::{Device, IpoibMode, Netdev, Port};

use super::finding::{Finding, Subject, grouped};
use super::host::{CheckedHost, port_name};

const SUBJECT: Subject = Subject::Ipoib;

/// The largest MTU in datagram mode: the link's 4 KiB less IPoIB's header of 4 bytes (RFC 4391, 4).
const MAX_DATAGRAM_MTU: u64 = 4092;

/// An interface and its port.
struct Interface<'a> {
    device: &'a Device,
    port: &'a Port,
    netdev: &'a Netdev,
}

pub fn check(host: &CheckedHost) -> Vec<Finding> {
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
    findings
        .extend(difference("mode", &interfaces, |netdev| netdev.ipoib.map(|it| it.label().into())));
    findings.extend(difference("MTU", &interfaces, |netdev| netdev.mtu.map(|mtu| mtu.to_string())));
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
        if *ipoib == Some(IpoibMode::Datagram) && mtu.is_some_and(|mtu| mtu > MAX_DATAGRAM_MTU) {
            return Finding::warn(SUBJECT, &**name, found)
                .wanted(format!("{MAX_DATAGRAM_MTU} at the most: no datagram carries more"))
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

/// A finding if the interfaces differ in a value. The most frequent value is the suggested one.
fn difference(
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
    let (usual, _) = by_value.iter().max_by_key(|(_, names)| names.len())?;
    let mend = match what {
        "mode" => {
            format!("echo {usual} > /sys/class/net/<interface>/mode, and in its configuration")
        }
        _ => format!("ip link set <interface> mtu {usual}, and in its configuration"),
    };
    Some(
        Finding::warn(SUBJECT, what, format!("differs: {}", grouped(&by_value)))
            .wanted("one for all that are in one IP network: large packets are lost between unlike ones")
            .mend(mend),
    )
}
