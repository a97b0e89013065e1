//! Error counters of planes that are those of the whole port.
//!
//! The traffic of a port of an SMI device is that of its plane. Its error counters are the sum of all planes before
//! Linux 6.13 (kernel commit af58db354865: PPCNT was read with plane 0): equal on all ports, and equal to those of the
//! parent. They are left out, or their sum over the planes would be a multiple of the truth. Kernels of distributions
//! have the fix under other versions, so the values decide: once a plane has counted by itself, its counters stay.

use std::collections::BTreeMap;
use std::sync::Arc;

use ib_mad::counter::CounterKind;
use ib_mad::{Counter, PortNumber, Reading, reading::Raw};

use crate::model::{Device, PortKind};

/// In how many reads in sequence the values must differ: once may be a clear between the reads of two ports.
const READS: u8 = 2;

/// What is known of the SMI devices, by name.
#[derive(Debug, Default)]
pub(super) struct Planes(BTreeMap<Arc<str>, SmiErrors>);

/// The error counters of an SMI device and of its parent.
#[derive(Debug, Default)]
struct SmiErrors {
    instance: Option<u64>,
    /// As they were last read; `None` is the parent.
    latest: BTreeMap<Option<PortNumber>, Reading<Raw>>,
    /// How many reads in sequence said that a plane counts by itself.
    differ: u8,
}

impl Planes {
    /// Leaves out the error counters of planes, unless they are known to be their own.
    pub fn remove_copies(&mut self, devices: &mut [Device]) {
        self.0.retain(|name, _| devices.iter().any(|device| device.name == *name));
        for index in 0..devices.len() {
            let device = &devices[index];
            if device.kind != PortKind::Smi {
                continue;
            }
            let parent = devices.iter().find(|it| Some(&it.name) == device.parent.as_ref());
            let errors = self.0.entry(Arc::clone(&device.name)).or_default();
            if errors.have_copies(device, parent) {
                for port in &mut devices[index].ports {
                    errors_of(&port.reading).for_each(|counter| port.reading.remove(counter));
                }
            }
        }
    }
}

/// The counters that a plane may not have by itself.
fn errors_of(reading: &Reading<Raw>) -> impl Iterator<Item = Counter> + use<> {
    let present = reading.clone();
    let is_error =
        move |counter: &Counter| present.get(*counter).is_some() && !is_traffic(*counter);
    Counter::all().filter(is_error)
}

fn is_traffic(counter: Counter) -> bool {
    counter.row().kind == CounterKind::Traffic
}

impl SmiErrors {
    /// Whether the values of the planes may be copies of one counter, as far as all reads say.
    fn have_copies(&mut self, device: &Device, parent: Option<&Device>) -> bool {
        if self.instance != device.instance {
            *self = SmiErrors { instance: device.instance, ..SmiErrors::default() };
        }
        if self.differ >= READS {
            return false;
        }
        let planes = device.ports.iter().map(|port| (Some(port.number), &port.reading));
        let parent = parent.and_then(|parent| parent.ports.first());
        let parent = parent.map(|port| (None, &port.reading));
        let now: BTreeMap<_, _> =
            planes.chain(parent).map(|(key, reading)| (key, reading.clone())).collect();
        // What was not read again, as of a slow device, says nothing new.
        if now
            .iter()
            .any(|(key, reading)| self.latest.get(key).is_some_and(|it| it.at >= reading.at))
        {
            return true;
        }
        self.differ = if self.is_no_copy(&now) { self.differ + 1 } else { 0 };
        self.latest = now;
        self.differ < READS
    }

    /// Whether a counter is below the value that another one had at an earlier read, and still has: copies are read one
    /// after the other, so a later one is never below an earlier one.
    fn is_no_copy(&self, now: &BTreeMap<Option<PortNumber>, Reading<Raw>>) -> bool {
        let counters = || Counter::all().filter(|counter| !is_traffic(*counter));
        let is_below = |reading: &Reading<Raw>, other: Option<PortNumber>, counter| {
            let values = |of: &BTreeMap<_, Reading<Raw>>| of.get(&other)?.get(counter);
            let (Some(before), Some(still)) = (values(&self.latest), values(now)) else {
                return false;
            };
            reading.get(counter).is_some_and(|value| value < before && before <= still)
        };
        now.values().any(|reading| {
            let others = || self.latest.keys().copied();
            counters().any(|counter| others().any(|other| is_below(reading, other, counter)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::testing::port;
    use ib_mad::Moment;

    const ERRORS: Counter = Counter::SymbolErrors;

    /// Reads a parent and its planes, with these counts of symbol errors, and returns what is left of those of the
    /// planes; and whether their traffic is.
    fn read(planes: &mut Planes, second: u64, parent: u64, own: [u64; 4]) -> Vec<Option<u64>> {
        let with = |number, kind, errors| {
            let mut port = port(number);
            port.kind = kind;
            port.reading = Reading::empty(Moment::default() + Duration::from_secs(second));
            port.reading.set(ERRORS, errors);
            port.reading.set(Counter::XmitData, 5);
            port
        };
        let device = |name: &str, kind, ports| Device {
            name: name.into(),
            kind,
            ports,
            instance: Some(1),
            ..Device::default()
        };
        let parent =
            device("mlx5_0", PortKind::Physical, vec![with(1, PortKind::Physical, parent)]);
        let ports = (1..).zip(own).map(|(number, errors)| with(number, PortKind::Smi, errors));
        let smi = device("planes", PortKind::Smi, ports.collect());
        let mut devices = [parent, Device { parent: Some("mlx5_0".into()), ..smi }];
        planes.remove_copies(&mut devices);
        let [parent, smi] = devices;
        assert!(parent.ports[0].reading.get(ERRORS).is_some(), "those of the parent stay");
        assert!(smi.ports.iter().all(|port| port.reading.get(Counter::XmitData) == Some(5)));
        smi.ports.iter().map(|port| port.reading.get(ERRORS)).collect()
    }

    #[test]
    fn copies_are_left_out_also_while_they_grow() {
        let mut planes = Planes::default();
        let reads = [
            (7, [7, 7, 7, 7]),
            (9, [9, 10, 10, 12]),
            (12, [13, 15, 15, 15]),
            (40, [50, 60, 60, 60]),
            // Cleared between two ports, and then at rest.
            (60, [60, 0, 0, 1]),
            (2, [2, 2, 2, 2]),
            (2, [2, 2, 2, 2]),
        ];
        for (second, (parent, own)) in (1..).zip(reads) {
            assert_eq!(read(&mut planes, second, parent, own), [None; 4], "{second}");
        }
    }

    #[test]
    fn planes_that_count_by_themselves_are_reported_from_then_on() {
        let mut planes = Planes::default();
        assert_eq!(read(&mut planes, 1, 0, [0; 4]), [None; 4], "none has counted yet");
        for second in 2..4 {
            assert_eq!(read(&mut planes, second, 3, [0, 3, 0, 0]), [None; 4]);
        }
        let own = [Some(0), Some(3), Some(0), Some(0)];
        assert_eq!(read(&mut planes, 4, 3, [0, 3, 0, 0]), own);
        assert_eq!(read(&mut planes, 5, 4, [1; 4]), [Some(1); 4], "also while they are equal");
    }

    #[test]
    fn read_that_is_published_again_says_nothing() {
        let mut planes = Planes::default();
        for _ in 0..9 {
            assert_eq!(read(&mut planes, 1, 3, [0, 3, 0, 0]), [None; 4]);
        }
    }
}
