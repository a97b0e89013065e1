use super::*;
use crate::front_panels::FrontPanels;
use crate::testing::{PlaneNet, RING, end, fnm_panel, plane_panel};
use ib_mad::front_panel::PanelPortType;
use ib_mad::{PortKey, PortRole};

/// The whole link at a port.
fn at(fabric: &Fabric, port: PortKey) -> &AggregatedLink {
    fabric.aggregated_link(fabric.find(port).unwrap()).unwrap()
}

fn id_at(fabric: &Fabric, port: PortKey) -> String {
    fabric.link_id(fabric.find(port).unwrap()).unwrap().to_string()
}

/// The planes of a link and where they lead.
fn wiring(link: &AggregatedLink) -> Vec<(u8, Wiring)> {
    link.planes.iter().map(|plane| (plane.plane, plane.wiring)).collect()
}

fn straight(planes: impl IntoIterator<Item = u8>) -> Vec<(u8, Wiring)> {
    planes.into_iter().map(|plane| (plane, Wiring::Straight)).collect()
}

#[test]
fn planes_at_four_nodes_are_one_link() {
    let fabric = PlaneNet::of_four_nodes().fabric(None);
    assert_eq!(fabric.links().count(), 5 * 4 + 8);
    assert_eq!(fabric.whole_links().count(), 5 + 8, "links of the rings are by themselves");
    for host in 1..=4 {
        let link = at(&fabric, end(0xb0 + host, 3));
        assert_eq!(link, at(&fabric, end(0xa2, host as u8)));
        assert_eq!(wiring(link), straight(1..=4));
        assert_eq!(
            (link.source, link.expected, link.missing()),
            (GroupSource::HierarchyInfo, 4, 0)
        );
        assert!(!link.is_swapped());
        let [switch, adapter] = link.ends;
        assert_eq!((switch.system, u64::from(switch.number)), (Guid(0xa0), host));
        assert_eq!((adapter.system, adapter.number), (Guid(0xb0 + host), 1));
        let id = format!("0x00000000000000a1:{host}-0x00000000000000b{host}:1");
        assert_eq!(id_at(&fabric, end(0xa4, host as u8)), id);
    }
    let trunk = at(&fabric, end(0xc3, 1));
    assert_eq!(wiring(trunk), straight(1..=4));
    let ring = fabric.find(end(0xa1, RING[0])).unwrap();
    assert!(fabric.aggregated_link(ring).is_none());
    assert_eq!(fabric.port(ring).role, Some(PortRole::Fnm), "its panel says so");
    let port = fabric.find(end(0xa2, 3)).unwrap();
    assert_eq!(fabric.plane_of(port), Some((AggregatedPort { system: Guid(0xa0), number: 3 }, 2)));
}

#[test]
fn planes_at_one_node_are_one_link() {
    let fabric = PlaneNet::of_one_node().fabric(None);
    assert_eq!(wiring(at(&fabric, end(0xa1, 2))), straight(1..=4));
    let two = at(&fabric, end(0xa1, 6));
    assert_eq!((wiring(two), two.expected), (straight(1..=2), 2));
    for port in [9, 10] {
        assert!(fabric.aggregated_link(fabric.find(end(0xa1, port)).unwrap()).is_none());
    }
    assert_eq!(fabric.whole_links().count(), 4);
    let mut net = PlaneNet::of_one_node();
    for port in &mut net.nodes[0].ports {
        port.role = (port.number == 10).then_some(PortRole::Fnm);
    }
    let fabric = net.fabric(None);
    let management = fabric.links().find(|link| fabric.port(link.low).number == 10).unwrap();
    assert!(!fabric.is_internal(management), "fnm1 has a cable");
}

#[test]
fn planes_that_go_down_stay_planes() {
    let mut net = PlaneNet::of_four_nodes();
    let before = net.fabric(None);
    let id = id_at(&before, end(0xb1, 4));
    net.unplug(end(0xa1, 1));
    net.unplug(end(0xa3, 1));
    let after = net.fabric(Some(&before));
    let link = at(&after, end(0xb1, 4));
    assert_eq!((wiring(link), link.missing()), (straight(1..=4), 0));
    assert_eq!(id_at(&after, end(0xb1, 4)), id);
    // Without what was known before, they are missing.
    let new = net.fabric(None);
    let link = at(&new, end(0xb1, 4));
    assert_eq!((wiring(link), link.missing()), (straight([2, 4]), 2));
}

