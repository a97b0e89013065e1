//! The fabric that a host's devices make: the same one for as long as they and their ports stay, so
//! that nobody has to look whether anything is new.

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

use super::Ours;

/// How long a device that is gone is waited for.
const WAITED_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// How many devices there may be while not all of them are there: those of containers and virtual
/// machines may get new names each time.
const MOST: usize = 1024;

/// Before anything was seen.
const LONG_AGO: Moment = Moment(0);

/// The devices, and those that may come back.
#[derive(Debug, Default)]
pub(super) struct Shape {
    pub(super) fabric: Arc<Fabric>,
    /// Those that are there.
    here: BTreeMap<Guid, (Arc<str>, u8)>,
    /// When they were last seen.
    seen: Moment,
}

impl Shape {
    /// Follows a look, of which these are to be recorded; what a fabric tells of by now is forgotten.
    pub(super) fn follow(
        &mut self,
        look: &HostSnapshot,
        ours: &[Ours<'_>],
        is_told: impl Fn(Guid) -> bool,
    ) {
        let ports = |ours: &Ours<'_>| {
            let most = ours.device.ports.iter().map(|port| port.number).max().unwrap_or(0);
            // A device that does not answer has no ports in a look.
            let node = self.fabric.node_by_guid(ours.id);
            most.max(node.map_or(0, |node| self.fabric.node(node).identity.port_count))
        };
        let here: BTreeMap<Guid, (Arc<str>, u8)> =
            ours.iter().map(|it| (it.id, (Arc::clone(&it.device.name), ports(it)))).collect();
        if here != self.here {
            let mut before = (*self.fabric).clone();
            for node in &mut before.nodes {
                if is_told(node.identity.guid) {
                    node.last_found = LONG_AGO;
                } else if self.here.contains_key(&node.identity.guid) {
                    node.last_found = self.seen;
                }
            }
            let too_many = before.nodes.len() > MOST;
            let forget = if too_many { look.began } else { look.began.before(WAITED_FOR) };
            let forget = forget.max(LONG_AGO + Duration::from_nanos(1));
            let nodes = here.iter().map(|(id, (name, ports))| node(*id, name, *ports)).collect();
            let found =
                DiscoveredFabric { nodes, allow_shared_names: true, ..DiscoveredFabric::default() };
            let names = NodeNameMap::default();
            let fabric = Fabric::assemble(found, &names, look.began, Some((&before, forget)));
            self.fabric = Arc::new(fabric);
            self.here = here;
        }
        self.seen = look.began;
    }
}

/// A device. What metrics call it names it: descriptions may be the same for all HCAs of a host.
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

/// A port's state in the fabric's terms; `None` where the kernel did not tell it.
pub(super) fn status(port: &Port) -> Option<PortStatus> {
    let known = port.state?;
    // Not each driver tells both.
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
