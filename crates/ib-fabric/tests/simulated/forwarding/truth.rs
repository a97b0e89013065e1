//! Routes and users of links by the tables of the simulation, found by following them from every host.

use std::collections::{BTreeMap, BTreeSet};

use ib_fabric::forwarding::link_users::{DirectionUsers, HostSet};
use ib_fabric::forwarding::route::Hop;
use ib_fabric::topology::Link;
use ib_fabric::{Fabric, NodeIndex, PortIndex};
use ib_mad::{Lid, NodeKind, PortKey};
use ib_sim::net::{NodeId, PortId};
use ib_sim::simulation::Simulation;

/// The simulation's port of a port.
pub fn sim_port(simulation: &Simulation, fabric: &Fabric, port: PortIndex) -> PortId {
    let PortKey { guid, number } = fabric.port_key(port);
    let net = simulation.net();
    let node = net.node_ids().find(|node| net.node(*node).guid == guid).unwrap();
    net.port_by_number(node, number).unwrap()
}

fn key(simulation: &Simulation, port: PortId) -> PortKey {
    let net = simulation.net();
    PortKey::new(net.node_of(port).guid, net.port(port).number)
}

/// The ports that packets leave by and come in at, in turn, from a switch on; `None` if they do not arrive.
pub fn ports_from(simulation: &Simulation, switch: NodeId, lid: Lid) -> Option<Vec<PortKey>> {
    let net = simulation.net();
    let (mut at, mut ports) = (switch, Vec::new());
    loop {
        let number = simulation.egress(at, lid)?;
        if number == 0 {
            return Some(ports);
        }
        let egress = net.port_by_number(at, number).unwrap();
        let ingress = simulation.port(egress).cable.unwrap();
        ports.extend([key(simulation, egress), key(simulation, ingress)]);
        if net.node_of(ingress).kind != NodeKind::Switch {
            return Some(ports);
        }
        at = net.port(ingress).node;
    }
}

/// The same from the port of an adapter, with that port and the one at its switch.
pub fn ports_from_host(
    simulation: &Simulation,
    fabric: &Fabric,
    from: PortIndex,
    lid: Lid,
) -> Option<Vec<PortKey>> {
    let from = sim_port(simulation, fabric, from);
    let entry = simulation.port(from).cable.unwrap();
    let rest = ports_from(simulation, simulation.net().port(entry).node, lid)?;
    Some([&[key(simulation, from), key(simulation, entry)][..], &rest].concat())
}

/// The ports of hops.
pub fn ports_of(fabric: &Fabric, hops: &[Hop]) -> Vec<PortKey> {
    let ports = hops.iter().flat_map(|hop| [hop.ingress, hop.egress]);
    ports.flatten().map(|port| fabric.port_key(port)).collect()
}

/// The hosts that send and receive over each port, by the port that sends.
pub type Users = BTreeMap<PortKey, [BTreeSet<NodeIndex>; 2]>;

/// The users of all links: of the routes of all pairs of hosts.
pub fn users(simulation: &Simulation, fabric: &Fabric) -> Users {
    let hosts: Vec<PortIndex> = fabric
        .port_indexes()
        .filter(|port| {
            fabric.node_of(*port).identity.kind == NodeKind::Ca
                && fabric.port(*port).connected_peer().is_some()
        })
        .collect();
    let mut users = Users::new();
    for &from in &hosts {
        for &to in hosts.iter().filter(|to| **to != from) {
            let status = fabric.port(to).status.unwrap();
            for lid in status.lid.0..status.lid.0 + (1 << status.lmc) {
                let Some(ports) = ports_from_host(simulation, fabric, from, Lid(lid)) else {
                    continue;
                };
                for egress in ports.into_iter().step_by(2) {
                    let [sources, destinations] = users.entry(egress).or_default();
                    sources.insert(fabric.port(from).node);
                    destinations.insert(fabric.port(to).node);
                }
            }
        }
    }
    users
}

/// Whether hosts are these, or may be, by what is undecided.
fn is_honest(found: &HostSet, truth: &BTreeSet<NodeIndex>) -> bool {
    let crossing: BTreeSet<NodeIndex> = found.crossing.iter().copied().collect();
    let undecided: BTreeSet<NodeIndex> = found.undecided.iter().copied().collect();
    crossing.is_subset(truth)
        && crossing.is_disjoint(&undecided)
        && truth.difference(&crossing).all(|host| undecided.contains(host))
}

/// Asserts that what was found of a direction is true: exactly, or as far as it says to know it.
pub fn assert_true(fabric: &Fabric, found: &DirectionUsers, truth: &Users) {
    let none = <[BTreeSet<NodeIndex>; 2]>::default();
    let [sources, destinations] = truth.get(&fabric.port_key(found.from)).unwrap_or(&none);
    let label = fabric.port_label(found.from);
    assert!(is_honest(&found.sources, sources), "{label}: {:?}, {sources:?}", found.sources);
    let received = &found.destinations;
    assert!(is_honest(received, destinations), "{label}: {received:?}, {destinations:?}");
    assert_eq!(found.is_complete(), found.unread_blocks == 0, "{label}: {found:?}");
    assert_eq!(found.unread_blocks > 0, found.unread_switches > 0, "{label}: {found:?}");
}

/// All links between connected ports.
pub fn links(fabric: &Fabric) -> Vec<Link> {
    fabric.links().filter(|link| fabric.port(link.low).connected_peer().is_some()).collect()
}