#[test]
fn exchanged_planes_of_one_link_are_found() {
    let mut net = PlaneNet::of_four_nodes();
    net.exchange([end(0xa1, 1), end(0xa2, 1)]);
    let fabric = net.fabric(None);
    let link = at(&fabric, end(0xb1, 1));
    let crossed = |plane| (plane, Wiring::OtherPlane);
    let expected = [vec![crossed(1), crossed(2)], straight([3, 4])].concat();
    assert_eq!(wiring(link), expected);
    assert_eq!(
        fabric.aggregated_links.as_slice().iter().filter(|link| link.is_swapped()).count(),
        1
    );
}

#[test]
fn ends_that_number_planes_differently_are_no_fault() {
    let mut net = PlaneNet::of_four_nodes();
    for host in 0xb1..=0xb4 {
        for port in 1..=4 {
            net.panel(host, port, plane_panel(NodeKind::Ca, 1, [5 - port, 4]));
        }
    }
    let fabric = net.fabric(None);
    assert!(fabric.aggregated_links.as_slice().iter().all(|link| !link.is_swapped()));
    assert_eq!(fabric.aggregated_links.as_slice().iter().len(), 5);
}

#[test]
fn plane_at_another_port_belongs_to_the_link_of_its_other_planes() {
    // Plane 4 of host 1 and of host 2 are exchanged.
    let mut net = PlaneNet::of_four_nodes();
    net.exchange([end(0xa4, 1), end(0xa4, 2)]);
    let fabric = net.fabric(None);
    let swapped = fabric.aggregated_links.as_slice().iter().filter(|link| link.is_swapped());
    assert_eq!(swapped.clone().count(), 2);
    for link in swapped {
        assert_eq!((link.astray.len(), link.missing()), (2, 0));
    }
    let planes: usize =
        fabric.aggregated_links.as_slice().iter().map(|link| link.planes.len()).sum();
    assert_eq!(planes, 20, "each plane once");
    // A plane that leads to a port of another switch, where nothing else is.
    let mut net = PlaneNet::of_four_nodes();
    net.unplug(end(0xa4, 1));
    net.links.push((end(0xc4, 6), end(0xb1, 4)));
    let fabric = net.fabric(None);
    let link = at(&fabric, end(0xc4, 6));
    let expected = [straight(1..=3), vec![(4, Wiring::OtherPort)]].concat();
    assert_eq!((wiring(link), link.missing()), (expected, 0));
    assert_eq!(
        fabric.aggregated_links.as_slice().iter().filter(|link| link.is_swapped()).count(),
        1
    );
    assert_eq!(fabric.aggregated_links.as_slice().iter().len(), 5);
}

#[test]
fn equal_ports_of_four_nodes_suggest_the_planes() {
    let mut net = PlaneNet::of_four_nodes();
    net.panels = FrontPanels::default();
    for node in net.nodes.iter_mut().filter(|node| node.identity.kind == NodeKind::Switch) {
        for port in node.ports.iter_mut().filter(|port| RING.contains(&port.number)) {
            port.role = Some(PortRole::Fnm);
        }
    }
    let fabric = net.fabric(None);
    assert_eq!(fabric.aggregated_links.as_slice().iter().len(), 5);
    for link in fabric.aggregated_links.as_slice() {
        assert_eq!((wiring(link), link.source), (straight(1..=4), GroupSource::Guess));
        assert_eq!((link.expected, link.is_swapped()), (0, false));
    }
    // What does not fit is no link of several planes: nothing says that it should be one.
    net.exchange([end(0xa4, 1), end(0xa4, 2)]);
    let fabric = net.fabric(None);
    assert_eq!(fabric.aggregated_links.as_slice().iter().len(), 3);
    // Nor are the nodes of other switches.
    for node in &mut net.nodes {
        node.identity.device_id = 54002;
    }
    assert!(net.fabric(None).aggregated_links.is_empty());
}

