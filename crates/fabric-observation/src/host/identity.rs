//! Which device is which: a device keeps its identity under another name, and after its driver was loaded again; and
//! another device that gets its name does not inherit anything.

use std::sync::Arc;

use ib_mad::Guid;
use rdma_host::model::{Device, HostSnapshot};

/// How many devices are kept while not all of them are present: those of containers may get new GUIDs each time.
const MAX_DEVICES: usize = 1024;

/// Assigns each device an id of its own, and remembers it.
#[derive(Debug, Default)]
pub struct DeviceIds {
    /// The devices that were ever seen, the latest last.
    known: Vec<KnownDevice>,
}

/// A device as it was last seen.
#[derive(Debug)]
struct KnownDevice {
    id: Guid,
    guid: Option<Guid>,
    name: Arc<str>,
    bus_address: String,
    instance: Option<u64>,
}

/// Why a device is taken for a known one, from the best reason to the last one.
const REASONS: [fn(&KnownDevice, &Device) -> bool; 4] = [
    // The same directory of sysfs, maybe renamed.
    |known, device| known.instance.is_some() && known.instance == device.instance,
    // Two devices may have one GUID: those of soft RoCE on the VLANs of an interface.
    |known, device| known.name == device.name && known.bus_address == device.info.bus_address,
    |known, device| !known.bus_address.is_empty() && known.bus_address == device.info.bus_address,
    // The driver was loaded again, or the adapter is in another slot.
    |_, device| device.info.guid.is_some_and(|guid| guid != Guid(0)),
];

impl DeviceIds {
    /// The ids of the devices of a snapshot, in its order.
    ///
    /// The id is the node GUID, if the device has one that no other device has: a virtual function has none before it
    /// is used. Otherwise it is made from its PCI function, or from its name, so that it is the same in another run.
    pub fn assign(&mut self, snapshot: &HostSnapshot) -> Vec<Guid> {
        let devices = &snapshot.devices;
        let mut assigned: Vec<Option<KnownDevice>> = devices.iter().map(|_| None).collect();
        for is_same in REASONS {
            for (device, known) in
                devices.iter().zip(&mut assigned).filter(|(_, known)| known.is_none())
            {
                let found = (self.known.iter())
                    .rposition(|known| may_be(known, device) && is_same(known, device));
                *known = found.map(|index| self.known.remove(index));
            }
        }
        let mut ids: Vec<Option<Guid>> =
            assigned.iter().map(|known| known.as_ref().map(|known| known.id)).collect();
        for (index, device) in devices.iter().enumerate() {
            if ids[index].is_none() {
                let guid = device.info.guid.unwrap_or_default();
                let own = Some(guid).filter(|guid| *guid != Guid(0));
                let made = [&*device.info.bus_address, &*device.name].map(|place| {
                    Some(place)
                        .filter(|place| !place.is_empty())
                        .map(|place| generated(place, guid))
                });
                let free = |id: &Guid| !ids.contains(&Some(*id));
                let id = own.into_iter().chain(made.into_iter().flatten()).find(free);
                let id = id.unwrap_or_else(|| generated(&device.name, Guid(index as u64)));
                // A device that had it has disappeared, and gets another one should it return.
                self.known.retain(|known| known.id != id);
                ids[index] = Some(id);
            }
        }
        let ids: Vec<Guid> = ids.into_iter().flatten().collect();
        let seen =
            devices.iter().zip(assigned).zip(&ids).map(|((device, known), &id)| KnownDevice {
                id,
                guid: device.info.guid.or(known.as_ref().and_then(|known| known.guid)),
                name: Arc::clone(&device.name),
                bus_address: device.info.bus_address.clone(),
                instance: device.instance.or(known.and_then(|known| known.instance)),
            });
        self.known.extend(seen);
        let excess = self.known.len().saturating_sub(MAX_DEVICES.max(devices.len()));
        self.known.drain(..excess);
        ids
    }
}

/// Whether the GUIDs allow it to be the same device. One that could not be read says nothing. A virtual function that
/// gets a GUID is another device from then on: each pod or guest has its own.
fn may_be(known: &KnownDevice, device: &Device) -> bool {
    known.guid.zip(device.info.guid).is_none_or(|(before, now)| before == now)
}

/// The id of a device of which only the name is known.
pub(super) fn of_name(name: &str) -> Guid {
    generated(name, Guid(0))
}

