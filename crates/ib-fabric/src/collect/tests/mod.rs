//! Discovery and sweeps over scripted and simulated fabrics.
//!
//! These tests cover what ibsim cannot do: routers, one-MAD devices, devices without ClassPortInfo,
//! nodes that stop responding during a discovery. Agreement with infiniband-diags is tested on ibsim.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ib_mad::counter::Attribute;
use ib_mad::node::NodeKind;
use ib_mad::pma::{DetailPolicy, OptionalCounters};
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::{Counter, Guid, Lid, Moment, PortKey};
use ib_umad::client::{MadClient, SendConfig};
use ib_umad::plan::{QueryPlan, run};
use ib_umad::testing::{ROUND_TRIP, Reply, ScriptedTransport, fabric, symbol_errors};
use ib_umad::{MadTransport, OutgoingMad};
use proptest::prelude::*;

use super::agent_cache::AgentCache;
use super::clear::CounterClearing;
use super::discovery::Discovery;
use super::sweep::{Sweep, SweepResult};
use crate::names::Naming;
use crate::topology::Presence;
use crate::{Fabric, NodeIndex};

mod confirmation;
mod counter_sources;
mod duplicates;
mod endless;
mod fec_modes;
mod front_panels;
mod hidden_nodes;
mod kind;
mod max_mads;
mod ordinary;
mod partial_agents;
mod planes;
#[path = "../../../tests/simulated/plans.rs"]
mod plans;
mod refusals;
mod registers;
mod sm_sweep;

use confirmation::swept_confirming;
use plans::{assembled, discovered, run_plan, swept};

const CA: NodeKind = NodeKind::Ca;
const SWITCH: NodeKind = NodeKind::Switch;

const DETAILS: OptionalCounters = OptionalCounters { details: DetailPolicy::EachSweep, fec: false };
/// PortSamplesControl, which is read once of agents with a 64-bit PortXmitWait.
const TICK: u16 = 0x10;
const FEC: OptionalCounters = OptionalCounters { details: DetailPolicy::Never, fec: true };

/// The links of a fabric in the terms of the script: ((node, port), (node, port)).
fn cables(fabric: &Fabric) -> Vec<((usize, u8), (usize, u8))> {
    let named = |port| {
        let PortKey { guid, number } = fabric.port_key(port);
        (guid.0 as usize - 1, number)
    };
    let mut cables: Vec<_> =
        fabric.links().map(|link| (named(link.low), named(link.high))).collect();
    cables.sort_unstable();
    cables
}

#[test]
fn discovers_every_fabric_shape() {
    type Shape<'a> = (&'a str, &'a [(NodeKind, u8)], &'a [((usize, u8), (usize, u8))]);
    let shapes: &[Shape<'_>] = &[
        ("back to back", &[(CA, 1), (CA, 2)], &[((0, 1), (1, 2))]),
        ("one switch", &[(CA, 1), (CA, 1), (SWITCH, 4)], &[((0, 1), (2, 1)), ((1, 1), (2, 4))]),
        (
            "a loop of switches with parallel links",
            &[(CA, 1), (SWITCH, 8), (SWITCH, 8), (SWITCH, 8)],
            &[
                ((0, 1), (1, 1)),
                ((1, 2), (2, 1)),
                ((1, 3), (2, 2)),
                ((1, 4), (3, 4)),
                ((2, 3), (3, 1)),
            ],
        ),
        (
            "an HCA with two ports on one fabric, ours too",
            &[(CA, 2), (SWITCH, 4), (SWITCH, 4), (CA, 2)],
            &[
                ((0, 1), (1, 1)),
                ((0, 2), (2, 1)),
                ((1, 2), (2, 2)),
                ((1, 3), (3, 1)),
                ((2, 3), (3, 2)),
            ],
        ),
        (
            "a router, behind which is another subnet",
            &[(CA, 1), (SWITCH, 4), (NodeKind::Router, 2)],
            &[((0, 1), (1, 1)), ((1, 2), (2, 1))],
        ),
        ("a loopback plug", &[(CA, 1), (SWITCH, 4)], &[((0, 1), (1, 1)), ((1, 2), (1, 3))]),
    ];
    for (name, nodes, links) in shapes {
        let mut transport = ScriptedTransport::new(fabric(nodes, links));
        let found = assembled(&mut transport);
        assert_eq!(found.nodes.len(), nodes.len(), "{name}");
        assert_eq!(found.duplicates, [], "{name}");
        // Discovery does not leave by the second local port: it may be on another subnet.
        assert_eq!(cables(&found), *links, "{name}");
        let kinds: Vec<NodeKind> = found.nodes.iter().map(|node| node.identity.kind).collect();
        assert_eq!(kinds, nodes.iter().map(|node| node.0).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn discovery_from_switch_finds_same_fabric() {
    let nodes = [(CA, 1), (SWITCH, 4), (SWITCH, 4), (CA, 1)];
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 2)), ((2, 3), (3, 1))];
    let mut transport = ScriptedTransport::new(fabric(&nodes, &links));
    transport.local_port = (1, 0);
    assert_eq!(cables(&assembled(&mut transport)), links);
}

