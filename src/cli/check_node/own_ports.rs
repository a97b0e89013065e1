//! The ports of this host, by its kernel.

use std::path::Path;
use std::time::Duration;

use display_text::plural;
use ib_mad::port_state::{PhysicalState, PortState};
use process_clock::Clock;
use rdma_host::reader::{DeviceFilter, DeviceSource, HostReader, ReadOptions};

use super::outcome::HostCheck;

/// Checks that enough ports are Active, and that none waits for a subnet manager. A port without a link may have no
/// cable: only the exporter knows that it had one.
pub fn check(sysfs: &Path, expected: Option<usize>, found: &mut HostCheck) {
    let options =
        ReadOptions { error_backoff: Duration::ZERO, ethtool: false, cm: false, modules: false };
    let mut reader =
        HostReader::new(sysfs.to_owned(), DeviceFilter::default(), options, Clock::start());
    let devices = reader.read().devices;
    let ports = devices
        .iter()
        .flat_map(|device| device.ports.iter().map(move |port| (device, port)))
        .filter(|(_, port)| port.kind.has_cable());
    let (mut active, mut all) = (0, 0);
    for (device, port) in ports {
        let name = format!("{}/{}", device.name, port.number);
        let is_disabled = port.physical_state == Some(PhysicalState::Disabled)
            || port.is_admin_down() == Some(true);
        all += usize::from(!is_disabled);
        match port.state {
            Some(PortState::Active) => active += 1,
            Some(state @ (PortState::Init | PortState::Armed)) => {
                found.bad(format!("{name} is {}: no subnet manager", state.name()));
            }
            Some(_) => {}
            None => found.unknown(format!("the state of {name} cannot be read")),
        }
    }
    let has = format!("{active} of {} Active", plural(all, "port"));
    match expected {
        Some(expected) if active < expected => {
            found.bad(format!("{has}, {expected} expected"));
        }
        None if all == 0 => found.unknown("no RDMA port with a cable"),
        None if active == 0 => found.bad(has),
        _ => found.fine(has),
    }
}
