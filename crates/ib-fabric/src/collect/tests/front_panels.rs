//! Front-panel names, which discoveries read once.

use super::*;
use crate::hardware::{Hardware, ReadAt};
use crate::topology::Port;
use ib_mad::PortNumber;
use ib_mad::hierarchy::{HierarchyInfo, template};
use ib_mad::vendor::GeneralInfo;

/// As Quantum-2 numbers its cages: two ports each.
fn quantum2(port: PortNumber) -> HierarchyInfo {
    let mut info = HierarchyInfo::empty(template::NDR);
    let number = u32::from(port);
    info.values[1..4].copy_from_slice(&[(number + 1) % 2 + 1, number.div_ceil(2), 1]);
    info
}

/// The local host, a switch with 8 ports, and two hosts; switch and first host have front-panel names.
fn labeled() -> ScriptedTransport {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1))];
    let mut nodes = fabric(&[(CA, 1), (SWITCH, 8), (CA, 1), (CA, 1)], &cables);
    nodes[1].hierarchy = Some(quantum2);
    nodes[2].hierarchy = Some(|port| {
        let mut info = HierarchyInfo::empty(template::XDR_ADAPTER);
        (info.values[0], info.values[3], info.values[4]) = (4, u32::from(port), 2);
        info
    });
    ScriptedTransport::new(nodes)
}

/// Discovers, and returns the fabric with the ports (GUID and number) whose HierarchyInfo was requested.
fn discover(
    transport: &mut ScriptedTransport,
    previous: Option<&Fabric>,
    hardware: Option<&Hardware>,
) -> (Fabric, Vec<(u8, u32)>) {
    transport.sent.clear();
    let mut plan =
        Discovery::new(Arc::default(), None, HashSet::new()).with_front_panels(previous, hardware);
    run_plan(transport, &mut plan);
    let found = plan.finish();
    assert_eq!((found.failures, found.gaps), (0, vec![]));
    let previous = previous.map(|fabric| (fabric, Moment(0)));
    let fabric = Fabric::assemble(found.fabric, &Naming::default(), transport.now(), previous);
    let asked = transport.sent.iter().filter(|it| it.mad.attribute() == HierarchyInfo::ID);
    // The last hop of the route says which node it is.
    let asked = asked.map(|it| (it.mad.route_ports().last().copied(), it.mad.modifier()));
    let mut asked: Vec<_> = asked.map(|(hop, port)| (hop.unwrap_or(0), port)).collect();
    asked.sort_unstable();
    (fabric, asked)
}

fn labels(fabric: &Fabric) -> Vec<(u64, PortNumber, String)> {
    let label = |port| {
        let PortKey { guid, number } = fabric.port_key(port);
        Some((guid.0, number, fabric.front_panel(port)?.label()?))
    };
    fabric.port_indexes().filter_map(label).collect()
}

#[test]
fn names_are_read_once_after_everything_else() {
    let mut transport = labeled();
    let (first, asked) = discover(&mut transport, None, None);
    // The switch by its external ports, through the local port; the host by the port of the route.
    let all: Vec<(u8, u32)> = (1..=8).map(|port| (1, port)).chain([(2, 0)]).collect();
    assert_eq!(asked, all);
    let is_name = |it: &OutgoingMad| it.mad.attribute() == HierarchyInfo::ID;
    let begins = transport.sent.iter().position(is_name).unwrap();
    assert!(transport.sent[begins..].iter().all(is_name), "nothing comes after it");
    let named = labels(&first);
    assert_eq!(named.len(), 9);
    assert_eq!(named[0], (2, 1, "1/1/1".into()));
    assert_eq!(named[7], (2, 8, "1/4/2".into()));
    assert_eq!(named[8], (3, 1, "ibHCA1p2".into()));

    let (second, asked) = discover(&mut transport, Some(&first), None);
    assert_eq!((labels(&second), asked), (named, vec![]));
    let silent = |fabric: &Fabric| fabric.ports.iter().filter_map(|it: &Port| it.status).count();
    assert_eq!(silent(&second), silent(&first));
}