#[test]
fn descriptions_are_sanitized_and_aggregation_nodes_recognized() {
    let mut nodes = fabric(&[(CA, 1), (SWITCH, 4), (CA, 1)], &[((0, 1), (1, 1)), ((1, 4), (2, 1))]);
    nodes[0].description = vec![b'x'; 64];
    nodes[1].description = b"bad\xff\n\"name\0rest".to_vec();
    nodes[2].description = b"Mellanox Technologies Aggregation Node".to_vec();
    let mut transport = ScriptedTransport::new(nodes);
    let fabric = assembled(&mut transport);
    assert_eq!(fabric.nodes[NodeIndex(0)].name, "x".repeat(64));
    assert_eq!(fabric.nodes[NodeIndex(1)].name, "bad\u{fffd}\u{fffd}\"name");
    assert_eq!(fabric.nodes[NodeIndex(2)].identity.kind, NodeKind::AggregationNode);

    // Its counters are not read, and that is no failure.
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert_eq!((swept.failed_ports, &*swept.snapshot.silent), (0, &[false; 3][..]));
    assert_eq!(swept.snapshot.readings.iter().flatten().count(), 1 + 4);
}

#[test]
fn silent_neighbor_leaves_one_gap() {
    let nodes = [(CA, 1), (SWITCH, 4), (CA, 1), (CA, 1)];
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1))];
    let mut transport = ScriptedTransport::new(fabric(&nodes, &links));
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let route = outgoing.mad.0[129..131].to_vec();
        if outgoing.mad.u8(7) == 2 && route == [1, 2] {
            Reply::Lost
        } else {
            Reply::Answered(ROUND_TRIP)
        }
    });
    let found = discovered(&mut transport);
    assert_eq!((found.fabric.nodes.len(), found.failures), (3, 1));
}

#[test]
fn discovery_continues_without_switch_port0() {
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 1))];
    let mut transport = ScriptedTransport::new(fabric(&[(CA, 1), (SWITCH, 4), (CA, 1)], &links));
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let port0 = outgoing.mad.u8(7) == 1
            && (outgoing.mad.attribute(), outgoing.mad.modifier()) == (0x15, 0);
        if port0 { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
    });
    assert_eq!(cables(&assembled(&mut transport)), links);
}

#[test]
fn discovery_ends_when_nothing_responds() {
    let mut transport = ScriptedTransport::new(fabric(&[(CA, 1)], &[]));
    transport.reply = Box::new(|_| Reply::Lost);
    let found = discovered(&mut transport);
    assert!(found.fabric.nodes.is_empty());
    assert!(transport.now().since(Moment(0)) < Duration::from_secs(2));
}

