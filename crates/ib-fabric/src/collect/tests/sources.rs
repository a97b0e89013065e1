//! Which field a counter is taken from, which fields are there, and how often causes are read, on
//! simulated devices that answer as real ones were observed to.

use super::clear::{Watched, port};
use super::*;
use crate::PortIndex;
use ib_health::totals::PortTotals;
use ib_umad::walk::rest;

/// The rate of a 4x NDR port, in bytes a second.
const RATE: u64 = 50_000_000_000;
const CLASSIC: u16 = Attribute::PortCounters as u16;
const WIDE: u16 = Attribute::PortCountersExtended as u16;
const DISCARDS: u16 = Attribute::PortXmitDiscardDetails as u16;

/// A sweep of a fabric, and one port's value of a counter in it, with whether it is stuck.
fn read(
    wire: &mut Watched,
    fabric: &Arc<Fabric>,
    agents: &mut Agents,
    port: PortIndex,
) -> impl Fn(Counter) -> Option<(u64, bool)> + use<> {
    let swept = swept(wire, fabric, agents);
    let reading = swept.snapshot.reading(port).cloned();
    move |counter| {
        let reading = reading.as_ref()?;
        Some((reading.get(counter)?, reading.is_stuck(counter)))
    }
}

#[test]
fn counters_that_a_connectx_7_leaves_at_0_in_64_bits_are_read_from_the_classic_ones() {
    let mut wire = Watched::of("quantum-2", "connectx-7");
    for (counter, value) in [
        (Counter::SymbolErrors, 41),
        (Counter::LinkDowned, 300),
        (Counter::RcvErrors, 70_000),
        (Counter::XmitDiscards, 111_911),
        (Counter::XmitWait, 1 << 40),
    ] {
        wire.count("host-1[1]", counter, value);
        wire.count("leaf-0-0[3]", counter, value);
    }
    let fabric = assembled(&mut wire);
    let mut agents = Agents::default();
    let of = read(&mut wire, &fabric, &mut agents, port(&fabric, "host-1", 1));
    for (counter, value) in [
        (Counter::SymbolErrors, (41, false)),
        // Eight bits, and full.
        (Counter::LinkDowned, (255, true)),
        (Counter::RcvErrors, (70_000, false)),
        (Counter::XmitDiscards, (111_911, false)),
        (Counter::XmitWait, (1 << 40, false)),
        (Counter::LinkErrorRecoveries, (0, false)),
    ] {
        assert_eq!(of(counter), Some(value), "{counter:?}");
    }
    // A switch fills both, and is asked for the 64-bit ones alone.
    let of = read(&mut wire, &fabric, &mut agents, port(&fabric, "leaf-0-0", 3));
    assert_eq!(of(Counter::SymbolErrors), Some((41, false)));
    assert_eq!(of(Counter::LinkDowned), Some((300, false)));
    let leaf = fabric.lid_of(port(&fabric, "leaf-0-0", 3)).unwrap();
    assert!(!wire.asked.contains(&(leaf, CLASSIC)) && wire.asked.contains(&(leaf, WIDE)));
}

#[test]
fn a_lost_answer_leaves_a_counter_absent_and_its_total_where_it_was() {
    let mut wire = Watched::of("quantum-2", "connectx-7");
    let fabric = assembled(&mut wire);
    let (mut agents, mut totals) = (Agents::default(), PortTotals::default());
    let host = port(&fabric, "host-1", 1);
    let mut told = |wire: &mut Watched, lost: &[u16]| {
        wire.lost = lost.to_vec();
        let swept = swept(wire, &fabric, &mut agents);
        let mut reading = swept.snapshot.reading(host).cloned();
        let growth = reading.as_mut().map(|reading| totals.take(reading, RATE));
        let of = |counter| reading.as_ref().and_then(|reading| reading.get(counter));
        let reset = growth.is_some_and(|growth| growth.reset);
        (of(Counter::SymbolErrors), of(Counter::RcvErrors), reset)
    };
    // Nothing is known of either field yet: 0 in one of them is not a value.
    assert_eq!(told(&mut wire, &[CLASSIC]), (None, None, false));
    assert_eq!(told(&mut wire, &[]), (Some(0), Some(0), false));
    wire.count("host-1[1]", Counter::SymbolErrors, 20);
    wire.count("host-1[1]", Counter::RcvErrors, 70_000);
    assert_eq!(told(&mut wire, &[]), (Some(20), Some(70_000), false));
    wire.count("host-1[1]", Counter::SymbolErrors, 25);
    // Without the classic values symbol errors are not 0, and without the 64-bit ones receive errors
    // are not 65,535.
    assert_eq!(told(&mut wire, &[CLASSIC]), (None, Some(70_000), false));
    assert_eq!(told(&mut wire, &[WIDE]), (Some(25), None, false));
    assert_eq!(told(&mut wire, &[]), (Some(25), Some(70_000), false));
}

#[test]
fn a_device_that_refuses_the_classic_counters_is_read_by_64_bits_and_not_asked_again() {
    let mut wire = generations();
    let fabric = assembled(&mut wire);
    wire.fate = Box::new(|parcel: &Parcel| {
        let classic = !parcel.class.is_smp() && parcel.mad.attribute() == CLASSIC;
        if classic && parcel.lid == Lid(3) {
            Fate::Status(0x0c)
        } else {
            Fate::Answered(ROUND_TRIP)
        }
    });
    let mut agents = Agents::default();
    let host = fabric.find((Guid(3), 1)).unwrap();
    for asked in [&[1, CLASSIC, WIDE, TICK][..], &[WIDE], &[WIDE]] {
        wire.sent.clear();
        let swept = swept(&mut wire, &fabric, &mut agents);
        assert_eq!((attributes_asked(&wire, 3), swept.failed_ports), (asked.to_vec(), 0));
        let reading = swept.snapshot.reading(host).unwrap();
        // Its 0 is a value: there is no other field.
        assert_eq!(reading.get(Counter::LinkDowned), Some(0));
        assert_eq!(reading.get(Counter::SymbolErrors), Some(symbol_errors(2, 1).into()));
    }
}

