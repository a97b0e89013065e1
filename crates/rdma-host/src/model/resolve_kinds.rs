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
    let mut others =
        all.iter().filter(|other| other.kind == PortKind::Physical && other.name != device.name);
    if others.any(|first| is_second_function_of(device, first)) {
        return PortKind::SecondFunction;
    }
    PortKind::Physical
}

/// Whether a device is another PCI function of the port of a device before it. With Socket Direct an adapter is on two
/// PCI buses, one per processor, and both functions report the same port. The functions of an ASIC have one system image
/// GUID; those of two ports differ in the function number. Two adapters that were given one system image GUID look the
/// same while their ports are in the same state, but not while only one of them has lost its link.
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