/// The local host, a switch with 8 ports, and three hosts of different generations.
fn generations() -> ScriptedTransport {
    let mut nodes = fabric(
        &[(CA, 1), (SWITCH, 8), (CA, 1), (CA, 1), (CA, 1)],
        &[((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1)), ((1, 4), (4, 1))],
    );
    nodes[2].capabilities = (0x5300, 2);
    nodes[3].capabilities = (0, 0);
    nodes[4].capabilities = (0x0400, 0);
    ScriptedTransport::new(nodes)
}

fn attributes_queried(transport: &ScriptedTransport, lid: u16) -> Vec<u16> {
    let of_lid = transport
        .sent
        .iter()
        .filter(|outgoing| outgoing.lid == Lid(lid) && !outgoing.class.is_smp());
    of_lid.map(|outgoing| outgoing.mad.attribute()).collect()
}

#[test]
fn class_port_info_is_queried_once_per_agent() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    for round in 0..2 {
        transport.sent.clear();
        let swept = swept(&mut transport, &fabric, &mut agents);
        assert_eq!(swept.failed_ports, 0);
        let introduction: &[u16] = if round == 0 { &[1] } else { &[] };
        let (classic, extended) =
            (Attribute::PortCounters as u16, Attribute::PortCountersExtended as u16);
        let tick: &[u16] = if round == 0 { &[TICK] } else { &[] };
        for (lid, pages, tick) in [
            (3, &[classic, extended][..], tick),
            (4, &[classic], &[]),
            (5, &[classic, extended], &[]),
        ] {
            assert_eq!(
                attributes_queried(&transport, lid),
                [introduction, pages, tick].concat(),
                "LID {lid}, round {round}"
            );
        }
        for port in fabric.port_indexes() {
            let PortKey { guid, number } = fabric.port_key(port);
            let read = swept.snapshot.readings[port]
                .as_ref()
                .and_then(|reading| reading.get(Counter::SymbolErrors));
            let expected = fabric
                .is_monitored(port)
                .then(|| u64::from(symbol_errors(guid.0 as usize - 1, number)));
            assert_eq!(read, expected, "{guid} port {number}");
        }
    }
}

#[test]
fn error_details_stop_after_refusal() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::new(DETAILS);
    // Only after it is known that it announces no options.
    for expected in [&[1, 0x12, 0x1d, TICK, 0x15, 0x16][..], &[0x12, 0x1d]] {
        transport.sent.clear();
        let swept = swept(&mut transport, &fabric, &mut agents);
        assert_eq!(attributes_queried(&transport, 3), expected);
        assert_eq!((swept.failed_ports, swept.snapshot.readings.iter().flatten().count()), (0, 12));
    }
}

#[test]
fn refused_classic_counters_are_not_queried_again() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let classic =
            !outgoing.class.is_smp() && outgoing.mad.attribute() == Attribute::PortCounters as u16;
        if classic && outgoing.lid == Lid(3) {
            Reply::Status(0x0c)
        } else {
            Reply::Answered(ROUND_TRIP)
        }
    });
    let mut agents = AgentCache::default();
    let host = fabric.find(PortKey::new(Guid(3), 1)).unwrap();
    for expected in [
        &[1, Attribute::PortCounters as u16, Attribute::PortCountersExtended as u16, TICK][..],
        &[Attribute::PortCountersExtended as u16],
        &[Attribute::PortCountersExtended as u16],
    ] {
        transport.sent.clear();
        let swept = swept(&mut transport, &fabric, &mut agents);
        assert_eq!((attributes_queried(&transport, 3), swept.failed_ports), (expected.to_vec(), 0));
        let reading = swept.snapshot.reading(host).unwrap();
        // Its 0 is a value: there is no other field.
        assert_eq!(reading.get(Counter::LinkDowned), Some(0));
        assert_eq!(reading.get(Counter::SymbolErrors), Some(symbol_errors(2, 1).into()));
    }
}

#[test]
fn refused_class_port_info_means_classic_counters() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    transport.sent.clear();
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let is_class_port_info = !outgoing.class.is_smp() && outgoing.mad.attribute() == 1;
        if is_class_port_info && outgoing.lid == Lid(3) {
            Reply::Status(0x0c)
        } else {
            Reply::Answered(ROUND_TRIP)
        }
    });
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert_eq!(attributes_queried(&transport, 3), [1, 0x12]);
    assert_eq!(swept.failed_ports, 0);
}

