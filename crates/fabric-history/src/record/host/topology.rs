//! The fabric that a host's devices make. It stays the same `Arc` while they and their ports stay, so that a
//! comparison of pointers shows that nothing changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ib_fabric::Fabric;
use ib_fabric::assembly::{DiscoveredFabric, DiscoveredNode};
use ib_fabric::names::NodeNameMap;
use ib_mad::node::{NodeIdentity, NodeKind};
use ib_mad::port_state::{PortStatus, SpeedFields, physical, state};
use ib_mad::rate::SpeedSet;
use ib_mad::{Guid, Moment};
use rdma_host::model::{HostSnapshot, Port};

use super::RecordedDevice;

/// How long an absent device is kept.
const KEEP_ABSENT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Absent devices are removed while there are more than this: devices of containers and virtual machines may
/// have new names each time.
const MAX_DEVICES: usize = 1024;

/// Before any snapshot.
const LONG_AGO: Moment = Moment(0);

/// The present devices, and absent ones that may come back.
#[derive(Debug, Default)]
pub(super) struct HostTopology {
    pub(super) fabric: Arc<Fabric>,
    /// Names and port counts of the present devices.
    present: BTreeMap<Guid, (Arc<str>, u8)>,
    /// The beginning of the last snapshot.
    last_seen: Moment,
}

impl HostTopology {
    /// Updates the fabric from the recorded devices of a snapshot. Devices that a discovered fabric contains
    /// by now are removed.
    pub(super) fn update(
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
                DiscoveredFabric { nodes, allow_shared_names: true, ..DiscoveredFabric::default() };
            let names = NodeNameMap::default();
            let fabric = Fabric::assemble(found, &names, look.began, Some((&before, oldest)));
            self.fabric = Arc::new(fabric);
            self.present = present;
        }
        self.last_seen = look.began;
    }
}

/// A device as a node. It has the name that metrics use: node descriptions may be the same for all HCAs of a
/// host.
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
pub(super) fn status(port: &Port) -> Option<PortStatus> {
    let known = port.state?;
    // Some drivers report only one of the two.
    let has_link = known == state::ACTIVE || known == state::ACTIVE_DEFER;
    let physical_state = port.physical_state.or(has_link.then_some(physical::LINK_UP));
    Some(PortStatus {
        lid: port.lid.unwrap_or_default(),
        lmc: 0,
        sm_lid: port.sm_lid.unwrap_or_default(),
        is_sm: false,
        state: known,
        physical_state: physical_state.unwrap_or(0),
        width: port.width,
        speed: port.speed,
        widths_supported: 0,
        speeds_supported: SpeedSet::default(),
        widths_enabled: 0,
        speeds_enabled: SpeedSet::default(),
    })
}
