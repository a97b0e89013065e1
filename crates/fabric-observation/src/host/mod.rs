//! The state of the host's own devices.

mod port_events;

pub use port_events::{HostPortEvents, PortEventCounts, PortKey};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ib_health::assessment::{CounterStatus, ResetOffsets};
use ib_mad::{Guid, Moment, Reading};
use rdma_host::model::{Device, HostSnapshot, PortKind, Rails};

/// Events that were dropped because too many waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedEvents {
    /// By the host's monitor, while it read devices.
    pub by_host: u64,
    /// By the monitors of fabrics, while they did not sweep.
    pub by_fabrics: u64,
}

/// The totals of a port of the host.
#[derive(Clone, Debug)]
pub struct HostPortTotals {
    /// The totals of its counters.
    pub reading: Reading,
    /// Saturation, resets and impossible values of its counters.
    pub counters: CounterStatus,
    /// What counters had counted before their last reset, if one was ever reset.
    pub reset_offsets: Option<Arc<ResetOffsets>>,
}

/// The state of the host's own devices at their latest reading.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the other names say it")]
pub struct HostObservation {
    /// The configured time between two readings.
    pub interval: Duration,
    /// The latest reading, with raw counters; `None` before the first.
    pub snapshot: Option<HostSnapshot>,
    /// The totals of its ports: by device and port, in the order of the snapshot.
    pub totals: Vec<Vec<HostPortTotals>>,
    /// The ids of its devices, in the same order: their GUIDs, or what replaces one.
    pub ids: Vec<Guid>,
    pub reads: u64,
    /// The devices that disappeared, by name.
    pub missing: Vec<MissingDevice>,
    pub dropped: DroppedEvents,
    pub port_events: HostPortEvents,
    /// The devices whose events are received.
    pub monitored: BTreeSet<String>,
    /// Which port is in which fabric.
    pub rails: Rails,
}

impl HostObservation {
    /// Whether the latest reading succeeded for a device, or there is none to read: not every host has one.
    pub fn success(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| {
            let none_expected = snapshot.devices.is_empty() && self.missing.is_empty();
            none_expected && snapshot.problem.is_none()
                || snapshot.devices.iter().any(|device| device.is_readable)
        })
    }

    /// Why nothing could be read, if no device is the reason: sysfs is elsewhere, or must not be read.
    pub fn problem(&self) -> Option<&str> {
        let problem = self.snapshot.as_ref()?.problem.as_deref()?;
        Some(problem).filter(|_| !self.success())
    }
}

/// How many missing devices are kept. Devices of containers may have another name each time.
const MAX_DEVICES: usize = 1024;

/// A device that disappeared: kept for a while, so that its absence is a value and not only the end of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingDevice {
    /// Its name.
    pub name: Arc<str>,
    /// The node GUID that it had, if that could be read.
    pub guid: Option<Guid>,
    /// When a read found it missing.
    pub since: Moment,
}

/// Tracks which devices have disappeared.
#[derive(Debug)]
pub struct MissingDevices {
    forget_after: Duration,
    present: BTreeMap<Arc<str>, DeviceIdentity>,
    gone: BTreeMap<Arc<str>, MissingDevice>,
}

/// What identifies a device that is present.
#[derive(Debug)]
struct DeviceIdentity {
    guid: Option<Guid>,
    instance: Option<u64>,
    is_virtual: bool,
}

impl MissingDevices {
    /// One that has not seen any device yet.
    pub fn new(forget_after: Duration) -> Self {
        MissingDevices { forget_after, present: BTreeMap::new(), gone: BTreeMap::new() }
    }

    /// Adds a reading, and returns the missing devices, by name.
    pub fn update(&mut self, snapshot: &HostSnapshot) -> Vec<MissingDevice> {
        // Without a list of devices none is known to be gone.
        if snapshot.problem.is_none() {
            self.remove_returned(snapshot);
            self.add_missing(snapshot);
            self.present = snapshot.devices.iter().map(|device| self.identity(device)).collect();
        }
        let forget_after = self.forget_after;
        self.gone.retain(|_, missing| snapshot.ended.since(missing.since) < forget_after);
        while self.gone.len() > MAX_DEVICES {
            let oldest = self.gone.values().min_by_key(|missing| missing.since);
            let Some(name) = oldest.map(|missing| Arc::clone(&missing.name)) else { break };
            self.gone.remove(&name);
        }
        self.gone.values().cloned().collect()
    }

    /// Removes devices that reappeared, under their names or, as after a driver was loaded again, under others.
    fn remove_returned(&mut self, snapshot: &HostSnapshot) {
        let is_new = |device: &&Device| !self.present.contains_key(&device.name);
        for device in snapshot.devices.iter().filter(is_new) {
            let name = &device.name;
            self.gone.retain(|old, missing| {
                let is_back = old == name || is_same(missing.guid, device.info.guid);
                if is_back {
                    let guid = missing.guid.map(tracing::field::display);
                    tracing::info!(device = &**old, guid, name = &**name, "device reappeared");
                }
                !is_back
            });
        }
    }

    /// Adds devices that were present in the previous read and are missing now.
    fn add_missing(&mut self, snapshot: &HostSnapshot) {
        for (name, known) in &self.present {
            let is_new = |device: &Device| !self.present.contains_key(&device.name);
            let is_it = |device: &Device| {
                device.name == *name
                    || known.instance.is_some() && device.instance == known.instance
                    || is_new(device) && is_same(known.guid, device.info.guid)
            };
            // Handing a virtual function to a guest, and back, is normal.
            if known.is_virtual || snapshot.devices.iter().any(is_it) {
                continue;
            }
            let guid = known.guid.map(tracing::field::display);
            tracing::warn!(
                device = &**name,
                guid,
                "device disappeared: its driver was unloaded, or the device failed or was removed"
            );
            let (guid, since, name) = (known.guid, snapshot.ended, Arc::clone(name));
            self.gone.insert(Arc::clone(&name), MissingDevice { name, guid, since });
        }
    }

