//! What the agents of each generation say, and what they refuse.

use std::time::Duration;

use super::*;
use crate::device::Model;
use crate::load::Flow;
use crate::net::Net;
use crate::net::shapes::FatTree;
use crate::scenario::{Action, Story, Way};
use ib_mad::class_port_info::{ClassPortInfo, PmaCapabilities};
use ib_mad::clear::{CounterSelect, clear, clear_fec_counters};
use ib_mad::counter::{Attribute, Counter};
use ib_mad::extended_speeds::{PortExtendedSpeedsCounters, PortInfoExtended};
use ib_mad::fec::Fec;
use ib_mad::m_key::MKey;
use ib_mad::pma;
use ib_mad::pma::PortSamplesControl;
use ib_mad::port_info::{MellanoxExtendedPortInfo, PortInfo, capability};
use ib_mad::port_state::{physical, state};
use ib_mad::rate::{Speed, Width};
use ib_mad::smp;
use ib_mad::smp::{NodeInfo, PKeyTable, SmInfo, SmState, SwitchInfo};
use ib_mad::{DirectedRoute, Query};
use ib_mad::{Moment, PortNumber};

const VERSION: u16 = 0x0004;
const METHOD: u16 = 0x0008;
const ATTRIBUTE: u16 = 0x000c;
const FIELD: u16 = 0x001c;

/// Two hosts at a leaf, `leaf-0-0[1]` and `[2]`, and two at another one; the manager at host-1.
fn world_of(switch: &str, hca: &str) -> World {
    let [switch, hca] = [switch, hca].map(|name| Model::named(name).unwrap());
    let (down, up) = (Some(2), Some(2));
    let net = FatTree {
        levels: 2,
        radix: 6,
        hosts: 4,
        down,
        up,
        ports: 1,
        planes: 1,
        aggregation_nodes: false,
        switch,
        hca,
    }
    .build()
    .unwrap();
    world(net)
}

fn world(net: Net) -> World {
    let [seat, master] = ["host-0[1]", "host-1[1]"].map(|label| find(&net, label));
    let soon = Duration::from_micros(20);
    let way = Way { round_trip: soon, per_hop: soon, jitter: soon, loss: 0.0 };
    let (seats, masters) = (vec![seat], vec![master]);
    World::new(Story { net, seats, masters, seed: 1, way, steps: Vec::new(), told: Vec::new() })
}

fn find(net: &Net, label: &str) -> PortId {
    net.port_ids().find(|&port| net.label(port) == label).unwrap_or_else(|| panic!("no {label}"))
}

fn at(seconds: u64) -> Moment {
    Moment::default() + Duration::from_secs(seconds)
}

fn ask(world: &World, label: &str, query: Query) -> Mad {
    let request = Mad::get(&query, None, 77);
    let answer = answer(world, find(world.net(), label), &request).unwrap();
    assert_eq!((answer.method(), answer.transaction_id()), (method::GET_RESPONSE, 77));
    assert_eq!((answer.attribute(), answer.modifier()), (query.attribute, query.modifier));
    // Where others have PortSelect, ClassPortInfo has its ClassVersion.
    if !query.subnet && query.attribute != ClassPortInfo::ID {
        assert_eq!(answer.port_select(), query.port_select);
    }
    answer
}

fn perf(attribute: u16, port_select: PortNumber) -> Query {
    Query { subnet: false, attribute, modifier: 0, port_select, clear: None, m_key: MKey::NONE }
}

fn subnet(attribute: u16, modifier: u32) -> Query {
    Query { subnet: true, attribute, modifier, port_select: 0, clear: None, m_key: MKey::NONE }
}

/// All counters of a port far above what narrow fields hold.
fn overflow(world: &mut World, port: PortId) {
    for counter in Counter::all() {
        let value = 0x0123_4567_89ab_cdef;
        world.act(at(1), Action::Set { port, counter, value });
    }
}