#[test]
fn adapter_that_reports_no_planes_is_at_those_of_its_switch() {
    let mut net = PlaneNet::of_four_nodes();
    for port in 1..=4 {
        net.panel(0xb1, port, None);
    }
    let known = net.fabric(None);
    net.panels = FrontPanels::default();
    for node in 0xa1..=0xa4 {
        for port in 1..=6 {
            let plane = (node - 0xa0) as u8;
            net.panel(node, port, plane_panel(NodeKind::Switch, port.into(), [plane, 4]));
        }
        for port in RING {
            net.panel(node, port, fnm_panel(PanelPortType::Fnm, port));
        }
    }
    for fabric in [known, net.fabric(None)] {
        let link = at(&fabric, end(0xb1, 2));
        assert_eq!((wiring(link), link.source), (straight(1..=4), GroupSource::Guess));
    }
}

#[test]
fn missing_link_of_a_ring_is_a_gap() {
    let mut net = PlaneNet::of_four_nodes();
    assert!(net.fabric(None).ring_gaps.is_empty());
    let before = net.fabric(None);
    net.unplug(end(0xa2, RING[0]));
    assert!(net.fabric(Some(&before)).ring_gaps.is_empty(), "it is known, and down");
    let fabric = net.fabric(None);
    let [gap] = &fabric.ring_gaps[..] else { panic!("one gap: {:?}", fabric.ring_gaps) };
    let ports: Vec<PortKey> = gap.ports.iter().map(|port| fabric.port_key(*port)).collect();
    assert_eq!(ports, [end(0xa2, RING[0]), end(0xa3, RING[1])]);
    assert!(fabric.is_ring(gap.link));
    // Without any link of a ring nothing says that there should be one.
    for node in 0xa1..=0xa4 {
        net.unplug(end(node, RING[0]));
    }
    assert!(net.fabric(None).ring_gaps.is_empty());
}

/// A fabric whose switches report what a function of their node, port, aggregated port and plane says.
fn with_numbers(numbers: impl Fn(u64, u8, [u8; 2]) -> [u8; 2]) -> PlaneNet {
    let mut net = PlaneNet::of_four_nodes();
    for node in [0xa1_u64, 0xa2, 0xa3, 0xa4, 0xc1, 0xc2, 0xc3, 0xc4] {
        for port in 1..=6 {
            let [number, plane] = numbers(node, port, [port, (node & 0xf) as u8]);
            net.panel(node, port, plane_panel(NodeKind::Switch, number.into(), [plane, 4]));
        }
    }
    net
}

#[test]
fn ports_that_cannot_be_told_apart_are_links_by_themselves() {
    let mut one_system = PlaneNet::of_four_nodes();
    let mut no_system = PlaneNet::of_four_nodes();
    for (net, system) in [(&mut one_system, 0xa0), (&mut no_system, 0)] {
        let switches = net.nodes.iter_mut().filter(|it| it.identity.kind == NodeKind::Switch);
        switches.for_each(|node| node.identity.system_guid = Guid(system));
    }
    let mut silent_without_system = no_system.clone();
    silent_without_system.panels = FrontPanels::default();
    let constant = with_numbers(|_, _, _| [1, 1]);
    // Both ASICs of a switch count from 1.
    let mut two_asics = PlaneNet::of_one_node();
    let mut second = two_asics.nodes[0].clone();
    second.identity.guid = Guid(0xa2);
    two_asics.nodes.push(second);
    for plane in 1..=4 {
        two_asics.panel(0xa2, plane, plane_panel(NodeKind::Switch, 1, [plane, 4]));
    }
    for net in [one_system, no_system, silent_without_system, two_asics, constant] {
        let fabric = net.fabric(None);
        assert_eq!(
            fabric.aggregated_links.as_slice().iter().collect::<Vec<_>>(),
            [] as [&AggregatedLink; 0]
        );
        assert_eq!(fabric.whole_links().count(), fabric.links().count());
    }
}

