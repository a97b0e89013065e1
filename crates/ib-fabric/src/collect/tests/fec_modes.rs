//! FEC modes and sampling ticks, which are queried once and cached.

use super::*;
use crate::PortIndex;
use ib_mad::PortKey;
use ib_mad::fec::Fec;
use ib_mad::fec::{PortExtendedSpeedsCounters, PortInfoExtended};
use ib_mad::pma::PortSamplesControl;
use ib_mad::rate::Speed;

/// The local host, a switch with 8 ports, and two hosts; all have FEC counters, and report their FEC mode.
fn modern(fec: Option<u16>) -> ScriptedTransport {
    let cables = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((1, 3), (3, 1))];
    let mut nodes = fabric(&[(CA, 1), (SWITCH, 8), (CA, 1), (CA, 1)], &cables);
    for node in &mut nodes {
        (node.capabilities, node.fec) = ((0x5300, 2), fec);
    }
    ScriptedTransport::new(nodes)
}

fn queried(transport: &ScriptedTransport, attribute: u16) -> usize {
    let of_it = transport.sent.iter().filter(|outgoing| outgoing.mad.attribute() == attribute);
    of_it.count()
}

fn port(fabric: &Fabric, guid: u64, number: u8) -> PortIndex {
    fabric.find(PortKey::new(Guid(guid), number)).unwrap()
}

/// Number of ports with a known FEC mode, and of those with FEC counters.
fn fec_counts(swept: &SweepResult) -> (usize, usize) {
    let readings = swept.snapshot.readings.iter().flatten();
    let read = readings.filter(|reading| reading.get(Counter::FecCorrectedSymbols).is_some());
    (swept.snapshot.fec.iter().flatten().count(), read.count())
}

#[test]
fn fec_mode_is_queried_once_then_counters_each_sweep() {
    let mut transport = modern(Some(2));
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::new(FEC);
    for (round, counters) in [(0, 0), (1, 6), (2, 6)] {
        transport.sent.clear();
        let swept = swept(&mut transport, &fabric, &mut agents);
        assert_eq!(queried(&transport, PortInfoExtended::ID), if round == 0 { 6 } else { 0 });
        assert_eq!(queried(&transport, PortExtendedSpeedsCounters::ID), counters, "round {round}");
        assert_eq!((fec_counts(&swept), swept.failed_ports), ((6, counters), 0), "round {round}");
        let near = port(&fabric, 2, 3);
        assert_eq!(swept.snapshot.fec[near], Some(Fec::ReedSolomon));
        let read = swept.snapshot.reading(near).unwrap().get(Counter::FecCorrectedSymbols);
        assert_eq!(read, (round > 0).then_some(103), "of the switch's port 3");
    }
}

#[test]
fn fec_queries_follow_mode_and_speed() {
    // Disabled; a device that does not report it; no Reed-Solomon; codes of another layout.
    for (extras, fec, speed, asked_mode, read) in [
        (OptionalCounters::default(), Some(2), Speed::Hdr, 0, 0),
        (FEC, None, Speed::Edr, 0, 0),
        (FEC, None, Speed::Hdr, 0, 6),
        (FEC, Some(0), Speed::Hdr, 6, 0),
        (FEC, Some(1), Speed::Fdr, 6, 0),
        (FEC, Some(3), Speed::Edr, 6, 6),
        (FEC, Some(4), Speed::Edr, 6, 6),
        (FEC, Some(5), Speed::Edr, 6, 0),
        (FEC, Some(9), Speed::Edr, 6, 6),
        (FEC, Some(12), Speed::Edr, 6, 0),
        (FEC, Some(12), Speed::Hdr, 6, 6),
        (FEC, Some(14), Speed::Edr, 6, 6),
    ] {
        let mut transport = modern(fec);
        transport.speed = speed;
        let fabric = assembled(&mut transport);
        let mut agents = AgentCache::new(extras);
        swept(&mut transport, &fabric, &mut agents);
        assert_eq!(queried(&transport, PortInfoExtended::ID), asked_mode, "{fec:?} {speed:?}");
        transport.sent.clear();
        let swept = swept(&mut transport, &fabric, &mut agents);
        assert_eq!(queried(&transport, PortInfoExtended::ID), 0, "{fec:?} {speed:?}, again");
        assert_eq!(queried(&transport, PortExtendedSpeedsCounters::ID), read, "{fec:?} {speed:?}");
        assert_eq!((fec_counts(&swept).1, swept.failed_ports), (read, 0), "{fec:?} {speed:?}");
    }
}

#[test]
fn changed_link_is_queried_for_fec_again() {
    let mut transport = modern(Some(2));
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::new(FEC);
    swept(&mut transport, &fabric, &mut agents);

    // Port 2 of the switch lost its link: the mode of the host's end is unknown, too.
    let cable = transport.nodes[1].links.remove(&2).unwrap();
    let without = swept(&mut transport, &fabric, &mut agents);
    for end in [port(&fabric, 2, 2), port(&fabric, 3, 1)] {
        assert_eq!(without.snapshot.fec[end], None);
    }
    assert_eq!(fec_counts(&without).0, 4);

    transport.nodes[1].links.insert(2, cable);
    transport.nodes[1].fec = Some(0);
    transport.sent.clear();
    let back = swept(&mut transport, &fabric, &mut agents);
    assert_eq!(queried(&transport, PortInfoExtended::ID), 2, "both ends, and no other port");
    assert_eq!(back.snapshot.fec[port(&fabric, 2, 2)], Some(Fec::None));
    assert_eq!(back.snapshot.fec[port(&fabric, 2, 3)], Some(Fec::ReedSolomon));

    // Port 3's cable leads elsewhere now, and a discovery finds that.
    transport.nodes[1].links.remove(&3);
    transport.nodes[1].links.insert(4, (3, 1));
    transport.nodes[3].links.insert(1, (1, 4));
    let again = Arc::new(discover_again(&mut transport, &fabric));
    agents.retain_present(&again);
    transport.sent.clear();
    let moved = swept(&mut transport, &again, &mut agents);
    assert_eq!((queried(&transport, PortInfoExtended::ID), fec_counts(&moved).0), (2, 6));

    // All links run at another speed.
    transport.speed = Speed::Hdr;
    let faster = Arc::new(discover_again(&mut transport, &again));
    transport.sent.clear();
    swept(&mut transport, &faster, &mut agents);
    assert_eq!(queried(&transport, PortInfoExtended::ID), 6);
}