#[test]
fn narrow_counters_stick_at_what_their_width_holds() {
    // Models, the port, PortXmitWait of the classic counters, and the words and packets there.
    for (switch, hca, label, wait) in [
        ("quantum-2", "infinihost-3", "host-0[1]", 0),
        ("quantum-2", "connectx-3", "host-0[1]", u32::MAX),
        ("any-switch", "connectx-7", "leaf-0-0[1]", u32::MAX),
        ("infiniscale-4", "connectx-7", "leaf-0-0[1]", 0),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", u32::MAX),
    ] {
        let mut world = world_of(switch, hca);
        let port = find(world.net(), label);
        overflow(&mut world, port);
        let answer = ask(&world, label, pma::counters(Attribute::PortCounters, 1));
        assert_eq!(answer.status(), 0);
        let data = answer.data();
        // 16, 8, 8, 4 x 16, 16, 8, 8 bits; a reserved byte, and twice four bits in one.
        assert_eq!(data[4..18], [0xff; 14], "{switch} {hca}");
        assert_eq!(data[18..20], [0, 0xff]);
        assert_eq!(data[22..40], [0xff; 18], "VL15Dropped, and 32 bits of traffic each");
        assert_eq!(data[40..44], wait.to_be_bytes(), "{switch} {hca}: what is not kept is 0");
        assert!(data[44..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn wide_counters_are_those_that_the_generation_has() {
    let all: Vec<u16> = (8..=176).step_by(8).collect();
    let traffic: Vec<u16> = (8..=32).step_by(8).collect();
    let casts: Vec<u16> = (8..=64).step_by(8).collect();
    let without = |left_out: &[u16]| -> Vec<u16> {
        all.iter().copied().filter(|byte| !left_out.contains(byte)).collect()
    };
    for (switch, hca, label, kept) in [
        ("quantum-2", "connectx-3", "host-0[1]", &traffic),
        ("any-switch", "connectx-7", "leaf-0-0[1]", &casts),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", &all),
        ("quantum-2", "connectx-6", "host-0[1]", &all),
        ("quantum-2", "connectx-4", "host-0[1]", &casts),
        // All but SymbolErrorCounter and LinkDownedCounter, as observed.
        ("quantum-2", "connectx-7", "host-0[1]", &without(&[72, 88])),
    ] {
        let mut world = world_of(switch, hca);
        let port = find(world.net(), label);
        overflow(&mut world, port);
        let answer = ask(&world, label, pma::counters(Attribute::PortCountersExtended, 1));
        assert_eq!(answer.status(), 0);
        let value = |byte: u16| answer.u64(ib_mad::DATA + usize::from(byte));
        let found: Vec<u16> = all.iter().copied().filter(|byte| value(*byte) != 0).collect();
        assert_eq!(found, *kept, "{switch} {hca}");
        assert!(kept.iter().all(|byte| value(*byte) == 0x0123_4567_89ab_cdef));
    }
    // Causes have 16 bits everywhere; what is not announced is 0.
    let mut world = world_of("quantum-2", "connectx-7");
    let port = find(world.net(), "leaf-0-0[1]");
    overflow(&mut world, port);
    for (attribute, fields) in
        [(Attribute::PortRcvErrorDetails, 5), (Attribute::PortXmitDiscardDetails, 4)]
    {
        let answer = ask(&world, "leaf-0-0[1]", pma::counters(attribute, 1));
        let end = 4 + 2 * fields;
        assert!(answer.data()[4..end].iter().all(|byte| *byte == 0xff));
        assert!(answer.data()[end..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn what_a_performance_agent_does_not_have_it_refuses() {
    const CLASSIC: u16 = Attribute::PortCounters as u16;
    const WIDE: u16 = Attribute::PortCountersExtended as u16;
    const RECEIVED: u16 = Attribute::PortRcvErrorDetails as u16;
    const DISCARDED: u16 = Attribute::PortXmitDiscardDetails as u16;
    const SAMPLES: u16 = PortSamplesControl::ID;
    const LANES: u16 = PortExtendedSpeedsCounters::ID;
    for (switch, hca, label, asked, status) in [
        ("quantum-2", "infinihost-3", "host-0[1]", (CLASSIC, 1), 0),
        ("quantum-2", "infinihost-3", "host-0[1]", (WIDE, 1), ATTRIBUTE),
        ("quantum-2", "infinihost-3", "host-0[1]", (RECEIVED, 1), ATTRIBUTE),
        ("quantum-2", "infinihost-3", "host-0[1]", (DISCARDED, 1), ATTRIBUTE),
        ("quantum-2", "infinihost-3", "host-0[1]", (LANES, 1), ATTRIBUTE),
        ("quantum-2", "infinihost-3", "host-0[1]", (SAMPLES, 1), ATTRIBUTE),
        ("quantum-2", "connectx-3", "host-0[1]", (RECEIVED, 1), 0),
        ("quantum-2", "connectx-3", "host-0[1]", (LANES, 1), ATTRIBUTE),
        ("quantum-2", "connectx-3", "host-0[1]", (SAMPLES, 1), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (SAMPLES, 1), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (SAMPLES, 1), 0),
        ("quantum-2", "connectx-6", "host-0[1]", (SAMPLES, 1), ATTRIBUTE),
        ("quantum-2", "connectx-7", "host-0[1]", (LANES, 1), 0),
        ("any-switch", "connectx-7", "leaf-0-0[1]", (LANES, 1), ATTRIBUTE),
        ("any-switch", "connectx-7", "leaf-0-0[1]", (SAMPLES, 1), ATTRIBUTE),
        // No such attribute, and none of this class.
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (0x0013, 1), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (0, 1), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (0xffff, 1), ATTRIBUTE),
        // Ports: those that are there, and all of them where the switch can tell.
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (CLASSIC, 6), 0),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (CLASSIC, 7), FIELD),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (CLASSIC, 0), FIELD),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (WIDE, 254), FIELD),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (WIDE, 255), 0),
        ("infiniscale-4", "connectx-7", "leaf-0-0[0]", (CLASSIC, 255), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (CLASSIC, 0), FIELD),
        ("quantum-2", "connectx-7", "host-0[1]", (CLASSIC, 2), FIELD),
        ("quantum-2", "connectx-7", "host-0[1]", (CLASSIC, 255), FIELD),
        // Of what is not there it does not matter which port.
        ("quantum-2", "infinihost-3", "host-0[1]", (WIDE, 9), ATTRIBUTE),
    ] {
        let world = world_of(switch, hca);
        let (attribute, port) = asked;
        let answer = ask(&world, label, perf(attribute, port));
        let told = answer.status();
        assert_eq!(told, status, "{switch} {hca} {label}: {attribute:#06x} of {port}");
        if status != 0 {
            let mut data = answer.data().to_vec();
            data[1] = 0;
            assert!(data.iter().all(|byte| *byte == 0), "a refusal has no data");
        }
    }
}

#[test]
fn a_switch_tells_its_port_0_if_that_is_an_endpoint() {
    let mut net = world_of("quantum-2", "connectx-7").net().clone();
    for node in &mut net.nodes {
        node.enhanced_port0 = true;
    }
    let world = world(net);
    let told =
        |label, port| ask(&world, label, perf(Attribute::PortCounters as u16, port)).status();
    assert_eq!((told("leaf-0-0[0]", 0), told("host-0[1]", 0)), (0, FIELD));
    assert!(SwitchInfo::decode(&ask(&world, "leaf-0-0[0]", smp::switch_info())).enhanced_port0);
}

#[test]
fn all_ports_together_count_what_each_does() {
    let mut world = world_of("quantum-2", "connectx-7");
    let net = world.net();
    let node = net.port(find(net, "leaf-0-0[0]")).node;
    for (port, value) in net.plugs_of(node).zip([1, 20, 300, 4000, 0, 50_000]) {
        world.act(at(1), Action::Set { port, counter: Counter::SymbolErrors, value });
        world.act(at(1), Action::Set { port, counter: Counter::LinkDowned, value: 60 });
    }
    let data = |attribute| ask(&world, "leaf-0-0[3]", pma::counters(attribute, 255));
    let wide = data(Attribute::PortCountersExtended);
    let value = |byte| wide.u64(ib_mad::DATA + byte);
    assert_eq!((value(72), value(88)), (54_321, 360));
    let classic = data(Attribute::PortCounters);
    let classic = classic.data();
    assert_eq!((&classic[4..6], classic[7]), (&54_321u16.to_be_bytes()[..], 255));
}

#[test]
fn a_set_of_port_counters_sets_those_that_it_selects_and_no_others() {
    let mut world = world_of("quantum-2", "infinihost-3");
    let [host, leaf] = ["host-0[1]", "leaf-0-0[1]"].map(|label| find(world.net(), label));
    for port in [host, leaf] {
        for counter in Counter::all() {
            world.act(at(1), Action::Set { port, counter, value: 200 });
        }
    }
    let select = [Counter::LinkDowned, Counter::XmitWait, Counter::XmitData];
    let mut request = Mad::request(&clear(1, CounterSelect::new(select)), None, 77);
    // Two bytes of LinkDowned's neighbourhood: what is not selected is not set, whatever it says.
    request.0[ib_mad::DATA + 6] = 9;
    request.0[ib_mad::DATA + 7] = 5;
    for (port, label, wait) in [(host, "host-0[1]", 200), (leaf, "leaf-0-0[0]", 0)] {
        let seat = find(world.net(), label);
        assert_eq!(answer(&world, seat, &request).unwrap().status(), METHOD, "asked, not told");
        let told = obey(&mut world, seat, &request).unwrap();
        assert_eq!((told.method(), told.status()), (method::GET_RESPONSE, 0));
        assert_eq!(told.data()[4..8], [0, 200, 200, 5], "as they are now");
        let count = |counter| world.count(port, counter);
        assert_eq!((count(Counter::LinkDowned), count(Counter::LinkErrorRecoveries)), (5, 200));
        assert_eq!(count(Counter::XmitData), 0);
        assert_eq!(count(Counter::XmitWait), wait, "InfiniHost has none to be cleared");
        assert_eq!(count(Counter::RcvErrors), 200);
    }
    // No port, or another attribute.
    request.0[ib_mad::DATA + 1] = 99;
    let seat = find(world.net(), "leaf-0-0[0]");
    assert_eq!(obey(&mut world, seat, &request).unwrap().status(), FIELD);
    request.0[17] = Attribute::PortCountersExtended as u8;
    assert_eq!(obey(&mut world, seat, &request).unwrap().status(), METHOD);
}

#[test]
fn class_port_info_tells_what_there_is() {
    for (hca, mask, mask2) in
        [("infinihost-3", 0, 0), ("connectx-4", 0x5a00, 0), ("connectx-7", 0xd200, 2)]
    {
        let world = world_of("quantum-2", hca);
        let answer = ask(&world, "host-0[1]", pma::class_port_info());
        assert_eq!(PmaCapabilities::decode(&answer), PmaCapabilities { mask, mask2 }, "{hca}");
        let info = ClassPortInfo::decode(&answer);
        assert_eq!((info.base_version, info.class_version), (1, 1));
    }
}

#[test]
fn waits_are_counted_in_ticks_of_the_length_that_the_switch_tells() {
    // A tick is the time of tick + 1 bytes: of 100 Gb/s with EDR, and of 400 with NDR.
    for (switch, hca, tick) in [("switch-ib-2", "connectx-7", 31), ("quantum-2", "connectx-7", 7)] {
        let mut world = world_of(switch, hca);
        let answer = ask(&world, "leaf-0-0[0]", perf(PortSamplesControl::ID, 1));
        assert_eq!(PortSamplesControl::decode(&answer).tick, tick, "{switch}");
        let [from, to] = ["host-0[1]", "host-1[1]"].map(|label| find(world.net(), label));
        let root = find(world.net(), "leaf-0-0[2]");
        let flows = vec![Flow { from, to, offered: 1e9, packet: 4096 }];
        world.act(at(1), Action::Traffic { name: "all".into(), flows });
        world.act(at(1), Action::Intake { port: to, share: 0.0 });
        world.advance(at(2));
        // All that is to be sent waits all the time. The older one counts the bytes of a lane.
        let lanes = if tick == 7 { 1 } else { 4 };
        let rate = world.port(root).bytes_a_second() / lanes;
        assert_eq!(world.count(root, Counter::XmitWait), rate / (u64::from(tick) + 1));
    }
}

#[test]
fn corrections_are_told_lane_by_lane_where_there_is_correction() {
    let lanes = perf(PortExtendedSpeedsCounters::ID, 1);
    let mut world = world_of("quantum-2", "connectx-7");
    let port = find(world.net(), "leaf-0-0[1]");
    world.advance(at(10));
    let sound = PortExtendedSpeedsCounters::decode(&ask(&world, "leaf-0-0[1]", lanes));
    // 400 Gb/s with 1 bit in 10^8 wrong.
    assert_eq!((sound.port_corrected_symbols, sound.port_uncorrectable_blocks), (40_000, 0));
    assert_eq!(sound.corrected[..5], [10_000, 10_000, 10_000, 10_000, 0]);
    world.act(at(10), Action::Corrupt { into: port, ratio: 1e-12 });
    world.advance(at(70));
    let bad = PortExtendedSpeedsCounters::decode(&ask(&world, "leaf-0-0[1]", lanes));
    assert!(bad.port_corrected_symbols > 100 * sound.port_corrected_symbols);
    let symbols = world.count(port, Counter::SymbolErrors);
    assert!(symbols > 0 && u64::from(bad.port_uncorrectable_blocks) == symbols);
    // On one lane, there is one.
    world.act(at(70), Action::Limit { end: port, width: Some(Width::X1), speed: None });
    let narrow = PortExtendedSpeedsCounters::decode(&ask(&world, "leaf-0-0[1]", lanes));
    assert_eq!(narrow.corrected[1], 0);
    // A link that is too slow for Reed-Solomon counts no more of it, and keeps what it counted.
    world.act(at(70), Action::Limit { end: port, width: None, speed: Some(Speed::Edr) });
    world.advance(at(900));
    let slow = PortExtendedSpeedsCounters::decode(&ask(&world, "leaf-0-0[1]", lanes));
    assert_eq!(slow.port_corrected_symbols, bad.port_corrected_symbols);
    assert_eq!(slow.port_uncorrectable_blocks, bad.port_uncorrectable_blocks);
    assert!(world.count(port, Counter::SymbolErrors) > symbols);
}

#[test]
fn corrections_stick_at_32_bits_also_of_a_connectx_4() {
    let lanes = perf(PortExtendedSpeedsCounters::ID, 1);
    for (switch, hca, label) in
        [("quantum-2", "connectx-7", "leaf-0-0[1]"), ("quantum-2", "connectx-7", "host-0[1]")]
    {
        let mut world = world_of(switch, hca);
        let port = find(world.net(), label);
        world.act(at(1), Action::Corrupt { into: port, ratio: 1e-12 });
        world.advance(at(3000));
        let full = PortExtendedSpeedsCounters::decode(&ask(&world, label, lanes));
        assert_eq!(full.port_corrected_symbols, u32::MAX, "{hca}");
        assert!(full.corrected[0] < u32::MAX, "a lane has a quarter");
    }
    // It keeps them, too, though its errors are in PortCounters alone.
    let mut world = world_of("switch-ib-2", "connectx-4");
    let port = find(world.net(), "host-0[1]");
    overflow(&mut world, port);
    let told = PortExtendedSpeedsCounters::decode(&ask(&world, "host-0[1]", lanes));
    assert_eq!(told.port_uncorrectable_blocks, u32::MAX);
}

#[test]
fn options_are_those_that_devices_were_seen_to_announce() {
    let net = FatTree {
        levels: 2,
        radix: 6,
        hosts: 4,
        down: Some(2),
        up: Some(2),
        ports: 1,
        planes: 1,
        aggregation_nodes: true,
        switch: Model::named("quantum-2").unwrap(),
        hca: Model::named("connectx-7").unwrap(),
    };
    let world = world(net.build().unwrap());
    for (label, port, options) in [
        ("host-0[1]", 1, 0x01a6_0000_10cc_33c0),
        ("leaf-0-0[0]", 1, 0x0180_0000_008c_f7fc),
        ("leaf-0-0-an[1]", 1, 0x0180_0000_008c_f7fc),
    ] {
        let control =
            PortSamplesControl::decode(&ask(&world, label, perf(PortSamplesControl::ID, port)));
        assert_eq!((control.option_mask, control.tick), (options, 7), "{label}");
    }
    let node = NodeInfo::decode(&ask(&world, "leaf-0-0-an[1]", smp::node_info()));
    assert_eq!((node.device_id, node.vendor_id, node.port_count), (53001, 0x2c9, 1));
}

#[test]
fn what_is_no_question_is_not_answered_and_a_wrong_one_is_refused() {
    let world = world_of("quantum-2", "connectx-7");
    let port = find(world.net(), "leaf-0-0[1]");
    let queries = [smp::node_info(), pma::class_port_info()];
    for (query, path) in
        [(queries[0], None), (queries[0], Some(&DirectedRoute::LOCAL)), (queries[1], None)]
    {
        let request = Mad::get(&query, path, 1);
        // The byte, its value, and the status or no answer.
        for (byte, value, status) in [
            (0, 1, Some(0)),
            (0, 2, Some(VERSION)),
            (2, 0, Some(VERSION)),
            (2, 2, Some(VERSION)),
            (3, 0x02, Some(METHOD)),
            (3, 0x12, Some(METHOD)),
            (3, 0x05, Some(METHOD)),
            (3, 0x00, Some(METHOD)),
            (3, 0x81, None),
            (3, 0x87, None),
            (1, 0x03, None),
            (1, 0x00, None),
            (1, 0xff, None),
        ] {
            let mut request = request.clone();
            request.0[byte] = value;
            let answer = answer(&world, port, &request);
            assert_eq!(answer.map(|mad| mad.status()), status, "byte {byte}: {value:#04x}");
        }
    }
}

#[test]
fn a_node_tells_by_which_port_the_question_came_in() {
    let world = world_of("quantum-2", "connectx-7");
    for (label, local_port, port_count) in
        [("leaf-0-0[0]", 0, 6), ("leaf-0-0[3]", 3, 6), ("host-0[1]", 1, 1)]
    {
        let info = NodeInfo::decode(&ask(&world, label, smp::node_info()));
        assert_eq!((info.local_port, info.port_count), (local_port, port_count), "{label}");
        let node = world.net().node_of(find(world.net(), label));
        assert_eq!((info.node_guid, info.device_id), (node.guid, node.device_id));
    }
    let name = ask(&world, "leaf-0-0[3]", smp::node_description());
    assert_eq!(smp::decode_node_description(&name), "leaf-0-0");
}

#[test]
fn a_port_tells_its_state_and_the_subnet_its_lids() {
    let mut world = world_of("quantum-2", "connectx-7");
    let told =
        |world: &World, label, port| PortInfo::decode(&ask(world, label, smp::port_info(port)));
    let lid = |world: &World, label| world.port(find(world.net(), label)).lid;
    // A switch's own port; 0 on an adapter is the one that was asked by.
    let own = told(&world, "leaf-0-0[3]", 0);
    assert_eq!((own.state, own.physical_state), (state::ACTIVE, physical::LINK_UP));
    assert_eq!((own.lid, own.sm_lid), (lid(&world, "leaf-0-0[0]"), lid(&world, "host-1[1]")));
    assert_eq!(own.local_port, 3);
    for number in [0, 1] {
        let info = told(&world, "host-0[1]", number);
        assert_eq!(info.lid, lid(&world, "host-0[1]"));
        assert_eq!((info.state, info.width_active), (state::ACTIVE, Width::X4.code()));
    }
    let outer = told(&world, "leaf-0-0[0]", 1);
    assert_eq!((outer.state, outer.lid.0, outer.sm_lid.0), (state::ACTIVE, 0, 0));
    let free = told(&world, "leaf-0-0[0]", 6);
    assert_eq!((free.state, free.physical_state), (state::DOWN, physical::POLLING));
    // Who manages says so.
    let manages = |info: PortInfo| info.capabilities & capability::IS_SM != 0;
    assert!(manages(told(&world, "host-1[1]", 0)) && !manages(told(&world, "host-0[1]", 0)));
    for (label, number) in [("leaf-0-0[0]", 7), ("host-0[1]", 2), ("host-0[1]", 255)] {
        assert_eq!(ask(&world, label, smp::port_info(number)).status(), FIELD, "{label} {number}");
    }
    assert_eq!(ask(&world, "leaf-0-0[0]", subnet(PortInfo::ID, 256)).status(), FIELD);
    // A link that comes up.
    let end = find(world.net(), "leaf-0-0[1]");
    for up in [false, true] {
        world.act(at(5), Action::Signal { end, up });
    }
    assert_eq!(told(&world, "leaf-0-0[0]", 1).state, state::INIT);
    let change = |world: &World| {
        SwitchInfo::decode(&ask(world, "leaf-0-0[0]", smp::switch_info())).port_state_change
    };
    assert!(change(&world));
    world.advance(at(6));
    assert_eq!((told(&world, "leaf-0-0[0]", 1).state, change(&world)), (state::ACTIVE, false));
}

#[test]
fn what_a_subnet_agent_does_not_have_it_refuses() {
    let extended = PortInfoExtended::ID;
    let mellanox = MellanoxExtendedPortInfo::ID;
    for (switch, hca, label, (attribute, modifier), status) in [
        ("quantum-2", "connectx-7", "host-0[1]", (SwitchInfo::ID, 0), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (SwitchInfo::ID, 0), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (extended, 1), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (extended, 2), FIELD),
        ("quantum-2", "connectx-3", "host-0[1]", (extended, 1), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (mellanox, 1), 0),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (mellanox, 7), FIELD),
        ("quantum-2", "connectx-7", "host-0[1]", (0x0017, 0), ATTRIBUTE),
        ("quantum-2", "connectx-7", "host-0[1]", (0xff91, 0), ATTRIBUTE),
        ("quantum-2", "connectx-7", "host-0[1]", (0x0014, 0), 0),
        // P_Keys: two blocks, of each port that is there.
        ("quantum-2", "connectx-7", "host-0[1]", (PKeyTable::ID, 0), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (PKeyTable::ID, 1), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (PKeyTable::ID, 2), FIELD),
        ("quantum-2", "connectx-7", "host-0[1]", (PKeyTable::ID, 9 << 16), 0),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (PKeyTable::ID, 6 << 16 | 1), 0),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (PKeyTable::ID, 7 << 16), FIELD),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (PKeyTable::ID, u32::MAX), FIELD),
        // A manager sits at host-1.
        ("quantum-2", "connectx-7", "host-1[1]", (SmInfo::ID, 0), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (SmInfo::ID, 0), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[2]", (SmInfo::ID, 0), ATTRIBUTE),
    ] {
        let world = world_of(switch, hca);
        let told = ask(&world, label, subnet(attribute, modifier)).status();
        assert_eq!(told, status, "{switch} {hca} {label}: {attribute:#06x} of {modifier:#x}");
    }
}

