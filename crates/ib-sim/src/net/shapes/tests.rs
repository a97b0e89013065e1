use super::*;
use crate::net::file::parse;
use crate::net::testing::write;
use crate::net::{Net, NodeId, PortId};
use ib_mad::node::NodeKind;
use ib_mad::rate::Speed;
use proptest::prelude::*;

/// The id of a host's adapter.
fn host_id(host: u32, plane: u8, planes: u8) -> String {
    if planes == 1 { format!("host-{host}") } else { format!("host-{host}-mlx5_{plane}") }
}

fn fat_tree(levels: u8, radix: u8, hosts: u32, down: u8, up: u8) -> FatTree {
    FatTree {
        levels,
        radix,
        hosts,
        down: Some(down),
        up: Some(up),
        ports: 1,
        planes: 1,
        rail_hosts: 0,
        aggregation_nodes: false,
        switch: "quantum".into(),
        hca: "connectx-6".into(),
    }
}

fn dragonfly(groups: u16, leaves: u8, spines: u8, hosts_per_leaf: u8, global: u8) -> DragonflyPlus {
    DragonflyPlus {
        groups,
        leaves,
        spines,
        hosts_per_leaf,
        global,
        radix: 40,
        switch: "quantum-2".into(),
        hca: "connectx-7".into(),
    }
}

fn connected(net: &Net) -> usize {
    net.ports.iter().filter(|port| port.cable.is_some()).count()
}

fn switches(net: &Net) -> usize {
    net.nodes.iter().filter(|node| node.kind == NodeKind::Switch).count()
}

/// The number of parts of a net without cables between them.
fn parts(net: &Net) -> usize {
    let mut seen = vec![false; net.nodes.len()];
    let mut parts = 0;
    for start in net.node_ids() {
        let mut open = vec![start];
        parts += usize::from(!seen[start.0 as usize]);
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut seen[node.0 as usize], true) {
                let peers = net.cable_ports(node).filter_map(|plug| net.port(plug).cable);
                open.extend(peers.map(|peer| net.port(peer).node));
            }
        }
    }
    parts
}

/// The ids of the adapters of hosts, one in each plane.
fn host_ids(hosts: u32, planes: u8) -> Vec<String> {
    (0..hosts).flat_map(|host| (0..planes).map(move |plane| host_id(host, plane, planes))).collect()
}

/// Checks what holds for every shape: cables have two ends, all of a plane is connected, and the
/// written file is read as the same net.
fn assert_valid(net: Result<Net, ShapeError>, hosts: u32, planes: u8) -> Net {
    let net = net.unwrap();
    for id in net.port_ids() {
        if let Some(peer) = net.port(id).cable {
            assert_eq!(net.port(peer).cable, Some(id), "{}", net.label(id));
            assert!(peer != id && net.port(id).number != 0, "{}", net.label(id));
        }
    }
    assert_eq!(parts(&net), usize::from(planes));
    let ids: Vec<&str> = net.nodes.iter().map(|node| node.id.as_str()).collect();
    let hosts = host_ids(hosts, planes);
    assert_eq!(hosts, ids[..hosts.len()]);
    // Every port of an adapter is in use.
    for node in net.node_ids().filter(|node| net.node(*node).kind == NodeKind::Ca) {
        assert!(net.cable_ports(node).all(|plug| net.port(plug).cable.is_some()));
    }
    let text = write(&net);
    assert!(text.lines().all(|line| line.len() < 256));
    assert!(parse(&text).as_ref() == Ok(&net));
    net
}

#[test]
fn small_fat_tree_has_these_cables() {
    let net = assert_valid(fat_tree(2, 8, 8, 4, 4).build(), 8, 1);
    let cables: Vec<_> = net.nodes[8..]
        .iter()
        .map(|node| {
            let plugs = (1..=8).map(|n| net.port(PortId(node.first_port + n)).cable.unwrap());
            (node.id.as_str(), plugs.map(|peer| net.label(peer)).collect::<Vec<_>>().join(" "))
        })
        .collect();
    assert_eq!(
        cables,
        [
            (
                "leaf-0-0",
                "host-0[1] host-1[1] host-2[1] host-3[1] spine-0[1]".to_owned()
                    + " spine-0[2] spine-0[3] spine-0[4]"
            ),
            (
                "leaf-0-1",
                "host-4[1] host-5[1] host-6[1] host-7[1] spine-0[5]".to_owned()
                    + " spine-0[6] spine-0[7] spine-0[8]"
            ),
            (
                "spine-0",
                "leaf-0-0[5] leaf-0-0[6] leaf-0-0[7] leaf-0-0[8] leaf-0-1[5]".to_owned()
                    + " leaf-0-1[6] leaf-0-1[7] leaf-0-1[8]"
            ),
        ]
    );
    let host = &net.nodes[1];
    assert_eq!((host.guid.0, host.device_id), (0x0002_c903_0000_0010, 4123));
    assert_eq!((net.nodes[9].guid.0, net.nodes[9].device_id), (0x0002_c902_0000_0001, 54000));
    let port = net.port(PortId(host.first_port + 1));
    assert_eq!((port.rates.widths, port.rates.speeds.fastest()), (3, Some(Speed::Hdr)));
}

