//! Linear forwarding tables: they deliver, along the paths of traffic.

use super::*;
use crate::agents::response;
use crate::load::routes;
use crate::net::shapes::DragonflyPlus;
use crate::scenario::{Overrides, Scenario};
use ib_mad::forwarding_table::{ForwardingEntry, LinearForwardingTable};
use ib_mad::{PortNumber, status};

/// A three-level tree of 16 hosts.
fn three_levels() -> Net {
    FatTree { levels: 3, radix: 4, hosts: 16, ..FatTree::default() }.build().unwrap()
}

/// The same net with an LMC at all adapters.
fn with_lmc(mut net: Net, lmc: u8) -> Net {
    for index in 0..net.ports.len() {
        let node = net.ports[index].node;
        if net.node(node).kind != NodeKind::Switch {
            net.ports[index].lmc = lmc;
        }
    }
    net
}

/// The port of a LID in the table of a switch, as a response to a MAD.
fn entry(bench: &Bench, switch: NodeId, lid: Lid) -> Option<PortNumber> {
    let simulation = &bench.simulation;
    let at = PortId(simulation.net().node(switch).first_port);
    let request = LinearForwardingTable::query(LinearForwardingTable::block_of(lid));
    let mad = response(simulation, at, &request.request(None, 1)).unwrap();
    assert_eq!(mad.status(), 0);
    match LinearForwardingTable::decode(&mad).entry(lid) {
        ForwardingEntry::Port(port) => Some(port),
        ForwardingEntry::NoRoute => None,
    }
}

/// The ports that a packet for a LID leaves by, from a switch on, and the port that it arrives at; `None` if it is
/// discarded.
fn follow(bench: &Bench, switch: NodeId, lid: Lid) -> Option<(Vec<PortId>, PortId)> {
    let simulation = &bench.simulation;
    let net = simulation.net();
    let (mut at, mut left_by) = (switch, Vec::new());
    loop {
        let number = entry(bench, at, lid)?;
        let egress = net.port_by_number(at, number).unwrap();
        if number == 0 {
            return Some((left_by, egress));
        }
        assert_eq!(simulation.port(egress).state, PortState::Active, "{}", net.label(egress));
        left_by.push(egress);
        assert!(left_by.len() <= net.nodes.len(), "a loop for LID {lid}");
        let ingress = simulation.port(egress).cable.unwrap();
        if net.node_of(ingress).kind != NodeKind::Switch {
            return Some((left_by, ingress));
        }
        at = net.port(ingress).node;
    }
}

fn switches(net: &Net) -> impl Iterator<Item = NodeId> + '_ {
    net.node_ids().filter(|node| net.node(*node).kind == NodeKind::Switch)
}

/// All LIDs of the subnet with the ports that have them.
fn lids(bench: &Bench) -> Vec<(Lid, PortId)> {
    let simulation = &bench.simulation;
    let subnet = simulation.subnet(bench.port("host-0[1]")).unwrap();
    subnet.lids.iter().map(|(lid, port)| (*lid, *port)).collect()
}

/// From each switch the tables lead to the port of each LID, by as few hops as packets need; the LIDs of which they do
/// not are returned.
fn undelivered(bench: &Bench) -> Vec<(String, Lid)> {
    let net = bench.simulation.net();
    let mut lost = Vec::new();
    for switch in switches(net) {
        let port0 = PortId(net.node(switch).first_port);
        let hop_counts = HopCounts::new(&bench.simulation, port0, true);
        for (lid, port) in lids(bench) {
            let Some((left_by, end)) = follow(bench, switch, lid) else {
                assert_eq!(hop_counts.to(port), None, "{} to LID {lid}", net.node(switch).id);
                lost.push((net.node(switch).id.clone(), lid));
                continue;
            };
            assert_eq!(net.sm_port(end), port, "{} to LID {lid}", net.node(switch).id);
            assert_eq!(hop_counts.to(port), Some(left_by.len() as u8), "{}", net.label(port));
        }
    }
    lost
}

#[test]
fn tables_deliver_to_every_lid_from_every_switch() {
    let dragonfly = DragonflyPlus::default().build().unwrap();
    for (net, count) in [
        (tree(), 8 + 6),
        (three_levels(), 16 + 20),
        (with_lmc(tree(), 1), 2 * 8 + 6),
        (with_lmc(three_levels(), 2), 4 * 16 + 20),
        (dragonfly, 0),
    ] {
        let bench = Bench::new(net);
        assert_eq!(undelivered(&bench), []);
        assert!(count == 0 || lids(&bench).len() == count, "{}", lids(&bench).len());
    }
}

#[test]
fn tables_have_the_paths_of_traffic() {
    for net in [tree(), three_levels(), with_lmc(three_levels(), 1)] {
        let bench = Bench::new(net);
        let net = bench.simulation.net();
        let links: Vec<Option<PortId>> =
            net.port_ids().map(|port| bench.simulation.port(port).cable).collect();
        let hosts: Vec<PortId> = net
            .port_ids()
            .filter(|port| net.node_of(*port).is_host() && net.port(*port).cable.is_some())
            .collect();
        for &from in &hosts {
            let leaf = net.port(net.port(from).cable.unwrap()).node;
            let pairs: Vec<_> = hosts.iter().map(|&to| (from, to)).collect();
            for ((_, to), path) in pairs.iter().zip(routes::paths(net, &links, &pairs)) {
                if *to == from {
                    continue;
                }
                let (left_by, _) = follow(&bench, leaf, bench.simulation.port(*to).lid).unwrap();
                assert_eq!([&[from][..], &left_by].concat(), path, "{}", net.label(*to));
            }
        }
    }
}