#[test]
fn everybody_is_a_member_of_the_default_partition_alone() {
    let world = world_of("quantum-2", "connectx-7");
    let keys = |modifier| {
        PKeyTable::decode(&ask(&world, "host-0[1]", subnet(PKeyTable::ID, modifier))).keys
    };
    assert_eq!(keys(0)[..2], [0xffff, 0]);
    assert_eq!(keys(1), [0; PKeyTable::PER_BLOCK]);
}

#[test]
fn managers_tell_which_of_them_is_the_master() {
    let mut world = world_of("quantum-2", "connectx-7");
    let info = |world: &World, label| {
        let answer = ask(world, label, subnet(SmInfo::ID, 0));
        (answer.status() == 0).then(|| SmInfo::decode(&answer))
    };
    let told = |world: &World| {
        ["host-0[1]", "host-1[1]", "leaf-0-1[0]", "leaf-0-1[2]"]
            .map(|label| info(world, label).map(|info| info.state))
    };
    let (master, standby) = (Some(SmState::Master as u8), Some(SmState::Standby as u8));
    assert_eq!(told(&world), [None, master, None, None]);
    let port = find(world.net(), "leaf-0-1[0]");
    world.act(at(1), Action::Master { port, readdresses: false });
    // A switch's manager answers by whichever port it is asked.
    assert_eq!(told(&world), [None, standby, master, master]);
    let guid = world.net().port(port).guid;
    assert_eq!(info(&world, "leaf-0-1[2]").map(|info| info.guid), Some(guid));
}

