//! The kinds of devices that only the other devices of the host reveal.

use super::device::{Device, Port};
use super::kind::PortKind;

/// Sets the kinds that only the other devices of the host reveal.
pub fn resolve_kinds(devices: &mut [Device]) {
    let kinds: Vec<PortKind> = devices.iter().map(|device| kind(device, devices)).collect();
    for (device, kind) in devices.iter_mut().zip(kinds) {
        for port in device.ports.iter_mut().filter(|port| port.kind == device.kind) {
            port.kind = kind;
        }
        device.kind = kind;
    }
}

fn kind(device: &Device, all: &[Device]) -> PortKind {
    if device.kind != PortKind::Physical {
        return device.kind;
    }
    let others =
        || all.iter().filter(|other| other.kind == PortKind::Physical && other.name != device.name);
    if others().any(|parent| is_smi_of(device, parent)) {
        return PortKind::Smi;
    }
    if others().any(|first| is_second_function_of(device, first)) {
        return PortKind::SecondFunction;
    }
    PortKind::Physical
}

/// Whether a device has the planes of another one's port. Both are on one PCI function and have the same port GUID; the
/// names are free (`rdma dev add NAME type SMI parent mlx5_0`; kernel: drivers/infiniband/core/device.c, Linux 6.11).
/// rdma-core tells them apart by IsSMDisabled, which firmware sets on other devices, too; the SMI device has no
/// hw_counters, as its driver registers none (mlx5: `mlx5_ib_sub_dev_ops`), and not fewer ports.
fn is_smi_of(device: &Device, parent: &Device) -> bool {
    let address = &device.info.bus_address;
    let guids = device.port_guid.zip(parent.port_guid).or(device.info.guid.zip(parent.info.guid));
    let has_hw = |device: &Device| device.ports.iter().any(|port| !port.hw.names.is_empty());
    !address.is_empty()
        && *address == parent.info.bus_address
        && guids.is_some_and(|(one, other)| one == other && one.0 != 0)
        && device.ports.len() >= parent.ports.len()
        && (device.ports.len() > parent.ports.len() || !has_hw(device) && has_hw(parent))
}

/// Whether a device is another PCI function of the port of a device before it. With Socket Direct an adapter is on two PCI buses, one per
/// processor, and both functions report the same port. The functions of an ASIC have one system image GUID; those of
/// two ports differ in the function number. Two adapters that were given one system image GUID look the same while
/// their ports are in the same state, but not while only one of them has lost its link.
fn is_second_function_of(device: &Device, first: &Device) -> bool {
    let place = |device: &Device| {
        let (slot, function) = device.info.bus_address.rsplit_once('.')?;
        Some((slot.to_owned(), function.to_owned()))
    };
    let states = |device: &Device| {
        let state = |port: &Port| (port.number, port.state, port.physical_state, port.rate);
        device.ports.iter().map(state).collect::<Vec<_>>()
    };
    let guid = device.info.system_guid.filter(|guid| guid.0 != 0);
    let Some((one, other)) = place(device).zip(place(first)) else { return false };
    guid.is_some()
        && guid == first.info.system_guid
        && device.info.guid != first.info.guid
        && device.info.board == first.info.board
        && (other.0 < one.0 && other.1 == one.1)
        && states(device) == states(first)
}
