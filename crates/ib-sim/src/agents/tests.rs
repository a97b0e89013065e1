//! The responses of the agents of each device model.

mod xdr;

use std::time::Duration;

use super::*;
use crate::load::Flow;
use crate::net::Net;
use crate::net::shapes::FatTree;
use crate::scenario::{FabricChange, MadDelivery, ModuleReport, ResolvedScenario};
use ib_mad::class_port_info::{ClassPortInfo, PmaCapabilities};
use ib_mad::clear::CounterSelect;
use ib_mad::counter::{Attribute, Counter};
use ib_mad::fec::Fec;
use ib_mad::fec::{PortExtendedSpeedsCounters, PortInfoExtended};
use ib_mad::m_key::MKey;
use ib_mad::pma;
use ib_mad::pma::PortSamplesControl;
use ib_mad::pma::{clear_counters, clear_fec_counters};
use ib_mad::port_info::{MellanoxExtendedPortInfo, PortInfo, capability};
use ib_mad::port_state::{PhysicalState, PortState};
use ib_mad::rate::{Speed, Width};
use ib_mad::smp;
use ib_mad::smp::{NodeInfo, PKeyTable, SmInfo, SmState, SwitchInfo, SwitchPortStateTable};
use ib_mad::{DirectedRoute, Management, Query};
use ib_mad::{Moment, PortNumber};

const VERSION: u16 = 0x0004;
const METHOD: u16 = 0x0008;
const ATTRIBUTE: u16 = 0x000c;
const FIELD: u16 = 0x001c;

/// Two hosts at a leaf, `leaf-0-0[1]` and `[2]`, and two at another one; the subnet manager is at host-1.
pub(super) fn simulation_of(switch: &str, hca: &str) -> Simulation {
    let (down, up) = (Some(2), Some(2));
    let net = FatTree {
        levels: 2,
        radix: 6,
        hosts: 4,
        down,
        up,
        ports: 1,
        planes: 1,
        rail_hosts: 0,
        aggregation_nodes: false,
        switch: switch.into(),
        hca: hca.into(),
    }
    .build()
    .unwrap();
    simulation(net)
}

fn simulation(net: Net) -> Simulation {
    let [local, sm] = ["host-0[1]", "host-1[1]"].map(|label| find(&net, label));
    let delay = Duration::from_micros(20);
    let delivery = MadDelivery { round_trip: delay, per_hop: delay, jitter: delay, loss: 0.0 };
    Simulation::new(ResolvedScenario {
        net,
        local_ports: vec![local],
        sm_ports: vec![sm],
        seed: 1,
        delivery,
        changes: Vec::new(),
        own_host: None,
        descriptions: Vec::new(),
    })
}

fn find(net: &Net, label: &str) -> PortId {
    net.port_ids().find(|&port| net.label(port) == label).unwrap_or_else(|| panic!("no {label}"))
}

fn at(seconds: u64) -> Moment {
    Moment::default() + Duration::from_secs(seconds)
}

pub(super) fn get(simulation: &Simulation, label: &str, query: Query) -> Mad {
    let request = query.request(None, 77);
    let response = response(simulation, find(simulation.net(), label), &request).unwrap();
    assert_eq!((response.method(), response.transaction_id()), (method::GET_RESPONSE, 77));
    assert_eq!((response.attribute(), response.modifier()), (query.attribute, query.modifier));
    // The byte of PortSelect is ClassVersion in ClassPortInfo.
    if query.management == Management::Performance && query.attribute != ClassPortInfo::ID {
        assert_eq!(response.port_select(), query.port_select);
    }
    response
}

fn perf(attribute: u16, port_select: PortNumber) -> Query {
    Query { management: Management::Performance, port_select, ..subnet(attribute, 0) }
}

fn subnet(attribute: u16, modifier: u32) -> Query {
    Query {
        management: Management::Subnet,
        attribute,
        modifier,
        port_select: 0,
        clear: None,
        is_optional: false,
        is_always_sent: false,
        m_key: MKey::NONE,
        register: None,
    }
}

/// Sets all counters of a port far above the range of narrow fields.
fn overflow(simulation: &mut Simulation, port: PortId) {
    for counter in Counter::all() {
        let value = 0x0123_4567_89ab_cdef;
        simulation.apply(at(1), FabricChange::SetCounter { port, counter, value });
    }
}

