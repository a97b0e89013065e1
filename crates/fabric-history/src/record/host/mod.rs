//! The devices of the exporter's own host as a fabric: nodes with ports and without links, since a host does
//! not know where its cables lead. Its ports' events have the times that the kernel reported.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::event::{About, EventKind, NewEvent, flap_text};
use crate::record::events::{active_rate, rate_change};
use crate::settings::HOST_FABRIC;
use fabric_observation::host::{
    EventKey, HostObservation, HostPortEvents, HostPortTotals, PortEventCounts,
};
use fabric_observation::{Collector, Observation};
use ib_fabric::assembly::{DiscoveredFabric, DiscoveredNode};
use ib_fabric::names::Naming;
use ib_fabric::snapshot::PortRead;
use ib_fabric::{Fabric, Snapshot};
use ib_health::outage::Downtime;
use ib_health::{Assessment, PortAssessment};
use ib_mad::node::{NodeIdentity, NodeKind};
use ib_mad::port_event::PortEventKind;
use ib_mad::port_state::{PhysicalState, PortStatus, SpeedFields};
use ib_mad::rate::{Speed, Width};
use ib_mad::{Guid, Moment, PortKey};
use rdma_host::model::{Device, HostSnapshot, Port};

/// Converts observations of a host to observations of a fabric.
#[derive(Debug, Default)]
pub(super) struct HostFabric {
    topology: HostTopology,
    /// Ports and devices as they were last known: the first state is the reference for later ones.
    last: BTreeMap<EventKey, LastState>,
    /// The latest counter assessment of ports, including those of devices that are absent at the moment.
    assessment: HashMap<PortKey, PortAssessment>,
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
            .map(|(index, (device, &id))| {
                let totals = host.totals.get(index).map_or(&[][..], Vec::as_slice);
                RecordedDevice { id, device, totals }
            })
            .collect();
        self.topology.update(look, &devices, is_in_fabric);
        if self.topology.fabric.nodes.is_empty() {
            return None;
        }
        let snapshot = self.snapshot(look, &devices);
        let assessment = self.assessment(&devices);
        let events = self.events(&host.port_events, look, &snapshot);
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

