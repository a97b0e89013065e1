//! Discovery and sweep over small fabrics that answer by themselves.
//!
//! What ibsim cannot do is here: routers, one-MAD devices, devices without ClassPortInfo, nodes
//! that fall silent in mid-walk. That both agree with infiniband-diags is shown on ibsim.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use proptest::prelude::*;

use super::agents::Agents;
use super::clear::Clearing;
use super::discovery::{Discovery, Found};
use super::sweep::{Sweep, Swept};
use crate::Fabric;
use crate::names::NodeNames;
use crate::topology::Presence;
use ib_mad::counter::Attribute;
use ib_mad::node::NodeKind;
use ib_mad::pma::{Details, Extras};
use ib_mad::port_state::state;
use ib_mad::{Counter, Guid, Lid, Moment};
use ib_umad::pace::Pace;
use ib_umad::testing::{Fate, ROUND_TRIP, Scripted, fabric, symbol_errors};
use ib_umad::transactor::Transactor;
use ib_umad::walk::drive;
use ib_umad::{Parcel, Wire};

mod clear;
mod corrections;
mod duplicates;
mod hidden;
mod sources;
mod subnet;

const CA: NodeKind = NodeKind::Ca;
const SWITCH: NodeKind = NodeKind::Switch;

const DETAILS: Extras = Extras { details: Details::EachSweep, fec: false };
/// The tick of the sampling, which is asked once of those who count waiting.
const TICK: u16 = 0x10;
const FEC: Extras = Extras { details: Details::Never, fec: true };

fn walk(wire: &mut impl Wire, walk: &mut impl ib_umad::walk::Walk) {
    let mut transactor = Transactor::new(Pace::default());
    drive(walk, &mut transactor, wire, &AtomicBool::new(false)).unwrap();
}

fn discovered(wire: &mut impl Wire) -> Found {
    let mut discovery = Discovery::new();
    walk(wire, &mut discovery);
    discovery.finish()
}

fn assembled(wire: &mut impl Wire) -> Arc<Fabric> {
    Arc::new(discovered(wire).assemble(&NodeNames::default(), Moment(0), None))
}

fn swept(wire: &mut impl Wire, fabric: &Arc<Fabric>, agents: &mut Agents) -> Swept {
    let mut sweep = Sweep::new(fabric, agents, wire.anchor(), true);
    walk(wire, &mut sweep);
    sweep.finish()
}

/// The cables of a fabric as the script names them: ((node, port), (node, port)).
fn cables(fabric: &Fabric) -> Vec<((usize, u8), (usize, u8))> {
    let named = |port| {
        let (guid, number) = fabric.end(port);
        (guid.0 as usize - 1, number)
    };
    let mut cables: Vec<_> = fabric.links().map(|link| (named(link.0), named(link.1))).collect();
    cables.sort_unstable();
    cables
}

#[test]
fn every_shape_of_fabric_is_found_whole() {
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
        let mut wire = Scripted::new(fabric(nodes, links));
        let found = assembled(&mut wire);
        assert_eq!(found.nodes.len(), nodes.len(), "{name}");
        assert_eq!(found.duplicates, [], "{name}");
        // Our own second port is not walked out of: it may lie on another subnet.
        assert_eq!(cables(&found), *links, "{name}");
        let kinds: Vec<NodeKind> = found.nodes.iter().map(|node| node.identity.kind).collect();
        assert_eq!(kinds, nodes.iter().map(|node| node.0).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn a_discovery_from_a_switch_finds_the_same() {
    let nodes = [(CA, 1), (SWITCH, 4), (SWITCH, 4), (CA, 1)];
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 2)), ((2, 3), (3, 1))];
    let mut wire = Scripted::new(fabric(&nodes, &links));
    wire.home = (1, 0);
    assert_eq!(cables(&assembled(&mut wire)), links);
}