#[test]
fn narrow_counters_saturate() {
    // Models, the port, PortXmitWait of the classic counters, and the words and packets there.
    for (switch, hca, label, wait) in [
        ("quantum-2", "infinihost-3", "host-0[1]", 0),
        ("quantum-2", "connectx-3", "host-0[1]", u32::MAX),
        ("any-switch", "connectx-7", "leaf-0-0[1]", u32::MAX),
        ("infiniscale-4", "connectx-7", "leaf-0-0[1]", 0),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", u32::MAX),
    ] {
        let mut simulation = simulation_of(switch, hca);
        let port = find(simulation.net(), label);
        overflow(&mut simulation, port);
        let response = get(&simulation, label, pma::counters(Attribute::PortCounters, 1));
        assert_eq!(response.status(), 0);
        let data = response.data();
        // 16, 8, 8, 4 x 16, 16, 8, 8 bits; a reserved byte, and two counters of four bits.
        assert_eq!(data[4..18], [0xff; 14], "{switch} {hca}");
        assert_eq!(data[18..20], [0, 0xff]);
        assert_eq!(data[22..40], [0xff; 18], "VL15Dropped, and 32 bits of traffic each");
        assert_eq!(data[40..44], wait.to_be_bytes(), "{switch} {hca}: what is not kept is 0");
        assert!(data[44..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn extended_counters_depend_on_the_model() {
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
        let mut simulation = simulation_of(switch, hca);
        let port = find(simulation.net(), label);
        overflow(&mut simulation, port);
        let response = get(&simulation, label, pma::counters(Attribute::PortCountersExtended, 1));
        assert_eq!(response.status(), 0);
        let value = |byte: u16| response.be(ib_mad::DATA + usize::from(byte), 8);
        let found: Vec<u16> = all.iter().copied().filter(|byte| value(*byte) != 0).collect();
        assert_eq!(found, *kept, "{switch} {hca}");
        assert!(kept.iter().all(|byte| value(*byte) == 0x0123_4567_89ab_cdef));
    }
    // Counters of causes have 16 bits; what is not announced is 0.
    let mut simulation = simulation_of("quantum-2", "connectx-7");
    let port = find(simulation.net(), "leaf-0-0[1]");
    overflow(&mut simulation, port);
    for (attribute, fields) in
        [(Attribute::PortRcvErrorDetails, 5), (Attribute::PortXmitDiscardDetails, 4)]
    {
        let response = get(&simulation, "leaf-0-0[1]", pma::counters(attribute, 1));
        let end = 4 + 2 * fields;
        assert!(response.data()[4..end].iter().all(|byte| *byte == 0xff));
        assert!(response.data()[end..].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn unsupported_performance_requests_are_refused() {
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
        // Unknown attributes, and those of another class.
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (0x0013, 1), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (0, 1), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (0xffff, 1), ATTRIBUTE),
        // Existing ports, and all of them where the switch supports AllPortSelect.
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (CLASSIC, 6), 0),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (CLASSIC, 7), FIELD),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (CLASSIC, 0), FIELD),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (WIDE, 254), FIELD),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (WIDE, 255), 0),
        ("infiniscale-4", "connectx-7", "leaf-0-0[0]", (CLASSIC, 255), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (CLASSIC, 0), FIELD),
        ("quantum-2", "connectx-7", "host-0[1]", (CLASSIC, 2), FIELD),
        ("quantum-2", "connectx-7", "host-0[1]", (CLASSIC, 255), FIELD),
        // Of an unsupported attribute the port does not matter.
        ("quantum-2", "infinihost-3", "host-0[1]", (WIDE, 9), ATTRIBUTE),
    ] {
        let simulation = simulation_of(switch, hca);
        let (attribute, port) = asked;
        let response = get(&simulation, label, perf(attribute, port));
        assert_eq!(response.status(), status, "{switch} {hca} {label}: {attribute:#06x} of {port}");
        if status != 0 {
            let mut data = response.data().to_vec();
            data[1] = 0;
            assert!(data.iter().all(|byte| *byte == 0), "a refusal has no data");
        }
    }
}

#[test]
fn enhanced_port_0_has_counters() {
    let mut net = simulation_of("quantum-2", "connectx-7").net().clone();
    for node in &mut net.nodes {
        node.enhanced_port0 = true;
    }
    let simulation = simulation(net);
    let read =
        |label, port| get(&simulation, label, perf(Attribute::PortCounters as u16, port)).status();
    assert_eq!((read("leaf-0-0[0]", 0), read("host-0[1]", 0)), (0, FIELD));
    assert!(
        SwitchInfo::decode(&get(&simulation, "leaf-0-0[0]", smp::switch_info())).enhanced_port0
    );
}

#[test]
fn all_port_select_sums_all_ports() {
    let mut simulation = simulation_of("quantum-2", "connectx-7");
    let net = simulation.net();
    let node = net.port(find(net, "leaf-0-0[0]")).node;
    for (port, value) in net.cable_ports(node).zip([1, 20, 300, 4000, 0, 50_000]) {
        simulation
            .apply(at(1), FabricChange::SetCounter { port, counter: Counter::SymbolErrors, value });
        simulation.apply(
            at(1),
            FabricChange::SetCounter { port, counter: Counter::LinkDowned, value: 60 },
        );
    }
    let data = |attribute| get(&simulation, "leaf-0-0[3]", pma::counters(attribute, 255));
    let wide = data(Attribute::PortCountersExtended);
    let value = |byte| wide.be(ib_mad::DATA + byte, 8);
    assert_eq!((value(72), value(88)), (54_321, 360));
    let classic = data(Attribute::PortCounters);
    let classic = classic.data();
    assert_eq!((&classic[4..6], classic[7]), (&54_321u16.to_be_bytes()[..], 255));
}