    fn snapshot(&self, look: &HostSnapshot, devices: &[RecordedDevice<'_>]) -> Snapshot {
        let fabric = &self.topology.fabric;
        let mut snapshot = Snapshot::blank(Arc::clone(fabric), look.anchor);
        (snapshot.began, snapshot.ended) = (look.began, look.ended);
        snapshot.statuses.fill(PortRead::Unknown);
        for RecordedDevice { id, device, totals } in devices {
            let Some(node) = fabric.node_by_guid(*id) else { continue };
            snapshot.silent[node] = !device.is_readable;
            for (port, totals) in device.ports.iter().zip(*totals) {
                let Some(index) = fabric.find(PortKey::new(*id, port.number)) else { continue };
                snapshot.statuses[index] = status(port).map_or(PortRead::Unknown, PortRead::Ok);
                if !totals.reading.is_empty() {
                    snapshot.readings[index] = Some(totals.reading.clone());
                }
            }
        }
        snapshot
    }

    /// Counter status by port; that of an absent port is its last one.
    fn assessment(&mut self, devices: &[RecordedDevice<'_>]) -> Assessment {
        let fabric = &self.topology.fabric;
        self.assessment.retain(|end, _| fabric.find(*end).is_some());
        for RecordedDevice { id, device, totals } in devices {
            for (port, totals) in device.ports.iter().zip(*totals) {
                let found = self.assessment.entry(PortKey::new(*id, port.number)).or_default();
                found.counters = totals.counters;
                found.reset_offsets.clone_from(&totals.reset_offsets);
            }
        }
        let of = |port| self.assessment.get(&fabric.port_key(port)).cloned().unwrap_or_default();
        Assessment { ports: fabric.port_indexes().map(of).collect(), ..Assessment::default() }
    }

    /// The events since the snapshot before.
    fn events(
        &mut self,
        tally: &HostPortEvents,
        look: &HostSnapshot,
        snapshot: &Snapshot,
    ) -> Vec<NewEvent> {
        let mut events = Vec::new();
        let mut states = BTreeMap::new();
        for (place, now) in &tally.ports {
            let id = place.device;
            if snapshot.fabric.node_by_guid(id).is_none() {
                continue;
            }
            let port = place.port.and_then(|number| snapshot.fabric.find(PortKey::new(id, number)));
            let mut state = LastState {
                up: now.is_active,
                losses: now.losses,
                fatals: now.get(PortEventKind::DeviceFatal).0,
                rate: port.and_then(|port| active_rate(snapshot, port)),
            };
            if let Some(last) = self.last.get(place) {
                state.up = state.up.or(last.up);
                state.rate = state.rate.or(last.rate);
                let (about, name) = match port {
                    Some(port) => {
                        let end = snapshot.fabric.port_key(port);
                        (About::from(end), snapshot.fabric.port_label(port))
                    }
                    None => (About::Node(id), now.device.to_string()),
                };
                let mut push = |kind, text, at| {
                    let (place, detail) = (name.clone(), Value::Null);
                    events.push(NewEvent { at, kind, about, place, text, detail });
                };
                if port.is_some() {
                    push_port(last, &state, now, look, &mut push);
                } else if state.fatals > last.fatals {
                    let at = now.get(PortEventKind::DeviceFatal).1;
                    let at = at.map_or(look.anchor.wall, |at| at.wall);
                    push(EventKind::DeviceFatal, FATAL.into(), at);
                }
            }
            states.insert(*place, state);
        }
        self.last = states;
        events
    }
}

/// The text of a [`EventKind::DeviceFatal`] event.
const FATAL: &str = "device failed or is being removed (IBV_EVENT_DEVICE_FATAL)";

/// A device that is recorded, because no fabric contains it.
struct RecordedDevice<'a> {
    id: Guid,
    device: &'a Device,
    totals: &'a [HostPortTotals],
}

/// A port, or a device, as it was last known.
#[derive(Clone, Copy, Debug, Default)]
struct LastState {
    up: Option<bool>,
    losses: u64,
    fatals: u64,
    rate: Option<(Width, Speed)>,
}

fn push_port(
    was: &LastState,
    is: &LastState,
    tally: &PortEventCounts,
    look: &HostSnapshot,
    push: &mut dyn FnMut(EventKind, String, SystemTime),
) {
    let wall = |moment| look.anchor.wall_of(moment);
    let lost = wall(tally.lost);
    // The kernel may have reported when the port became Active; otherwise only this snapshot's time is known.
    let reported = tally.get(PortEventKind::PortActive).1.map(|reported| reported.moment);
    let up_again = wall(reported.filter(|at| *at > tally.lost).unwrap_or(look.began));
    if (was.up, is.up) == (Some(true), Some(false)) {
        push(EventKind::LinkDown, "not Active".into(), lost);
    }
    let losses = is.losses.saturating_sub(was.losses);
    if losses > 0 {
        let count = u32::try_from(losses).unwrap_or(u32::MAX);
        push(EventKind::Flap, flap_text(count, Downtime::default(), is.losses), lost);
    }
    if (was.up, is.up) == (Some(false), Some(true)) {
        push(EventKind::LinkUp, "Active again".into(), up_again);
    }
    if let Some((was, is)) = was.rate.zip(is.rate).filter(|(was, is)| was != is) {
        push(EventKind::RateChanged, rate_change(was, is), wall(look.began));
    }
}

/// How long an absent device is kept.
const KEEP_ABSENT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Absent devices are removed while there are more than this: devices of containers and virtual machines may
/// have new names each time.
const MAX_DEVICES: usize = 1024;

/// Before any snapshot.
const LONG_AGO: Moment = Moment(0);

/// The present devices, and absent ones that may return.
#[derive(Debug, Default)]
struct HostTopology {
    fabric: Arc<Fabric>,
    /// Names and port counts of the present devices.
    present: BTreeMap<Guid, (Arc<str>, u8)>,
    /// The beginning of the last snapshot.
    last_seen: Moment,
}

impl HostTopology {
    /// Updates the fabric from the recorded devices of a snapshot. Devices that a discovered fabric contains
    /// by now are removed.
    fn update(
        &mut self,
        look: &HostSnapshot,
        devices: &[RecordedDevice<'_>],
        is_in_fabric: impl Fn(Guid) -> bool,
    ) {
        let port_count = |recorded: &RecordedDevice<'_>| {
            let most = recorded.device.ports.iter().map(|port| port.number).max().unwrap_or(0);
            // A device that does not respond has no ports in a snapshot.
            let node = self.fabric.node_by_guid(recorded.id);
            most.max(node.map_or(0, |node| self.fabric.node(node).identity.port_count))
        };
        let present: BTreeMap<Guid, (Arc<str>, u8)> = (devices.iter())
            .map(|it| (it.id, (Arc::clone(&it.device.name), port_count(it))))
            .collect();
        if present != self.present {
            let mut before = (*self.fabric).clone();
            for node in &mut before.nodes {
                if is_in_fabric(node.identity.guid) {
                    node.last_found = LONG_AGO;
                } else if self.present.contains_key(&node.identity.guid) {
                    node.last_found = self.last_seen;
                }
            }
            let too_many = before.nodes.len() > MAX_DEVICES;
            let oldest = if too_many { look.began } else { look.began.before(KEEP_ABSENT) };
            let oldest = oldest.max(LONG_AGO + Duration::from_nanos(1));
            let nodes = present.iter().map(|(id, (name, ports))| node(*id, name, *ports)).collect();
            let found =
                DiscoveredFabric { nodes, is_one_host: true, ..DiscoveredFabric::default() };
            let names = Naming::default();
            let fabric = Fabric::assemble(found, &names, look.began, Some((&before, oldest)));
            self.fabric = Arc::new(fabric);
            self.present = present;
        }
        self.last_seen = look.began;
    }
}

/// A device as a node. It has the name that metrics use: node descriptions may be the same for all HCAs of a host.
fn node(guid: Guid, name: &str, ports: u8) -> DiscoveredNode {
    let identity = NodeIdentity {
        guid,
        system_guid: guid,
        kind: NodeKind::Ca,
        description: name.to_owned(),
        vendor_id: 0,
        device_id: 0,
        port_count: ports,
        enhanced_port0: false,
        speed_fields: SpeedFields::default(),
        reports_fec: false,
    };
    DiscoveredNode { identity, ports: Vec::new() }
}

/// A port's status in the fabric's terms; `None` if the kernel did not report its state.
fn status(port: &Port) -> Option<PortStatus> {
    let state = port.state?;
    // Some drivers report only one of the two.
    let physical_state = port.physical_state.or(state.is_active().then_some(PhysicalState::LinkUp));
    Some(PortStatus {
        lid: port.lid.unwrap_or_default(),
        sm_lid: port.sm_lid.unwrap_or_default(),
        state,
        physical_state: physical_state.unwrap_or_default(),
        width: port.width,
        speed: port.speed,
        ..PortStatus::default()
    })
}