#[test]
fn unsupported_fec_mode_is_not_queried_again() {
    for (status, again) in [(0x0c, 0), (0x1c, 6)] {
        let mut transport = modern(Some(2));
        let fabric = assembled(&mut transport);
        let mut agents = AgentCache::new(FEC);
        transport.reply = Box::new(move |outgoing: &OutgoingMad| {
            if outgoing.mad.attribute() == PortInfoExtended::ID {
                Reply::Status(status)
            } else {
                Reply::Answered(ROUND_TRIP)
            }
        });
        swept(&mut transport, &fabric, &mut agents);
        transport.sent.clear();
        let swept = swept(&mut transport, &fabric, &mut agents);
        assert_eq!(queried(&transport, PortInfoExtended::ID), again, "{status:#x}");
        assert!(!swept.changed && !swept.snapshot.silent.contains(&true));
    }
}

#[test]
fn fec_queries_rotate_over_large_fabric() {
    let mut kinds = vec![(CA, 1)];
    kinds.extend([(SWITCH, 64); 8]);
    let mut links = vec![((0, 1), (1, 64))];
    links.extend((1..=63).flat_map(|port| {
        (1..8).step_by(2).map(move |switch| ((switch, port), (switch + 1, port)))
    }));
    links.extend((1..4).map(|pair| ((2 * pair, 64), (2 * pair + 1, 64))));
    let mut nodes = fabric(&kinds, &links);
    for node in &mut nodes {
        node.fec = Some(2);
    }
    let mut transport = ScriptedTransport::new(nodes);
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::new(FEC);
    let ends = 2 * links.len();
    // Ports without a response do not delay the others.
    transport.reply = Box::new(|outgoing: &OutgoingMad| {
        let first = outgoing.mad.attribute() == PortInfoExtended::ID && outgoing.lid == Lid(2);
        if first { Reply::Status(0x1c) } else { Reply::Answered(ROUND_TRIP) }
    });
    let mut counts = Vec::new();
    for _ in 0..4 {
        transport.sent.clear();
        swept(&mut transport, &fabric, &mut agents);
        counts.push(queried(&transport, PortInfoExtended::ID));
    }
    assert_eq!(counts, [256, 256, ends - 512 + 64, 64]);
}

#[test]
fn sampling_tick_is_queried_once_per_agent() {
    let mut transport = modern(None);
    transport.nodes[1].tick = Some(7);
    transport.nodes[2].tick = Some(31);
    transport.nodes[3].capabilities = (0x0400, 0);
    transport.nodes[3].tick = Some(3);
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let mut refuses = true;
    transport.reply = Box::new(move |outgoing: &OutgoingMad| {
        let tick = outgoing.mad.attribute() == PortSamplesControl::ID;
        if tick && outgoing.lid == Lid(3) && std::mem::take(&mut refuses) {
            return Reply::Status(0x1c);
        }
        Reply::Answered(ROUND_TRIP)
    });
    for (round, requests, host) in [(0, 3, None), (1, 1, Some(31)), (2, 0, Some(31))] {
        transport.sent.clear();
        let swept = swept(&mut transport, &fabric, &mut agents);
        assert_eq!(queried(&transport, PortSamplesControl::ID), requests, "round {round}");
        // Agents without a response or without PortXmitWait have no tick; that is no failure.
        assert_eq!(*swept.snapshot.ticks, [None, Some(7), host, None], "round {round}");
        assert_eq!(swept.failed_ports, 0);
    }
}

#[test]
fn unanswered_sampling_query_stops_after_three_sweeps() {
    let mut transport = modern(None);
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let drops = |outgoing: &OutgoingMad| outgoing.mad.attribute() == PortSamplesControl::ID;
    transport.reply =
        Box::new(
            move |outgoing: &OutgoingMad| {
                if drops(outgoing) { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
            },
        );
    for requests in [4, 4, 4, 0, 0] {
        transport.sent.clear();
        let swept = swept(&mut transport, &fabric, &mut agents);
        assert_eq!(queried(&transport, PortSamplesControl::ID), requests, "one try each");
        assert!(!swept.snapshot.silent.contains(&true));
        assert_eq!((swept.failed_ports, &*swept.snapshot.ticks), (0, &[None; 4][..]));
    }
}

#[test]
fn switch_tick_is_read_at_port_1() {
    let mut transport = modern(None);
    let fabric = assembled(&mut transport);
    swept(&mut transport, &fabric, &mut AgentCache::default());
    let mut tick = transport.sent.iter().filter(|outgoing| {
        outgoing.mad.attribute() == PortSamplesControl::ID && outgoing.lid == Lid(2)
    });
    assert_eq!(tick.next().unwrap().mad.port_select(), 1);
    assert!(tick.next().is_none());
}