#[test]
fn silent_node_loses_only_its_own_samples() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    swept(&mut transport, &fabric, &mut agents);
    transport.reply =
        Box::new(
            |outgoing: &OutgoingMad| {
                if outgoing.lid == Lid(4) { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
            },
        );
    let before = transport.now();
    let swept = swept(&mut transport, &fabric, &mut agents);
    assert_eq!(*swept.snapshot.silent, [false, false, false, true, false]);
    assert_eq!((swept.failed_ports, swept.snapshot.readings.iter().flatten().count()), (1, 11));
    let node = fabric.node_by_guid(Guid(4)).unwrap();
    assert!(!swept.snapshot.is_up(node));
    assert!(transport.now().since(before) < Duration::from_secs(2));
}

#[test]
fn refusal_does_not_mark_node_silent() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let counters = !outgoing.class.is_smp() && outgoing.mad.attribute() != 1;
        if counters && outgoing.lid == Lid(3) {
            Reply::Status(0x1c)
        } else {
            Reply::Answered(ROUND_TRIP)
        }
    });
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert_eq!((swept.failed_ports, swept.snapshot.silent.contains(&true)), (1, false));
}

#[test]
fn pulled_cable_is_a_change_idle_fabric_is_not() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    assert!(!swept(&mut transport, &fabric, &mut AgentCache::default()).changed);

    transport.nodes[1].links.remove(&2);
    transport.nodes[2].links.remove(&1);
    let after = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert!(after.changed);
    let port = fabric.find(PortKey::new(Guid(2), 2)).unwrap();
    assert_eq!(after.snapshot.status(port).unwrap().state, PortState::Down);

    let again = Arc::new(Fabric::assemble(
        discovered(&mut transport).fabric,
        &Naming::default(),
        Moment(1),
        Some((&fabric, Moment(0))),
    ));
    assert!(
        !swept(&mut transport, &again, &mut AgentCache::default()).changed,
        "the new fabric has the change"
    );
    transport.nodes[1].links.insert(2, (2, 1));
    transport.nodes[2].links.insert(1, (1, 2));
    assert!(
        swept(&mut transport, &again, &mut AgentCache::default()).changed,
        "it was plugged in again"
    );
}

#[test]
fn state_sweep_gives_up_when_no_switch_responds_by_lid() {
    let mut kinds = vec![(CA, 1)];
    kinds.extend([(SWITCH, 40); 10]);
    let mut links = vec![((0, 1), (1, 40))];
    links.extend((1..10).map(|switch| ((switch, 1), (switch + 1, 2))));
    let mut transport = ScriptedTransport::new(fabric(&kinds, &links));
    let fabric = assembled(&mut transport);
    transport.reply =
        Box::new(
            |outgoing: &OutgoingMad| {
                if outgoing.class.is_smp() { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
            },
        );
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert!(swept.states_unavailable && !swept.changed);
    assert_eq!((swept.failed_ports, swept.snapshot.silent.contains(&true)), (0, false));
    assert!(transport.now().since(Moment(0)) < Duration::from_secs(8), "{:?}", transport.now());
}

#[test]
fn changed_lids_and_sm_lid_are_detected() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    assert!(!swept(&mut transport, &fabric, &mut AgentCache::default()).lids_changed);
    transport.nodes[1].sm_lid = 9;
    let after = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert!(after.sm_lid_changed && !after.lids_changed);
    assert_eq!(after.snapshot.readings.iter().flatten().count(), 12, "they stay valid");

    // Two switches exchange their LIDs: each reports the LID by which it is queried.
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 2))];
    let mut transport =
        ScriptedTransport::new(self::fabric(&[(CA, 1), (SWITCH, 4), (SWITCH, 4)], &links));
    let fabric = assembled(&mut transport);
    let (first, second) = (transport.nodes[1].lids.clone(), transport.nodes[2].lids.clone());
    (transport.nodes[1].lids, transport.nodes[2].lids) = (second, first);
    let swept = swept_confirming(&mut transport, &fabric, &mut AgentCache::default());
    assert!(swept.lids_changed);
    // Responses of one to queries of the other are dropped.
    for guid in [2, 3] {
        let node = fabric.node_by_guid(Guid(guid)).unwrap();
        assert!(!swept.snapshot.is_up(node));
        assert!(fabric.ports_of(node).all(|port| swept.snapshot.reading(port).is_none()));
    }
    assert!(swept.snapshot.is_up(fabric.node_by_guid(Guid(1)).unwrap()), "others are not affected");
}

