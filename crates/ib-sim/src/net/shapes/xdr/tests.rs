use super::*;
use crate::net::Node;
use crate::net::file::parse;
use crate::net::testing::write;
use ib_mad::rate::Width::{X1, X4};

fn built(shape: &Xdr) -> Net {
    shape.build().unwrap_or_else(|error| panic!("{shape:?}: {error}"))
}

fn find(net: &Net, label: &str) -> PortId {
    net.port_ids().find(|&port| net.label(port) == label).unwrap_or_else(|| panic!("no {label}"))
}

/// The ends of all cables, each once.
fn cables(net: &Net) -> Vec<(PortId, PortId)> {
    let ends = net.port_ids().filter_map(|port| Some((port, net.port(port).cable?)));
    ends.filter(|(port, peer)| port < peer).collect()
}

#[test]
fn planes_are_connected_by_the_ring_of_each_switch_only() {
    let net = built(&Xdr { fnm1_hosts: 2, routers: true, ..Xdr::default() });
    let (mut ring, mut planes) = (0, [0; PLANES as usize]);
    for (a, b) in cables(&net) {
        let what = format!("{} to {}", net.label(a), net.label(b));
        let (one, other) = (net.port(a), net.port(b));
        if net.is_fnm_link(a, b) {
            ring += 1;
            let mut numbers = [one.number, other.number];
            numbers.sort_unstable();
            assert_eq!(numbers, FNM_PORTS, "{what}");
            assert_eq!((one.plane, other.plane), (None, None), "{what}");
            continue;
        }
        let nodes = [net.node_of(a), net.node_of(b)];
        let asics: Vec<_> = nodes.iter().filter_map(|node| node.asic).collect();
        assert!(asics.windows(2).all(|two| two[0] == two[1]), "{what}");
        match (one.plane, other.plane) {
            (Some(one), Some(other)) => {
                assert_eq!((one.plane, one.planes), (other.plane, PLANES), "{what}");
                assert_eq!(one.plane, asics[0] as u8, "{what}");
                planes[usize::from(one.plane) - 1] += 1;
            }
            (None, None) => {
                let is_internal =
                    |end: &Node| end.is_aggregation_node() || end.kind == NodeKind::Router;
                assert!(nodes.into_iter().any(is_internal), "{what}: not a plane");
            }
            _ => panic!("{what}: only one end is a plane"),
        }
    }
    // Two leaves and two spines of four nodes; ten hosts and two times four uplinks.
    assert_eq!((ring, planes), (16, [18; 4]));
}

#[test]
fn ring_and_cables_are_at_these_ports() {
    let net = built(&Xdr { fnm1_hosts: 1, routers: true, ..Xdr::default() });
    for (port, peer) in [
        ("host-0[1]", "leaf-0-a1[1]"),
        ("host-0[4]", "leaf-0-a4[1]"),
        ("host-5[3]", "leaf-1-a3[2]"),
        ("leaf-0-a2[5]", "spine-0-a2[1]"),
        ("leaf-0-a2[6]", "spine-1-a2[1]"),
        ("leaf-1-a2[7]", "spine-0-a2[4]"),
        ("leaf-0-a1[145]", "leaf-0-a2[146]"),
        ("leaf-0-a4[145]", "leaf-0-a1[146]"),
        ("fnm-0[2]", "leaf-0-a2[147]"),
        ("leaf-0-a3-an[1]", "leaf-0-a3[148]"),
        ("spine-1-a4-router[1]", "spine-1-a4[149]"),
    ] {
        let cable = net.port(find(&net, port)).cable.map(|peer| net.label(peer));
        assert_eq!(cable.as_deref(), Some(peer), "{port}");
    }
    let host = net.node_of(find(&net, "host-0[1]"));
    assert_eq!((host.device_id, host.port_count), (4131, 4));
    let guids: Vec<Guid> = (1..=4).map(|n| net.ports[host.first_port as usize + n].guid).collect();
    assert_eq!(guids, [Guid(host.guid.0 + 1); 4], "one PortGUID");
    let systems = ["leaf-0-a1[0]", "leaf-0-a4[0]", "leaf-1-a1[0]"];
    let [first, fourth, other] = systems.map(|port| net.node_of(find(&net, port)));
    assert_eq!((first.system_guid, first.asic), (fourth.system_guid, Some(AsicName::A1)));
    assert_eq!(fourth.asic, Some(AsicName::A4));
    assert_ne!(first.system_guid, other.system_guid);
}

