//! A fabric of 5,000 hosts: how many SMPs, and how long.

use std::collections::BTreeSet;
use std::time::Duration;

use ib_fabric::NodeIndex;
use ib_fabric::forwarding::cache::ForwardingCache;
use ib_fabric::forwarding::link_users::DirectionUsers;
use ib_mad::{Lid, NodeKind};
use ib_sim::transport::lock;
use ib_umad::MadTransport;

use super::bench::Bench;
use super::truth::{Users, assert_true, ports_from, ports_from_host, ports_of, sim_port};

/// 218 leaves of 23 hosts and 17 uplinks, in three levels.
const SHAPE: &str = "fat-tree: {levels: 3, radix: 40, hosts: 5000, down: 23, up: 17}";

/// The users of the link at a port, by following the tables from all leaves to all hosts to which its switch sends there.
fn truth(bench: &Bench, direction: &DirectionUsers) -> Users {
    let fabric = &bench.fabric;
    let simulation = lock(&bench.simulation);
    let net = simulation.net();
    let key = fabric.port_key(direction.from);
    let switch = net.port(sim_port(&simulation, fabric, direction.from)).node;
    let hosts: Vec<(NodeIndex, Lid)> = fabric
        .port_indexes()
        .filter(|port| fabric.node_of(*port).identity.kind == NodeKind::Ca)
        .map(|port| (fabric.port(port).node, fabric.lid_of(port).unwrap()))
        .collect();
    let leaves = net.node_ids().filter(|node| net.node(*node).id.starts_with("leaf-"));
    let leaves: Vec<_> = leaves
        .map(|leaf| {
            let ends = net.cable_ports(leaf).filter_map(|port| net.port(port).cable);
            let at = ends.filter(|end| net.node_of(*end).is_host());
            let at = at.map(|end| fabric.node_by_guid(net.node_of(end).guid).unwrap());
            (leaf, at.collect::<Vec<NodeIndex>>())
        })
        .collect();
    let mut found = <[BTreeSet<NodeIndex>; 2]>::default();
    for (to, lid) in hosts {
        if simulation.egress(switch, lid) != Some(key.number) {
            continue;
        }
        for (leaf, at) in &leaves {
            let ports = ports_from(&simulation, *leaf, lid).unwrap();
            if !ports.contains(&key) {
                continue;
            }
            for from in at.iter().filter(|from| **from != to) {
                found[0].insert(*from);
                found[1].insert(to);
            }
        }
    }
    Users::from([(key, found)])
}

#[test]
fn five_thousand_hosts_take_at_most_2_000_smps_and_a_second() {
    let mut bench = Bench::new(SHAPE, 0);
    assert_eq!(bench.fabric.nodes.iter().filter(|node| !node.is_switch()).count(), 5_000);
    // A route takes the block of one LID of each switch.
    let (found, smps) = bench.routes("host-0", "host-4999");
    let route = found.routes[0].route.as_ref().unwrap();
    {
        let simulation = lock(&bench.simulation);
        let ends = found.routes[0].ends;
        let truth = ports_from_host(&simulation, &bench.fabric, ends.from, ends.to).unwrap();
        assert_eq!(ports_of(&bench.fabric, &route.hops), truth);
    }
    assert_eq!((route.hops.len(), smps), (7, 3 * 5));

    for (switch, port, max_smps, is_exact) in
        [("leaf-0-0", 24, 2_000, true), ("agg-0-0", 21, 2_000, true), ("agg-0-0", 21, 500, false)]
    {
        bench.cache = ForwardingCache::default();
        let link = bench.link(switch, port);
        let began = bench.transport.now();
        let (users, smps) = bench.users(link, max_smps);
        let time = bench.transport.now().since(began);
        let counts = |it: &DirectionUsers| {
            [&it.sources, &it.destinations].map(|set| (set.crossing.len(), set.undecided.len()))
        };
        println!(
            "{switch}: {smps} SMPs, {time:?}, crossing and undecided {:?}",
            users.directions.each_ref().map(counts)
        );
        assert!(smps <= max_smps && time <= Duration::from_secs(1), "{switch}: {smps} {time:?}");
        assert_eq!(users.is_complete(), is_exact, "{switch}");
        for direction in &users.directions {
            let truth = truth(&bench, direction);
            assert_true(&bench.fabric, direction, &truth);
            let [sources, _] = &truth[&bench.fabric.port_key(direction.from)];
            assert!(!direction.sources.crossing.is_empty(), "{switch}");
            if is_exact {
                assert_eq!(direction.sources.undecided, [], "{switch}");
                assert_eq!(direction.sources.crossing.len(), sources.len(), "{switch}");
            }
        }
    }
}