#[test]
fn hostile_descriptions_and_aggregation_nodes() {
    let mut nodes = fabric(&[(CA, 1), (SWITCH, 4), (CA, 1)], &[((0, 1), (1, 1)), ((1, 4), (2, 1))]);
    nodes[0].description = vec![b'x'; 64];
    nodes[1].description = b"bad\xff\n\"name\0rest".to_vec();
    nodes[2].description = b"Mellanox Technologies Aggregation Node".to_vec();
    let mut wire = Scripted::new(nodes);
    let fabric = assembled(&mut wire);
    assert_eq!(fabric.nodes[0].name, "x".repeat(64));
    assert_eq!(fabric.nodes[1].name, "bad\u{fffd}\u{fffd}\"name");
    assert_eq!(fabric.nodes[2].identity.kind, NodeKind::AggregationNode);

    // It is not asked for counters, and is no failure.
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert_eq!((swept.failed_ports, swept.snapshot.silent), (0, vec![false; 3]));
    assert_eq!(swept.snapshot.readings.iter().flatten().count(), 1 + 4);
}

#[test]
fn one_silent_neighbour_leaves_a_gap_and_no_more() {
    let nodes = [(CA, 1), (SWITCH, 4), (CA, 1), (CA, 1)];
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1))];
    let mut wire = Scripted::new(fabric(&nodes, &links));
    wire.fate = Box::new(|parcel: &Parcel| {
        let path = parcel.mad.0[129..131].to_vec();
        if parcel.mad.u8(7) == 2 && path == [1, 2] {
            Fate::Lost
        } else {
            Fate::Answered(ROUND_TRIP)
        }
    });
    let found = discovered(&mut wire);
    assert_eq!((found.fabric.nodes.len(), found.failures), (3, 1));
}

#[test]
fn a_switch_whose_port_0_does_not_answer_is_still_walked_through() {
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 1))];
    let mut wire = Scripted::new(fabric(&[(CA, 1), (SWITCH, 4), (CA, 1)], &links));
    wire.fate = Box::new(|parcel: &Parcel| {
        let port0 =
            parcel.mad.u8(7) == 1 && (parcel.mad.attribute(), parcel.mad.modifier()) == (0x15, 0);
        if port0 { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
    });
    assert_eq!(cables(&assembled(&mut wire)), links);
}

#[test]
fn nothing_answers_at_all() {
    let mut wire = Scripted::new(fabric(&[(CA, 1)], &[]));
    wire.fate = Box::new(|_| Fate::Lost);
    let found = discovered(&mut wire);
    assert!(found.fabric.nodes.is_empty());
    assert!(wire.now().since(Moment(0)) < Duration::from_secs(2));
}

/// Us, a switch with 8 ports, four hosts, of four generations.
fn generations() -> Scripted {
    let mut nodes = fabric(
        &[(CA, 1), (SWITCH, 8), (CA, 1), (CA, 1), (CA, 1)],
        &[((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1)), ((1, 4), (4, 1))],
    );
    nodes[2].capabilities = (0x5300, 2);
    nodes[3].capabilities = (0, 0);
    nodes[4].capabilities = (0x0400, 0);
    Scripted::new(nodes)
}

fn attributes_asked(wire: &Scripted, lid: u16) -> Vec<u16> {
    let of_lid = wire.sent.iter().filter(|parcel| parcel.lid == Lid(lid) && !parcel.class.is_smp());
    of_lid.map(|parcel| parcel.mad.attribute()).collect()
}

#[test]
fn each_device_is_asked_for_what_it_offers_and_asked_that_once() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    let mut agents = Agents::default();
    for round in 0..2 {
        wire.sent.clear();
        let swept = swept(&mut wire, &fabric, &mut agents);
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
                attributes_asked(&wire, lid),
                [introduction, pages, tick].concat(),
                "LID {lid}, round {round}"
            );
        }
        for (port, index) in fabric.port_indexes().map(|port| (port, port.0 as usize)) {
            let (guid, number) = fabric.end(port);
            let read = swept.snapshot.readings[index]
                .as_ref()
                .and_then(|reading| reading.get(Counter::SymbolErrors));
            let expected = fabric
                .is_watched(port)
                .then(|| u64::from(symbol_errors(guid.0 as usize - 1, number)));
            assert_eq!(read, expected, "{guid} port {number}");
        }
    }
}

