//! The devices that disappeared.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ib_mad::{Guid, Moment};
use rdma_host::model::{Device, HostSnapshot, PortKind};

/// How many missing devices are kept. Devices of containers may have another name each time.
const MAX_DEVICES: usize = 1024;

/// A device that disappeared: kept for a while, so that its absence is a value and not only the end of a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingDevice {
    /// Its name.
    pub name: Arc<str>,
    /// The node GUID that it had, if that could be read.
    pub guid: Option<Guid>,
    /// Its PCI function; empty without one.
    pub bus_address: String,
    /// When a read found it missing.
    pub since: Moment,
}

/// Tracks which devices have disappeared.
#[derive(Debug)]
pub struct MissingDevices {
    forget_after: Duration,
    /// By id.
    present: BTreeMap<Guid, PresentDevice>,
    gone: BTreeMap<Guid, MissingDevice>,
}

/// What is kept of a device that is present.
#[derive(Debug)]
struct PresentDevice {
    name: Arc<str>,
    guid: Option<Guid>,
    bus_address: String,
    is_virtual: bool,
}

impl MissingDevices {
    /// One that has not seen any device yet.
    pub fn new(forget_after: Duration) -> Self {
        MissingDevices { forget_after, present: BTreeMap::new(), gone: BTreeMap::new() }
    }

    /// Adds a reading with the [ids](super::DeviceIds) of its devices, and returns the missing devices, by name.
    pub fn update(&mut self, snapshot: &HostSnapshot, ids: &[Guid]) -> Vec<MissingDevice> {
        // Without a list of devices none is known to be gone.
        if snapshot.problem.is_none() {
            self.remove_returned(snapshot, ids);
            self.add_missing(snapshot, ids);
            let devices = ids.iter().zip(&snapshot.devices);
            self.present = devices.map(|(id, device)| (*id, self.present(*id, device))).collect();
        }
        let forget_after = self.forget_after;
        self.gone.retain(|_, missing| snapshot.ended.since(missing.since) < forget_after);
        while self.gone.len() > MAX_DEVICES {
            let oldest = self.gone.iter().min_by_key(|(_, missing)| missing.since);
            let Some(id) = oldest.map(|(id, _)| *id) else { break };
            self.gone.remove(&id);
        }
        let mut missing: Vec<MissingDevice> = self.gone.values().cloned().collect();
        missing.sort_by(|a, b| a.name.cmp(&b.name));
        missing
    }

    /// Removes devices that reappeared, those that were replaced by a new one with their name, and those that joined a
    /// bond.
    fn remove_returned(&mut self, snapshot: &HostSnapshot, ids: &[Guid]) {
        let present = &self.present;
        self.gone.retain(|id, missing| {
            let (old, guid) = (&*missing.name, missing.guid.map(tracing::field::display));
            let devices = || ids.iter().zip(&snapshot.devices);
            let is_back = |&(new, device): &(&Guid, &Device)| {
                new == id || device.name == missing.name && !present.contains_key(new)
            };
            if let Some((_, device)) = devices().find(is_back) {
                tracing::info!(device = old, guid, name = &*device.name, "device reappeared");
                return false;
            }
            let serving = serving(snapshot, &missing.bus_address);
            if let Some(device) = serving {
                tracing::info!(device = old, guid, bond = &*device.name, "device joined a bond");
            }
            serving.is_none()
        });
    }

    /// Adds devices that were present in the previous read and are missing now.
    fn add_missing(&mut self, snapshot: &HostSnapshot, ids: &[Guid]) {
        for (id, known) in &self.present {
            let is_replaced = || {
                let mut devices = ids.iter().zip(&snapshot.devices);
                devices.any(|(new, it)| it.name == known.name && !self.present.contains_key(new))
            };
            // Handing a virtual function to a guest, and back, is normal.
            if known.is_virtual
                || ids.contains(id)
                || is_replaced()
                || serving(snapshot, &known.bus_address).is_some()
            {
                continue;
            }
            let PresentDevice { name, guid, bus_address, .. } = known;
            tracing::warn!(
                device = &**name,
                guid = guid.map(tracing::field::display),
                "device disappeared: its driver was unloaded, or the device failed or was removed"
            );
            let missing = MissingDevice {
                name: Arc::clone(name),
                guid: *guid,
                bus_address: bus_address.clone(),
                since: snapshot.ended,
            };
            self.gone.insert(*id, missing);
        }
    }

    /// What to keep of a device; what cannot be read at present is as it was.
    fn present(&self, id: Guid, device: &Device) -> PresentDevice {
        let before = self.present.get(&id);
        let was = |known: fn(&PresentDevice) -> bool| before.is_some_and(known);
        PresentDevice {
            name: Arc::clone(&device.name),
            guid: device.info.guid.or(before.and_then(|before| before.guid)),
            bus_address: match before {
                Some(before) if device.info.bus_address.is_empty() => before.bus_address.clone(),
                _ => device.info.bus_address.clone(),
            },
            is_virtual: comes_and_goes(device.kind)
                || device.instance.is_none() && was(|before| before.is_virtual),
        }
    }
}

/// Whether the host creates, removes and hands on devices of this kind at any time. An SMI device goes with a reload of
/// its parent, and nothing in the kernel adds it again.
pub(super) fn comes_and_goes(kind: PortKind) -> bool {
    matches!(kind, PortKind::VirtualFunction | PortKind::SubFunction | PortKind::Smi)
}