#[test]
fn names_are_read_again_after_a_return_or_with_other_firmware() {
    let mut transport = labeled();
    let (first, _) = discover(&mut transport, None, None);
    // The host goes, which keeps its name, and comes back at another front panel.
    let cable = transport.nodes[1].links.remove(&2).unwrap();
    let (without, asked) = discover(&mut transport, Some(&first), None);
    assert_eq!((labels(&without).len(), asked), (9, vec![]));
    transport.nodes[1].links.insert(2, cable);
    transport.nodes[2].hierarchy = Some(quantum2);
    let (back, asked) = discover(&mut transport, Some(&without), None);
    assert_eq!(asked, [(2, 0)]);
    // A Quantum-2 label is none of an adapter without a slot.
    assert_eq!(labels(&back).len(), 8);
    let (_, asked) = discover(&mut transport, Some(&back), None);
    assert_eq!(asked, [], "a port without a name is not asked again");

    let with = |minor| {
        let mut hardware = Hardware::default();
        let value = GeneralInfo { major: 31, minor, ..GeneralInfo::default() };
        hardware.node_mut(Guid(2)).general = Some(ReadAt { value, at: Moment(0) });
        hardware
    };
    // The first version that becomes known is not another one.
    let (known, asked) = discover(&mut transport, Some(&back), Some(&with(1)));
    assert_eq!(asked, []);
    let (same, asked) = discover(&mut transport, Some(&known), Some(&with(1)));
    assert_eq!(asked, []);
    let (_, asked) = discover(&mut transport, Some(&same), Some(&with(2)));
    assert_eq!(asked.len(), 8);
}

#[test]
fn device_that_refuses_is_asked_once() {
    let mut transport = labeled();
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let is_names = outgoing.mad.attribute() == HierarchyInfo::ID;
        let is_switch = outgoing.mad.route_ports().len() == 1;
        if is_names && is_switch { Reply::Status(0x0c) } else { Reply::Answered(ROUND_TRIP) }
    });
    let (first, asked) = discover(&mut transport, None, None);
    assert_eq!((labels(&first).len(), asked), (1, vec![(1, 1), (2, 0)]));
    let (second, asked) = discover(&mut transport, Some(&first), None);
    assert_eq!((labels(&second).len(), asked), (1, vec![]));
}

#[test]
fn port_without_hierarchy_leaves_the_others() {
    let mut transport = labeled();
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let is_port = outgoing.mad.attribute() == HierarchyInfo::ID && outgoing.mad.modifier() == 1;
        if is_port { Reply::Status(0x1c) } else { Reply::Answered(ROUND_TRIP) }
    });
    let (first, asked) = discover(&mut transport, None, None);
    assert_eq!((labels(&first).len(), asked.len()), (8, 9));
    assert_eq!(discover(&mut transport, Some(&first), None).1, []);
}

#[test]
fn silent_device_is_asked_ever_more_rarely() {
    let mut transport = labeled();
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let is_names = outgoing.mad.attribute() == HierarchyInfo::ID;
        let is_switch = outgoing.mad.route_ports().len() == 1;
        if is_names && is_switch { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
    });
    let (mut known, _) = discover(&mut transport, None, None);
    let mut asked_in = Vec::new();
    for discovery in 1..20 {
        let (next, asked) = discover(&mut transport, Some(&known), None);
        if !asked.is_empty() {
            assert_eq!(asked, [(1, 1)], "once, by one port");
            asked_in.push(discovery);
        }
        known = next;
    }
    assert_eq!(asked_in, [2, 6, 14]);
    // It responds again.
    transport.reply = Box::new(|_| Reply::Answered(ROUND_TRIP));
    for _ in 0..16 {
        known = discover(&mut transport, Some(&known), None).0;
    }
    assert_eq!(labels(&known).len(), 9);
}

#[test]
fn names_are_not_read_unless_asked_for_or_announced() {
    let mut transport = labeled();
    discovered(&mut transport);
    let is_name = |it: &OutgoingMad| it.mad.attribute() == HierarchyInfo::ID;
    assert!(!transport.sent.iter().any(is_name));
    for node in &mut transport.nodes {
        node.hierarchy = None;
    }
    let (fabric, asked) = discover(&mut transport, None, None);
    assert_eq!((labels(&fabric), asked), (vec![], vec![]));
}

#[test]
fn discovery_that_reached_a_limit_reads_no_names() {
    let mut transport = labeled();
    let mut plan = Discovery::with_limit(12).with_front_panels(None, None);
    run_plan(&mut transport, &mut plan);
    plan.finish();
    assert!(!transport.sent.iter().any(|it| it.mad.attribute() == HierarchyInfo::ID));
}