#[test]
fn set_changes_selected_counters_only() {
    let mut simulation = simulation_of("quantum-2", "infinihost-3");
    let [host, leaf] = ["host-0[1]", "leaf-0-0[1]"].map(|label| find(simulation.net(), label));
    for port in [host, leaf] {
        for counter in Counter::all() {
            simulation.apply(at(1), FabricChange::SetCounter { port, counter, value: 200 });
        }
    }
    let select = [Counter::LinkDowned, Counter::XmitWait, Counter::XmitData];
    let mut request = clear_counters(1, CounterSelect::new(select)).request(None, 77);
    // LinkErrorRecovery and LinkDowned are neighbors: the one that is not selected is not set.
    request.0[ib_mad::DATA + 6] = 9;
    request.0[ib_mad::DATA + 7] = 5;
    for (port, label, wait) in [(host, "host-0[1]", 200), (leaf, "leaf-0-0[0]", 0)] {
        let local_port = find(simulation.net(), label);
        assert_eq!(response(&simulation, local_port, &request).unwrap().status(), METHOD);
        let set = execute(&mut simulation, local_port, &request).unwrap();
        assert_eq!((set.method(), set.status()), (method::GET_RESPONSE, 0));
        assert_eq!(set.data()[4..8], [0, 200, 200, 5], "the new values");
        let count = |counter| simulation.count(port, counter);
        assert_eq!((count(Counter::LinkDowned), count(Counter::LinkErrorRecoveries)), (5, 200));
        assert_eq!(count(Counter::XmitData), 0);
        assert_eq!(count(Counter::XmitWait), wait, "InfiniHost has none to be cleared");
        assert_eq!(count(Counter::RcvErrors), 200);
    }
    // A port that does not exist, and another attribute.
    request.0[ib_mad::DATA + 1] = 99;
    let local_port = find(simulation.net(), "leaf-0-0[0]");
    assert_eq!(execute(&mut simulation, local_port, &request).unwrap().status(), FIELD);
    request.0[17] = Attribute::PortCountersExtended as u8;
    assert_eq!(execute(&mut simulation, local_port, &request).unwrap().status(), METHOD);
}

#[test]
fn class_port_info_announces_capabilities() {
    for (hca, mask, mask2) in
        [("infinihost-3", 0, 0), ("connectx-4", 0x5a00, 0), ("connectx-7", 0xd200, 2)]
    {
        let simulation = simulation_of("quantum-2", hca);
        let response = get(&simulation, "host-0[1]", pma::class_port_info());
        assert_eq!(PmaCapabilities::decode(&response), PmaCapabilities { mask, mask2 }, "{hca}");
        let info = ClassPortInfo::decode(&response);
        assert_eq!((info.base_version, info.class_version), (1, 1));
    }
}

#[test]
fn xmit_wait_has_the_tick_of_the_switch() {
    // A tick is the time of tick + 1 bytes: of 100 Gb/s with EDR, and of 400 with NDR.
    for (switch, hca, tick) in [("switch-ib-2", "connectx-7", 31), ("quantum-2", "connectx-7", 7)] {
        let mut simulation = simulation_of(switch, hca);
        let response = get(&simulation, "leaf-0-0[0]", perf(PortSamplesControl::ID, 1));
        assert_eq!(PortSamplesControl::decode(&response).tick, tick, "{switch}");
        let [from, to] = ["host-0[1]", "host-1[1]"].map(|label| find(simulation.net(), label));
        let root = find(simulation.net(), "leaf-0-0[2]");
        let flows = vec![Flow { from, to, offered: 1e9, packet: 4096 }];
        simulation.apply(at(1), FabricChange::SetTraffic { name: "all".into(), flows });
        simulation.apply(at(1), FabricChange::LimitIntake { port: to, fraction: 0.0 });
        simulation.advance(at(2));
        // The port waits all the time. The older switch counts the bytes of a lane.
        let lanes = if tick == 7 { 1 } else { 4 };
        let rate = simulation.port(root).bytes_per_second() / lanes;
        assert_eq!(simulation.count(root, Counter::XmitWait), rate / (u64::from(tick) + 1));
    }
}