/// The device that serves the port of a PCI function without a device of its own: of two functions whose interfaces
/// joined a bond, mlx5 makes one device (RoCE LAG).
fn serving<'a>(snapshot: &'a HostSnapshot, bus_address: &str) -> Option<&'a Device> {
    let is_member = |device: &&Device| {
        let mut netdevs = device.ports.iter().flat_map(|port| &port.netdevs);
        netdevs.any(|it| it.bond.is_some() && it.bus_address.as_deref() == Some(bus_address))
    };
    snapshot.devices.iter().find(is_member).filter(|_| !bus_address.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::DeviceIds;
    use rdma_host::model::{DeviceInfo, Netdev};
    use rdma_host::testing;

    const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

    /// A tracker with the ids of its devices.
    struct Tracker(MissingDevices, DeviceIds);

    impl Tracker {
        fn new() -> Self {
            Tracker(MissingDevices::new(WEEK), DeviceIds::default())
        }

        fn update(&mut self, snapshot: &HostSnapshot) -> Vec<MissingDevice> {
            self.0.update(snapshot, &self.1.assign(snapshot))
        }
    }

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
        let mut tracker = Tracker::new();
        let all = [("mlx5_0", 7, 1), ("mlx5_1", 8, 2)];
        assert_eq!(tracker.update(&snapshot(0, &all)), []);
        let gone = tracker.update(&snapshot(1, &all[..1]));
        assert_eq!((names(&gone), gone[0].guid), (vec!["mlx5_1"], Some(Guid(8))));
        assert_eq!(names(&tracker.update(&snapshot(24, &all[..1]))), ["mlx5_1"]);
        assert_eq!(tracker.update(&snapshot(25, &all)), []);
        assert_eq!(names(&tracker.update(&snapshot(26, &all[..1]))), ["mlx5_1"]);
        assert_eq!(names(&tracker.update(&snapshot(26 + 167, &all[..1]))), ["mlx5_1"]);
        assert_eq!(tracker.update(&snapshot(26 + 168, &all[..1])), []);
        let mut forgetful = MissingDevices::new(Duration::ZERO);
        assert_eq!(forgetful.update(&snapshot(0, &all), &[Guid(7), Guid(8)]), []);
    }

    #[test]
    fn renamed_device_is_not_missing() {
        let mut tracker = Tracker::new();
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

    /// After a reload of the driver the kernel numbers the devices that are left.
    #[test]
    fn device_is_missing_although_another_known_one_has_its_name() {
        let mut tracker = Tracker::new();
        tracker.update(&snapshot(0, &[("mlx5_0", 7, 1), ("mlx5_1", 8, 2)]));
        let gone = tracker.update(&snapshot(1, &[("mlx5_0", 8, 3)]));
        assert_eq!((names(&gone), gone[0].guid), (vec!["mlx5_0"], Some(Guid(7))));
    }

    #[test]
    fn virtual_or_unlisted_devices_are_not_missing() {
        let mut tracker = Tracker::new();
        let mut first = snapshot(0, &[("mlx5_0", 7, 1), ("mlx5_1", 8, 2)]);
        for kind in [PortKind::VirtualFunction, PortKind::SubFunction, PortKind::Smi] {
            first.devices[1].kind = kind;
            tracker.update(&first);
            assert_eq!(tracker.update(&snapshot(1, &[("mlx5_0", 7, 1)])), [], "{kind:?}");
        }
        let mut blind = snapshot(2, &[]);
        blind.problem = Some("Permission denied".to_owned());
        assert_eq!(tracker.update(&blind), []);
        assert_eq!(names(&tracker.update(&snapshot(3, &[]))), ["mlx5_0"]);
    }

    /// mlx5 removes both devices, and creates one with the GUID of the first.
    #[test]
    fn device_that_joined_a_bond_is_not_missing() {
        let with = |at, devices: &[(&str, u64, u64)], addresses: &[&str]| {
            let mut snapshot = snapshot(at, devices);
            for (device, address) in snapshot.devices.iter_mut().zip(addresses) {
                Arc::make_mut(&mut device.info).bus_address = (*address).to_owned();
            }
            snapshot
        };
        let (first, second) = ("0000:31:00.0", "0000:31:00.1");
        let mut tracker = Tracker::new();
        tracker.update(&with(0, &[("mlx5_0", 7, 1), ("mlx5_1", 8, 2)], &[first, second]));
        // The bond is not complete yet.
        let mut bonded = with(1, &[("mlx5_bond_0", 7, 3)], &[first]);
        assert_eq!(names(&tracker.update(&bonded)), ["mlx5_1"]);
        let member = |address: &str| Netdev {
            bond: Some("bond0".into()),
            bus_address: Some(address.into()),
            ..Netdev::default()
        };
        let netdevs = vec![Netdev::default(), member(first), member(second)];
        bonded.devices[0].ports = vec![rdma_host::model::Port { netdevs, ..testing::port(1) }];
        assert_eq!(tracker.update(&bonded), []);
        // Another adapter is still missed, and so is the second one once the bond is dissolved.
        let more = with(2, &[("mlx5_4", 5, 4)], &["0000:41:00.0"]);
        bonded.devices.extend(more.devices);
        assert_eq!(tracker.update(&bonded), []);
        bonded.devices.pop();
        assert_eq!(names(&tracker.update(&bonded)), ["mlx5_4"]);
        let apart = with(3, &[("mlx5_0", 7, 5), ("mlx5_1", 8, 6)], &[first, second]);
        assert_eq!(names(&tracker.update(&apart)), ["mlx5_4"]);
        assert_eq!(
            names(&tracker.update(&with(4, &[("mlx5_0", 7, 5)], &[first]))),
            ["mlx5_1", "mlx5_4"]
        );
    }

    #[test]
    fn number_of_missing_devices_is_bounded() {
        let mut tracker = Tracker::new();
        for device in 0..2 * MAX_DEVICES as u64 {
            tracker.update(&snapshot(1, &[(&format!("vf{device}"), 0, device)]));
        }
        assert_eq!(tracker.0.gone.len(), MAX_DEVICES);
    }
}
