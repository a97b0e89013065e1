//! The devices of the exporter's own host as a fabric: nodes with ports and without links, since a host does
//! not know where its cables lead.

mod port_events;
#[cfg(test)]
mod tests;
mod topology;

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::NewEvent;
use crate::settings::HOST_FABRIC;
use fabric_observation::host::HostObservation;
use fabric_observation::{Collector, Observation};
use ib_fabric::Snapshot;
use ib_fabric::snapshot::PortRead;
use ib_fabric::topology::End;
use ib_health::{Assessment, PortAssessment};
use ib_mad::Guid;
use rdma_host::model::{Device, HostSnapshot};

use port_events::HostEventDetector;
use topology::HostTopology;

/// Converts observations of a host to observations of a fabric.
#[derive(Debug, Default)]
pub(super) struct HostFabric {
    topology: HostTopology,
    events: HostEventDetector,
    /// The latest counter assessment of ports, including those of devices that are absent at the moment.
    assessment: HashMap<End, PortAssessment>,
}

impl HostFabric {
    /// A host observation as that of a fabric, with events that the kernel reported between two sweeps.
    /// `None` while there is nothing to record: no device, or only devices that one of `fabrics` contains.
    pub(super) fn update(
        &mut self,
        host: &HostObservation,
        fabrics: &[Arc<Observation>],
    ) -> Option<(Observation, Vec<NewEvent>)> {
        let look = host.snapshot.as_ref()?;
        // Whether a fabric contains a device is only known when all fabrics were swept.
        let swept: Option<Vec<&Snapshot>> =
            fabrics.iter().map(|fabric| fabric.snapshot.as_deref()).collect();
        let swept = swept?;
        let is_in_fabric =
            |guid| swept.iter().any(|sweep| sweep.fabric.node_by_guid(guid).is_some());
        let devices: Vec<RecordedDevice<'_>> = (look.devices.iter().zip(&host.ids).enumerate())
            .filter(|(_, (_, id))| !is_in_fabric(**id))
            .map(|(index, (device, &id))| RecordedDevice { index, id, device })
            .collect();
        self.topology.update(look, &devices, is_in_fabric);
        if self.topology.fabric.nodes.is_empty() {
            return None;
        }
        let snapshot = self.snapshot(host, look, &devices);
        let assessment = self.assessment(host, &devices);
        let events = self.events.update(&host.port_events, look, &snapshot);
        let mut observation = Observation {
            fabric: HOST_FABRIC.to_owned(),
            interval: host.interval,
            snapshot: Some(Arc::new(snapshot)),
            assessment,
            ..Observation::default()
        };
        observation.stats.sweeps = host.reads;
        // The kernel always responds; a device that does not is a node that does not.
        for collector in Collector::ALL {
            observation.stats.set_success(collector, true);
        }
        Some((observation, events))
    }

    fn snapshot(
        &self,
        host: &HostObservation,
        look: &HostSnapshot,
        devices: &[RecordedDevice<'_>],
    ) -> Snapshot {
        let fabric = &self.topology.fabric;
        let mut snapshot = Snapshot::blank(Arc::clone(fabric), look.anchor);
        (snapshot.began, snapshot.ended) = (look.began, look.ended);
        snapshot.statuses.fill(PortRead::Unknown);
        for RecordedDevice { index, id, device } in devices {
            let Some(node) = fabric.node_by_guid(*id) else { continue };
            snapshot.silent[node.0 as usize] = !device.is_readable;
            let totals = host.totals.get(*index).into_iter().flatten();
            for (port, totals) in device.ports.iter().zip(totals) {
                let Some(index) = fabric.find((*id, port.number)) else { continue };
                let index = index.0 as usize;
                snapshot.statuses[index] =
                    topology::status(port).map_or(PortRead::Unknown, PortRead::Ok);
                if !totals.reading.is_empty() {
                    snapshot.readings[index] = Some(totals.reading.clone());
                }
            }
        }
        snapshot
    }

    /// Counter status by port; that of an absent port is its last one.
    fn assessment(&mut self, host: &HostObservation, devices: &[RecordedDevice<'_>]) -> Assessment {
        let fabric = &self.topology.fabric;
        self.assessment.retain(|end, _| fabric.find(*end).is_some());
        for RecordedDevice { index, id, device } in devices {
            let totals = host.totals.get(*index).into_iter().flatten();
            for (port, totals) in device.ports.iter().zip(totals) {
                let found = self.assessment.entry((*id, port.number)).or_default();
                found.counters = totals.counters;
                found.reset_offsets.clone_from(&totals.reset_offsets);
            }
        }
        let of = |port| self.assessment.get(&fabric.end(port)).cloned().unwrap_or_default();
        Assessment { ports: fabric.port_indexes().map(of).collect(), ..Assessment::default() }
    }
}

/// A device that is recorded, because no fabric contains it.
struct RecordedDevice<'a> {
    /// Its index among the snapshot's devices.
    index: usize,
    id: Guid,
    device: &'a Device,
}