#[test]
fn lost_port_info_keeps_neighbor_up() {
    let mut transport = generations();
    let before = assembled(&mut transport);
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let directed = outgoing.lid == Lid::PERMISSIVE;
        let port_info = (outgoing.mad.attribute(), outgoing.mad.modifier()) == (0x15, 2);
        if directed && port_info { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
    });
    let again = Arc::new(discover_again(&mut transport, &before));
    let host = again.node_by_guid(Guid(3)).unwrap();
    assert_eq!(again.node(host).presence, Presence::Hidden);
    let swept = swept(&mut transport, &again, &mut AgentCache::default());
    assert!(swept.snapshot.is_up(host), "it responds by LID");
    assert!(!swept.changed && !swept.lids_changed);
}

#[test]
fn hidden_node_without_lid_is_down() {
    let mut transport = generations();
    for node in &mut transport.nodes {
        node.lids.clear();
    }
    let before = assembled(&mut transport);
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let far = outgoing.mad.u8(7) == 2 && outgoing.mad.u8(130) == 2;
        if far { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
    });
    let again = Arc::new(discover_again(&mut transport, &before));
    let host = again.node_by_guid(Guid(3)).unwrap();
    assert_eq!(again.node(host).presence, Presence::Hidden);
    let swept = swept(&mut transport, &again, &mut AgentCache::default());
    assert!(!swept.snapshot.is_up(host));
    assert!(swept.snapshot.is_up(again.node_by_guid(Guid(2)).unwrap()));
}

#[test]
fn hidden_node_gets_no_counters_of_new_lid_owner() {
    let mut transport = generations();
    let before = assembled(&mut transport);
    let (one, other) = (transport.nodes[2].lids.clone(), transport.nodes[3].lids.clone());
    (transport.nodes[2].lids, transport.nodes[3].lids) = (other, one);
    // Neither is found: the exchange of LIDs is unknown.
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let far = outgoing.mad.u8(7) == 2 && [2, 3].contains(&outgoing.mad.u8(130));
        if far { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
    });
    let again = Arc::new(discover_again(&mut transport, &before));
    let swept = swept(&mut transport, &again, &mut AgentCache::default());
    for guid in [3, 4] {
        let host = again.node_by_guid(Guid(guid)).unwrap();
        assert_eq!(again.node(host).presence, Presence::Hidden);
        assert!(!swept.snapshot.is_up(host));
        assert!(again.ports_of(host).all(|port| swept.snapshot.reading(port).is_none()));
    }
    assert!(!swept.lids_changed, "found nodes are unchanged");
}

#[test]
fn total_silence_keeps_lid_routed_queries() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    transport.reply = Box::new(|_| Reply::Lost);
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert!(!swept.states_unavailable);
}

#[test]
fn both_ends_of_pulled_cable_go_down_in_one_sweep() {
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 2)), ((1, 3), (3, 1)), ((2, 4), (4, 1))];
    let kinds = [(CA, 1), (SWITCH, 4), (SWITCH, 4), (CA, 1), (CA, 1)];
    let mut transport = ScriptedTransport::new(fabric(&kinds, &links));
    let fabric = assembled(&mut transport);
    transport.nodes[1].links.retain(|port, _| *port == 1);
    transport.nodes[2].links.remove(&2);
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    let state = |guid, port| {
        swept
            .snapshot
            .status(fabric.find(PortKey::new(Guid(guid), port)).unwrap())
            .map(|status| status.state)
    };
    assert_eq!((state(2, 2), state(3, 2)), (Some(PortState::Down), Some(PortState::Down)));
    // The host cannot be queried any more; only the scripted one responds by LID.
    assert_eq!((state(2, 3), state(4, 1)), (Some(PortState::Down), None));
    assert_eq!((state(3, 4), state(5, 1)), (Some(PortState::Active), Some(PortState::Active)));
}

