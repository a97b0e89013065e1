//! What each of the host's devices is known by: its node GUID, or a number that takes its place.

use std::collections::BTreeMap;
use std::sync::Arc;

use ib_mad::Guid;
use rdma_host::model::HostSnapshot;

/// How many devices are remembered while not all of them are there.
const MOST: usize = 1024;

/// The numbers that were given, so that a device keeps its own.
#[derive(Debug, Default)]
pub(super) struct Ids {
    given: BTreeMap<(Arc<str>, Guid), Guid>,
}

impl Ids {
    /// A number for each device of a look, in its order; no two have the same.
    ///
    /// Most have a node GUID of their own. Nobody gives one to a virtual function before it is used,
    /// and those of Soft RoCE come from an interface's address, which its VLANs share: such devices
    /// are told apart by their names. A device that gets another name keeps its GUID.
    pub(super) fn of(&mut self, snapshot: &HostSnapshot) -> Vec<Guid> {
        let keys = || {
            let devices = snapshot.devices.iter();
            devices.map(|device| (Arc::clone(&device.name), device.about.guid.unwrap_or_default()))
        };
        if self.given.len() > MOST {
            let here: Vec<_> = keys().collect();
            self.given.retain(|key, _| here.contains(key));
        }
        let known: Vec<Option<Guid>> = keys().map(|key| self.given.get(&key).copied()).collect();
        let mut ids: Vec<Guid> = Vec::with_capacity(known.len());
        for ((name, guid), given) in keys().zip(&known) {
            let id = given.unwrap_or_else(|| {
                let is_taken = known.contains(&Some(guid)) || ids.contains(&guid);
                if guid == Guid(0) || is_taken {
                    return made(&name, guid);
                }
                // Whoever had it is not here, and comes back as another one.
                self.given.retain(|_, id| *id != guid);
                guid
            });
            self.given.insert((name, guid), id);
            ids.push(id);
        }
        ids
    }
}

/// The same for the same name, whenever and wherever it is made: what is recorded goes on with it.
/// No device has such a GUID: its first byte says that it is a group's (IEEE 802, EUI-64).
fn made(name: &str, guid: Guid) -> Guid {
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
    use rdma_host::model::{About, Device};
    use rdma_host::testing::snapshot;

    fn look(devices: &[(&str, u64)]) -> HostSnapshot {
        let mut all = snapshot("", Vec::new());
        let one = all.devices.remove(0);
        all.devices.extend(devices.iter().map(|&(name, guid)| {
            let about = Arc::new(About { guid: Some(Guid(guid)), ..About::default() });
            Device { name: name.into(), about, ..one.clone() }
        }));
        all
    }

    #[test]
    fn each_device_has_a_number_of_its_own_and_keeps_it() {
        let mut ids = Ids::default();
        let first =
            ids.of(&look(&[("mlx5_0", 7), ("rxe0", 9), ("rxe1", 9), ("vf0", 0), ("vf1", 0)]));
        assert_eq!(first[..2], [Guid(7), Guid(9)]);
        let made = &first[2..];
        assert!(made.iter().all(|id| id.0 >> 48 == 0xffff), "{made:?}");
        assert!(made[0] != made[1] && made[1] != made[2] && made[0] != made[2]);
        // Whoever else is there.
        assert_eq!(ids.of(&look(&[("rxe1", 9), ("vf1", 0)])), [first[2], first[4]]);
        let again = look(&[("aaa", 9), ("mlx5_0", 7), ("rxe0", 9), ("vf0", 0)]);
        let told = ids.of(&again);
        assert_eq!(told[1..], [first[0], first[1], first[3]]);
        // Another run makes the same ones.
        assert_eq!(Ids::default().of(&look(&[("vf1", 0)])), [first[4]]);
    }

    #[test]
    fn a_device_with_another_name_keeps_its_guid() {
        let mut ids = Ids::default();
        assert_eq!(ids.of(&look(&[("mlx5_0", 7)])), [Guid(7)]);
        assert_eq!(ids.of(&look(&[("rocep1s0", 7)])), [Guid(7)]);
        let both = ids.of(&look(&[("mlx5_0", 7), ("rocep1s0", 7)]));
        assert_eq!((both[0] == Guid(7), both[1]), (false, Guid(7)));
    }

    #[test]
    fn names_that_do_not_come_back_are_not_remembered_for_ever() {
        let mut ids = Ids::default();
        for device in 0..2 * MOST {
            ids.of(&look(&[(&format!("vf{device}"), 0)]));
        }
        assert!(ids.given.len() <= MOST + 1);
    }
}