#[test]
fn corrected_symbols_are_counted_per_lane() {
    let lanes = perf(PortExtendedSpeedsCounters::ID, 1);
    let mut simulation = simulation_of("quantum-2", "connectx-7");
    let port = find(simulation.net(), "leaf-0-0[1]");
    simulation.advance(at(10));
    let sound = PortExtendedSpeedsCounters::decode(&get(&simulation, "leaf-0-0[1]", lanes));
    // 400 Gb/s with 1 bit in 10^8 wrong.
    assert_eq!((sound.port_corrected_symbols, sound.port_uncorrectable_blocks), (40_000, 0));
    assert_eq!(sound.corrected[..5], [10_000, 10_000, 10_000, 10_000, 0]);
    simulation.apply(at(10), FabricChange::CorruptBits { port, ratio: 1e-12 });
    simulation.advance(at(70));
    let bad = PortExtendedSpeedsCounters::decode(&get(&simulation, "leaf-0-0[1]", lanes));
    assert!(bad.port_corrected_symbols > 100 * sound.port_corrected_symbols);
    let symbols = simulation.count(port, Counter::SymbolErrors);
    assert!(symbols > 0 && u64::from(bad.port_uncorrectable_blocks) == symbols);
    // A link with one lane has one.
    simulation.apply(at(70), FabricChange::LimitLink { port, width: Some(Width::X1), speed: None });
    let narrow = PortExtendedSpeedsCounters::decode(&get(&simulation, "leaf-0-0[1]", lanes));
    assert_eq!(narrow.corrected[1], 0);
    // A link that is too slow for Reed-Solomon keeps its counters.
    simulation
        .apply(at(70), FabricChange::LimitLink { port, width: None, speed: Some(Speed::Edr) });
    simulation.advance(at(900));
    let slow = PortExtendedSpeedsCounters::decode(&get(&simulation, "leaf-0-0[1]", lanes));
    assert_eq!(slow.port_corrected_symbols, bad.port_corrected_symbols);
    assert_eq!(slow.port_uncorrectable_blocks, bad.port_uncorrectable_blocks);
    assert!(simulation.count(port, Counter::SymbolErrors) > symbols);
}

#[test]
fn fec_counters_saturate_at_32_bits() {
    let lanes = perf(PortExtendedSpeedsCounters::ID, 1);
    for (switch, hca, label) in
        [("quantum-2", "connectx-7", "leaf-0-0[1]"), ("quantum-2", "connectx-7", "host-0[1]")]
    {
        let mut simulation = simulation_of(switch, hca);
        let port = find(simulation.net(), label);
        simulation.apply(at(1), FabricChange::CorruptBits { port, ratio: 1e-12 });
        simulation.advance(at(3000));
        let full = PortExtendedSpeedsCounters::decode(&get(&simulation, label, lanes));
        assert_eq!(full.port_corrected_symbols, u32::MAX, "{hca}");
        assert!(full.corrected[0] < u32::MAX, "a lane has a quarter");
    }
    // It has them, too, though its errors are in PortCounters only.
    let mut simulation = simulation_of("switch-ib-2", "connectx-4");
    let port = find(simulation.net(), "host-0[1]");
    overflow(&mut simulation, port);
    let counters = PortExtendedSpeedsCounters::decode(&get(&simulation, "host-0[1]", lanes));
    assert_eq!(counters.port_uncorrectable_blocks, u32::MAX);
}

#[test]
fn option_masks_are_those_of_real_devices() {
    let net = FatTree {
        levels: 2,
        radix: 6,
        hosts: 4,
        down: Some(2),
        up: Some(2),
        ports: 1,
        planes: 1,
        rail_hosts: 0,
        aggregation_nodes: true,
        switch: "quantum-2".into(),
        hca: "connectx-7".into(),
    };
    let simulation = simulation(net.build().unwrap());
    for (label, port, options) in [
        ("host-0[1]", 1, 0x01a6_0000_10cc_33c0),
        ("leaf-0-0[0]", 1, 0x0180_0000_008c_f7fc),
        ("leaf-0-0-an[1]", 1, 0x0180_0000_008c_f7fc),
    ] {
        let control = PortSamplesControl::decode(&get(
            &simulation,
            label,
            perf(PortSamplesControl::ID, port),
        ));
        assert_eq!((control.option_mask, control.tick), (options, 7), "{label}");
    }
    let node = NodeInfo::decode(&get(&simulation, "leaf-0-0-an[1]", smp::node_info()));
    assert_eq!((node.device_id, node.vendor_id, node.port_count), (53001, 0x2c9, 1));
}

#[test]
fn responses_are_ignored_and_bad_requests_refused() {
    let simulation = simulation_of("quantum-2", "connectx-7");
    let port = find(simulation.net(), "leaf-0-0[1]");
    let queries = [smp::node_info(), pma::class_port_info()];
    for (query, path) in
        [(queries[0], None), (queries[0], Some(&DirectedRoute::LOCAL)), (queries[1], None)]
    {
        let request = query.request(path, 1);
        // The byte, its value, and the status or no response.
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
            let response = response(&simulation, port, &request);
            assert_eq!(response.map(|mad| mad.status()), status, "byte {byte}: {value:#04x}");
        }
    }
}