    /// What identifies a device; what cannot be read at present is as it was.
    fn identity(&self, device: &Device) -> (Arc<str>, DeviceIdentity) {
        let before = self.present.get(&device.name);
        let identity = DeviceIdentity {
            guid: device.info.guid.or(before.and_then(|before| before.guid)),
            instance: device.instance.or(before.and_then(|before| before.instance)),
            is_virtual: is_virtual(device)
                || device.instance.is_none() && before.is_some_and(|before| before.is_virtual),
        };
        (Arc::clone(&device.name), identity)
    }
}

/// Whether the host may hand the device to a guest, and create and remove it, at any time.
fn is_virtual(device: &Device) -> bool {
    matches!(device.kind, PortKind::VirtualFunction | PortKind::SubFunction)
}

/// Whether two GUIDs belong to one device. Virtual functions without one have 0.
fn is_same(one: Option<Guid>, other: Option<Guid>) -> bool {
    one.is_some_and(|one| one != Guid(0)) && one == other
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_host::model::DeviceInfo;
    use rdma_host::testing;

    const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

    /// A reading at some hour of devices with these names, GUIDs and numbers.
    fn snapshot(hours: u64, devices: &[(&str, u64, u64)]) -> HostSnapshot {
        let mut snapshot = testing::snapshot("", Vec::new());
        let one = snapshot.devices.remove(0);
        snapshot.devices.extend(devices.iter().map(|&(name, guid, instance)| {
            let info = Arc::new(DeviceInfo { guid: Some(Guid(guid)), ..DeviceInfo::default() });
            Device { name: name.into(), info, instance: Some(instance), ..one.clone() }
        }));
        snapshot.ended = Moment::default() + Duration::from_secs(hours * 3600);
        snapshot
    }

    fn names(missing: &[MissingDevice]) -> Vec<&str> {
        missing.iter().map(|missing| &*missing.name).collect()
    }

    #[test]
    fn missing_device_is_kept_until_back_or_forgotten() {
        let mut tracker = MissingDevices::new(WEEK);
        let all = [("mlx5_0", 7, 1), ("mlx5_1", 8, 2)];
        assert_eq!(tracker.update(&snapshot(0, &all)), []);
        let gone = tracker.update(&snapshot(1, &all[..1]));
        assert_eq!((names(&gone), gone[0].guid), (vec!["mlx5_1"], Some(Guid(8))));
        assert_eq!(names(&tracker.update(&snapshot(24, &all[..1]))), ["mlx5_1"]);
        assert_eq!(tracker.update(&snapshot(25, &all)), []);
        assert_eq!(names(&tracker.update(&snapshot(26, &all[..1]))), ["mlx5_1"]);
        assert_eq!(names(&tracker.update(&snapshot(26 + 167, &all[..1]))), ["mlx5_1"]);
        assert_eq!(tracker.update(&snapshot(26 + 168, &all[..1])), []);
        assert_eq!(MissingDevices::new(Duration::ZERO).update(&snapshot(0, &all)), []);
    }

    #[test]
    fn renamed_device_is_not_missing() {
        let mut tracker = MissingDevices::new(WEEK);
        tracker.update(&snapshot(0, &[("mlx5_0", 7, 1), ("vf0", 0, 2)]));
        assert_eq!(tracker.update(&snapshot(1, &[("ib0", 7, 1), ("vf1", 0, 2)])), []);
        // Loaded again, and renamed before the snapshot; gone, and back under another name.
        assert_eq!(names(&tracker.update(&snapshot(2, &[("mlx5_0", 7, 3)]))), ["vf1"]);
        assert_eq!(names(&tracker.update(&snapshot(3, &[]))), ["mlx5_0", "vf1"]);
        assert_eq!(names(&tracker.update(&snapshot(4, &[("ib0", 7, 4)]))), ["vf1"]);
        // Two devices of soft RoCE on one interface share its address.
        tracker.update(&snapshot(5, &[("rxe0", 9, 5), ("rxe1", 9, 6)]));
        assert_eq!(names(&tracker.update(&snapshot(6, &[("rxe1", 9, 6)]))), ["ib0", "rxe0", "vf1"]);
    }

    #[test]
    fn virtual_or_unlisted_devices_are_not_missing() {
        let mut tracker = MissingDevices::new(WEEK);
        let mut first = snapshot(0, &[("mlx5_0", 7, 1), ("mlx5_1", 8, 2)]);
        first.devices[1].kind = PortKind::VirtualFunction;
        tracker.update(&first);
        assert_eq!(tracker.update(&snapshot(1, &[("mlx5_0", 7, 1)])), []);
        let mut blind = snapshot(2, &[]);
        blind.problem = Some("Permission denied".to_owned());
        assert_eq!(tracker.update(&blind), []);
        assert_eq!(names(&tracker.update(&snapshot(3, &[]))), ["mlx5_0"]);
    }

    #[test]
    fn number_of_missing_devices_is_bounded() {
        let mut tracker = MissingDevices::new(WEEK);
        for device in 0..2 * MAX_DEVICES as u64 {
            tracker.update(&snapshot(1, &[(&format!("vf{device}"), 0, device)]));
        }
        assert_eq!(tracker.gone.len(), MAX_DEVICES);
    }
}