#[test]
fn details_are_asked_for_when_they_are_wanted_until_a_device_says_that_it_has_none() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    let mut agents = Agents::new(DETAILS);
    // Not before it is known that it does not say which of them it has.
    for asked in [&[1, 0x12, 0x1d, TICK, 0x15, 0x16][..], &[0x12, 0x1d]] {
        wire.sent.clear();
        let swept = swept(&mut wire, &fabric, &mut agents);
        assert_eq!(attributes_asked(&wire, 3), asked);
        assert_eq!((swept.failed_ports, swept.snapshot.readings.iter().flatten().count()), (0, 12));
    }
}

#[test]
fn a_device_that_refuses_class_port_info_is_taken_for_an_old_one() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    wire.sent.clear();
    wire.fate = Box::new(|parcel: &Parcel| {
        let introduction = !parcel.class.is_smp() && parcel.mad.attribute() == 1;
        if introduction && parcel.lid == Lid(3) {
            Fate::Status(0x0c)
        } else {
            Fate::Answered(ROUND_TRIP)
        }
    });
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert_eq!(attributes_asked(&wire, 3), [1, 0x12]);
    assert_eq!(swept.failed_ports, 0);
}

#[test]
fn a_silent_node_loses_its_own_samples_alone_and_is_told_of() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    let mut agents = Agents::default();
    swept(&mut wire, &fabric, &mut agents);
    wire.fate =
        Box::new(
            |parcel: &Parcel| {
                if parcel.lid == Lid(4) { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
            },
        );
    let before = wire.now();
    let swept = swept(&mut wire, &fabric, &mut agents);
    assert_eq!(swept.snapshot.silent, [false, false, false, true, false]);
    assert_eq!((swept.failed_ports, swept.snapshot.readings.iter().flatten().count()), (1, 11));
    let node = fabric.node_by_guid(Guid(4)).unwrap();
    assert!(!swept.snapshot.is_up(node));
    assert!(wire.now().since(before) < Duration::from_secs(2));
}

#[test]
fn a_refusing_port_is_not_a_silent_node() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    wire.fate = Box::new(|parcel: &Parcel| {
        let counters = !parcel.class.is_smp() && parcel.mad.attribute() != 1;
        if counters && parcel.lid == Lid(3) {
            Fate::Status(0x1c)
        } else {
            Fate::Answered(ROUND_TRIP)
        }
    });
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert_eq!((swept.failed_ports, swept.snapshot.silent.contains(&true)), (1, false));
}

#[test]
fn a_pulled_cable_moves_and_a_quiet_fabric_does_not() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    assert!(!swept(&mut wire, &fabric, &mut Agents::default()).moved);

    wire.nodes[1].links.remove(&2);
    wire.nodes[2].links.remove(&1);
    let after = swept(&mut wire, &fabric, &mut Agents::default());
    assert!(after.moved);
    let port = fabric.find((Guid(2), 2)).unwrap();
    assert_eq!(after.snapshot.status(port).unwrap().state, state::DOWN);

    let again = Arc::new(discovered(&mut wire).assemble(
        &NodeNames::default(),
        Moment(1),
        Some((&fabric, Moment(0))),
    ));
    assert!(!swept(&mut wire, &again, &mut Agents::default()).moved, "it is known by now");
    wire.nodes[1].links.insert(2, (2, 1));
    wire.nodes[2].links.insert(1, (1, 2));
    assert!(swept(&mut wire, &again, &mut Agents::default()).moved, "it was plugged in again");
}

