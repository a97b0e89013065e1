//! A dump as a sweep would have seen the fabric.

use std::sync::Arc;

use ib_fabric::assembly::{DiscoveredFabric, DiscoveredNode, DiscoveredPort};
use ib_fabric::front_panels::FrontPanels;
use ib_fabric::hardware::{Hardware, ReadAt};
use ib_fabric::names::Naming;
use ib_fabric::{Fabric, Snapshot};
use ib_mad::moment::Anchor;
use ib_mad::node::{NodeIdentity, NodeKind};
use ib_mad::port_state::{PhysicalState, PortState, PortStatus, SpeedFields};
use ib_mad::reading::Raw;
use ib_mad::smp::{is_aggregation_device, is_aggregation_node};
use ib_mad::{FrontPanel, Guid, Lid, Moment, PortKey, Reading};

use crate::contents::{NodeRecord, PortRecord};
use crate::dump::Dump;

/// Mellanox, where a file has no vendors.
const MELLANOX: u32 = 0x02c9;

impl Dump {
    /// The fabric and its counters. `previous` is the fabric of the dump before, whose nodes stay, as absent ones, if
    /// this one does not have them and they were not last found before the moment beside it. What the files do not say is
    /// absent: it is unknown, not zero.
    pub fn snapshot(
        &self,
        previous: Option<(&Fabric, Moment)>,
        naming: &Naming,
        anchor: Anchor,
    ) -> Snapshot<Raw> {
        let at = anchor.moment;
        let fabric = Arc::new(Fabric::assemble(self.discovered(), naming, at, previous));
        let mut snapshot = Snapshot::blank(Arc::clone(&fabric), anchor);
        let mut hardware = Hardware::default();
        for (guid, node) in &self.nodes {
            let known = Arc::make_mut(hardware.nodes.entry(*guid).or_default());
            known.general = node.general.map(|value| ReadAt { value, at });
            known.temperature = node.temperature.map(|value| ReadAt { value, at });
        }
        for (end, record) in &self.ports {
            if let Some(module) = &record.module {
                let read = ReadAt { value: **module, at };
                hardware.port_mut(*end).module = Some(Arc::new(read));
            }
            let Some(port) = fabric.find(*end) else { continue };
            let before = record.read_at().and_then(|read| self.taken_at.duration_since(read).ok());
            let at = at.before(before.unwrap_or_default());
            if let Some(physical) = record.sample.as_ref().and_then(|sample| sample.physical) {
                let read = ReadAt { value: physical, at };
                hardware.port_mut(*end).physical = Some(Arc::new(read));
            }
            let mut reading = Reading::empty(at);
            record.counters.copy_to(&mut reading);
            snapshot.readings[port] = Some(reading);
            snapshot.fec[port] = record.fec;
        }
        snapshot.hardware = Arc::new(hardware);
        snapshot
    }

    fn discovered(&self) -> DiscoveredFabric {
        let linked: std::collections::HashSet<_> =
            self.links.iter().flat_map(|(a, b)| [*a, *b]).collect();
        let node = |(guid, record): (&Guid, &NodeRecord)| {
            let ports = self.ports.range(PortKey::new(*guid, 0)..=PortKey::new(*guid, u8::MAX));
            let port = |(end, port): (&PortKey, &PortRecord)| DiscoveredPort {
                number: end.number,
                guid: port.guid.unwrap_or(*guid),
                status: status(record, port, linked.contains(end)),
                role: None,
            };
            let records = ports.clone().map(|(_, port)| port);
            let lid = record.lid.or_else(|| records.filter_map(|port| port.lid).find(|it| *it > 0));
            let mut ports: Vec<DiscoveredPort> = ports.map(port).collect();
            // Few files have port 0 of a switch, which has its LID.
            if let Some(lid) = lid.filter(|_| record.kind == Some(NodeKind::Switch)) {
                ports.retain(|port| port.number != 0);
                let status = Some(port0(lid));
                ports.push(DiscoveredPort { number: 0, guid: *guid, status, role: None });
            }
            DiscoveredNode { identity: identity(*guid, record), ports }
        };
        let mut front_panels = FrontPanels::default();
        for (end, record) in &self.ports {
            let kind = self.nodes.get(&end.guid).and_then(|node| node.kind);
            if let Some((info, kind)) = record.hierarchy.as_ref().zip(kind) {
                front_panels.insert(*end, FrontPanel::new(info, kind));
            }
        }
        DiscoveredFabric {
            nodes: self.nodes.iter().map(node).collect(),
            links: self.links.iter().copied().collect(),
            front_panels,
            ..DiscoveredFabric::default()
        }
    }
}

fn identity(guid: Guid, record: &NodeRecord) -> NodeIdentity {
    let vendor = if record.vendor_id == 0 { MELLANOX } else { record.vendor_id };
    let is_aggregation = is_aggregation_device(vendor, record.device_id)
        || is_aggregation_node(&record.description, vendor);
    let kind = match record.kind.unwrap_or(NodeKind::Ca) {
        NodeKind::Ca if is_aggregation => NodeKind::AggregationNode,
        kind => kind,
    };
    NodeIdentity {
        guid,
        system_guid: record.system_guid.unwrap_or(guid),
        kind,
        description: record.description.clone(),
        vendor_id: record.vendor_id,
        device_id: record.device_id,
        port_count: record.port_count,
        enhanced_port0: false,
        speed_fields: SpeedFields { extended: true, extended2: false },
        reports_fec: false,
    }
}

/// Port 0 of a switch, which is always up.
fn port0(lid: u16) -> PortStatus {
    PortStatus {
        lid: Lid(lid),
        state: PortState::Active,
        physical_state: PhysicalState::LinkUp,
        ..PortStatus::default()
    }
}

/// The state of a port. A cable is listed if its link is up; without one, only what the file says is known.
fn status(node: &NodeRecord, port: &PortRecord, has_link: bool) -> Option<PortStatus> {
    let state = port.state.or(has_link.then_some(PortState::Active))?;
    let usual =
        if state == PortState::Down { PhysicalState::Polling } else { PhysicalState::LinkUp };
    // A physical state without a state says nothing of the link.
    let physical_state = port.physical_state.filter(|_| port.state.is_some()).unwrap_or(usual);
    Some(PortStatus {
        lid: Lid(port.lid.or(node.lid).unwrap_or(0)),
        state,
        physical_state,
        width: port.width,
        speed: port.speed,
        widths_supported: port.widths_supported,
        widths_enabled: port.widths_enabled,
        speeds_supported: port.speeds_supported,
        speeds_enabled: port.speeds_enabled,
        ..PortStatus::default()
    })
}
