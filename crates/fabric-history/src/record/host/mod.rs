//! The devices of the exporter's own host, as what is recorded of a fabric: nodes with ports and no
//! cables, for where those lead no host knows.

mod ports;
mod shape;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::Event;
use crate::settings::HOST_FABRIC;
use fabric_observation::host::HostObservation;
use fabric_observation::{Collector, Observation};
use ib_fabric::Snapshot;
use ib_fabric::snapshot::PortRead;
use ib_fabric::topology::End;
use ib_health::{Findings, PortFindings};
use ib_mad::Guid;
use rdma_host::model::{Device, HostSnapshot};

use ports::Ports;
use shape::Shape;

/// What is remembered of a host's devices from one look to the next.
#[derive(Debug, Default)]
pub(super) struct HostDevices {
    shape: Shape,
    ports: Ports,
    /// How the counters of ports fared that are not always there.
    found: HashMap<End, PortFindings>,
}

impl HostDevices {
    /// A look as the sweep of a fabric, and what ports told that no sweep does. `None` where there is
    /// nothing to record: no device yet, or none that a fabric does not tell of.
    pub(super) fn follow(
        &mut self,
        seen: &HostObservation,
        fabrics: &[Arc<Observation>],
    ) -> Option<(Observation, Vec<Event>)> {
        let look = seen.snapshot.as_ref()?;
        // Until each fabric was swept nobody knows whether a device is in one.
        let swept: Option<Vec<&Snapshot>> =
            fabrics.iter().map(|fabric| fabric.snapshot.as_ref()).collect();
        let swept = swept?;
        let is_told = |guid| swept.iter().any(|sweep| sweep.fabric.node_by_guid(guid).is_some());
        let ours: Vec<Ours<'_>> = (look.devices.iter().zip(&seen.ids).enumerate())
            .filter(|(_, (_, id))| !is_told(**id))
            .map(|(at, (device, &id))| Ours { at, id, device })
            .collect();
        self.shape.follow(look, &ours, is_told);
        if self.shape.fabric.nodes.is_empty() {
            return None;
        }
        let snapshot = self.snapshot(look, &ours);
        let findings = self.findings(seen, &ours);
        let told = self.ports.follow(&seen.tally, look, &snapshot);
        let mut observation = Observation {
            fabric: HOST_FABRIC.to_owned(),
            interval: seen.interval,
            snapshot: Some(snapshot),
            findings,
            ..Observation::default()
        };
        observation.tally.sweeps = seen.looks;
        // The kernel always answers; a device that does not is told by itself.
        for collector in Collector::ALL {
            observation.tally.set_success(collector, true);
        }
        Some((observation, told))
    }

    fn snapshot(&self, look: &HostSnapshot, ours: &[Ours<'_>]) -> Snapshot {
        let fabric = &self.shape.fabric;
        let mut snapshot = Snapshot::blank(Arc::clone(fabric), look.anchor);
        (snapshot.began, snapshot.ended) = (look.began, look.ended);
        snapshot.statuses.fill(PortRead::Unknown);
        for Ours { id, device, .. } in ours {
            let Some(node) = fabric.node_by_guid(*id) else { continue };
            snapshot.silent[node.0 as usize] = !device.answers;
            for port in &device.ports {
                let Some(place) = fabric.find((*id, port.number)) else { continue };
                let place = place.0 as usize;
                snapshot.statuses[place] =
                    shape::status(port).map_or(PortRead::Unknown, PortRead::Ok);
                if !port.reading.is_empty() {
                    snapshot.readings[place] = Some(port.reading.clone());
                }
            }
        }
        snapshot
    }

    /// How counters fared; those of a port that is not there as they did when it was.
    fn findings(&mut self, seen: &HostObservation, ours: &[Ours<'_>]) -> Findings {
        let fabric = &self.shape.fabric;
        self.found.retain(|end, _| fabric.find(*end).is_some());
        for Ours { at, id, device } in ours {
            let counting = seen.counting.get(*at).into_iter().flatten();
            let befores = seen.befores.get(*at).into_iter().flatten();
            for ((port, counting), before) in device.ports.iter().zip(counting).zip(befores) {
                let found = self.found.entry((*id, port.number)).or_default();
                (found.counting, found.before) = (*counting, before.clone());
            }
        }
        let of = |port| self.found.get(&fabric.end(port)).cloned().unwrap_or_default();
        Findings { ports: fabric.port_indexes().map(of).collect(), ..Findings::default() }
    }
}

/// A device that is recorded.
struct Ours<'a> {
    /// Its place in the look.
    at: usize,
    id: Guid,
    device: &'a Device,
}