#[test]
fn fat_trees_have_these_sizes() {
    for (shape, switch_count, ports) in [
        (fat_tree(2, 40, 900, 22, 18), 60, 3_276),
        (fat_tree(3, 40, 5_000, 23, 17), 507, 24_892),
        (fat_tree(3, 40, 10_000, 20, 20), 1_260, 60_000),
        // The largest documented one: not oversubscribed.
        (fat_tree(3, 40, 27_000, 18, 18), 3_534, 162_000),
    ] {
        let net = shape.build().unwrap();
        assert_eq!((switches(&net), connected(&net)), (switch_count, ports), "{shape:?}");
        assert_eq!(parts(&net), 1);
    }
}

#[test]
fn default_down_and_up_are_half_the_radix() {
    let whole = fat_tree(3, 8, 30, 4, 4);
    let left_out = FatTree { down: None, up: None, ..whole.clone() };
    assert_eq!(whole.build(), left_out.build());
}

#[test]
fn aggregation_nodes_are_at_an_additional_port() {
    let shape = FatTree { aggregation_nodes: true, ..fat_tree(2, 8, 12, 4, 4) };
    let net = shape.build().unwrap();
    let plain = fat_tree(2, 8, 12, 4, 4).build().unwrap();
    let switches = net.nodes.iter().filter(|node| node.kind == NodeKind::Switch);
    let switches: Vec<_> = switches.collect();
    for switch in &switches {
        assert_eq!(switch.port_count, 9, "{}", switch.id);
        let last = net.port(PortId(switch.first_port + 9)).cable.unwrap();
        let node = net.node_of(last);
        assert!(node.is_aggregation_node() && !node.is_host(), "{}", node.id);
        assert_eq!((node.device_id, node.port_count), (53001, 1));
        assert_eq!(node.description, "Mellanox Technologies Aggregation Node");
    }
    assert_eq!(net.nodes.len(), plain.nodes.len() + switches.len());
    // All other cables are the same.
    for port in plain.port_ids() {
        let far = |net: &Net, port| net.port(port).cable.map(|far| net.label(far));
        let label = plain.label(port);
        let same = net.port_ids().find(|&port| net.label(port) == label).unwrap();
        assert_eq!(far(&net, same), far(&plain, port), "{label}");
    }
}

#[test]
fn planes_share_hosts_only() {
    let shape = FatTree { planes: 3, ports: 2, ..fat_tree(2, 8, 7, 4, 4) };
    let net = assert_valid(shape.build(), shape.hosts, 3);
    assert_eq!(net.nodes[3 * 3 + 1].id, "host-3-mlx5_1");
    assert_eq!(net.nodes[3 * 3 + 1].description, "host-3 mlx5_1");
    let peers: Vec<_> = net
        .cable_ports(NodeId(3 * 6 + 1))
        .map(|plug| net.label(net.port(plug).cable.unwrap()))
        .collect();
    assert_eq!(peers, ["p1-leaf-0-2[3]", "p1-leaf-0-3[3]"]);
}

