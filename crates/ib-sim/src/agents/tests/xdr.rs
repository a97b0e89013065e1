//! The responses of multi-plane devices.

use super::*;
use crate::net::shapes::Xdr;
use crate::simulation::follow_route;
use ib_mad::hierarchy::{HierarchyInfo, Location, template};
use ib_mad::node::{NodeKind, PortRole};
use ib_mad::vendor_smp::{ExtendedNodeInfo, ExtendedNodeType, SmpCapabilities};
use ib_mad::{FrontPanel, Guid};
use std::collections::BTreeSet;

fn four_asics() -> Simulation {
    simulation(Xdr { fnm1_hosts: 1, routers: true, ..Xdr::default() }.build().unwrap())
}

fn prism() -> Simulation {
    let shape = Xdr {
        hosts: 2,
        prism: true,
        two_plane_hosts: 1,
        ordinary_hosts: 1,
        routers: true,
        ..Xdr::default()
    };
    simulation(shape.build().unwrap())
}

/// HierarchyInfo of a port, asked at port 0 of its switch, or of an adapter's port itself.
fn hierarchy(simulation: &Simulation, label: &str, block: u8) -> HierarchyInfo {
    let port = find(simulation.net(), label);
    let (node, number) = (simulation.net().node_of(port), simulation.net().port(port).number);
    let (asked, number) = match node.kind {
        NodeKind::Switch => (format!("{}[0]", node.id), number),
        _ => (label.to_owned(), 0),
    };
    let response = get(simulation, &asked, HierarchyInfo::query(number, block));
    assert_eq!(response.status(), 0, "{label}");
    HierarchyInfo::decode(&response)
}

#[test]
fn front_panel_names_planes_and_internal_ports() {
    let (four, prism) = (four_asics(), prism());
    let none = u32::MAX;
    // The label, and the values of is_cage_manager (of a switch), plane, planes and aggregated port.
    for (simulation, port, label, values) in [
        (&four, "leaf-0-a1[1]", Some("sw1p1"), [1, 1, 4, 1]),
        (&four, "leaf-0-a3[6]", Some("sw3p2"), [0, 3, 4, 6]),
        (&four, "leaf-0-a4[144]", Some("sw72p2"), [0, 4, 4, 144]),
        (&four, "leaf-0-a1[145]", Some("FNMA1P145"), [none; 4]),
        (&four, "spine-1-a4[146]", Some("FNMA4P146"), [none; 4]),
        (&four, "leaf-0-a2[147]", Some("FNM1"), [0, 2, 4, 147]),
        (&four, "leaf-0-a2[148]", None, [none; 4]),
        (&four, "leaf-0-a2[149]", None, [none; 4]),
        (&prism, "leaf-0[4]", Some("sw1p1"), [1, 4, 4, 1]),
        (&prism, "leaf-0[5]", Some("sw1p2"), [1, 1, 4, 2]),
        (&prism, "leaf-0[10]", Some("sw2p1"), [1, 2, 2, 3]),
        (&prism, "leaf-0[13]", Some("sw2p2"), [1, 0, 0, none]),
        (&prism, "leaf-0[241]", None, [none; 4]),
        (&prism, "leaf-0[242]", None, [none; 4]),
    ] {
        let info = hierarchy(simulation, port, 0);
        assert_eq!((info.template, info.highest_index), (template::XDR_SWITCH, 0), "{port}");
        let panel = FrontPanel::new(&info, NodeKind::Switch);
        assert_eq!(panel.and_then(|panel| panel.label()).as_deref(), label, "{port}");
        assert_eq!(info.values[9..], values, "{port}");
    }
    for (simulation, port, planes) in
        [(&four, "host-3[2]", Some((2, 4))), (&prism, "pair-0[2]", Some((2, 2)))]
    {
        let info = hierarchy(simulation, port, 0);
        assert_eq!((info.template, info.highest_index), (template::XDR_ADAPTER, 1), "{port}");
        let panel = FrontPanel::new(&info, NodeKind::Ca).unwrap();
        let label = panel.label().unwrap();
        assert!(label.ends_with("HCA1p1"), "{port}: one cage for all planes");
        assert_eq!(panel.plane.zip(panel.planes), planes, "{port}");
        assert_eq!(panel.aggregated_port, Some(1), "{port}");
        assert!(Location::new(&hierarchy(simulation, port, 1)).is_some(), "{port}");
    }
    assert_eq!(hierarchy(&four, "leaf-0-a2[0]", 0).template, template::SWITCH_LOCATION);
    assert_eq!(hierarchy(&prism, "old-0[1]", 0).template, template::NDR);
}

