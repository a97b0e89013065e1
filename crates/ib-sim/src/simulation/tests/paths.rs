//! Paths of MADs.

use super::*;
use ib_mad::PortNumber;

fn follow(bench: &Bench, from: &str, route: &[PortNumber]) -> Option<String> {
    let at = follow_route(&bench.simulation, bench.port(from), route)?;
    Some(bench.simulation.net().label(at))
}

#[test]
fn directed_routes_follow_their_ports() {
    let mut bench = Bench::new(tree());
    let spine = bench.cable("leaf-0-0[3]").unwrap();
    for (from, route, there) in [
        ("host-0[1]", &[][..], Some("host-0[1]")),
        ("host-0[1]", &[1], Some("leaf-0-0[1]")),
        ("host-0[1]", &[1, 2], Some("host-1[1]")),
        ("host-0[1]", &[1, 1], Some("host-0[1]")),
        ("host-0[1]", &[1, 3], Some(spine.as_str())),
        ("leaf-0-0[0]", &[], Some("leaf-0-0[0]")),
        ("leaf-0-0[0]", &[2], Some("host-1[1]")),
        // An adapter forwards nothing, also not back.
        ("host-0[1]", &[1, 2, 1], None),
        // An adapter is left by its own port.
        ("host-0[1]", &[0], None),
        ("host-0[1]", &[2], None),
        // A port that does not exist, one without a cable, and port 0.
        ("host-0[1]", &[1, 7], None),
        ("host-0[1]", &[1, 6], None),
        ("host-0[1]", &[1, 0], None),
    ] {
        assert_eq!(follow(&bench, from, route).as_deref(), there, "{from} {route:?}");
    }
    bench.signal("leaf-0-0[2]", false);
    assert_eq!(follow(&bench, "host-0[1]", &[1, 2]), None, "the link is down");
    bench.signal("leaf-0-0[2]", true);
    assert_eq!(
        follow(&bench, "host-0[1]", &[1, 2]).as_deref(),
        Some("host-1[1]"),
        "Init is sufficient"
    );
    bench.power("leaf-0-0", false);
    assert_eq!(follow(&bench, "host-0[1]", &[1]), None);
    bench.power("host-0", false);
    assert_eq!(follow(&bench, "host-0[1]", &[]), None);
}

fn hops(bench: &Bench, from: &str, active: bool, to: &str) -> Option<u8> {
    HopCounts::new(&bench.simulation, bench.port(from), active).to(bench.port(to))
}

#[test]
fn hop_counts_are_of_shortest_paths() {
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
    // Only subnet management reaches it so far.
    assert_eq!(hops(&bench, "host-0[1]", false, "host-7[1]"), Some(4));
    assert_eq!(hops(&bench, "host-0[1]", true, "host-7[1]"), None);
    bench.after(1000);
    assert_eq!(hops(&bench, "host-0[1]", true, "host-7[1]"), Some(4));
    bench.power("host-0", false);
    assert_eq!(hops(&bench, "host-0[1]", false, "host-0[1]"), None);
}

#[test]
fn adapter_with_two_ports_forwards_nothing() {
    let (down, up) = (Some(2), Some(2));
    let tree = FatTree { radix: 6, hosts: 4, down, up, ports: 2, ..FatTree::default() };
    let net = tree.build().unwrap();
    let mut bench = Bench::new(net);
    // A leaf without uplinks reaches only its own hosts' ports, though those have other ports
    // elsewhere.
    for uplink in ["leaf-0-0[3]", "leaf-0-0[4]"] {
        if bench.cable(uplink).is_some() {
            bench.signal(uplink, false);
        }
    }
    let net = bench.simulation.net();
    let hop_counts = HopCounts::new(&bench.simulation, bench.port("leaf-0-0[0]"), false);
    let reached: Vec<String> = net
        .port_ids()
        .filter(|port| hop_counts.to(*port).is_some())
        .map(|port| net.label(port))
        .collect();
    assert_eq!(reached.len(), 3, "{reached:?}");
    assert!(reached.contains(&"leaf-0-0[0]".to_owned()));
}
