//! The totals of the host's own ports.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fabric::host::HostSnapshot;
use crate::fabric::{Guid, PortNumber};
use crate::health::findings::Counting;
use crate::health::totals::PortTotals;

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
}

impl HostTotals {
    /// Puts totals in the place of the raw values of a look, and tells how the counters fared, device
    /// by device and port by port.
    pub(super) fn take(&mut self, snapshot: &mut HostSnapshot) -> Vec<Vec<Counting>> {
        if self.ports.len() > MOST {
            let here = |name: &str| snapshot.devices.iter().any(|device| *device.name == *name);
            self.ports.retain(|(name, ..), _| here(name));
        }
        let mut all = Vec::new();
        for device in &mut snapshot.devices {
            let (name, guid) = (&device.name, device.about.guid);
            let of_port = device.ports.iter_mut().map(|port| {
                let place = (Arc::clone(name), guid, port.number);
                let totals = self.ports.entry(place).or_default();
                totals.take(&mut port.reading);
                totals.counting()
            });
            all.push(of_port.collect());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fabric::Counter;
    use crate::fabric::host::tests::{port, snapshot};

    #[test]
    fn a_ports_totals_are_its_own_and_survive_a_clear() {
        let mut totals = HostTotals::default();
        let mut look = |device: &str, raw| {
            let mut ports = vec![port(1)];
            ports[0].reading.set(Counter::SymbolErrors, raw);
            let mut snapshot = snapshot(device, ports);
            let counting = totals.take(&mut snapshot);
            let total = snapshot.devices[0].ports[0].reading.get(Counter::SymbolErrors);
            (total, counting[0][0].resets)
        };
        assert_eq!(look("mlx5_0", 10), (Some(10), 0));
        assert_eq!(look("mlx5_1", 3), (Some(3), 0));
        assert_eq!(look("mlx5_0", 2), (Some(12), 1));
        for other in 0..2 * MOST {
            look(&format!("vf{other}"), 1);
        }
        assert!(totals.ports.len() <= MOST + 1);
    }
}