#[test]
fn switches_that_answer_nothing_by_lid_are_not_asked_for_ever() {
    let mut kinds = vec![(CA, 1)];
    kinds.extend([(SWITCH, 40); 10]);
    let mut links = vec![((0, 1), (1, 40))];
    links.extend((1..10).map(|switch| ((switch, 1), (switch + 1, 2))));
    let mut wire = Scripted::new(fabric(&kinds, &links));
    let fabric = assembled(&mut wire);
    wire.fate =
        Box::new(
            |parcel: &Parcel| {
                if parcel.class.is_smp() { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
            },
        );
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert!(swept.states_useless && !swept.moved);
    assert_eq!((swept.failed_ports, swept.snapshot.silent.contains(&true)), (0, false));
    assert!(wire.now().since(Moment(0)) < Duration::from_secs(8), "{:?}", wire.now());
}

#[test]
fn other_lids_and_another_subnet_manager_are_noticed() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    assert!(!swept(&mut wire, &fabric, &mut Agents::default()).readdressed);
    wire.nodes[1].sm_lid = 9;
    assert!(swept(&mut wire, &fabric, &mut Agents::default()).readdressed);

    // Two switches change LIDs: each says that it has the LID that it is asked by.
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 2))];
    let mut wire = Scripted::new(self::fabric(&[(CA, 1), (SWITCH, 4), (SWITCH, 4)], &links));
    let fabric = assembled(&mut wire);
    let (first, second) = (wire.nodes[1].lids.clone(), wire.nodes[2].lids.clone());
    (wire.nodes[1].lids, wire.nodes[2].lids) = (second, first);
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert!(swept.readdressed);
    // What one was asked and the other answered is told of neither.
    for guid in [2, 3] {
        let node = fabric.node_by_guid(Guid(guid)).unwrap();
        assert!(!swept.snapshot.is_up(node));
        assert!(fabric.ports_of(node).all(|port| swept.snapshot.reading(port).is_none()));
    }
    assert!(
        swept.snapshot.is_up(fabric.node_by_guid(Guid(1)).unwrap()),
        "others are not concerned"
    );
}

#[test]
fn a_port_that_left_one_question_open_hides_nobody() {
    let mut wire = generations();
    let before = assembled(&mut wire);
    wire.fate = Box::new(|parcel: &Parcel| {
        let directed = parcel.lid == Lid::PERMISSIVE;
        let port_info = (parcel.mad.attribute(), parcel.mad.modifier()) == (0x15, 2);
        if directed && port_info { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
    });
    let again = Arc::new(discover_again(&mut wire, &before));
    let host = again.node_by_guid(Guid(3)).unwrap();
    assert_eq!(again.node(host).presence, Presence::Hidden);
    let swept = swept(&mut wire, &again, &mut Agents::default());
    assert!(swept.snapshot.is_up(host), "it answers by its LID");
    assert!(!swept.moved && !swept.readdressed);
}

#[test]
fn who_is_hidden_and_cannot_be_asked_is_not_up() {
    let mut wire = generations();
    for node in &mut wire.nodes {
        node.lids.clear();
    }
    let before = assembled(&mut wire);
    wire.fate = Box::new(|parcel: &Parcel| {
        let far = parcel.mad.u8(7) == 2 && parcel.mad.u8(130) == 2;
        if far { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
    });
    let again = Arc::new(discover_again(&mut wire, &before));
    let host = again.node_by_guid(Guid(3)).unwrap();
    assert_eq!(again.node(host).presence, Presence::Hidden);
    let swept = swept(&mut wire, &again, &mut Agents::default());
    assert!(!swept.snapshot.is_up(host));
    assert!(swept.snapshot.is_up(again.node_by_guid(Guid(2)).unwrap()));
}

#[test]
fn who_is_hidden_is_not_told_by_the_counters_of_who_has_its_lid_now() {
    let mut wire = generations();
    let before = assembled(&mut wire);
    let (one, other) = (wire.nodes[2].lids.clone(), wire.nodes[3].lids.clone());
    (wire.nodes[2].lids, wire.nodes[3].lids) = (other, one);
    // Neither is found: nobody knows that they have changed LIDs.
    wire.fate = Box::new(|parcel: &Parcel| {
        let far = parcel.mad.u8(7) == 2 && [2, 3].contains(&parcel.mad.u8(130));
        if far { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
    });
    let again = Arc::new(discover_again(&mut wire, &before));
    let swept = swept(&mut wire, &again, &mut Agents::default());
    for guid in [3, 4] {
        let host = again.node_by_guid(Guid(guid)).unwrap();
        assert_eq!(again.node(host).presence, Presence::Hidden);
        assert!(!swept.snapshot.is_up(host));
        assert!(again.ports_of(host).all(|port| swept.snapshot.reading(port).is_none()));
    }
    assert!(!swept.readdressed, "all that was found is as it was found");
}

#[test]
fn a_moment_in_which_nobody_answers_says_nothing_about_how_to_ask() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    wire.fate = Box::new(|_| Fate::Lost);
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert!(!swept.states_useless);
}

#[test]
fn both_ends_of_a_pulled_cable_are_told_in_the_same_sweep() {
    let links = [((0, 1), (1, 1)), ((1, 2), (2, 2)), ((1, 3), (3, 1)), ((2, 4), (4, 1))];
    let kinds = [(CA, 1), (SWITCH, 4), (SWITCH, 4), (CA, 1), (CA, 1)];
    let mut wire = Scripted::new(fabric(&kinds, &links));
    let fabric = assembled(&mut wire);
    wire.nodes[1].links.retain(|port, _| *port == 1);
    wire.nodes[2].links.remove(&2);
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    let state = |guid, port| {
        swept.snapshot.status(fabric.find((Guid(guid), port)).unwrap()).map(|status| status.state)
    };
    assert_eq!((state(2, 2), state(3, 2)), (Some(state::DOWN), Some(state::DOWN)));
    // The host cannot be asked any more; by LID it answers only here.
    assert_eq!((state(2, 3), state(4, 1)), (Some(state::DOWN), None));
    assert_eq!((state(3, 4), state(5, 1)), (Some(state::ACTIVE), Some(state::ACTIVE)));
}

#[test]
fn a_port_that_tries_one_thing_after_the_other_is_no_move() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    wire.polling = 4; // port training, as a port does with half a cable in it
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert!(!swept.moved);
    let port = fabric.find((Guid(2), 8)).unwrap();
    assert_eq!(swept.snapshot.status(port).unwrap().physical_state, 4);
}

#[test]
fn a_device_that_refuses_every_send_is_no_sign_of_life() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    wire.fate = Box::new(|_| Fate::Refused);
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert!(fabric.node_indexes().all(|node| !swept.snapshot.is_up(node)));
}

