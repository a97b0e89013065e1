//! The topology of a past sweep, and the states of its nodes and ports.

use std::collections::HashMap;
use std::sync::Arc;

use super::sweep::Sweep;
use crate::file::record_kind::State;
use crate::file::timeline::{NodeTimeline, Timeline};
use crate::file::totals::TotalsTable;
use ib_fabric::assembly::{DiscoveredFabric, DiscoveredNode, DiscoveredPort};
use ib_fabric::front_panels::FrontPanels;
use ib_fabric::names::Naming;
use ib_fabric::snapshot::PortRead;
use ib_fabric::topology::{Link, Presence};
use ib_fabric::{Fabric, NodeIndex, PortIndex, PortMap, Snapshot};
use ib_mad::node::{NodeIdentity, NodeKind};
use ib_mad::port_state::{PhysicalState, PortState, PortStatus, SpeedFields};
use ib_mad::{Moment, PortKey, PortNumber, Reading};

/// The ids of ports in the file, by their index in the fabric that was made of it.
type PortIds = PortMap<Option<u32>>;

/// The fabric of a past sweep, and the ids that its nodes and ports have in the file.
pub(super) struct PastTopology {
    pub fabric: Arc<Fabric>,
    pub ports: PortIds,
    /// The indexes of nodes by their ids.
    pub nodes: HashMap<u32, NodeIndex>,
}

/// The fabric as a sweep found it; `now` is the present one.
pub(super) fn assemble(timeline: &Timeline, began: i64, now: Option<&Fabric>) -> PastTopology {
    let mut found = DiscoveredFabric::default();
    let mut numbers: HashMap<u32, Vec<(PortNumber, u32)>> = HashMap::new();
    for (id, port) in timeline.ports.iter() {
        numbers.entry(port.node).or_default().push((port.number, id));
    }
    for (id, node) in timeline.nodes.iter().filter(|(_, node)| node.is_present(began)) {
        let ports = numbers.get(&id).map_or(&[][..], Vec::as_slice);
        let identity = identity(node, began, ports, now);
        let port = |&(number, id): &(PortNumber, u32)| {
            let key = PortKey::new(node.guid, number);
            let known = now.and_then(|now| Some(now.port(now.find(key)?)));
            DiscoveredPort {
                number,
                guid: known.map_or(node.guid, |known| known.guid),
                status: status(timeline.port(id, began)),
                role: known.and_then(|known| known.role),
            }
        };
        let ports = ports.iter().map(port).collect();
        found.nodes.push(DiscoveredNode { identity, ports });
    }
    for cable in timeline.cables.iter().filter(|cable| cable.is_present(began)) {
        let [low, high] = cable.ends.map(|end| timeline.end(end));
        let Some((low, high)) = low.zip(high) else { continue };
        found.links.push((low, high));
        found.links.extend(other_planes(now, low, high));
    }
    if let Some(now) = now {
        let mut panels = FrontPanels::default();
        now.front_panels.iter().for_each(|(key, panel)| panels.insert(key, Some(*panel)));
        found.front_panels = panels;
        found.kind = now.kind;
        found.local_port = now.local_port.map(|port| now.port_key(port));
    }
    let mut fabric = Fabric::assemble(found, &Naming::default(), Moment::default(), None);
    let mut nodes = HashMap::new();
    for (id, node) in timeline.nodes.iter().filter(|(_, node)| node.is_present(began)) {
        let Some(index) = fabric.node_by_guid(node.guid) else { continue };
        nodes.insert(id, index);
        let (name, host) = node.name(began);
        let rail = now.and_then(|now| now.node(now.node_by_guid(node.guid)?).rail.clone());
        let known = &mut fabric.nodes[index];
        (known.name, known.host, known.rail) = (name.to_owned(), host.map(str::to_owned), rail);
        if timeline.node(id, began).is_absent() {
            known.presence = Presence::Absent;
        }
    }
    let mut ports = PortMap::filled(fabric.ports.len(), None);
    for (id, _) in timeline.ports.iter() {
        if let Some(port) = timeline.end(id).and_then(|key| fabric.find(key)) {
            ports[port] = Some(id);
        }
    }
    // A link that is down leads to where its cable last led.
    let links: Vec<Link> = fabric.links().collect();
    for Link { low, high } in links {
        let is_down = ports[low].is_some_and(|id| timeline.port(id, began).up() == Some(false));
        for end in [low, high].into_iter().filter(|_| is_down) {
            if let Some(peer) = &mut fabric.ports[end].peer {
                peer.connected = false;
            }
        }
    }
    PastTopology { fabric: Arc::new(fabric), ports, nodes }
}