#[test]
fn error_correction_is_told_of_links_that_have_it() {
    let mut world = world_of("quantum-2", "connectx-7");
    let active = |world: &World| {
        let answer = ask(world, "leaf-0-0[0]", subnet(PortInfoExtended::ID, 1));
        PortInfoExtended::decode(&answer).active
    };
    assert_eq!(active(&world), Fec::ReedSolomon.code());
    let end = find(world.net(), "leaf-0-0[1]");
    world.act(at(1), Action::Limit { end, width: None, speed: Some(Speed::Edr) });
    assert_eq!(active(&world), Fec::None.code());
}

#[test]
fn what_error_correction_counted_is_cleared_by_a_set_that_selects_all_of_it() {
    let mut world = world_of("quantum-2", "connectx-7");
    let seat = find(world.net(), "leaf-0-0[0]");
    let port = find(world.net(), "leaf-0-0[1]");
    for counter in [Counter::FecCorrectedSymbols, Counter::FecUncorrectableBlocks] {
        world.act(at(1), Action::Set { port, counter, value: 1 << 33 });
    }
    let counters = |world: &World| {
        let query = pma::counters(Attribute::PortExtendedSpeedsCounters, 1);
        PortExtendedSpeedsCounters::decode(&ask(world, "leaf-0-0[0]", query))
    };
    let full = counters(&world);
    assert_eq!(full.port_corrected_symbols, u32::MAX, "it sticks");
    assert_eq!(full.port_corrected_blocks, u32::MAX);
    assert_eq!(full.port_uncorrectable_blocks, u32::MAX);
    let request = Mad::request(&clear_fec_counters(1), None, 77);
    assert_eq!(obey(&mut world, seat, &request).unwrap().status(), 0);
    let cleared = counters(&world);
    assert!(cleared.port_corrected_symbols < 1_000_000, "{cleared:?}");
    assert_eq!(cleared.port_uncorrectable_blocks, 0);
}