#[test]
fn link_has_no_more_planes_than_a_port() {
    // Plane 4 of the trunk and of the link of host 1 are exchanged, so that both ends of the trunk have another one.
    let mut net = PlaneNet::of_four_nodes();
    net.exchange([end(0xa4, 1), end(0xa4, 5)]);
    let fabric = net.fabric(None);
    let swapped: Vec<_> =
        fabric.aggregated_links.as_slice().iter().filter(|link| link.is_swapped()).collect();
    assert_eq!(swapped.len(), 2);
    for link in swapped {
        let numbers: Vec<u8> = link.planes.iter().map(|plane| plane.plane).collect();
        assert_eq!((numbers, link.missing()), (vec![1, 2, 3, 4], 0));
    }
}

#[test]
fn link_has_the_id_of_a_plane_that_joins_its_ends() {
    let mut net = PlaneNet::of_four_nodes();
    net.exchange([end(0xa1, 1), end(0xa1, 2)]);
    let fabric = net.fabric(None);
    for host in [1, 2] {
        let id = format!("0x00000000000000a2:{host}-0x00000000000000b{host}:2");
        assert_eq!(id_at(&fabric, end(0xb0 + host, 3)), id);
    }
    assert_eq!(fabric.whole_links().count(), 5 + 8);
}

#[test]
fn ends_that_number_ports_differently_are_no_fault() {
    // Each port of an adapter is an aggregated port for itself.
    for plane_of in [|_| 1, |port| port] {
        let mut net = PlaneNet::of_four_nodes();
        for host in 0xb1..=0xb4 {
            for port in 1..=4 {
                let panel = plane_panel(NodeKind::Ca, port.into(), [plane_of(port), 4]);
                net.panel(host, port, panel);
            }
        }
        let fabric = net.fabric(None);
        assert_eq!(fabric.aggregated_links.as_slice().iter().len(), 5);
        for link in fabric.aggregated_links.as_slice() {
            assert!(!link.is_swapped(), "{link:?}");
            assert_eq!((wiring(link), link.missing()), (straight(1..=4), 0));
            for plane in &link.planes {
                let systems = plane.ports.map(|port| system_of(&fabric.node_of(port).identity));
                assert_eq!(systems, link.ends.map(|end| end.system));
            }
        }
    }
    // Both ends report four planes, and all of them have one cable.
    let mut net = PlaneNet::of_four_nodes();
    for port in 1..=5 {
        (0xa2..=0xa4).for_each(|node| net.unplug(end(node, port)));
    }
    let fabric = net.fabric(None);
    assert!(fabric.aggregated_links.as_slice().iter().all(|link| link.missing() == 0));
    // The adapters report nothing, and the nodes of the switches are not in the order of their planes.
    let mut net = with_numbers(|_, _, [number, plane]| [number, 5 - plane]);
    let of_switches: Vec<_> = net.panels.iter().map(|(key, panel)| (key, *panel)).collect();
    net.panels = FrontPanels::default();
    for (key, panel) in of_switches.into_iter().filter(|(key, _)| key.guid.0 & 0xf0 != 0xb0) {
        net.panels.insert(key, Some(panel));
    }
    let fabric = net.fabric(None);
    assert_eq!(fabric.aggregated_links.as_slice().iter().len(), 5);
    assert!(fabric.aggregated_links.as_slice().iter().all(|link| !link.is_swapped()));
}

#[test]
fn no_plane_is_missing_while_names_are_read() {
    let mut net = PlaneNet::of_four_nodes();
    // Nothing but HierarchyInfo tells the planes of these.
    net.nodes.iter_mut().for_each(|node| node.identity.device_id = 54002);
    let all: Vec<_> = net.panels.iter().map(|(key, panel)| (key, *panel)).collect();
    let unread = end(0xa2, 1);
    net.panels = FrontPanels::default();
    for (key, panel) in all.into_iter().filter(|(key, _)| *key != unread) {
        net.panels.insert(key, Some(panel));
    }
    let missing = |net: &PlaneNet| at(&net.fabric(None), end(0xb1, 1)).missing();
    assert_eq!(missing(&net), 0);
    // It has no name, which is known.
    net.panels.insert(unread, None);
    assert_eq!(missing(&net), 1);
}
