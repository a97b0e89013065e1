//! The totals of the host's own ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use fabric_observation::host::HostPortTotals;
use ib_health::totals::{PortTotals, TotalsSeed, UNBOUNDED};
use ib_mad::{Guid, PortNumber};
use rdma_host::model::HostSnapshot;

/// How many ports are kept while not all of them are present: virtual functions of containers may get new names
/// each time, for years.
const MAX_PORTS: usize = 1024;

/// A port by device name, GUID and number: virtual functions may have no GUID, and a card that is replaced gets
/// the name of the one before.
type PortKey = (Arc<str>, Guid, PortNumber);

/// The totals of all ports that were ever seen.
#[derive(Debug, Default)]
pub(super) struct HostTotals {
    ports: BTreeMap<PortKey, PortTotals>,
    /// Totals of an earlier run. They are kept, for a device may get its name after it was first seen.
    seed: TotalsSeed,
}

impl HostTotals {
    /// Sets the totals of an earlier run, from which ports continue.
    pub(super) fn restore(&mut self, seed: TotalsSeed) {
        self.seed = seed;
    }

    /// Adds a reading, and returns the totals of its ports, by device and port. Each device has the id at its
    /// place in `ids`.
    pub(super) fn update(
        &mut self,
        snapshot: &HostSnapshot,
        ids: &[Guid],
    ) -> Vec<Vec<HostPortTotals>> {
        if self.ports.len() > MAX_PORTS {
            let present = |name: &str| snapshot.devices.iter().any(|device| *device.name == *name);
            self.ports.retain(|(name, ..), _| present(name));
        }
        let devices = snapshot.devices.iter().zip(ids).map(|(device, &id)| {
            let (name, guid) = (&device.name, device.info.guid.unwrap_or_default());
            let ports = device.ports.iter().map(|port| {
                let resume = || {
                    let known = self.seed.get(&(id, port.number));
                    known.map(PortTotals::resume).unwrap_or_default()
                };
                let key = (Arc::clone(name), guid, port.number);
                let totals = self.ports.entry(key).or_insert_with(resume);
                // It may carry Ethernet, and counts what it sends to itself: no link rate bounds it.
                let (reading, _) = totals.update(port.reading.clone(), UNBOUNDED);
                let (counters, reset_offsets) = (totals.status(), totals.reset_offsets().cloned());
                HostPortTotals { reading, counters, reset_offsets }
            });
            ports.collect()
        });
        devices.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_health::totals::PersistedTotals;
    use ib_mad::Counter;
    use rdma_host::testing::{port, snapshot};

    #[test]
    fn totals_are_per_port_and_survive_a_clear() {
        let mut totals = HostTotals::default();
        let mut read = |device: &str, raw| {
            let mut ports = vec![port(1)];
            ports[0].reading.set(Counter::SymbolErrors, raw);
            let read = &totals.update(&snapshot(device, ports), &[Guid(0xabc)])[0][0];
            (read.reading.get(Counter::SymbolErrors), read.counters.resets)
        };
        assert_eq!(read("mlx5_0", 10), (Some(10), 0));
        assert_eq!(read("mlx5_1", 3), (Some(3), 0));
        assert_eq!(read("mlx5_0", 2), (Some(12), 1));
        for other in 0..2 * MAX_PORTS {
            read(&format!("vf{other}"), 1);
        }
        assert!(totals.ports.len() <= MAX_PORTS + 1);
    }

    #[test]
    fn totals_resume_from_an_earlier_run() {
        let mut persisted = PersistedTotals::default();
        persisted.set(Counter::SymbolErrors, 140);
        persisted.set_offset(Counter::SymbolErrors, 100);
        let mut totals = HostTotals::default();
        totals.restore([((Guid(0xabc), 1), persisted)].into());
        let mut read = |device: &str, id, raw| {
            let mut ports = vec![port(1)];
            ports[0].reading.set(Counter::SymbolErrors, raw);
            let read = &totals.update(&snapshot(device, ports), &[Guid(id)])[0][0];
            let offsets = read.reset_offsets.as_ref();
            let offset = offsets.map(|offsets| offsets[Counter::SymbolErrors as usize]);
            (read.reading.get(Counter::SymbolErrors), offset)
        };
        assert_eq!(read("vf0", 1, 50), (Some(50), None), "another device");
        assert_eq!(read("mlx5_0", 0xabc, 50), (Some(150), Some(100)));
        assert_eq!(read("mlx5_0", 0xabc, 2), (Some(152), Some(150)));
        assert_eq!(read("ibp1s0", 0xabc, 60), (Some(160), Some(100)), "it was renamed");
    }
}