#[test]
fn polling_port_is_no_change() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    transport.polling = PhysicalState::Training; // as a port does with half a cable in it
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert!(!swept.changed);
    let port = fabric.find(PortKey::new(Guid(2), 8)).unwrap();
    assert_eq!(swept.snapshot.status(port).unwrap().physical_state, PhysicalState::Training);
}

#[test]
fn refused_sends_say_nothing_about_nodes() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    transport.reply = Box::new(|_| Reply::Refused);
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    // They are as the discovery found them; their counters are missing, and no subnet manager is known.
    assert!(fabric.node_indexes().all(|node| swept.snapshot.is_up(node)));
    assert_eq!((swept.failed_ports, swept.snapshot.readings.iter().flatten().count()), (12, 0));
    assert!(swept.snapshot.managers.is_none() && !swept.adapters_silent);
}

#[test]
fn failed_class_port_info_is_retried_next_sweep() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let mut first = true;
    transport.reply = Box::new(move |outgoing: &OutgoingMad| {
        let is_class_port_info = !outgoing.class.is_smp() && outgoing.mad.attribute() == 1;
        if is_class_port_info && outgoing.lid == Lid(3) && std::mem::take(&mut first) {
            Reply::Status(0x1c)
        } else {
            Reply::Answered(ROUND_TRIP)
        }
    });
    assert_eq!(swept(&mut transport, &fabric, &mut agents).failed_ports, 1);
    transport.sent.clear();
    swept(&mut transport, &fabric, &mut agents);
    assert_eq!(attributes_queried(&transport, 3), [1, 0x12, 0x1d, TICK]);
}

#[test]
fn aggregation_node_kind_survives_lost_description() {
    let built = fabric(&[(CA, 1), (SWITCH, 4), (CA, 1)], &[((0, 1), (1, 1)), ((1, 4), (2, 1))]);
    let kind = |fabric: &Fabric| fabric.nodes[NodeIndex(2)].identity.kind;
    let lost = |outgoing: &OutgoingMad| match outgoing.mad.attribute() {
        0x10 => Reply::Lost,
        _ => Reply::Answered(ROUND_TRIP),
    };
    // By its name, and when its NodeDescription is lost in the next discovery.
    let mut transport = ScriptedTransport::new(built.clone());
    transport.nodes[2].description = b"Mellanox Technologies Aggregation Node".to_vec();
    let first = assembled(&mut transport);
    transport.reply = Box::new(lost);
    assert_eq!(kind(&discover_again(&mut transport, &first)), NodeKind::AggregationNode);
    // By its device id alone: nothing was known before.
    let mut transport = ScriptedTransport::new(built);
    transport.nodes[2].device_id = 53001;
    transport.reply = Box::new(lost);
    assert_eq!(kind(&assembled(&mut transport)), NodeKind::AggregationNode);
}