/// The links of the other planes of a cable: the file has the cable once, and the states of all ports.
fn other_planes(now: Option<&Fabric>, low: PortKey, high: PortKey) -> Vec<(PortKey, PortKey)> {
    let planes = || {
        let now = now?;
        let lead = Link { low: now.find(low)?, high: now.find(high)? };
        let whole = now.aggregated_link(lead.low).filter(|whole| whole.lead() == lead)?;
        let links = whole.planes.iter().map(|plane| plane.link).filter(|link| *link != lead);
        Some(links.map(|link| (now.port_key(link.low), now.port_key(link.high))).collect())
    };
    planes().unwrap_or_default()
}

/// What identifies a node: as it is now, or what the file says.
fn identity(
    node: &NodeTimeline,
    began: i64,
    ports: &[(PortNumber, u32)],
    now: Option<&Fabric>,
) -> NodeIdentity {
    let description = node.name(began).0.to_owned();
    let last_port = ports.iter().map(|(number, _)| *number).max().unwrap_or(0);
    let known = now.and_then(|now| Some(&now.node(now.node_by_guid(node.guid)?).identity));
    if let Some(known) = known {
        let port_count = known.port_count.max(last_port);
        return NodeIdentity { description, port_count, ..known.clone() };
    }
    NodeIdentity {
        guid: node.guid,
        system_guid: node.guid,
        kind: NodeKind::from_label(&node.kind).unwrap_or(NodeKind::Ca),
        description,
        vendor_id: 0,
        device_id: 0,
        port_count: last_port,
        enhanced_port0: false,
        speed_fields: SpeedFields::default(),
        reports_fec: false,
    }
}

/// The state of a port; of one without a link the file does not say which.
fn status(state: State) -> Option<PortStatus> {
    let (width, speed) = state.runs().unzip();
    let (port, physical_state) = match (state.runs(), state.up()) {
        (_, Some(true)) => (PortState::Active, PhysicalState::LinkUp),
        // Trained, and not configured yet.
        (Some(_), _) => (PortState::Init, PhysicalState::LinkUp),
        (None, Some(false)) => (PortState::Down, PhysicalState::Polling),
        (None, None) => return None,
    };
    Some(PortStatus { state: port, physical_state, width, speed, ..PortStatus::default() })
}

impl PastTopology {
    /// The snapshot of the sweep, without counters.
    pub fn snapshot(&self, timeline: &Timeline, sweep: Sweep, now: Option<&Snapshot>) -> Snapshot {
        let Sweep { began, anchor } = sweep;
        let mut snapshot = Snapshot::blank(Arc::clone(&self.fabric), anchor);
        snapshot.began = sweep.moment(crate::time_of(began));
        for (&id, &index) in &self.nodes {
            snapshot.silent[index] = timeline.is_up(id, began) == Some(false);
            // The tick of PortXmitWait is a property of the device.
            let guid = self.fabric.node(index).identity.guid;
            snapshot.ticks[index] = now.and_then(|now| now.ticks[now.fabric.node_by_guid(guid)?]);
        }
        for port in self.fabric.port_indexes() {
            let state = self.ports[port].map(|id| timeline.port(id, began));
            let read = state.and_then(status).map_or(PortRead::Unknown, PortRead::Ok);
            snapshot.statuses[port] = read;
        }
        snapshot
    }

    /// Adds the totals of error counters. A node that did not respond has none, as then.
    pub fn count(&self, totals: &TotalsTable, snapshot: &mut Snapshot) {
        let is_up = |port| snapshot.is_up(self.fabric.port(port).node);
        let ports: Vec<PortIndex> =
            self.fabric.port_indexes().filter(|port| is_up(*port)).collect();
        for port in ports {
            let Some(found) = self.ports[port].and_then(|id| totals.get(id)) else { continue };
            let mut reading = Reading::empty(snapshot.ended);
            found.iter().for_each(|(counter, total)| reading.set(counter, total));
            // What is recorded are totals.
            let reading = reading.assume_totals();
            snapshot.readings[port] = Some(reading).filter(|reading| !reading.is_empty());
        }
    }
}