#[test]
fn node_info_has_the_port_of_the_request() {
    let simulation = simulation_of("quantum-2", "connectx-7");
    for (label, local_port, port_count) in
        [("leaf-0-0[0]", 0, 6), ("leaf-0-0[3]", 3, 6), ("host-0[1]", 1, 1)]
    {
        let info = NodeInfo::decode(&get(&simulation, label, smp::node_info()));
        assert_eq!((info.local_port, info.port_count), (local_port, port_count), "{label}");
        let node = simulation.net().node_of(find(simulation.net(), label));
        assert_eq!((info.node_guid, info.device_id), (node.guid, node.device_id));
    }
    let name = get(&simulation, "leaf-0-0[3]", smp::node_description());
    assert_eq!(smp::decode_node_description(&name), "leaf-0-0");
}

#[test]
fn port_info_has_state_and_lids() {
    let mut simulation = simulation_of("quantum-2", "connectx-7");
    let read = |simulation: &Simulation, label, port| {
        PortInfo::decode(&get(simulation, label, smp::port_info(port)))
    };
    let lid = |simulation: &Simulation, label| simulation.port(find(simulation.net(), label)).lid;
    // A switch's port 0; 0 on an adapter is the port of the request.
    let own = read(&simulation, "leaf-0-0[3]", 0);
    assert_eq!((own.state, own.physical_state), (PortState::Active, PhysicalState::LinkUp));
    assert_eq!(
        (own.lid, own.sm_lid),
        (lid(&simulation, "leaf-0-0[0]"), lid(&simulation, "host-1[1]"))
    );
    assert_eq!(own.local_port, 3);
    for number in [0, 1] {
        let info = read(&simulation, "host-0[1]", number);
        assert_eq!(info.lid, lid(&simulation, "host-0[1]"));
        assert_eq!((info.state, info.width_active), (PortState::Active, Width::X4.code()));
    }
    let outer = read(&simulation, "leaf-0-0[0]", 1);
    assert_eq!((outer.state, outer.lid.0, outer.sm_lid.0), (PortState::Active, 0, 0));
    let free = read(&simulation, "leaf-0-0[0]", 6);
    assert_eq!((free.state, free.physical_state), (PortState::Down, PhysicalState::Polling));
    // The port of the subnet manager has IsSM.
    let manages = |info: PortInfo| info.capabilities & capability::IS_SM != 0;
    assert!(
        manages(read(&simulation, "host-1[1]", 0)) && !manages(read(&simulation, "host-0[1]", 0))
    );
    for (label, number) in [("leaf-0-0[0]", 7), ("host-0[1]", 2), ("host-0[1]", 255)] {
        assert_eq!(
            get(&simulation, label, smp::port_info(number)).status(),
            FIELD,
            "{label} {number}"
        );
    }
    assert_eq!(get(&simulation, "leaf-0-0[0]", subnet(PortInfo::ID, 256)).status(), FIELD);
    // The link comes up again.
    let port = find(simulation.net(), "leaf-0-0[1]");
    for up in [false, true] {
        simulation.apply(at(5), FabricChange::SetSignal { port, up });
    }
    assert_eq!(read(&simulation, "leaf-0-0[0]", 1).state, PortState::Init);
    let change = |simulation: &Simulation| {
        SwitchInfo::decode(&get(simulation, "leaf-0-0[0]", smp::switch_info())).port_state_change
    };
    assert!(change(&simulation));
    simulation.advance(at(6));
    assert_eq!(
        (read(&simulation, "leaf-0-0[0]", 1).state, change(&simulation)),
        (PortState::Active, false)
    );
}

#[test]
fn unsupported_subnet_requests_are_refused() {
    let extended = PortInfoExtended::ID;
    let mellanox = MellanoxExtendedPortInfo::ID;
    for (switch, hca, label, (attribute, modifier), status) in [
        ("quantum-2", "connectx-7", "host-0[1]", (SwitchInfo::ID, 0), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (SwitchInfo::ID, 0), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (extended, 1), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (extended, 2), FIELD),
        ("quantum-2", "connectx-3", "host-0[1]", (extended, 1), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (SwitchPortStateTable::ID, 0), 0),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (SwitchPortStateTable::ID, 1), FIELD),
        ("quantum-2", "connectx-7", "leaf-0-0[1]", (SwitchPortStateTable::ID, u32::MAX), FIELD),
        ("quantum-2", "connectx-7", "host-0[1]", (SwitchPortStateTable::ID, 0), ATTRIBUTE),
        ("switch-ib-2", "connectx-7", "leaf-0-0[1]", (SwitchPortStateTable::ID, 0), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (mellanox, 1), 0),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (mellanox, 7), FIELD),
        ("quantum-2", "connectx-7", "host-0[1]", (0x0017, 0), ATTRIBUTE),
        ("quantum-2", "connectx-7", "host-0[1]", (0xff91, 0), ATTRIBUTE),
        ("quantum-2", "connectx-7", "host-0[1]", (0x0014, 0), 0),
        // P_Keys: two blocks of each existing port.
        ("quantum-2", "connectx-7", "host-0[1]", (PKeyTable::ID, 0), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (PKeyTable::ID, 1), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (PKeyTable::ID, 2), FIELD),
        ("quantum-2", "connectx-7", "host-0[1]", (PKeyTable::ID, 9 << 16), 0),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (PKeyTable::ID, 6 << 16 | 1), 0),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (PKeyTable::ID, 7 << 16), FIELD),
        ("quantum-2", "connectx-7", "leaf-0-0[0]", (PKeyTable::ID, u32::MAX), FIELD),
        // A subnet manager is at host-1.
        ("quantum-2", "connectx-7", "host-1[1]", (SmInfo::ID, 0), 0),
        ("quantum-2", "connectx-7", "host-0[1]", (SmInfo::ID, 0), ATTRIBUTE),
        ("quantum-2", "connectx-7", "leaf-0-0[2]", (SmInfo::ID, 0), ATTRIBUTE),
    ] {
        let simulation = simulation_of(switch, hca);
        let found = get(&simulation, label, subnet(attribute, modifier)).status();
        assert_eq!(found, status, "{switch} {hca} {label}: {attribute:#06x} of {modifier:#x}");
    }
}