#[test]
fn discovery_waits_for_dead_hosts_in_parallel() {
    let mut nodes = vec![(CA, 1), (SWITCH, 64), (SWITCH, 64), (SWITCH, 64)];
    nodes.extend([(CA, 1); 140]);
    let mut links = vec![((0, 1), (1, 64)), ((1, 62), (2, 63)), ((1, 63), (3, 63))];
    links.extend(
        (0..140u8).map(|n| ((1 + usize::from(n / 50), n % 50 + 1), (4 + usize::from(n), 1))),
    );
    let mut transport = ScriptedTransport::new(fabric(&nodes, &links));
    // The hosts behind ports 1 to 50 of two switches: their links are up, and they do not respond.
    transport.reply = Box::new(|outgoing| {
        let hops = usize::from(outgoing.mad.u8(7));
        let route = &outgoing.mad.0[129..129 + hops];
        match route {
            [_, 1..=50] | [_, 62, 1..=50] => Reply::Lost,
            _ => Reply::Answered(ROUND_TRIP),
        }
    });
    let found = discovered(&mut transport);
    assert_eq!((found.fabric.nodes.len(), found.fabric.unreached.len()), (44, 100));
    // 300 tries of 600 ms take 180 s one by one. Losses bring the window down to 1, and 8 slow requests
    // are in flight beside it.
    let took = transport.now().since(Moment(0));
    assert!((Duration::from_secs(20)..Duration::from_secs(21)).contains(&took), "{took:?}");
    assert!(transport.max_in_flight[0] <= 16, "{:?}", transport.max_in_flight);
}

#[test]
fn port_state_change_bit_is_reported() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    assert!(swept(&mut transport, &fabric, &mut AgentCache::default()).state_changes.is_empty());
    transport.nodes[1].state_change = true;
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert!(swept.state_changes.contains(&Guid(2)));
}

#[test]
fn fabric_without_lids_sends_no_sweep_queries() {
    let mut nodes = fabric(&[(CA, 1), (SWITCH, 4)], &[((0, 1), (1, 1))]);
    for node in &mut nodes {
        node.lids.clear();
    }
    let mut transport = ScriptedTransport::new(nodes);
    let fabric = assembled(&mut transport);
    assert_eq!(fabric.nodes.len(), 2);
    transport.sent.clear();
    let swept = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert!(transport.sent.is_empty() && !swept.snapshot.silent.contains(&true));
}

#[test]
fn cache_forgets_agents_of_removed_nodes() {
    let mut transport = generations();
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    swept(&mut transport, &fabric, &mut agents);
    transport.nodes[1].links.remove(&2);
    let less = Fabric::assemble(
        discovered(&mut transport).fabric,
        &Naming::default(),
        Moment(1),
        Some((&fabric, Moment(0))),
    );
    agents.retain_present(&less);
    transport.nodes[1].links.insert(2, (2, 1));
    transport.sent.clear();
    swept(&mut transport, &fabric, &mut agents);
    assert_eq!(attributes_queried(&transport, 3)[0], 1, "its capabilities are read again");
    assert_ne!(attributes_queried(&transport, 4)[0], 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// With garbage in all or some responses, all runs end and nothing panics.
    #[test]
    fn garbage_responses_never_panic(seed in any::<u64>(), one_in in 1u64..20) {
        let mut transport = generations();
        let mut state = seed | 1;
        transport.garble = Box::new(move |data| {
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u32
            };
            if u64::from(random()) % one_in == 0 {
                data.fill_with(|| random() as u8);
            }
        });
        let mut discovery = Discovery::with_limit(3_000);
        run_plan(&mut transport, &mut discovery);
        let found = discovery.finish();
        let names = Naming::default();
        let fabric = Arc::new(Fabric::assemble(found.fabric, &names, Moment(0), None));
        let mut agents = AgentCache::new(OptionalCounters { details: DetailPolicy::EachSweep, fec: true });
        for _ in 0..2 {
            let swept = swept(&mut transport, &fabric, &mut agents);
            run_plan(&mut transport, &mut CounterClearing::new(&swept.snapshot, &mut agents));
            let again = discover_again(&mut transport, &fabric);
            let _ = crate::change::diff(&fabric, &again);
            prop_assert_eq!(swept.snapshot.readings.len(), fabric.ports.len());
            prop_assert!(fabric.links().all(|link| fabric.link_id(link.low).is_some()));
        }
    }
}

fn discover_again(transport: &mut ScriptedTransport, before: &Fabric) -> Fabric {
    let mut discovery = Discovery::with_limit(3_000);
    run_plan(transport, &mut discovery);
    let (found, previous) = (discovery.finish().fabric, Some((before, Moment(0))));
    Fabric::assemble(found, &Naming::default(), Moment(1), previous)
}