#[test]
fn what_a_device_does_not_announce_is_absent() {
    let mut wire = Watched::of("quantum-2", "connectx-7");
    let fabric = assembled(&mut wire);
    let mut agents = Agents::new(DETAILS);
    for sweep in 0..2 {
        for (node, number, announced) in [
            ("host-1", 1, [true, true, false, false, true, true, false, false]),
            ("leaf-0-0", 2, [true, true, true, false, true, true, true, true]),
        ] {
            let of = read(&mut wire, &fabric, &mut agents, port(&fabric, node, number));
            let counters = [
                Counter::RcvLocalPhysicalErrors,
                Counter::RcvDlidMappingErrors,
                Counter::RcvVlMappingErrors,
                Counter::RcvLoopingErrors,
                Counter::XmitInactiveDiscards,
                Counter::XmitNeighborMtuDiscards,
                Counter::XmitLifetimeLimitDiscards,
                Counter::XmitHoqLimitDiscards,
            ];
            let there = counters.map(|counter| of(counter).is_some());
            assert_eq!(there, announced, "{node}, sweep {sweep}");
        }
    }
    // Devices that announce nothing have all fields of the attributes that they answer.
    let mut wire = Watched::of("quantum", "connectx-6");
    let fabric = assembled(&mut wire);
    let mut agents = Agents::new(DETAILS);
    let of = read(&mut wire, &fabric, &mut agents, port(&fabric, "host-1", 1));
    assert!(of(Counter::RcvLoopingErrors).is_some());
}

#[test]
fn causes_are_read_at_their_interval_and_their_samples_stay_in_between() {
    let mut wire = Watched::of("quantum-2", "connectx-7");
    let fabric = assembled(&mut wire);
    let interval = Duration::from_secs(120);
    let details = Details::Every(interval);
    let mut agents = Agents::new(Extras { details, ..Extras::default() });
    let inactive = Counter::XmitInactiveDiscards;
    let leaf = port(&fabric, "leaf-0-0", 3);
    let before = wire.counted("leaf-0-0[3]", inactive);
    let (mut totals, mut grown, mut reads) = (PortTotals::default(), 0, Vec::new());
    // 64 sweeps of 15 s: eight times the interval.
    for sweep in 0..64 {
        let due = Moment::default() + Duration::from_secs(15 * (sweep + 1));
        rest(due, &mut Transactor::new(Pace::default()), &mut wire, &AtomicBool::new(false))
            .unwrap();
        if sweep == 20 {
            wire.count("leaf-0-0[3]", inactive, before + 7);
        }
        wire.asked.clear();
        let swept = swept(&mut wire, &fabric, &mut agents);
        let mut reading = swept.snapshot.reading(leaf).cloned().unwrap();
        let growth = totals.take(&mut reading, RATE);
        let total = reading.get(inactive).unwrap();
        grown += growth.of(inactive).unwrap_or(0);
        assert_eq!(growth.timed(inactive).filter(|by| *by > 0), None, "not grown in 15 s");
        assert_eq!((total, reading.is_kept(inactive)), (before + grown, reading.is_kept(inactive)));
        reads.push(wire.asked.iter().filter(|(_, attribute)| *attribute == DISCARDS).count());
    }
    assert_eq!(grown, 7);
    // All in the first sweep, so that their series are there; then each port eight times.
    let ports = fabric.port_indexes().filter(|port| fabric.is_watched(*port)).count();
    assert_eq!(reads[0], ports);
    let rest: usize = reads[1..].iter().sum();
    assert!((7 * ports..=8 * ports).contains(&rest), "{rest} reads of {ports} ports");
    assert!(reads[1..].iter().all(|reads| *reads <= ports / 2), "in turns: {reads:?}");
    // What is not announced is not read by default.
    let mut wire = Watched::of("quantum", "connectx-6");
    let fabric = assembled(&mut wire);
    swept(&mut wire, &fabric, &mut Agents::new(Extras { details, ..Extras::default() }));
    assert!(wire.asked.iter().all(|(_, attribute)| *attribute != DISCARDS));
}

#[test]
fn causes_that_were_not_answered_are_asked_for_again_in_the_next_sweep() {
    let mut wire = Watched::of("quantum-2", "connectx-7");
    let fabric = assembled(&mut wire);
    let details = Details::Every(Duration::from_secs(3600));
    let mut agents = Agents::new(Extras { details, ..Extras::default() });
    wire.lost = vec![DISCARDS];
    assert!(swept(&mut wire, &fabric, &mut agents).failed_ports > 0);
    wire.lost.clear();
    wire.asked.clear();
    assert_eq!(swept(&mut wire, &fabric, &mut agents).failed_ports, 0);
    assert!(wire.asked.iter().any(|(_, attribute)| *attribute == DISCARDS));
    wire.asked.clear();
    swept(&mut wire, &fabric, &mut agents);
    assert!(wire.asked.iter().all(|(_, attribute)| *attribute != DISCARDS));
}
