//! A fabric whose nodes come and go, like the virtual functions of a host. Each node has one port, no cables,
//! and counters that can be computed from the number of the sweep.

use std::sync::Arc;

use fabric_observation::Observation;
use ib_fabric::assembly::{DiscoveredFabric, DiscoveredNode};
use ib_fabric::names::Naming;
use ib_fabric::{Fabric, PortMap, Snapshot};
use ib_health::Assessment;
use ib_health::assessment::PortAssessment;
use ib_mad::moment::Anchor;
use ib_mad::node::{NodeIdentity, NodeKind};
use ib_mad::port_state::SpeedFields;
use ib_mad::{Counter, Guid, Moment, PortKey, Reading};

use crate::{SWEEP, wall};

/// What it is called.
pub const NAME: &str = "herd";

/// What each port's errors grow by from one sweep to the next.
pub const GROWS_BY: u64 = 3;

/// The fabric of some nodes, the same one until other nodes are wanted.
#[derive(Default)]
pub struct Herd {
    nodes: Vec<u64>,
    fabric: Arc<Fabric>,
}

/// The port of a node.
pub fn end(node: u64) -> PortKey {
    PortKey::new(Guid(node), 1)
}

/// What the errors of a node's port have come to with a sweep.
pub fn total(node: u64, number: u64) -> u64 {
    node + GROWS_BY * number
}

impl Herd {
    /// A sweep that found these nodes, by its number; the exporter's first one was `first`.
    pub fn sweep(&mut self, nodes: &[u64], number: u64, first: u64) -> Observation {
        if self.nodes != nodes {
            self.nodes = nodes.to_vec();
            let nodes = nodes.iter().map(|node| found(*node)).collect();
            let found = DiscoveredFabric { nodes, ..DiscoveredFabric::default() };
            let names = Naming::default();
            self.fabric = Arc::new(Fabric::assemble(found, &names, Moment::default(), None));
        }
        let since = SWEEP * u32::try_from(number).unwrap();
        let at = Moment::default() + since;
        let mut snapshot =
            Snapshot::blank(Arc::clone(&self.fabric), Anchor { moment: at, wall: wall(since) });
        for index in self.fabric.port_indexes() {
            let PortKey { guid: Guid(node), .. } = self.fabric.port_key(index);
            let mut reading = Reading::empty(at);
            reading.set(Counter::SymbolErrors, total(node, number));
            snapshot.readings[index] = Some(reading);
        }
        let mut seen = Observation { fabric: NAME.into(), ..Observation::default() };
        let ports = PortMap::filled(self.fabric.ports.len(), PortAssessment::default());
        seen.assessment = Assessment { ports, ..Assessment::default() };
        seen.stats.sweeps = number + 1 - first;
        seen.snapshot = Some(snapshot.into());
        seen
    }
}

fn found(node: u64) -> DiscoveredNode {
    let identity = NodeIdentity {
        guid: Guid(node),
        system_guid: Guid(node),
        kind: NodeKind::Ca,
        description: format!("function {node}"),
        vendor_id: 0,
        device_id: 0,
        port_count: 1,
        enhanced_port0: false,
        speed_fields: SpeedFields::default(),
        reports_fec: false,
    };
    DiscoveredNode { identity, ports: Vec::new() }
}
