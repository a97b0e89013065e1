//! Devices for tests.

use std::sync::Arc;
use std::time::SystemTime;

use crate::model::{Device, DeviceInfo, HostSnapshot, HwReading, Port, PortKind};
use ib_mad::moment::Anchor;
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, Width};
use ib_mad::{Guid, Lid, Moment, PortNumber, Reading};

/// An active port with a state and no counters.
pub fn port(number: PortNumber) -> Port {
    Port {
        number,
        kind: PortKind::Physical,
        at: Moment::default(),
        link_layer: "InfiniBand".into(),
        state: Some(PortState::Active),
        physical_state: Some(PhysicalState::LinkUp),
        rate: Some(50_000_000_000),
        width: Some(Width::X4),
        speed: Some(Speed::Ndr),
        lid: Some(Lid(7)),
        sm_lid: Some(Lid(1)),
        reading: Reading::empty(Moment::default()),
        hw: HwReading::default(),
        cm: None,
        netdevs: Vec::new(),
    }
}

/// A snapshot of one device.
pub fn snapshot(device: &str, ports: Vec<Port>) -> HostSnapshot {
    let node_type = "ca".into();
    let info = DeviceInfo { guid: Some(Guid(0xabc)), node_type, ..DeviceInfo::default() };
    let (name, info) = (device.into(), Arc::new(info));
    let device = Device { name, info, is_readable: true, ports, ..Device::default() };
    let anchor = Anchor { moment: Moment::default(), wall: SystemTime::UNIX_EPOCH };
    HostSnapshot {
        anchor,
        began: anchor.moment,
        ended: anchor.moment,
        devices: vec![device],
        excluded: 0,
        problem: None,
    }
}
