//! Devices that were there and are gone: kept for a while, so that their absence is a value and not only
//! the end of some series.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ib_mad::{Guid, Moment};
use rdma_host::model::{Device, HostSnapshot};

/// How many are kept. Devices of containers may have another name each time.
const MOST: usize = 1024;

/// A device that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// What it was called.
    pub name: Arc<str>,
    /// The node GUID that it had, if that could be read.
    pub guid: Option<Guid>,
    /// When a look found it gone.
    pub since: Moment,
}

/// Follows which devices there are.
#[derive(Debug)]
pub struct Absences {
    forget_after: Duration,
    /// Those of the latest look.
    here: BTreeMap<Arc<str>, Known>,
    gone: BTreeMap<Arc<str>, Missing>,
}

/// What is remembered of a device that is there.
#[derive(Debug)]
struct Known {
    guid: Option<Guid>,
    instance: Option<u64>,
    is_virtual: bool,
}

impl Absences {
    pub fn new(forget_after: Duration) -> Self {
        Absences { forget_after, here: BTreeMap::new(), gone: BTreeMap::new() }
    }

    /// Follows a look, and returns those that are gone, by name.
    pub fn follow(&mut self, look: &HostSnapshot) -> Vec<Missing> {
        // Who does not know which devices there are cannot say that one is gone.
        if look.problem.is_none() {
            self.welcome(look);
            self.miss(look);
            self.here = look.devices.iter().map(|device| self.known(device)).collect();
        }
        let forget_after = self.forget_after;
        self.gone.retain(|_, missing| look.ended.since(missing.since) < forget_after);
        while self.gone.len() > MOST {
            let oldest = self.gone.values().min_by_key(|missing| missing.since);
            let Some(name) = oldest.map(|missing| Arc::clone(&missing.name)) else { break };
            self.gone.remove(&name);
        }
        self.gone.values().cloned().collect()
    }

    /// Devices that are back, under their names or, as after a driver was loaded again, under others.
    fn welcome(&mut self, look: &HostSnapshot) {
        for device in look.devices.iter().filter(|device| !self.here.contains_key(&device.name)) {
            let name = &device.name;
            self.gone.retain(|old, missing| {
                let is_back = old == name || is_same(missing.guid, device.about.guid);
                if is_back {
                    let guid = missing.guid.map(tracing::field::display);
                    tracing::info!(device = &**old, guid, name = &**name, "the device is back");
                }
                !is_back
            });
        }
    }

    /// Devices that were there at the look before.
    fn miss(&mut self, look: &HostSnapshot) {
        for (name, known) in &self.here {
            let is_new = |device: &Device| !self.here.contains_key(&device.name);
            let is_it = |device: &Device| {
                device.name == *name
                    || known.instance.is_some() && device.instance == known.instance
                    || is_new(device) && is_same(known.guid, device.about.guid)
            };
            // A virtual function is handed to a guest or taken back as a matter of course.
            if known.is_virtual || look.devices.iter().any(is_it) {
                continue;
            }
            let guid = known.guid.map(tracing::field::display);
            tracing::warn!(
                device = &**name,
                guid,
                "the device is gone: its driver was unloaded, or the device failed or was removed"
            );
            let missing = Missing { name: Arc::clone(name), guid: known.guid, since: look.ended };
            self.gone.insert(Arc::clone(name), missing);
        }
    }

    /// What is to be remembered of a device; what cannot be read at present is as it was.
    fn known(&self, device: &Device) -> (Arc<str>, Known) {
        let before = self.here.get(&device.name);
        let known = Known {
            guid: device.about.guid.or(before.and_then(|before| before.guid)),
            instance: device.instance.or(before.and_then(|before| before.instance)),
            is_virtual: device.about.is_virtual
                || device.instance.is_none() && before.is_some_and(|before| before.is_virtual),
        };
        (Arc::clone(&device.name), known)
    }
}