#[test]
fn port_state_table_shows_what_port_info_does() {
    let mut simulation = simulation_of("quantum-2", "connectx-7");
    let states = |simulation: &Simulation| -> Option<Vec<PortState>> {
        let response = get(simulation, "leaf-0-0[0]", smp::switch_port_state_table(0));
        let table = SwitchPortStateTable::decode(&response);
        (response.status() == 0).then(|| (0..=6).map(|port| table.state(port)).collect())
    };
    let read = |simulation: &Simulation, label, port| {
        PortInfo::decode(&get(simulation, label, smp::port_info(port)))
    };
    let read_each = |simulation: &Simulation| -> Vec<PortState> {
        (0..=6).map(|port| read(simulation, "leaf-0-0[0]", port).state).collect()
    };
    let port = find(simulation.net(), "leaf-0-0[1]");
    for up in [true, false, true] {
        simulation.apply(at(5), FabricChange::SetSignal { port, up });
        assert_eq!(states(&simulation), Some(read_each(&simulation)), "{up}");
    }
    let announces = |simulation: &Simulation| read(simulation, "leaf-0-0[0]", 0).has_state_table();
    let node = simulation.net().port(port).node;
    for (behavior, is_announced, expected) in [
        (TableBehavior::Absent, false, None),
        (TableBehavior::Refused, true, None),
        (TableBehavior::Zero, true, Some(vec![PortState::Other(0); 7])),
        (TableBehavior::Wrong, true, Some(vec![PortState::Active; 7])),
        (TableBehavior::Normal, true, Some(read_each(&simulation))),
    ] {
        simulation.apply(at(5), FabricChange::SetStateTable { nodes: vec![node], behavior });
        assert_eq!(announces(&simulation), is_announced, "{behavior:?}");
        assert_eq!(states(&simulation), expected, "{behavior:?}");
    }
    simulation.apply(
        at(5),
        FabricChange::SetStateTable { nodes: vec![node], behavior: TableBehavior::Hung },
    );
    let request = smp::switch_port_state_table(0).request(None, 1);
    assert_eq!(delay(&simulation, find(simulation.net(), "leaf-0-0[0]"), &request), None);
}

#[test]
fn p_key_table_has_the_default_partition_only() {
    let simulation = simulation_of("quantum-2", "connectx-7");
    let keys = |modifier| {
        PKeyTable::decode(&get(&simulation, "host-0[1]", subnet(PKeyTable::ID, modifier))).keys
    };
    assert_eq!(keys(0)[..2], [0xffff, 0]);
    assert_eq!(keys(1), [0; PKeyTable::PER_BLOCK]);
}

#[test]
fn sm_info_has_master_and_standby() {
    let mut simulation = simulation_of("quantum-2", "connectx-7");
    let info = |simulation: &Simulation, label| {
        let response = get(simulation, label, subnet(SmInfo::ID, 0));
        (response.status() == 0).then(|| SmInfo::decode(&response))
    };
    let read = |simulation: &Simulation| {
        ["host-0[1]", "host-1[1]", "leaf-0-1[0]", "leaf-0-1[2]"]
            .map(|label| info(simulation, label).map(|info| info.state))
    };
    let (master, standby) = (Some(SmState::Master as u8), Some(SmState::Standby as u8));
    assert_eq!(read(&simulation), [None, master, None, None]);
    let port = find(simulation.net(), "leaf-0-1[0]");
    simulation.apply(at(1), FabricChange::SetMaster { port, reassign_lids: false });
    // A switch's subnet manager responds at any port.
    assert_eq!(read(&simulation), [None, standby, master, master]);
    let guid = simulation.net().port(port).guid;
    assert_eq!(info(&simulation, "leaf-0-1[2]").map(|info| info.guid), Some(guid));
}