#[test]
fn lids_of_one_port_take_different_paths() {
    let bench = Bench::new(with_lmc(tree(), 1));
    let leaf = bench.node("leaf-0-0");
    let far = bench.port("host-7[1]");
    let of_far = lids(&bench).into_iter().filter(|(_, port)| *port == far);
    let left_by: Vec<_> = of_far.map(|(lid, _)| entry(&bench, leaf, lid)).collect();
    assert_eq!(left_by.len(), 2);
    assert_ne!(left_by[0], left_by[1], "two uplinks for two LIDs");
}

#[test]
fn tables_follow_the_links() {
    let mut bench = Bench::new(tree());
    let (leaf, far) = (bench.node("leaf-0-0"), bench.simulation.port(bench.port("host-7[1]")).lid);
    let before = entry(&bench, leaf, far).unwrap();
    let uplink = format!("leaf-0-0[{before}]");
    bench.signal(&uplink, false);
    assert_eq!(undelivered(&bench), []);
    let after = entry(&bench, leaf, far).unwrap();
    assert_ne!(after, before);
    // A link that is up again carries packets once the subnet manager has seen it.
    bench.signal(&uplink, true);
    assert_eq!(entry(&bench, leaf, far), Some(after));
    bench.after(2_000);
    assert_eq!(entry(&bench, leaf, far), Some(before));
    // Without a host's link its LID has no route; its leaf is as far away as before.
    bench.signal("leaf-0-0[1]", false);
    let lost = bench.simulation.port(bench.port("host-0[1]")).lid;
    let everywhere: Vec<_> = switches(bench.simulation.net())
        .map(|node| (bench.simulation.net().node(node).id.clone(), lost))
        .collect();
    assert_eq!(undelivered(&bench), everywhere);
}

#[test]
fn tables_have_new_lids_when_they_are_assigned() {
    let mut bench = Bench::new(tree());
    let port = bench.port("host-1[1]");
    bench.apply(FabricChange::SetMaster { port, reassign_lids: true });
    bench.after(2_000);
    assert_eq!(undelivered(&bench), []);
}

#[test]
fn blocks_end_with_the_table() {
    let bench = Bench::new(tree());
    let at = bench.port("leaf-0-0[0]");
    let ask = |modifier| {
        let query = ib_mad::Query { modifier, ..LinearForwardingTable::query(0) };
        response(&bench.simulation, at, &query.request(None, 1)).unwrap()
    };
    for (modifier, expected) in
        [(0, 0), (767, 0), (768, status::INVALID_FIELD), (0x1_0000, status::INVALID_FIELD)]
    {
        assert_eq!(ask(modifier).status(), expected, "{modifier:#x}");
    }
    assert_eq!(LinearForwardingTable::decode(&ask(767)), LinearForwardingTable::EMPTY);
    // LID 0 is none.
    assert_eq!(LinearForwardingTable::decode(&ask(0)).entry(Lid(0)), ForwardingEntry::NoRoute);
    let query = LinearForwardingTable::query(0).request(None, 1);
    let of_host = response(&bench.simulation, bench.port("host-0[1]"), &query).unwrap();
    assert_eq!(of_host.status(), status::UNSUPPORTED_ATTRIBUTE, "an adapter forwards nothing");
}

fn xdr(text: &str) -> Bench {
    let text = format!("{{fabric: {{xdr: {{{text}}}}}, traffic: {{pattern: none}}}}");
    let scenario = Scenario::parse("test", &text).unwrap().resolve(&Overrides::default()).unwrap();
    Bench { simulation: Simulation::new(scenario), now: Moment::default() }
}

#[test]
fn planes_deliver_to_the_port_in_their_plane() {
    for text in ["fnm1-hosts: 1, routers: true", "prism: true, ordinary-hosts: 2"] {
        let bench = xdr(text);
        let net = bench.simulation.net();
        for switch in switches(net) {
            for (lid, port) in lids(&bench) {
                let (left_by, end) = follow(&bench, switch, lid).unwrap();
                assert_eq!(net.sm_port(end), port, "{text}: {} to {lid}", net.node(switch).id);
                let mut planes = net.plane_ports(port);
                let is_in_all = planes.clone().nth(1).is_some()
                    && planes.all(|plane| net.port(plane).cable.is_some());
                let crosses = |egress: &PortId| {
                    net.is_fnm_link(*egress, bench.simulation.port(*egress).cable.unwrap())
                };
                assert!(
                    !is_in_all || !left_by.iter().any(crosses),
                    "{text}: to {}",
                    net.label(port)
                );
            }
        }
    }
}

#[test]
fn plane_without_a_link_delivers_over_the_ring() {
    let mut bench = xdr("");
    let host = bench.port("host-0[2]");
    let lid = bench.simulation.port(host).lid;
    bench.signal("host-0[2]", false);
    let net = bench.simulation.net();
    for switch in switches(net) {
        let (_, end) = follow(&bench, switch, lid).unwrap();
        assert_eq!(net.sm_port(end), net.sm_port(host), "{}", net.node(switch).id);
        assert_ne!(end, host, "{}", net.node(switch).id);
    }
}