/// Whether two GUIDs are one device's. Virtual functions to which nobody gave one have 0.
fn is_same(one: Option<Guid>, other: Option<Guid>) -> bool {
    one.is_some_and(|one| one != Guid(0)) && one == other
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_host::model::About;
    use rdma_host::testing::snapshot;

    const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

    /// A look at some time at devices with these names, GUIDs and numbers.
    fn look(hours: u64, devices: &[(&str, u64, u64)]) -> HostSnapshot {
        let mut look = snapshot("", Vec::new());
        let one = look.devices.remove(0);
        look.devices.extend(devices.iter().map(|&(name, guid, instance)| {
            let about = Arc::new(About { guid: Some(Guid(guid)), ..About::default() });
            Device { name: name.into(), about, instance: Some(instance), ..one.clone() }
        }));
        look.ended = Moment::default() + Duration::from_secs(hours * 3600);
        look
    }

    fn names(missing: &[Missing]) -> Vec<&str> {
        missing.iter().map(|missing| &*missing.name).collect()
    }

    #[test]
    fn a_device_that_goes_is_kept_until_it_is_back_or_forgotten() {
        let mut absences = Absences::new(WEEK);
        let all = [("mlx5_0", 7, 1), ("mlx5_1", 8, 2)];
        assert_eq!(absences.follow(&look(0, &all)), []);
        let gone = absences.follow(&look(1, &all[..1]));
        assert_eq!((names(&gone), gone[0].guid), (vec!["mlx5_1"], Some(Guid(8))));
        assert_eq!(names(&absences.follow(&look(24, &all[..1]))), ["mlx5_1"]);
        assert_eq!(absences.follow(&look(25, &all)), []);
        assert_eq!(names(&absences.follow(&look(26, &all[..1]))), ["mlx5_1"]);
        assert_eq!(names(&absences.follow(&look(26 + 167, &all[..1]))), ["mlx5_1"]);
        assert_eq!(absences.follow(&look(26 + 168, &all[..1])), []);
        assert_eq!(Absences::new(Duration::ZERO).follow(&look(0, &all)), []);
    }

    #[test]
    fn a_device_with_another_name_is_not_gone() {
        let mut absences = Absences::new(WEEK);
        absences.follow(&look(0, &[("mlx5_0", 7, 1), ("vf0", 0, 2)]));
        assert_eq!(absences.follow(&look(1, &[("ib0", 7, 1), ("vf1", 0, 2)])), []);
        // Loaded again, and renamed before the look; gone, and back under another name.
        assert_eq!(names(&absences.follow(&look(2, &[("mlx5_0", 7, 3)]))), ["vf1"]);
        assert_eq!(names(&absences.follow(&look(3, &[]))), ["mlx5_0", "vf1"]);
        assert_eq!(names(&absences.follow(&look(4, &[("ib0", 7, 4)]))), ["vf1"]);
        // Two devices of soft RoCE on one interface share its address.
        absences.follow(&look(5, &[("rxe0", 9, 5), ("rxe1", 9, 6)]));
        assert_eq!(names(&absences.follow(&look(6, &[("rxe1", 9, 6)]))), ["ib0", "rxe0", "vf1"]);
    }

    #[test]
    fn what_is_handed_over_or_cannot_be_listed_is_not_gone() {
        let mut absences = Absences::new(WEEK);
        let mut first = look(0, &[("mlx5_0", 7, 1), ("mlx5_1", 8, 2)]);
        let about = About { guid: Some(Guid(8)), is_virtual: true, ..About::default() };
        first.devices[1].about = Arc::new(about);
        absences.follow(&first);
        assert_eq!(absences.follow(&look(1, &[("mlx5_0", 7, 1)])), []);
        let mut blind = look(2, &[]);
        blind.problem = Some("Permission denied".to_owned());
        assert_eq!(absences.follow(&blind), []);
        assert_eq!(names(&absences.follow(&look(3, &[]))), ["mlx5_0"]);
    }

    #[test]
    fn names_that_do_not_come_back_are_not_remembered_for_ever() {
        let mut absences = Absences::new(WEEK);
        for device in 0..2 * MOST as u64 {
            absences.follow(&look(1, &[(&format!("vf{device}"), 0, device)]));
        }
        assert_eq!(absences.gone.len(), MOST);
    }
}