#[test]
fn active_fec_mode_depends_on_speed() {
    let mut simulation = simulation_of("quantum-2", "connectx-7");
    let active = |simulation: &Simulation| {
        let response = get(simulation, "leaf-0-0[0]", subnet(PortInfoExtended::ID, 1));
        PortInfoExtended::decode(&response).active
    };
    assert_eq!(active(&simulation), Fec::ReedSolomon as u16);
    let port = find(simulation.net(), "leaf-0-0[1]");
    simulation.apply(at(1), FabricChange::LimitLink { port, width: None, speed: Some(Speed::Edr) });
    assert_eq!(active(&simulation), Fec::None as u16);
}

#[test]
fn set_of_all_fec_counters_clears_them() {
    let mut simulation = simulation_of("quantum-2", "connectx-7");
    let local_port = find(simulation.net(), "leaf-0-0[0]");
    let port = find(simulation.net(), "leaf-0-0[1]");
    for counter in [Counter::FecCorrectedSymbols, Counter::FecUncorrectableBlocks] {
        simulation.apply(at(1), FabricChange::SetCounter { port, counter, value: 1 << 33 });
    }
    let counters = |simulation: &Simulation| {
        let query = pma::counters(Attribute::PortExtendedSpeedsCounters, 1);
        PortExtendedSpeedsCounters::decode(&get(simulation, "leaf-0-0[0]", query))
    };
    let full = counters(&simulation);
    assert_eq!(full.port_corrected_symbols, u32::MAX, "it sticks");
    assert_eq!(full.port_corrected_blocks, u32::MAX);
    assert_eq!(full.port_uncorrectable_blocks, u32::MAX);
    let request = clear_fec_counters(1).request(None, 77);
    assert_eq!(execute(&mut simulation, local_port, &request).unwrap().status(), 0);
    let cleared = counters(&simulation);
    assert!(cleared.port_corrected_symbols < 1_000_000, "{cleared:?}");
    assert_eq!(cleared.port_uncorrectable_blocks, 0);
}

#[test]
fn registers_depend_on_the_model() {
    use ib_mad::register::{Module, PhysicalStatistics, RegisterQuery, Temperature, celsius, text};
    use ib_mad::vendor::{self, GeneralInfo};

    let simulation = simulation_of("quantum-2", "connectx-6");
    let (switch, host) = ("leaf-0-0[1]", "host-0[1]");
    let info = |at: &str| GeneralInfo::decode(&get(&simulation, at, vendor::general_info()));
    assert_eq!(info(switch).firmware(), "31.2012.4036");
    assert_eq!(info(switch).board(), "MT_0000054002");
    assert!(info(switch).has(GeneralInfo::ACCESS_REGISTER));
    assert_eq!(
        (info(host).firmware(), info(host).has(GeneralInfo::ACCESS_REGISTER)),
        ("20.43.1014".into(), false)
    );
    let query = |query: RegisterQuery| get(&simulation, switch, vendor::access_register(query));
    assert_eq!(
        celsius(Temperature::decode(&query(RegisterQuery::Temperature(0))).degrees),
        Some(52.0)
    );
    let module = Module::decode(&query(RegisterQuery::Module(1)));
    assert_eq!(
        (text(&module.vendor), module.technology_label()),
        ("Mellanox".into(), "passive copper")
    );
    let physical = PhysicalStatistics::decode(&query(RegisterQuery::PhysicalStatistics(1)));
    assert!(physical.raw_ber().is_some());
    for (at, query, status) in [
        (switch, RegisterQuery::Module(0), vendor::status::BAD_PARAMETER),
        (switch, RegisterQuery::Module(99), vendor::status::BAD_PARAMETER),
        (switch, RegisterQuery::FanSpeed(0), vendor::status::BAD_PARAMETER),
        (switch, RegisterQuery::FanSpeed(1), 0),
        (switch, RegisterQuery::FecHistogram(1), 0),
        (switch, RegisterQuery::PowerSupplies, 0),
        (host, RegisterQuery::Module(1), status::UNSUPPORTED_ATTRIBUTE),
    ] {
        assert_eq!(
            get(&simulation, at, vendor::access_register(query)).status(),
            status,
            "{at} {query:?}"
        );
    }
}

