//! Who is reached from where.

use super::*;
use ib_mad::PortNumber;

fn led(bench: &Bench, seat: &str, route: &[PortNumber]) -> Option<String> {
    let at = follow(&bench.world, bench.port(seat), route)?;
    Some(bench.world.net().label(at))
}

#[test]
fn a_route_leads_where_its_ports_do() {
    let mut bench = Bench::new(tree());
    let spine = bench.cable("leaf-0-0[3]").unwrap();
    for (seat, route, there) in [
        ("host-0[1]", &[][..], Some("host-0[1]")),
        ("host-0[1]", &[1], Some("leaf-0-0[1]")),
        ("host-0[1]", &[1, 2], Some("host-1[1]")),
        ("host-0[1]", &[1, 1], Some("host-0[1]")),
        ("host-0[1]", &[1, 3], Some(spine.as_str())),
        ("leaf-0-0[0]", &[], Some("leaf-0-0[0]")),
        ("leaf-0-0[0]", &[2], Some("host-1[1]")),
        // An adapter forwards nothing, not even back.
        ("host-0[1]", &[1, 2, 1], None),
        // Out of our own leads but one port.
        ("host-0[1]", &[0], None),
        ("host-0[1]", &[2], None),
        // No such port, no cable, and the switch's own.
        ("host-0[1]", &[1, 7], None),
        ("host-0[1]", &[1, 6], None),
        ("host-0[1]", &[1, 0], None),
    ] {
        assert_eq!(led(&bench, seat, route).as_deref(), there, "{seat} {route:?}");
    }
    bench.signal("leaf-0-0[2]", false);
    assert_eq!(led(&bench, "host-0[1]", &[1, 2]), None, "the link is down");
    bench.signal("leaf-0-0[2]", true);
    assert_eq!(led(&bench, "host-0[1]", &[1, 2]).as_deref(), Some("host-1[1]"), "Init will do");
    bench.power("leaf-0-0", false);
    assert_eq!(led(&bench, "host-0[1]", &[1]), None);
    bench.power("host-0", false);
    assert_eq!(led(&bench, "host-0[1]", &[]), None);
}

fn hops(bench: &Bench, seat: &str, active: bool, to: &str) -> Option<u8> {
    Reach::from(&bench.world, bench.port(seat), active).hops(bench.port(to))
}

#[test]
fn lids_are_reached_by_the_shortest_way_that_is_up() {
    let mut bench = Bench::new(tree());
    for (to, far) in [
        ("host-0[1]", 0),
        ("leaf-0-0[0]", 1),
        ("host-1[1]", 2),
        ("spine-0[0]", 2),
        ("leaf-0-3[0]", 3),
        ("host-7[1]", 4),
    ] {
        assert_eq!(hops(&bench, "host-0[1]", true, to), Some(far), "{to}");
    }
    assert_eq!(hops(&bench, "spine-0[0]", true, "host-7[1]"), Some(2));
    // A switch's other ports have no LID.
    assert_eq!(hops(&bench, "host-0[1]", true, "leaf-0-0[1]"), None);
    bench.signal("host-7[1]", false);
    assert_eq!(hops(&bench, "host-0[1]", false, "host-7[1]"), None);
    bench.signal("host-7[1]", true);
    // Subnet management reaches it, and nothing else yet.
    assert_eq!(hops(&bench, "host-0[1]", false, "host-7[1]"), Some(4));
    assert_eq!(hops(&bench, "host-0[1]", true, "host-7[1]"), None);
    bench.after(1000);
    assert_eq!(hops(&bench, "host-0[1]", true, "host-7[1]"), Some(4));
    bench.power("host-0", false);
    assert_eq!(hops(&bench, "host-0[1]", false, "host-0[1]"), None);
}

#[test]
fn an_adapter_with_two_ports_joins_nothing() {
    let [switch, hca] = [(NodeKind::Switch, 54002), (NodeKind::Ca, 4129)]
        .map(|(kind, device)| Model::of_device(kind, device));
    let (down, up) = (Some(2), Some(2));
    let net = FatTree {
        levels: 2,
        radix: 6,
        hosts: 4,
        down,
        up,
        ports: 2,
        planes: 1,
        aggregation_nodes: false,
        switch,
        hca,
    }
    .build()
    .unwrap();
    let mut bench = Bench::new(net);
    // A leaf without uplinks reaches its own hosts' ports alone, though these are at others, too.
    for uplink in ["leaf-0-0[3]", "leaf-0-0[4]"] {
        if bench.cable(uplink).is_some() {
            bench.signal(uplink, false);
        }
    }
    let net = bench.world.net();
    let reach = Reach::from(&bench.world, bench.port("leaf-0-0[0]"), false);
    let reached: Vec<String> = net
        .port_ids()
        .filter(|port| reach.hops(*port).is_some())
        .map(|port| net.label(port))
        .collect();
    assert_eq!(reached.len(), 3, "{reached:?}");
    assert!(reached.contains(&"leaf-0-0[0]".to_owned()));
}