#[test]
fn a_passing_trouble_with_class_port_info_does_not_stick() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    let mut agents = Agents::default();
    let mut first = true;
    wire.fate = Box::new(move |parcel: &Parcel| {
        let introduction = !parcel.class.is_smp() && parcel.mad.attribute() == 1;
        if introduction && parcel.lid == Lid(3) && std::mem::take(&mut first) {
            Fate::Status(0x1c)
        } else {
            Fate::Answered(ROUND_TRIP)
        }
    });
    assert_eq!(swept(&mut wire, &fabric, &mut agents).failed_ports, 1);
    wire.sent.clear();
    swept(&mut wire, &fabric, &mut agents);
    assert_eq!(attributes_asked(&wire, 3), [1, 0x12, 0x1d, TICK]);
}

#[test]
fn an_aggregation_node_is_recognized_by_its_device_id_and_keeps_its_kind() {
    let built = fabric(&[(CA, 1), (SWITCH, 4), (CA, 1)], &[((0, 1), (1, 1)), ((1, 4), (2, 1))]);
    let kind = |fabric: &Fabric| fabric.nodes[2].identity.kind;
    let lost = |parcel: &Parcel| match parcel.mad.attribute() {
        0x10 => Fate::Lost,
        _ => Fate::Answered(ROUND_TRIP),
    };
    // By its name, and when its NodeDescription is lost in the next discovery.
    let mut wire = Scripted::new(built.clone());
    wire.nodes[2].description = b"Mellanox Technologies Aggregation Node".to_vec();
    let first = assembled(&mut wire);
    wire.fate = Box::new(lost);
    assert_eq!(kind(&discover_again(&mut wire, &first)), NodeKind::AggregationNode);
    // By its device id alone: nothing was known before.
    let mut wire = Scripted::new(built);
    wire.nodes[2].device_id = 53001;
    wire.fate = Box::new(lost);
    assert_eq!(kind(&assembled(&mut wire)), NodeKind::AggregationNode);
}