#[test]
fn registers_follow_the_faults() {
    use ib_mad::Moment;
    use ib_mad::register::{LinkDown, Module, PhysicalStatistics, RegisterQuery, Side, text};

    let text_of = "fabric: {fat-tree: {hosts: 6, radix: 8, down: 4, up: 2}}\n\
        timeline:\n\
        - dirty-connector: {at: 1m, into: 'spine-0[1]', lane: 2, ratio: 4e-5}\n\
        - hot-module: {at: 1m, port: 'spine-0[2]', celsius: 80}\n\
        - swap-cable: {at: 2m, link: 'spine-0[1]', down: 10s}\n\
        - reboot: {at: 1m, node: host-0, down: 10s}\n";
    let scenario = crate::scenario::Scenario::parse("test", text_of).unwrap();
    let mut simulation =
        Simulation::new(scenario.resolve(&crate::scenario::Overrides::default()).unwrap());
    let at = |second: u64| Moment(second * 1_000_000_000);
    let query = |simulation: &Simulation, at: &str, query: RegisterQuery| {
        get(simulation, at, ib_mad::vendor::access_register(query))
    };
    let physical = |simulation: &Simulation| {
        PhysicalStatistics::decode(&query(
            simulation,
            "spine-0[1]",
            RegisterQuery::PhysicalStatistics(1),
        ))
    };
    let module = |simulation: &Simulation, number: u8| {
        Module::decode(&query(simulation, "spine-0[1]", RegisterQuery::Module(number)))
    };
    simulation.advance(at(50));
    let (clean, first) = (physical(&simulation), text(&module(&simulation, 1).serial_number));
    simulation.advance(at(110));
    let dirty = physical(&simulation);
    let lane = |nth: usize| dirty.lane_errors[nth] - clean.lane_errors[nth];
    let bits = (dirty.received_bits - clean.received_bits) as f64;
    // 50 of 60 seconds; a lane has a quarter of the bits.
    let ratio = lane(2) as f64 / (bits / 4.0 * 50.0 / 60.0);
    assert!((3.9e-5..4.2e-5).contains(&ratio), "{ratio}");
    assert!(lane(2) > 100 * lane(1), "{dirty:?}");
    assert_eq!(module(&simulation, 1).dark_lane(4), Some(2));
    assert!(module(&simulation, 2).is_hot() && !module(&simulation, 1).is_hot());
    let down = LinkDown::decode(&query(&simulation, "leaf-0-0[1]", RegisterQuery::LinkDown(1)));
    assert_eq!(
        (down.side(), down.describe()),
        (Some(Side::Remote), Some("remote side, device reset".into()))
    );
    simulation.advance(at(150));
    // The hot one says 80 °C, and no threshold; then nothing at all.
    for (report, degrees, lowest) in
        [(ModuleReport::NoThresholds, 80, 631), (ModuleReport::Zero, 0, 0)]
    {
        let port = find(simulation.net(), "spine-0[2]");
        simulation.apply(at(150), FabricChange::SetModuleReport { port, report });
        let found = module(&simulation, 2);
        assert_eq!((found.temperature >> 8, found.rx_power[0]), (degrees, lowest));
        assert_eq!((found.temperature_high, found.rx_power_low, found.is_hot()), (0, 0, false));
    }
    let swapped = module(&simulation, 1);
    assert_ne!(text(&swapped.serial_number), first);
    assert_eq!(swapped.dark_lane(4), None, "a new cable is clean");
    let down = LinkDown::decode(&query(&simulation, "spine-0[1]", RegisterQuery::LinkDown(1)));
    assert_eq!(down.describe().as_deref(), Some("local side, block lock lost"));
    assert!(physical(&simulation).since_clear < 40_000, "counted since the link trained");
}

#[test]
fn registers_behave_as_the_scenario_says() {
    use ib_mad::m_key::MKey;
    use ib_mad::register::RegisterQuery;
    use ib_mad::vendor::{self, GeneralInfo};

    let text_of = "fabric: {fat-tree: {hosts: 6, radix: 8, down: 4, up: 2}}\n\
        timeline:\n\
        - registers: {node: leaf-0-0, behavior: absent}\n\
        - registers: {node: leaf-0-1, behavior: refused}\n\
        - vs-key: {node: spine-0, key: 0x77}\n";
    let scenario = crate::scenario::Scenario::parse("test", text_of).unwrap();
    let simulation =
        Simulation::new(scenario.resolve(&crate::scenario::Overrides::default()).unwrap());
    let module = vendor::access_register(RegisterQuery::Module(1));
    let info = GeneralInfo::decode(&get(&simulation, "leaf-0-0[1]", vendor::general_info()));
    assert!(!info.has(GeneralInfo::ACCESS_REGISTER));
    assert_eq!(get(&simulation, "leaf-0-0[1]", module).status(), status::UNSUPPORTED_ATTRIBUTE);
    let refused = get(&simulation, "leaf-0-1[1]", module).status();
    assert_eq!(refused, vendor::status::UNSUPPORTED_REGISTER);
    let port = find(simulation.net(), "spine-0[1]");
    let respond = |key: u64| {
        let query = vendor::general_info().with_m_key(MKey(key));
        response(&simulation, port, &query.request(None, 1))
    };
    assert!(respond(0).is_none() && respond(0x78).is_none());
    assert_eq!(respond(0x77).unwrap().status(), 0);
}
