//! Two nodes with one GUID are not merged.

use super::*;
use crate::topology::DuplicateGuid;
use ib_mad::PortKey;
use ib_mad::smp::NodeInfo;

fn duplicate(guid: u64, behind: (u64, u8)) -> DuplicateGuid {
    DuplicateGuid { guid: Guid(guid), behind: Some(PortKey::new(Guid(behind.0), behind.1)) }
}

/// Our host 1 at switch 2, where hosts 3 and 4 are at the ports 2 and 3.
fn two_hosts() -> ScriptedTransport {
    let nodes = [(CA, 1), (SWITCH, 4), (CA, 1), (CA, 1)];
    ScriptedTransport::new(fabric(&nodes, &[((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1))]))
}

#[test]
fn duplicate_guid_of_two_hcas_is_reported_once() {
    let mut transport = two_hosts();
    transport.nodes[3].guid = 3;
    let found = discovered(&mut transport).fabric;
    assert_eq!(found.duplicates, [duplicate(3, (2, 3))]);
    assert_eq!(found.nodes.len(), 3);
    assert_eq!(found.links.len(), 2, "port 3 of the switch leads to a node that is not known");
    let fabric = assembled(&mut transport);
    let port = |number| fabric.port(fabric.find(PortKey::new(Guid(2), number)).unwrap());
    assert!(port(2).peer.is_some() && port(3).peer.is_none());
    assert!(port(3).status.unwrap().link_up());
    assert_eq!(fabric.duplicates[0].location(&fabric), "behind node 2 port 3");
}

#[test]
fn different_device_with_known_guid_is_duplicate() {
    for change in [
        |node: &mut ib_umad::testing::ScriptedNode| node.device_id = 4129,
        |node: &mut ib_umad::testing::ScriptedNode| node.ports = 2,
        |node: &mut ib_umad::testing::ScriptedNode| node.kind = NodeKind::Router,
    ] {
        let mut transport = two_hosts();
        transport.nodes[3].guid = 3;
        change(&mut transport.nodes[3]);
        assert_eq!(discovered(&mut transport).fabric.duplicates, [duplicate(3, (2, 3))]);
    }
}

#[test]
fn own_guid_elsewhere_is_duplicate() {
    let mut transport = two_hosts();
    transport.nodes[3].guid = 1;
    let found = discovered(&mut transport).fabric;
    assert_eq!((found.duplicates, found.links.len()), (vec![duplicate(1, (2, 3))], 2));
}

/// Switch 2, where we are, leads to the switches 3 and 4, and each of these to a host (5, 6) at its port
/// 2 and to another one (7, 8) at its port 4.
fn two_leaves() -> ScriptedTransport {
    let nodes =
        [(CA, 1), (SWITCH, 8), (SWITCH, 4), (SWITCH, 4), (CA, 1), (CA, 1), (CA, 1), (CA, 1)];
    let links = [
        ((0, 1), (1, 1)),
        ((1, 2), (2, 1)),
        ((1, 3), (3, 1)),
        ((2, 2), (4, 1)),
        ((3, 2), (5, 1)),
        ((2, 4), (6, 1)),
        ((3, 4), (7, 1)),
    ];
    ScriptedTransport::new(fabric(&nodes, &links))
}

#[test]
fn switches_with_one_guid_are_not_merged() {
    let mut transport = two_leaves();
    transport.nodes[3].guid = 3;
    let found = discovered(&mut transport).fabric;
    assert_eq!(found.duplicates, [duplicate(3, (2, 3))]);
    let mut guids: Vec<u64> = found.nodes.iter().map(|node| node.identity.guid.0).collect();
    guids.sort_unstable();
    assert_eq!(guids, [1, 2, 3, 5, 7], "what is behind the other switch is not known");
    let assembled = assembled(&mut transport);
    let peer = |port| {
        let port = assembled.port(assembled.find(PortKey::new(Guid(3), port)).unwrap());
        port.peer.map(|peer| assembled.port_key(peer.port))
    };
    assert_eq!(
        [1, 2, 4].map(peer),
        [
            Some(PortKey::new(Guid(2), 2)),
            Some(PortKey::new(Guid(5), 1)),
            Some(PortKey::new(Guid(7), 1))
        ]
    );
}

#[test]
fn entry_by_linkless_port_reveals_duplicate_switch() {
    let mut transport = two_leaves();
    // The second one is entered by its port 3, which has no link on the first.
    let [near, far] = [(1, 3), (3, 3)];
    transport.nodes[3].links.remove(&1);
    transport.nodes[3].links.insert(far.1, near);
    transport.nodes[1].links.insert(near.1, (far.0, far.1));
    transport.nodes[3].guid = 3;
    let found = discovered(&mut transport).fabric;
    assert_eq!((found.duplicates, found.links.len()), (vec![duplicate(3, (2, 3))], 4));
}

#[test]
fn cable_moved_during_discovery_is_no_duplicate() {
    let mut transport = two_hosts();
    transport.nodes[3].guid = 3;
    // The host responds behind port 2 once, and is behind port 3 from then on.
    let mut met = false;
    transport.reply = Box::new(move |outgoing| {
        let route = &outgoing.mad.0[129..129 + usize::from(outgoing.mad.u8(7))];
        let gone = route == [1, 2] && outgoing.mad.attribute() == NodeInfo::ID && met;
        met |= route == [1, 2];
        if gone { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
    });
    let found = discovered(&mut transport).fabric;
    assert_eq!(found.duplicates, []);
    assert!(
        found.links.contains(&(PortKey::new(Guid(2), 3), PortKey::new(Guid(3), 1))),
        "{:?}",
        found.links
    );
    assert_eq!(found.links.len(), 2);
}
