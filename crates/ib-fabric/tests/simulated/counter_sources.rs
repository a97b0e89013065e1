//! The field that a counter is taken from, announced fields, and the interval of error details.

use super::clear::{RecordingTransport, port};
use super::*;
use ib_health::totals::{Growth, PortTotals};
use ib_mad::Reading;
use ib_umad::plan::drain_until;

/// The rate of a 4x NDR port, in bytes a second.
const RATE: u64 = 50_000_000_000;
const CLASSIC: u16 = Attribute::PortCounters as u16;
const WIDE: u16 = Attribute::PortCountersExtended as u16;
const DISCARDS: u16 = Attribute::PortXmitDiscardDetails as u16;

/// A sweep of a fabric, and one port's value of a counter in it, with whether it is saturated.
fn read(
    transport: &mut RecordingTransport,
    fabric: &Arc<Fabric>,
    agents: &mut AgentCache,
    port: PortIndex,
) -> impl Fn(Counter) -> Option<(u64, bool)> + use<> {
    let swept = swept(transport, fabric, agents);
    let reading = swept.snapshot.reading(port).cloned();
    move |counter| {
        let reading = reading.as_ref()?;
        Some((reading.get(counter)?, reading.saturated.contains(counter)))
    }
}

#[test]
fn connectx_7_zero_wide_fields_use_classic_counters() {
    let mut transport = RecordingTransport::of("quantum-2", "connectx-7");
    for (counter, value) in [
        (Counter::SymbolErrors, 41),
        (Counter::LinkDowned, 300),
        (Counter::RcvErrors, 70_000),
        (Counter::XmitDiscards, 111_911),
        (Counter::XmitWait, 1 << 40),
    ] {
        transport.count("host-1[1]", counter, value);
        transport.count("leaf-0-0[3]", counter, value);
    }
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let of = read(&mut transport, &fabric, &mut agents, port(&fabric, "host-1", 1));
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
    // A switch fills both, and only its 64-bit counters are read.
    let of = read(&mut transport, &fabric, &mut agents, port(&fabric, "leaf-0-0", 3));
    assert_eq!(of(Counter::SymbolErrors), Some((41, false)));
    assert_eq!(of(Counter::LinkDowned), Some((300, false)));
    let leaf = fabric.lid_of(port(&fabric, "leaf-0-0", 3)).unwrap();
    assert!(
        !transport.queried.contains(&(leaf, CLASSIC)) && transport.queried.contains(&(leaf, WIDE))
    );
}

#[test]
fn lost_response_leaves_counter_absent_and_total_unchanged() {
    let mut transport = RecordingTransport::of("quantum-2", "connectx-7");
    let fabric = assembled(&mut transport);
    let (mut agents, mut totals) = (AgentCache::default(), PortTotals::default());
    let host = port(&fabric, "host-1", 1);
    let mut read_both = |transport: &mut RecordingTransport, lost: &[u16]| {
        transport.lost = lost.to_vec();
        let swept = swept(transport, &fabric, &mut agents);
        let reading = swept.snapshot.reading(host).cloned();
        let (reading, growth) = reading.map(|reading| totals.update(reading, RATE)).unzip();
        let of = |counter| reading.as_ref().and_then(|reading: &Reading| reading.get(counter));
        let reset = growth.is_some_and(|growth: Growth| growth.reset);
        (of(Counter::SymbolErrors), of(Counter::RcvErrors), reset)
    };
    // Nothing is known of either field yet: 0 in one of them is not a value.
    assert_eq!(read_both(&mut transport, &[CLASSIC]), (None, None, false));
    assert_eq!(read_both(&mut transport, &[]), (Some(0), Some(0), false));
    transport.count("host-1[1]", Counter::SymbolErrors, 20);
    transport.count("host-1[1]", Counter::RcvErrors, 70_000);
    assert_eq!(read_both(&mut transport, &[]), (Some(20), Some(70_000), false));
    transport.count("host-1[1]", Counter::SymbolErrors, 25);
    // Without the classic values symbol errors are not 0, and without the 64-bit ones receive errors
    // are not 65,535.
    assert_eq!(read_both(&mut transport, &[CLASSIC]), (None, Some(70_000), false));
    assert_eq!(read_both(&mut transport, &[WIDE]), (Some(25), None, false));
    assert_eq!(read_both(&mut transport, &[]), (Some(25), Some(70_000), false));
}