/// An id made from a place, always the same for the same place, so that what is recorded continues. No device has such
/// a GUID: its first byte marks a group address (IEEE 802, EUI-64).
fn generated(place: &str, guid: Guid) -> Guid {
    // FNV-1a.
    let bytes = place.bytes().chain(guid.0.to_be_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Guid(0xffff << 48 | hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_host::model::DeviceInfo;
    use rdma_host::testing;

    /// A device by name, GUID, PCI function and inode.
    type Row<'a> = (&'a str, u64, &'a str, u64);

    fn read(devices: &[Row<'_>]) -> HostSnapshot {
        let mut all = testing::snapshot("", Vec::new());
        let one = all.devices.remove(0);
        all.devices.extend(devices.iter().map(|&(name, guid, bus_address, instance)| {
            let (guid, bus_address) = (Some(Guid(guid)), bus_address.to_owned());
            let info = Arc::new(DeviceInfo { guid, bus_address, ..DeviceInfo::default() });
            Device { name: name.into(), info, instance: Some(instance), ..one.clone() }
        }));
        all
    }

    #[test]
    fn each_device_keeps_its_own_id() {
        let mut ids = DeviceIds::default();
        let first = ids.assign(&read(&[
            ("mlx5_0", 7, "a.0", 1),
            ("rxe0", 9, "", 2),
            ("rxe1", 9, "", 3),
            ("vf0", 0, "a.1", 4),
            ("vf1", 0, "a.2", 5),
        ]));
        assert_eq!(first[..2], [Guid(7), Guid(9)]);
        let made = &first[2..];
        assert!(made.iter().all(|id| id.0 >> 48 == 0xffff), "{made:?}");
        assert!(made[0] != made[1] && made[1] != made[2] && made[0] != made[2]);
        // Regardless of which other devices exist.
        let some = ids.assign(&read(&[("rxe1", 9, "", 3), ("vf1", 0, "a.2", 5)]));
        assert_eq!(some, [first[2], first[4]]);
        // After drivers were loaded again.
        let again = read(&[("mlx5_0", 7, "a.0", 6), ("rxe0", 9, "", 7), ("vf0", 0, "a.1", 8)]);
        assert_eq!(ids.assign(&again), [first[0], first[1], first[3]]);
        // Another run makes the same ones.
        assert_eq!(DeviceIds::default().assign(&read(&[("vf1", 0, "a.2", 5)])), [first[4]]);
    }

    #[test]
    fn identity_is_not_the_name() {
        // Two readings of one device each, and whether it is the same device.
        for (before, now, is_same) in [
            (("mlx5_0", 7, "a.0", 1), ("ibp1s0", 7, "a.0", 1), true),
            (("mlx5_0", 7, "a.0", 1), ("ibp1s0", 7, "a.0", 2), true),
            // In another slot.
            (("mlx5_0", 7, "a.0", 1), ("mlx5_0", 7, "b.0", 2), true),
            // A card swap, and a file system that gives the inode to the next directory.
            (("mlx5_0", 7, "a.0", 1), ("mlx5_0", 8, "a.0", 2), false),
            (("mlx5_0", 7, "a.0", 1), ("mlx5_0", 8, "a.0", 1), false),
            // A virtual function for one pod after the other.
            (("mlx5_4", 0, "a.2", 1), ("mlx5_4", 0, "a.2", 2), true),
            (("mlx5_4", 0, "a.2", 1), ("mlx5_9", 0, "a.2", 2), true),
            (("mlx5_4", 0, "a.2", 1), ("mlx5_4", 5, "a.2", 1), false),
            (("mlx5_4", 5, "a.2", 1), ("mlx5_4", 6, "a.2", 2), false),
            (("vf0", 0, "a.1", 1), ("vf0", 0, "a.2", 2), false),
        ] {
            let mut ids = DeviceIds::default();
            let ids = [before, now].map(|device| ids.assign(&read(&[device])));
            assert_eq!(ids[0] == ids[1], is_same, "{before:?} {now:?}");
        }
    }

    #[test]
    fn devices_that_swap_names_keep_their_ids() {
        let mut ids = DeviceIds::default();
        let first = ids.assign(&read(&[("a", 9, "", 1), ("b", 9, "", 2)]));
        let swapped = ids.assign(&read(&[("a", 9, "", 2), ("b", 9, "", 1)]));
        assert_eq!(swapped, [first[1], first[0]]);
        let mut ids = DeviceIds::default();
        assert_eq!(ids.assign(&read(&[("mlx5_0", 7, "", 1)])), [Guid(7)]);
        let both = ids.assign(&read(&[("mlx5_0", 7, "", 2), ("rocep1s0", 7, "", 1)]));
        assert_eq!((both[0] == Guid(7), both[1]), (false, Guid(7)));
    }

    #[test]
    fn unreadable_guid_changes_nothing() {
        let mut ids = DeviceIds::default();
        let mut snapshot = read(&[("mlx5_0", 7, "a.0", 1)]);
        ids.assign(&snapshot);
        snapshot.devices[0].info = Arc::default();
        assert_eq!(ids.assign(&snapshot), [Guid(7)]);
    }

    #[test]
    fn number_of_ids_is_bounded() {
        let mut ids = DeviceIds::default();
        for device in 0..2 * MAX_DEVICES as u64 {
            ids.assign(&read(&[(&format!("vf{device}"), 0, &device.to_string(), device)]));
        }
        assert!(ids.known.len() <= MAX_DEVICES);
    }
}
