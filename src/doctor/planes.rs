//! Multi-plane HCAs, whose QP0 is on an SMI device with a port for each plane: whether both are there, and which planes
//! are Active.

use ib_umad::umad::{MissingQp0, PlaneStatus, SmiSide, UmadPort};
use rdma_host::model::{Device, Port, PortKind};

use super::Subject::Ports;
use super::checked_host::{CheckedHost, is_infiniband, port_name};
use super::finding::{Finding, Level, bad, finding, ok, warn};

/// Whether the ports of adapters have QP0, by themselves or on another device.
pub fn check(host: &CheckedHost) -> Vec<Finding> {
    let adapters = host.infiniband_ports().filter(|(_, port)| port.kind == PortKind::Physical);
    adapters.filter_map(|(device, port)| check_port(host, device, port)).collect()
}

fn check_port(host: &CheckedHost, device: &Device, port: &Port) -> Option<Finding> {
    let what = format!("{}: subnet management", port_name(device, port));
    if let Some(smi) = smi_device_of(host, device) {
        let planes = smi.ports.iter().map(|port| port.number.to_string());
        let planes: Vec<String> = planes.collect();
        let found = format!("through {}, planes {}", smi.name, planes.join(", "));
        return Some(ok(Ports, what, found));
    }
    if !lacks_qp0(host, device, port) {
        return None;
    }
    let kernel = std::fs::read_to_string(host.settings().procfs.join("sys/kernel/osrelease")).ok();
    let kernel = kernel.as_deref().map(str::trim);
    let why = match MissingQp0::find(&host.settings().sysfs, &device.name, kernel) {
        MissingQp0::Unknown => return None,
        why => why,
    };
    // Nothing else of the exporter needs it.
    let level = if host.sweeps() { Level::Warn } else { Level::Note };
    Some(
        finding(level, Ports, what, format!("no QP0: {why}"))
            .expected("a device with QP0, to sweep the fabric from this port")
            .fix(why.remedy()),
    )
}

/// The SMI device of an adapter.
fn smi_device_of<'a>(host: &'a CheckedHost, device: &Device) -> Option<&'a Device> {
    let is_it = |other: &&Device| {
        other.kind == PortKind::Smi && other.parent.as_ref() == Some(&device.name)
    };
    host.devices.iter().find(is_it)
}

/// Whether a port has a umad device and no issm device: since Linux 6.11 only ports with QP0 have one (kernel:
/// `ib_umad_init_port`).
fn lacks_qp0(host: &CheckedHost, device: &Device, port: &Port) -> bool {
    let umads = UmadPort::all(&host.settings().sysfs);
    let class = "class/infiniband_mad";
    let is_it = |name: &String| {
        let directory = host.directory(&format!("{class}/{name}"));
        directory.is_some_and(|about| {
            about.text("ibdev") == *device.name && about.text("port") == port.number.to_string()
        })
    };
    let Some(names) = host.names(class) else { return false };
    umads.iter().any(|umad| umad.hca == *device.name && umad.port == port.number)
        && !names.iter().filter(|name| name.starts_with("issm")).any(is_it)
}

/// The ports of SMI devices, whose umad devices SMPs are sent through.
pub(super) fn smi_ports(host: &CheckedHost) -> impl Iterator<Item = (&Device, &Port)> {
    host.ports().filter(|(_, port)| port.kind == PortKind::Smi && is_infiniband(port))
}

/// The planes that answered for a fabric's port, `what`.
pub(super) fn check_planes(what: &str, side: &SmiSide) -> Finding {
    let SmiSide { hca, planes } = side;
    let what = format!("{what}: planes");
    let listed: Vec<String> = planes.iter().map(ToString::to_string).collect();
    let found = format!("through {hca}: {}", listed.join(", "));
    let down = |status: &&PlaneStatus| !status.is_usable();
    match planes.iter().filter(down).count() {
        0 => ok(Ports, what, found),
        count if count < planes.len() => warn(Ports, what, found)
            .expected("Active; the others carry less, and the fabric is discovered without it")
            .fix("reseat or replace the cable, or check the switch port of that plane"),
        _ => bad(Ports, what, found)
            .expected("Active on at least one plane")
            .fix("connect the cable; if the state is Init, start the subnet manager"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_mad::port_state::PortState;

    #[test]
    fn states_of_planes_are_judged_together() {
        for (states, level, says) in [
            (
                [Some(PortState::Active), None],
                Level::Ok,
                "smi1: plane 1 Active, plane 2 state unknown",
            ),
            ([Some(PortState::Active), Some(PortState::Down)], Level::Warn, "plane 2 Down"),
            (
                [Some(PortState::Init), Some(PortState::Down)],
                Level::Bad,
                "plane 1 Init, plane 2 Down",
            ),
        ] {
            let planes = (1..).zip(states).map(|(plane, state)| PlaneStatus { plane, state });
            let side = SmiSide { hca: "smi1".into(), planes: planes.collect() };
            let finding = check_planes("fabric", &side);
            assert_eq!((finding.level, &*finding.what), (level, "fabric: planes"));
            assert!(finding.found.contains(says), "{finding:?}");
            assert_eq!(finding.fix.is_some(), level > Level::Ok);
        }
    }
}