#[test]
fn reading_is_as_late_as_its_classic_counters() {
    let mut transport = RecordingTransport::of("quantum-2", "connectx-7");
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    swept(&mut transport, &fabric, &mut agents);
    transport.count("host-1[1]", Counter::SymbolErrors, 20);
    // The first request is lost: the second one is sent when the time for a response is over.
    transport.lost_first = Some((CLASSIC, Vec::new()));
    let swept = swept(&mut transport, &fabric, &mut agents);
    let reading = swept.snapshot.reading(port(&fabric, "host-1", 1)).unwrap();
    assert_eq!(reading.get(Counter::SymbolErrors), Some(20));
    let after = reading.at.since(swept.snapshot.began);
    assert!(after >= SendConfig::default().timeout, "{after:?}");
}

#[test]
fn unannounced_counters_are_absent() {
    let mut transport = RecordingTransport::of("quantum-2", "connectx-7");
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::new(DETAILS);
    for sweep in 0..2 {
        for (node, number, announced) in [
            ("host-1", 1, [true, true, false, false, true, true, false, false]),
            ("leaf-0-0", 2, [true, true, true, false, true, true, true, true]),
        ] {
            let of = read(&mut transport, &fabric, &mut agents, port(&fabric, node, number));
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
    // Devices that announce nothing have all fields of their supported attributes.
    let mut transport = RecordingTransport::of("quantum", "connectx-6");
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::new(DETAILS);
    let of = read(&mut transport, &fabric, &mut agents, port(&fabric, "host-1", 1));
    assert!(of(Counter::RcvLoopingErrors).is_some());
}

#[test]
fn error_details_are_read_at_interval_and_kept_between() {
    let mut transport = RecordingTransport::of("quantum-2", "connectx-7");
    let fabric = assembled(&mut transport);
    let interval = Duration::from_secs(120);
    let details = DetailPolicy::Every(interval);
    let mut agents = AgentCache::new(OptionalCounters { details, ..OptionalCounters::default() });
    let inactive = Counter::XmitInactiveDiscards;
    let leaf = port(&fabric, "leaf-0-0", 3);
    let before = transport.counted("leaf-0-0[3]", inactive);
    let (mut totals, mut grown, mut reads) = (PortTotals::default(), 0, Vec::new());
    // 64 sweeps of 15 s: eight times the interval.
    for sweep in 0..64 {
        let due = Moment::default() + Duration::from_secs(15 * (sweep + 1));
        drain_until(
            due,
            &mut MadClient::new(SendConfig::default()),
            &mut transport,
            &AtomicBool::new(false),
        )
        .unwrap();
        if sweep == 20 {
            transport.count("leaf-0-0[3]", inactive, before + 7);
        }
        transport.queried.clear();
        let swept = swept(&mut transport, &fabric, &mut agents);
        let reading = swept.snapshot.reading(leaf).cloned().unwrap();
        let (totals, growth) = totals.update(reading, RATE);
        let total = totals.get(inactive).unwrap();
        grown += growth.get(inactive).unwrap_or(0);
        assert_eq!(growth.timed(inactive).filter(|by| *by > 0), None, "not grown in 15 s");
        assert_eq!(total, before + grown);
        reads
            .push(transport.queried.iter().filter(|(_, attribute)| *attribute == DISCARDS).count());
    }
    assert_eq!(grown, 7);
    // All in the first sweep, so that their series are there; then each port eight times.
    let ports = fabric.port_indexes().filter(|port| fabric.is_monitored(*port)).count();
    assert_eq!(reads[0], ports);
    let rest: usize = reads[1..].iter().sum();
    assert!((7 * ports..=8 * ports).contains(&rest), "{rest} reads of {ports} ports");
    assert!(reads[1..].iter().all(|reads| *reads <= ports / 2), "in turns: {reads:?}");
    // What is not announced is not read by default.
    let mut transport = RecordingTransport::of("quantum", "connectx-6");
    let fabric = assembled(&mut transport);
    swept(
        &mut transport,
        &fabric,
        &mut AgentCache::new(OptionalCounters { details, ..OptionalCounters::default() }),
    );
    assert!(transport.queried.iter().all(|(_, attribute)| *attribute != DISCARDS));
}

#[test]
fn unanswered_error_details_are_retried_next_sweep() {
    let mut transport = RecordingTransport::of("quantum-2", "connectx-7");
    let fabric = assembled(&mut transport);
    let details = DetailPolicy::Every(Duration::from_secs(3600));
    let mut agents = AgentCache::new(OptionalCounters { details, ..OptionalCounters::default() });
    transport.lost = vec![DISCARDS];
    assert!(swept(&mut transport, &fabric, &mut agents).failed_ports > 0);
    transport.lost.clear();
    transport.queried.clear();
    assert_eq!(swept(&mut transport, &fabric, &mut agents).failed_ports, 0);
    assert!(transport.queried.iter().any(|(_, attribute)| *attribute == DISCARDS));
    transport.queried.clear();
    swept(&mut transport, &fabric, &mut agents);
    assert!(transport.queried.iter().all(|(_, attribute)| *attribute != DISCARDS));
}