#[test]
fn planes_are_found_in_a_file() {
    let net = built(&Xdr { fnm1_hosts: 2, routers: true, ..Xdr::default() });
    assert!(parse(&write(&net)).as_ref() == Ok(&net));
    // A host whose second plane had no link when the file was written.
    let text = write(&net);
    let is_end = |line: &str| line.contains("leaf-0-a2\"[1]") || line.contains("\"host-0\"[2]");
    let text: Vec<&str> = text.lines().filter(|line| !is_end(line)).collect();
    let net = parse(&text.join("\n")).unwrap();
    let port = net.port(find(&net, "host-0[2]"));
    assert_eq!((port.cable, port.plane.map(|it| it.plane)), (None, Some(2)));
    assert_eq!(port.guid, net.port(find(&net, "host-0[1]")).guid);
}

#[test]
fn prism_switch_has_all_planes_of_its_ports() {
    let (two_plane_hosts, ordinary_hosts) = (1, 2);
    let shape = Xdr { hosts: 5, prism: true, two_plane_hosts, ordinary_hosts, ..Xdr::default() };
    let net = built(&shape);
    let place = |label: &str| {
        let port = net.port(find(&net, label));
        port.plane.map(|it| (it.aggregated, it.plane, it.planes))
    };
    for (port, peer, expected) in [
        ("leaf-0[1]", Some("host-0[1]"), Some((1, 1, 4))),
        ("leaf-0[8]", Some("host-1[4]"), Some((2, 4, 4))),
        ("leaf-1[1]", Some("host-4[1]"), Some((1, 1, 4))),
        ("leaf-1[5]", Some("pair-0[1]"), Some((2, 1, 2))),
        ("leaf-1[6]", Some("pair-0[2]"), Some((2, 2, 2))),
        ("leaf-1[7]", None, None),
        ("leaf-1[9]", Some("old-0[1]"), None),
        ("leaf-1[13]", Some("old-1[1]"), None),
        ("leaf-0[17]", Some("spine-0[1]"), Some((5, 1, 4))),
        ("leaf-0[24]", Some("spine-1[4]"), Some((6, 4, 4))),
        ("leaf-0[240]", None, Some((60, 4, 4))),
        ("leaf-0[241]", Some("leaf-0-an[1]"), None),
        ("old-0[1]", Some("leaf-1[9]"), None),
        ("pair-0[2]", Some("leaf-1[6]"), Some((1, 2, 2))),
    ] {
        let cable = net.port(find(&net, port)).cable.map(|peer| net.label(peer));
        assert_eq!((cable.as_deref(), place(port)), (peer, expected), "{port}");
    }
    let rate = |label: &str| net.port(find(&net, label)).rates.best();
    let far = |label: &str| {
        net.port(find(&net, label))
            .rates
            .common(net.port(net.port(find(&net, label)).cable.unwrap()).rates)
            .best()
    };
    assert_eq!(rate("leaf-0[1]"), Some((X1, Speed::Xdr)));
    assert_eq!(
        [far("old-0[1]"), far("old-1[1]")],
        [Some((X4, Speed::Ndr)), Some((X4, Speed::Hdr))]
    );
}

#[test]
fn largest_fabric_has_162_000_ports_of_planes() {
    let net = built(&Xdr { hosts: 10_125, down: 72, up: 72, spines: 72, ..Xdr::default() });
    let connected = net.ports.iter().filter(|port| port.plane.is_some() && port.cable.is_some());
    // 10,125 hosts and 141 leaves with 72 uplinks, in four planes with two ends each.
    assert_eq!(connected.count(), (10_125 + 141 * 72) * 8);
}

#[test]
fn impossible_shapes_are_refused() {
    let with = |change: fn(&mut Xdr)| {
        let mut shape = Xdr::default();
        change(&mut shape);
        shape.build()
    };
    for (built, says) in [
        (with(|it| it.hosts = 0), "hosts is 0; it must be between 1 and 49151"),
        (with(|it| it.down = 145), "down is 145; it must be between 1 and 144"),
        (with(|it| it.spines = 3), "up is 4; it must be a multiple of spines (3)"),
        (with(|it| it.up = 142), "a leaf (down + up) needs 146 ports, but a switch has 144"),
        (with(|it| it.hosts = 292), "73 leaves need 146 ports of each spine, which has 144"),
        (with(|it| it.ordinary_hosts = 1), "ordinary-hosts needs prism: true"),
        (with(|it| it.two_plane_hosts = 1), "two-plane-hosts needs prism: true"),
        (with(|it| it.fnm1_hosts = 3), "fnm1-hosts is 3; it must be between 0 and 2"),
        (with(|it| (it.prism, it.fnm1_hosts) = (true, 1)), "fnm1-hosts needs prism: false"),
        (with(|it| (it.prism, it.hosts) = (true, 121)), "31 leaves need 62 ports of each spine"),
    ] {
        let error = built.expect_err(says).to_string();
        assert!(error.starts_with(says), "{error}");
    }
}
