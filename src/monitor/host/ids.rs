//! The ids of the host's devices: their node GUIDs, or a number that replaces one.

use std::collections::BTreeMap;
use std::sync::Arc;

use ib_mad::Guid;
use rdma_host::model::HostSnapshot;

/// How many devices are kept while not all of them are present.
const MAX_DEVICES: usize = 1024;

/// The ids that were assigned, so that a device keeps its own.
#[derive(Debug, Default)]
pub(super) struct DeviceIds {
    assigned: BTreeMap<(Arc<str>, Guid), Guid>,
}

impl DeviceIds {
    /// A unique id for each device of a snapshot, in its order.
    ///
    /// Most devices have a node GUID. A virtual function has none before it is used, and those of Soft RoCE are
    /// made from an interface's address, which its VLANs share: such devices are distinguished by their names. A
    /// device that is renamed keeps its GUID.
    pub(super) fn assign(&mut self, snapshot: &HostSnapshot) -> Vec<Guid> {
        let keys = || {
            let devices = snapshot.devices.iter();
            devices.map(|device| (Arc::clone(&device.name), device.info.guid.unwrap_or_default()))
        };
        if self.assigned.len() > MAX_DEVICES {
            let present: Vec<_> = keys().collect();
            self.assigned.retain(|key, _| present.contains(key));
        }
        let known: Vec<Option<Guid>> = keys().map(|key| self.assigned.get(&key).copied()).collect();
        let mut ids: Vec<Guid> = Vec::with_capacity(known.len());
        for ((name, guid), assigned) in keys().zip(&known) {
            let id = assigned.unwrap_or_else(|| {
                let is_taken = known.contains(&Some(guid)) || ids.contains(&guid);
                if guid == Guid(0) || is_taken {
                    return generated(&name, guid);
                }
                // The device that had it is gone, and gets another one when it comes back.
                self.assigned.retain(|_, id| *id != guid);
                guid
            });
            self.assigned.insert((name, guid), id);
            ids.push(id);
        }
        ids
    }
}

/// An id made from the name, always the same for the same name, so that what is recorded continues. No device has
/// such a GUID: its first byte marks a group address (IEEE 802, EUI-64).
fn generated(name: &str, guid: Guid) -> Guid {
    // FNV-1a.
    let bytes = name.bytes().chain(guid.0.to_be_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    Guid(0xffff << 48 | hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_host::model::{Device, DeviceInfo};
    use rdma_host::testing::snapshot;

    fn look(devices: &[(&str, u64)]) -> HostSnapshot {
        let mut all = snapshot("", Vec::new());
        let one = all.devices.remove(0);
        all.devices.extend(devices.iter().map(|&(name, guid)| {
            let info = Arc::new(DeviceInfo { guid: Some(Guid(guid)), ..DeviceInfo::default() });
            Device { name: name.into(), info, ..one.clone() }
        }));
        all
    }

    #[test]
    fn each_device_keeps_its_own_id() {
        let mut ids = DeviceIds::default();
        let first =
            ids.assign(&look(&[("mlx5_0", 7), ("rxe0", 9), ("rxe1", 9), ("vf0", 0), ("vf1", 0)]));
        assert_eq!(first[..2], [Guid(7), Guid(9)]);
        let made = &first[2..];
        assert!(made.iter().all(|id| id.0 >> 48 == 0xffff), "{made:?}");
        assert!(made[0] != made[1] && made[1] != made[2] && made[0] != made[2]);
        // Regardless of which other devices exist.
        assert_eq!(ids.assign(&look(&[("rxe1", 9), ("vf1", 0)])), [first[2], first[4]]);
        let again = look(&[("aaa", 9), ("mlx5_0", 7), ("rxe0", 9), ("vf0", 0)]);
        let ids_again = ids.assign(&again);
        assert_eq!(ids_again[1..], [first[0], first[1], first[3]]);
        // Another run makes the same ones.
        assert_eq!(DeviceIds::default().assign(&look(&[("vf1", 0)])), [first[4]]);
    }

    #[test]
    fn renamed_device_keeps_its_guid() {
        let mut ids = DeviceIds::default();
        assert_eq!(ids.assign(&look(&[("mlx5_0", 7)])), [Guid(7)]);
        assert_eq!(ids.assign(&look(&[("rocep1s0", 7)])), [Guid(7)]);
        let both = ids.assign(&look(&[("mlx5_0", 7), ("rocep1s0", 7)]));
        assert_eq!((both[0] == Guid(7), both[1]), (false, Guid(7)));
    }

    #[test]
    fn number_of_ids_is_bounded() {
        let mut ids = DeviceIds::default();
        for device in 0..2 * MAX_DEVICES {
            ids.assign(&look(&[(&format!("vf{device}"), 0)]));
        }
        assert!(ids.assigned.len() <= MAX_DEVICES + 1);
    }
}