#[test]
fn rails_of_a_host_are_at_the_leaves_in_turn() {
    let shape = FatTree { rail_hosts: 1, ..fat_tree(2, 18, 36, 9, 6) };
    let net = assert_valid(shape.build(), shape.hosts, 1);
    let peers: Vec<_> = net.nodes[36..44]
        .iter()
        .map(|rail| {
            let peer = net.port(PortId(rail.first_port + 1)).cable.unwrap();
            (rail.description.as_str(), net.label(peer))
        })
        .collect();
    assert_eq!(peers[0], ("gpu-0 mlx5_0", "leaf-0-0[16]".to_owned()));
    assert_eq!(peers[3], ("gpu-0 mlx5_3", "leaf-0-3[16]".to_owned()));
    assert_eq!(peers[7], ("gpu-0 mlx5_7", "leaf-0-3[17]".to_owned()));
    // All other cables are the same.
    let plain = FatTree { rail_hosts: 0, ..shape.clone() }.build().unwrap();
    assert_eq!(connected(&net), connected(&plain) + 16);
    let three = FatTree { levels: 3, radix: 64, hosts: 400, ..shape.clone() };
    assert_valid(three.build(), 400, 1);
    for (wrong, says) in [
        (FatTree { radix: 16, ..shape.clone() }, "a leaf (down + up + rails) needs 17 ports, but"),
        (FatTree { planes: 2, ..shape.clone() }, "rail-hosts needs planes: 1"),
        (FatTree { rail_hosts: 9999, ..shape }, "rail-hosts is 9999; it must be between 0 and"),
    ] {
        let error = wrong.build().expect_err(says).to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

#[test]
fn more_hosts_make_a_tree_of_three_levels() {
    let tree = FatTree { radix: 16, ..fat_tree(2, 16, 36, 9, 6) };
    for (hosts, levels, radix) in [(36, 2, 16), (500, 2, 56), (2286, 2, 254), (2287, 3, 64)] {
        let tree = tree.clone().with_hosts(hosts);
        assert_eq!((tree.levels, tree.radix), (levels, radix), "{hosts}");
        assert_valid(tree.build(), hosts, 1);
    }
}

#[test]
fn back_to_back_is_one_cable() {
    let net = assert_valid(BackToBack { hca: "connectx-8".into() }.build(), 2, 1);
    assert_eq!((net.nodes.len(), connected(&net)), (2, 2));
    assert_eq!(net.ports[1].rates.speeds.fastest(), Some(Speed::Xdr));
}

#[test]
fn groups_have_equally_many_cables() {
    for (shape, per_pair) in [
        (dragonfly(2, 1, 1, 1, 1), 1),
        (dragonfly(5, 3, 4, 2, 1), 1),
        (dragonfly(5, 4, 4, 4, 6), 6),
        (dragonfly(9, 16, 16, 16, 16), 32),
    ] {
        let net = assert_valid(shape.build(), shape.hosts(), 1);
        let group = |end| net.node_of(end).id.split_once('-').unwrap().0.to_owned();
        let is_spine = |end| net.node_of(end).id.contains("spine");
        let mut between = std::collections::BTreeMap::new();
        for end in net.port_ids().filter(|end| is_spine(*end)) {
            if let Some(peer) = net.port(end).cable.filter(|peer| is_spine(*peer)) {
                *between.entry((group(end), group(peer))).or_insert(0) += 1;
            }
        }
        let groups = usize::from(shape.groups);
        assert_eq!(between.len(), groups * (groups - 1), "each with each and none with itself");
        assert!(between.values().all(|cables| *cables == per_pair), "{between:?}");
        for spine in net.node_ids().filter(|node| net.node(*node).id.contains("spine")) {
            let used =
                net.cable_ports(spine).filter(|port| net.port(*port).cable.is_some()).count();
            assert_eq!(used, usize::from(shape.leaves + shape.global));
        }
    }
}

#[test]
fn impossible_shapes_are_refused() {
    let tree = fat_tree(2, 8, 8, 4, 4);
    let fly = dragonfly(5, 4, 4, 4, 6);
    let with = |change: fn(&mut FatTree)| {
        let mut tree = tree.clone();
        change(&mut tree);
        tree.build()
    };
    let flying = |change: fn(&mut DragonflyPlus)| {
        let mut fly = fly.clone();
        change(&mut fly);
        fly.build()
    };
    for (built, says) in [
        (with(|t| t.levels = 4), "levels is 4; it must be between 2 and 3"),
        (with(|t| t.hosts = 0), "hosts is 0; it must be between 1 and 49151"),
        (with(|t| t.radix = 255), "radix is 255; it must be between 2 and 254"),
        (with(|t| t.down = Some(0)), "down is 0; it must be between 1 and 254"),
        (with(|t| t.planes = 0), "planes is 0; it must be between 1 and 16"),
        (with(|t| t.ports = 9), "ports is 9; it must be between 1 and 8"),
        (with(|t| t.up = Some(5)), "a leaf (down + up) needs 9 ports, but a switch has 8"),
        (
            with(|t| t.hosts = 64),
            "64 hosts are too many: with 4 uplinks to 8 switches, two leaves may have no common",
        ),
        (with(|t| t.hca = "quantum".into()), "model quantum is not a ca"),
        (with(|t| t.switch = "connectx-6".into()), "model connectx-6 is not a switch"),
        (flying(|f| f.groups = 1), "groups is 1; it must be between 2 and"),
        (flying(|f| f.radix = 9), "a spine (leaves + global cables) needs 10 ports"),
        (flying(|f| f.radix = 7), "a leaf (hosts + spines) needs 8 ports"),
        (
            flying(|f| f.groups = 6),
            "24 global cables per group cannot be spread evenly over 5 other",
        ),
        (flying(|f| f.groups = 60_000), "groups * leaves * hosts-per-leaf is 960000; it must"),
    ] {
        let error = built.expect_err(says).to_string();
        assert!(error.starts_with(says), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn fat_trees_are_valid_or_refused(
        levels in 2..=3u8,
        radix in 2..=24u8,
        hosts in 1..=120u32,
        down in proptest::option::of(1..=16u8),
        up in proptest::option::of(1..=16u8),
        ports in 1..=3u8,
        planes in 1..=2u8,
    ) {
        let shape = FatTree { levels, hosts, radix, down, up, ports, planes, ..fat_tree(2, 2, 1, 1, 1) };
        let net = shape.build();
        if net.is_ok() {
            assert_valid(net, hosts, planes);
        }
    }

    #[test]
    fn dragonflies_are_valid_or_refused(
        groups in 2..=9u16,
        leaves in 1..=6u8,
        spines in 1..=6u8,
        hosts in 1..=4u8,
        global in 1..=12u8,
    ) {
        let shape = dragonfly(groups, leaves, spines, hosts, global);
        let net = shape.build();
        if net.is_ok() {
            assert_valid(net, shape.hosts(), 1);
        }
    }
}