#[test]
fn a_discovery_waits_for_100_dead_hosts_at_once() {
    let mut nodes = vec![(CA, 1), (SWITCH, 64), (SWITCH, 64), (SWITCH, 64)];
    nodes.extend([(CA, 1); 140]);
    let mut links = vec![((0, 1), (1, 64)), ((1, 62), (2, 63)), ((1, 63), (3, 63))];
    links.extend(
        (0..140u8).map(|n| ((1 + usize::from(n / 50), n % 50 + 1), (4 + usize::from(n), 1))),
    );
    let mut wire = Scripted::new(fabric(&nodes, &links));
    // The hosts behind ports 1 to 50 of two switches: their links are up, and they answer nothing.
    wire.fate = Box::new(|parcel| {
        let hops = usize::from(parcel.mad.u8(7));
        let route = &parcel.mad.0[129..129 + hops];
        match route {
            [_, 1..=50] | [_, 62, 1..=50] => Fate::Lost,
            _ => Fate::Answered(ROUND_TRIP),
        }
    });
    let found = discovered(&mut wire);
    assert_eq!((found.fabric.nodes.len(), found.fabric.unreached.len()), (44, 100));
    // 300 tries of 600 ms take 180 s one by one. Losses bring the window down to 1, and 8 slow requests
    // are in flight beside it.
    let took = wire.now().since(Moment(0));
    assert!((Duration::from_secs(20)..Duration::from_secs(21)).contains(&took), "{took:?}");
    assert!(wire.most_in_flight[0] <= 16, "{:?}", wire.most_in_flight);
}

#[test]
fn a_switch_says_that_something_changed() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    assert!(swept(&mut wire, &fabric, &mut Agents::default()).state_changes.is_empty());
    wire.nodes[1].state_change = true;
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert!(swept.state_changes.contains(&Guid(2)));
}

#[test]
fn before_a_subnet_manager_there_is_a_fabric_but_nobody_to_ask() {
    let mut nodes = fabric(&[(CA, 1), (SWITCH, 4)], &[((0, 1), (1, 1))]);
    for node in &mut nodes {
        node.lids.clear();
    }
    let mut wire = Scripted::new(nodes);
    let fabric = assembled(&mut wire);
    assert_eq!(fabric.nodes.len(), 2);
    wire.sent.clear();
    let swept = swept(&mut wire, &fabric, &mut Agents::default());
    assert!(wire.sent.is_empty() && !swept.snapshot.silent.contains(&true));
}

#[test]
fn agents_of_nodes_that_went_are_forgotten() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    let mut agents = Agents::default();
    swept(&mut wire, &fabric, &mut agents);
    wire.nodes[1].links.remove(&2);
    let less = discovered(&mut wire).assemble(
        &NodeNames::default(),
        Moment(1),
        Some((&fabric, Moment(0))),
    );
    agents.keep_present(&less);
    wire.nodes[1].links.insert(2, (2, 1));
    wire.sent.clear();
    swept(&mut wire, &fabric, &mut agents);
    assert_eq!(attributes_asked(&wire, 3)[0], 1, "asked anew what it can do");
    assert_ne!(attributes_asked(&wire, 4)[0], 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Devices that answer nonsense, all or some of them: the walks end, and nothing panics.
    #[test]
    fn nonsense_is_survived(seed in any::<u64>(), one_in in 1u64..20) {
        let mut wire = generations();
        let mut state = seed | 1;
        wire.garble = Box::new(move |data| {
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u32
            };
            if u64::from(random()) % one_in == 0 {
                data.fill_with(|| random() as u8);
            }
        });
        let mut discovery = Discovery::with_limit(3_000);
        walk(&mut wire, &mut discovery);
        let found = discovery.finish();
        let fabric = Arc::new(found.assemble(&NodeNames::default(), Moment(0), None));
        let mut agents = Agents::new(Extras { details: Details::EachSweep, fec: true });
        for _ in 0..2 {
            let swept = swept(&mut wire, &fabric, &mut agents);
            walk(&mut wire, &mut Clearing::new(&swept.snapshot, &mut agents));
            let again = discover_again(&mut wire, &fabric);
            let _ = crate::change::between(&fabric, &again);
            prop_assert_eq!(swept.snapshot.readings.len(), fabric.ports.len());
            prop_assert!(fabric.links().all(|link| fabric.link_id(link.0).is_some()));
        }
    }
}

fn discover_again(wire: &mut Scripted, before: &Fabric) -> Fabric {
    let mut discovery = Discovery::with_limit(3_000);
    walk(wire, &mut discovery);
    discovery.finish().assemble(&NodeNames::default(), Moment(1), Some((before, Moment(0))))
}
