//! The two latest readings of this host: what its ports sent between them.

use fabric_api::model::{Device, DevicePort, Flow};
use fabric_observation::host::{HostObservation, HostPortTotals};
use ib_mad::{Counter, PortNumber};
use rdma_host::model::Port;

/// The reading of this host before the latest one, and the latest.
pub(super) type Readings<'a> = [&'a HostObservation; 2];

/// A port of this host with its totals, by its device and number.
pub(super) fn find<'a>(
    host: &'a HostObservation,
    device: &str,
    number: PortNumber,
) -> Option<(&'a Port, Option<&'a HostPortTotals>)> {
    let devices = &host.snapshot.as_ref()?.devices;
    let place = devices.iter().position(|it| *it.name == *device)?;
    let ports = &devices[place].ports;
    let nth = ports.iter().position(|port| port.number == number)?;
    Some((&ports[nth], host.totals.get(place).and_then(|totals| totals.get(nth))))
}

/// What a port sends or receives, from the growth of a counter of data. Totals do not decrease after a reset.
pub(super) fn flow(
    readings: Option<Readings<'_>>,
    device: &Device,
    port: &DevicePort,
    counter: Counter,
) -> Option<Flow> {
    let [before, now] = readings?.map(|host| find(host, &device.device, port.port)?.1);
    let (before, now) = (&before?.reading, &now?.reading);
    let seconds = now.at.since(before.at).as_secs_f64();
    let words = now.get(counter)?.checked_sub(before.get(counter)?).filter(|_| seconds > 0.0)?;
    // Data is counted in words of four bytes.
    let bytes_per_second = words as f64 * 4.0 / seconds;
    let share = port.rate.map_or(0.0, |rate| bytes_per_second / rate.max(1) as f64);
    Some(Flow { bytes_per_second, utilization: share.min(1.0) as f32 })
}