#[test]
fn roles_of_internal_ports_are_reported() {
    let simulation = four_asics();
    for (port, role) in [
        (1, PortRole::Cable),
        (145, PortRole::Fnm),
        (146, PortRole::Fnm),
        (147, PortRole::Cable),
        (148, PortRole::Other),
        (149, PortRole::Router),
    ] {
        let response = get(&simulation, "leaf-0-a2[0]", subnet(0xff90, port));
        assert_eq!(MellanoxExtendedPortInfo::decode(&response).role(), role, "{port}");
    }
}

#[test]
fn adapters_and_switches_announce_planes() {
    let (four, prism) = (four_asics(), prism());
    for (simulation, port, kind, planes) in [
        (&four, "host-3[2]", Some(ExtendedNodeType::MultiPlaneHca), 4),
        (&four, "leaf-0-a1[0]", None, 4),
        (&prism, "pair-0[1]", Some(ExtendedNodeType::MultiPlaneHca), 2),
        (&prism, "leaf-0[0]", None, 4),
    ] {
        let capabilities =
            SmpCapabilities::decode(&get(simulation, port, SmpCapabilities::query()));
        assert!(capabilities.has(SmpCapabilities::EXTENDED_NODE_INFO), "{port}");
        assert_eq!(capabilities.is_nvlink(), Some(false), "{port}");
        let info = ExtendedNodeInfo::decode(&get(simulation, port, ExtendedNodeInfo::query()));
        assert_eq!((info.kind(), info.max_planes), (kind, planes), "{port}");
    }
    for query in [SmpCapabilities::query(), ExtendedNodeInfo::query()] {
        let refused = get(&prism, "old-0[1]", query).status();
        assert_eq!(refused, status::UNSUPPORTED_ATTRIBUTE);
    }
    // An XDR fabric with ordinary ports has no planes.
    let plain = simulation_of("quantum-3", "connectx-8");
    let info = ExtendedNodeInfo::decode(&get(&plain, "host-0[1]", ExtendedNodeInfo::query()));
    assert_eq!((info.kind(), info.max_planes), (None, 0));
}

#[test]
fn plane_is_one_lane_with_the_lid_of_its_adapter() {
    let simulation = four_asics();
    let info = |port: &str| PortInfo::decode(&get(&simulation, port, smp::port_info(0)));
    let first = info("host-3[1]");
    assert!(first.lid.is_unicast() && first.has_hierarchy_info());
    for plane in 1..=4 {
        let port = format!("host-3[{plane}]");
        let (plane, node) = (info(&port), get(&simulation, &port, smp::node_info()));
        assert_eq!((plane.lid, plane.state), (first.lid, PortState::Active), "{port}");
        assert_eq!((plane.width_active, plane.width_supported), (1, 1), "{port}");
        assert_eq!(plane.speed_ext2_active, 1, "{port}");
        let (node, at) = (NodeInfo::decode(&node), find(simulation.net(), &port));
        assert_eq!(simulation.port(at).bytes_per_second(), 25_000_000_000, "200 Gb/s");
        assert_eq!(node.port_guid, Guid(node.node_guid.0 + 1), "{port}");
    }
    // The LID of each node of a switch is its own.
    let lids: BTreeSet<_> = (1..=4).map(|asic| info(&format!("leaf-0-a{asic}[0]")).lid).collect();
    assert_eq!(lids.len(), 4);
    let reached = simulation.port_of_lid(find(simulation.net(), "host-0[1]"), first.lid);
    assert_eq!(reached, Some(find(simulation.net(), "host-3[1]")));
}

