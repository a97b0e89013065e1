//! The totals of the host's own ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use ib_health::assessment::CounterStatus;
use ib_health::plausible::UNBOUNDED;
use ib_health::totals::{Before, Memory, PortTotals};
use ib_mad::{Guid, PortNumber};
use rdma_host::model::HostSnapshot;

/// How many ports are remembered while not all of them are there: virtual functions of containers may
/// get new names each time, for years.
const MOST: usize = 1024;

/// A port: virtual functions may have no GUID, and a card that is replaced gets the name of the one
/// before.
type Place = (Arc<str>, Guid, PortNumber);

/// The totals of all ports that were ever seen.
#[derive(Debug, Default)]
pub(super) struct HostTotals {
    ports: BTreeMap<Place, PortTotals>,
    /// What ports that were not seen yet had counted in an earlier watch. It stays: a device may get
    /// its name after it was first seen.
    memory: Memory,
}

/// How the counters of a look fared, device by device and port by port.
#[derive(Debug, Default)]
pub(super) struct Fared {
    pub(super) counting: Vec<Vec<CounterStatus>>,
    /// What counters had counted before they fell last.
    pub(super) befores: Vec<Vec<Option<Arc<Before>>>>,
}

impl HostTotals {
    /// Goes on where an earlier watch ended.
    pub(super) fn remember(&mut self, memory: Memory) {
        self.memory = memory;
    }

    /// Puts totals in the place of the raw values of a look, and tells how the counters fared. Each
    /// device is known by its place in `ids`.
    pub(super) fn take(&mut self, snapshot: &mut HostSnapshot, ids: &[Guid]) -> Fared {
        if self.ports.len() > MOST {
            let here = |name: &str| snapshot.devices.iter().any(|device| *device.name == *name);
            self.ports.retain(|(name, ..), _| here(name));
        }
        let mut all = Fared::default();
        for (device, &id) in snapshot.devices.iter_mut().zip(ids) {
            let (name, guid) = (&device.name, device.about.guid.unwrap_or_default());
            let (mut counting, mut befores) = (Vec::new(), Vec::new());
            for port in &mut device.ports {
                let resume = || {
                    let known = self.memory.get(&(id, port.number));
                    known.map(PortTotals::resume).unwrap_or_default()
                };
                let place = (Arc::clone(name), guid, port.number);
                let totals = self.ports.entry(place).or_insert_with(resume);
                // It may carry Ethernet, and counts what it sends to itself: no rate of a link bounds it.
                totals.take(&mut port.reading, UNBOUNDED);
                counting.push(totals.counting());
                befores.push(totals.before().cloned());
            }
            all.counting.push(counting);
            all.befores.push(befores);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ib_health::totals::Remembered;
    use ib_mad::Counter;
    use rdma_host::testing::{port, snapshot};

    #[test]
    fn a_ports_totals_are_its_own_and_survive_a_clear() {
        let mut totals = HostTotals::default();
        let mut look = |device: &str, raw| {
            let mut ports = vec![port(1)];
            ports[0].reading.set(Counter::SymbolErrors, raw);
            let mut snapshot = snapshot(device, ports);
            let fared = totals.take(&mut snapshot, &[Guid(0xabc)]);
            let total = snapshot.devices[0].ports[0].reading.get(Counter::SymbolErrors);
            (total, fared.counting[0][0].resets)
        };
        assert_eq!(look("mlx5_0", 10), (Some(10), 0));
        assert_eq!(look("mlx5_1", 3), (Some(3), 0));
        assert_eq!(look("mlx5_0", 2), (Some(12), 1));
        for other in 0..2 * MOST {
            look(&format!("vf{other}"), 1);
        }
        assert!(totals.ports.len() <= MOST + 1);
    }

    #[test]
    fn totals_go_on_where_an_earlier_watch_ended() {
        let mut remembered = Remembered::default();
        remembered.set(Counter::SymbolErrors, 140);
        remembered.set_before(Counter::SymbolErrors, 100);
        let mut totals = HostTotals::default();
        totals.remember([((Guid(0xabc), 1), remembered)].into());
        let mut look = |device: &str, id, raw| {
            let mut ports = vec![port(1)];
            ports[0].reading.set(Counter::SymbolErrors, raw);
            let mut snapshot = snapshot(device, ports);
            let fared = totals.take(&mut snapshot, &[Guid(id)]);
            let before = fared.befores[0][0].as_ref().map(|of| of[Counter::SymbolErrors as usize]);
            (snapshot.devices[0].ports[0].reading.get(Counter::SymbolErrors), before)
        };
        assert_eq!(look("vf0", 1, 50), (Some(50), None), "another one");
        assert_eq!(look("mlx5_0", 0xabc, 50), (Some(150), Some(100)));
        assert_eq!(look("mlx5_0", 0xabc, 2), (Some(152), Some(150)));
        assert_eq!(look("ibp1s0", 0xabc, 60), (Some(160), Some(100)), "it got another name");
    }
}