#[test]
fn port_select_is_the_plane() {
    let mut simulation = four_asics();
    for plane in 1..=4u8 {
        let port = find(simulation.net(), &format!("host-3[{plane}]"));
        let value = u64::from(plane) * 1000;
        simulation
            .apply(at(0), FabricChange::SetCounter { port, counter: Counter::XmitData, value });
    }
    // Whichever plane a request comes in by.
    for by in ["host-3[1]", "host-3[4]"] {
        for plane in 1..=4u8 {
            let query = pma::counters(Attribute::PortCountersExtended, plane);
            let response = get(&simulation, by, query);
            let mut fields = Counter::XmitData.row().fields.iter();
            let field = fields.find(|it| it.attribute == Attribute::PortCountersExtended);
            let sent = field.unwrap().read(&response);
            assert_eq!(sent, u64::from(plane) * 1000, "{by} {plane}");
        }
    }
}

#[test]
fn state_table_has_a_second_block() {
    let mut simulation = four_asics();
    let table = |simulation: &Simulation, block| {
        let response = get(simulation, "leaf-0-a1[0]", subnet(SwitchPortStateTable::ID, block));
        assert_eq!(response.status(), 0);
        SwitchPortStateTable::decode(&response)
    };
    let port = find(simulation.net(), "leaf-0-a1[145]");
    assert_eq!(table(&simulation, 0).state(1), PortState::Active);
    assert_eq!(table(&simulation, 1).state(145), PortState::Active);
    simulation.apply(at(1), FabricChange::SetSignal { port, up: false });
    assert_eq!(table(&simulation, 1).state(145), PortState::Down);
    assert_eq!(table(&simulation, 1).state(146), PortState::Active);
    let beyond = subnet(SwitchPortStateTable::ID, 2);
    assert_eq!(get(&simulation, "leaf-0-a1[0]", beyond).status(), status::INVALID_FIELD);
}

/// The nodes that a discovery over directed routes finds from a port.
fn discovered(simulation: &Simulation, from: &str) -> BTreeSet<Guid> {
    let from = find(simulation.net(), from);
    let mut found = BTreeSet::new();
    let mut routes = std::collections::VecDeque::from([Vec::new()]);
    while let Some(route) = routes.pop_front() {
        let Some(there) = follow_route(simulation, from, &route) else { continue };
        let request = smp::node_info().request(None, 1);
        let info = NodeInfo::decode(&response(simulation, there, &request).unwrap());
        let is_switch = simulation.net().node_of(there).kind == NodeKind::Switch;
        let ports = match (found.insert(info.node_guid), route.is_empty()) {
            (true, true) => info.local_port..=info.local_port,
            (true, false) if is_switch => 1..=info.port_count,
            (false, _) | (true, false) => continue,
        };
        routes.extend(ports.map(|port| [&route[..], &[port]].concat()));
    }
    found
}

#[test]
fn discovery_from_one_plane_finds_all_nodes_while_the_rings_are_whole() {
    let mut simulation = four_asics();
    let all: BTreeSet<Guid> = simulation.net().nodes.iter().map(|node| node.guid).collect();
    for plane in 1..=4 {
        assert_eq!(discovered(&simulation, &format!("host-0[{plane}]")), all, "{plane}");
    }
    let ring: Vec<PortId> = {
        let net = simulation.net();
        let is_fnm =
            |port: &PortId| net.port(*port).cable.is_some_and(|peer| net.is_fnm_link(*port, peer));
        net.port_ids().filter(is_fnm).collect()
    };
    for port in ring {
        simulation.apply(at(1), FabricChange::SetSignal { port, up: false });
    }
    let found = discovered(&simulation, "host-0[2]");
    let net = simulation.net();
    let missing: Vec<&str> =
        net.nodes.iter().filter(|it| !found.contains(&it.guid)).map(|it| it.id.as_str()).collect();
    let of_other_planes = |id: &&str| ["-a1", "-a3", "-a4"].iter().any(|asic| id.contains(asic));
    assert!(missing.iter().all(of_other_planes), "{missing:?}");
    // Three nodes of four switches, each with an aggregation node and a router.
    assert_eq!(missing.len(), 3 * 4 * 3, "{missing:?}");
}
