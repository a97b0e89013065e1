//! Clearing of nearly full counters.

use super::*;
use ib_fabric::snapshot::Cleared;
use ib_mad::moment::Anchor;
use ib_mad::reading::Raw;
use ib_mad::{PortKey, method};
use ib_sim::scenario::FabricChange;
use ib_sim::transport::{SharedSimulation, lock};
use ib_umad::{LocalPort, Received, SendError, TransportError};

/// A transport to a simulated fabric that records requests, and can drop or change them.
pub(super) struct RecordingTransport {
    transport: SimTransport,
    world: SharedSimulation,
    sets: Vec<OutgoingMad>,
    /// Performance management Gets: LID and attribute.
    pub(super) queried: Vec<(Lid, u16)>,
    /// Performance management attributes whose responses are lost.
    pub(super) lost: Vec<u16>,
    /// The attribute of which the first request to each LID is lost, and the LIDs that were asked for it.
    pub(super) lost_first: Option<(u16, Vec<Lid>)>,
    /// The method that replaces Set: devices refuse an unknown one, and do not respond to a response.
    set_as: u8,
    /// Symbol errors that a port counts after each Set, whose response is lost; `None` if none is.
    lost_set: Option<(&'static str, u64)>,
}

impl RecordingTransport {
    pub(super) fn of(switch: &str, hca: &str) -> Self {
        let tree = format!("{{hosts: 8, radix: 8, switch: {switch}, hca: {hca}}}");
        let text = format!("{{fabric: {{fat-tree: {tree}}}, traffic: {{pattern: none}}}}");
        let scenario = Scenario::parse("test", &text).unwrap();
        let scenario = scenario.resolve(&Overrides::default()).unwrap();
        let local_port = scenario.local_ports[0];
        let world = share(Simulation::new(scenario));
        let time = SimClock::Virtual { began: std::time::SystemTime::UNIX_EPOCH };
        let transport = SimTransport::new(Arc::clone(&world), local_port, time);
        RecordingTransport::on(transport, world)
    }

    fn on(transport: SimTransport, world: SharedSimulation) -> Self {
        let (sets, queried, lost) = (Vec::new(), Vec::new(), Vec::new());
        let (set_as, lost_set) = (method::SET, None);
        let lost_first = None;
        RecordingTransport { transport, world, sets, queried, lost, lost_first, set_as, lost_set }
    }

    /// The value of a port's counter.
    pub(super) fn counted(&self, label: &str, counter: Counter) -> u64 {
        let world = lock(&self.world);
        let net = world.net();
        let port = net.port_ids().find(|&port| net.label(port) == label).unwrap();
        world.count(port, counter)
    }

    /// Sets a counter of a port.
    pub(super) fn count(&self, label: &str, counter: Counter, value: u64) {
        let mut world = lock(&self.world);
        let net = world.net();
        let port = net.port_ids().find(|&port| net.label(port) == label).unwrap();
        world.apply(self.transport.now(), FabricChange::SetCounter { port, counter, value });
    }
}

impl MadTransport for RecordingTransport {
    fn now(&self) -> Moment {
        self.transport.now()
    }

    fn anchor(&self) -> Anchor {
        self.transport.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.transport.local_port()
    }

    fn refresh(&mut self) {
        self.transport.refresh();
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        if outgoing.mad.method() == method::GET {
            if !outgoing.class.is_smp() {
                self.queried.push((outgoing.lid, outgoing.mad.attribute()));
                let attribute = outgoing.mad.attribute();
                if self.lost.contains(&attribute) {
                    return Ok(());
                }
                if let Some((first, asked)) = &mut self.lost_first
                    && *first == attribute
                    && !asked.contains(&outgoing.lid)
                {
                    asked.push(outgoing.lid);
                    return Ok(());
                }
            }
            return self.transport.send(outgoing);
        }
        self.sets.push(outgoing.clone());
        let mut outgoing = outgoing.clone();
        outgoing.mad.0[3] = self.set_as;
        self.transport.send(&outgoing)?;
        if let Some((label, events)) = self.lost_set {
            let response = self.transport.receive(self.now() + Duration::from_millis(1));
            assert!(matches!(response, Ok(Some(Received::Mad { .. }))));
            let counted = self.counted(label, Counter::SymbolErrors);
            self.count(label, Counter::SymbolErrors, counted + events);
        }
        Ok(())
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        self.transport.receive(until)
    }
}

/// A port by the name of its node and its number.
pub(super) fn port(fabric: &Fabric, node: &str, number: u8) -> PortIndex {
    let node = fabric.nodes.iter().find(|it| it.name == node).unwrap();
    fabric.find(PortKey::new(node.identity.guid, number)).unwrap()
}

fn cleared(
    transport: &mut RecordingTransport,
    swept: &Snapshot<Raw>,
    agents: &mut AgentCache,
) -> Vec<Cleared> {
    let mut clearing = CounterClearing::new(swept, agents);
    run_plan(transport, &mut clearing);
    clearing.finish().0
}

fn named(cleared: &[Cleared]) -> Vec<(PortIndex, Counter, u64)> {
    let mut named: Vec<_> = cleared.iter().map(|it| (it.port, it.counter, it.last)).collect();
    named.sort_unstable();
    named
}

#[test]
fn clears_only_nearly_full_counters() {
    let mut transport = RecordingTransport::of("infiniscale-4", "connectx-3");
    let all = [
        // Four bits, eight, sixteen and thirty-two, each at three quarters or just below.
        ("host-1[1]", Counter::LocalLinkIntegrityErrors, 12, true),
        ("host-1[1]", Counter::ExcessiveBufferOverrunErrors, 11, false),
        ("host-1[1]", Counter::LinkDowned, 192, true),
        ("host-1[1]", Counter::LinkErrorRecoveries, 191, false),
        ("host-1[1]", Counter::SymbolErrors, 65_535, true),
        ("host-2[1]", Counter::RcvErrors, 49_152, true),
        ("host-2[1]", Counter::XmitDiscards, 49_151, false),
        ("host-2[1]", Counter::XmitWait, 0xc000_0000, true),
        // Traffic is read in 64 bits, and its low 32 bits are not cleared; nor are details.
        ("host-2[1]", Counter::XmitData, 0xffff_ffff, false),
        ("host-2[1]", Counter::RcvLocalPhysicalErrors, 65_535, false),
        ("leaf-0-0[2]", Counter::Vl15Dropped, 60_000, true),
        ("leaf-0-0[3]", Counter::LinkDowned, 7, false),
    ];
    for (label, counter, value, _) in all {
        transport.count(label, counter, value);
    }
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::new(DETAILS);
    let before = swept(&mut transport, &fabric, &mut agents);
    assert!(transport.sets.is_empty(), "a sweep sends no Set");
    let of = |label: &str| {
        let (node, number) = label.trim_end_matches(']').split_once('[').unwrap();
        port(&fabric, node, number.parse().unwrap())
    };
    let result = cleared(&mut transport, &before.snapshot, &mut agents);
    let to_be = all.iter().filter(|(.., cleared)| *cleared);
    let mut expected: Vec<_> =
        to_be.map(|&(label, counter, value, _)| (of(label), counter, value)).collect();
    expected.sort_unstable();
    assert_eq!(named(&result), expected);
    assert!(result.iter().all(|it| it.at > before.snapshot.ended));
    assert_eq!(transport.sets.len(), 3, "one Set a port");

    let after = swept(&mut transport, &fabric, &mut agents);
    for (label, counter, value, was_cleared) in all {
        let read = after.snapshot.reading(of(label)).unwrap().get(counter);
        assert_eq!(read, Some(if was_cleared { 0 } else { value }), "{label} {counter:?}");
    }
    assert_eq!(cleared(&mut transport, &after.snapshot, &mut agents), []);
    assert_eq!(transport.sets.len(), 3, "nothing more to do");
}

#[test]
fn clear_reports_value_read_just_before() {
    let mut transport = RecordingTransport::of("infiniscale-4", "connectx-3");
    transport.count("host-1[1]", Counter::SymbolErrors, 50_000);
    transport.count("host-2[1]", Counter::SymbolErrors, 50_000);
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let before = swept(&mut transport, &fabric, &mut agents);
    transport.count("host-1[1]", Counter::SymbolErrors, 50_123);
    transport.count("host-1[1]", Counter::RcvErrors, 60_000);
    transport.count("host-2[1]", Counter::SymbolErrors, 3);
    let result = cleared(&mut transport, &before.snapshot, &mut agents);
    let host = port(&fabric, "host-1", 1);
    let expected = [(host, Counter::SymbolErrors, 50_123), (host, Counter::RcvErrors, 60_000)];
    assert_eq!((named(&result), transport.sets.len()), (expected.to_vec(), 1));
}

#[test]
fn never_clears_64_bit_counters() {
    let mut transport = RecordingTransport::of("quantum-2", "connectx-8");
    for counter in Counter::all().filter(|counter| !counter.row().metric.starts_with("fec_")) {
        transport.count("host-1[1]", counter, 0xffff_ffff);
        transport.count("leaf-0-0[2]", counter, 0xffff_ffff);
    }
    let fabric = assembled(&mut transport);
    let mut agents =
        AgentCache::new(OptionalCounters { details: DetailPolicy::EachSweep, fec: true });
    let before = swept(&mut transport, &fabric, &mut agents);
    assert_eq!(cleared(&mut transport, &before.snapshot, &mut agents), []);
    assert!(transport.sets.is_empty());
}

#[test]
fn fec_counters_are_cleared_together() {
    let mut transport = RecordingTransport::of("quantum-2", "connectx-7");
    let (symbols, blocks) = (Counter::FecCorrectedSymbols, Counter::FecUncorrectableBlocks);
    for (label, count) in [("leaf-0-0[2]", 0xc000_0000), ("leaf-0-0[3]", 0xbf00_0000)] {
        transport.count(label, symbols, count);
        transport.count(label, blocks, 7);
    }
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::new(OptionalCounters { fec: true, ..OptionalCounters::default() });
    // The FEC mode of a link is queried in one sweep, and its counters are read from the next on.
    swept(&mut transport, &fabric, &mut agents);
    let before = swept(&mut transport, &fabric, &mut agents);
    let result = cleared(&mut transport, &before.snapshot, &mut agents);
    let leaf = port(&fabric, "leaf-0-0", 2);
    assert!(result.iter().all(|it| it.port == leaf), "{result:?}");
    let last = |counter| result.iter().find(|it| it.counter == counter).map(|it| it.last);
    assert!(last(symbols).is_some_and(|last| last >= 0xc000_0000), "{result:?}");
    assert!(last(Counter::FecCorrectedBlocks) >= last(symbols), "{result:?}");
    assert_eq!((last(blocks), transport.sets.len()), (Some(7), 1));
    let after = swept(&mut transport, &fabric, &mut agents);
    let reading = after.snapshot.reading(leaf).unwrap();
    assert_eq!(reading.get(blocks), Some(0));
    assert!(reading.get(symbols).is_some_and(|count| count < 1_000_000), "{reading:?}");
    let other = after.snapshot.reading(port(&fabric, "leaf-0-0", 3)).unwrap();
    assert!(other.get(symbols).is_some_and(|count| count >= 0xbf00_0000), "it is not full enough");
}

#[test]
fn clears_classic_field_only_where_it_is_the_source() {
    let mut transport = RecordingTransport::of("quantum-2", "connectx-7");
    for counter in [Counter::SymbolErrors, Counter::LinkDowned, Counter::RcvErrors] {
        transport.count("host-1[1]", counter, 0xffff_ffff);
    }
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let before = swept(&mut transport, &fabric, &mut agents);
    let result = cleared(&mut transport, &before.snapshot, &mut agents);
    let host = port(&fabric, "host-1", 1);
    let expected = [(host, Counter::SymbolErrors, 65_535), (host, Counter::LinkDowned, 255)];
    // The classic receive errors are full, too, but the 64-bit ones count.
    assert_eq!((named(&result), transport.sets.len()), (expected.to_vec(), 1));
    let after = swept(&mut transport, &fabric, &mut agents);
    let reading = after.snapshot.reading(host).unwrap();
    let of = |counter| (reading.get(counter), reading.saturated.contains(counter));
    assert_eq!(of(Counter::SymbolErrors), (Some(0), false));
    assert_eq!(of(Counter::RcvErrors), (Some(0xffff_ffff), false));
}

#[test]
fn refused_clear_is_not_retried_before_discovery() {
    // One port's refusal is enough for all of a switch's.
    for (set_as, sets) in [(0x05, 1), (0x81, 1)] {
        let mut transport = RecordingTransport::of("infiniscale-4", "connectx-3");
        transport.set_as = set_as;
        for number in 1..=8 {
            transport.count(&format!("leaf-0-0[{number}]"), Counter::SymbolErrors, 65_535);
        }
        let fabric = assembled(&mut transport);
        let mut agents = AgentCache::default();
        let before = swept(&mut transport, &fabric, &mut agents);
        assert_eq!(cleared(&mut transport, &before.snapshot, &mut agents), []);
        assert_eq!(transport.sets.len(), sets, "{set_as:#x}");
        transport.sets.clear();
        assert_eq!(cleared(&mut transport, &before.snapshot, &mut agents), []);
        assert!(transport.sets.is_empty(), "{set_as:#x}: it is not cleared");
        agents.retain_present(&fabric);
        transport.set_as = method::SET;
        let after = swept(&mut transport, &fabric, &mut agents);
        assert_eq!(cleared(&mut transport, &after.snapshot, &mut agents).len(), 8);
    }
}

#[test]
fn clear_whose_response_is_lost_loses_no_events() {
    let mut transport = RecordingTransport::of("infiniscale-4", "connectx-3");
    for (counter, value) in [(Counter::SymbolErrors, 65_535), (Counter::LinkDowned, 200)] {
        transport.count("host-1[1]", counter, value);
    }
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let before = swept(&mut transport, &fabric, &mut agents);
    transport.lost_set = Some(("host-1[1]", 7));
    let result = cleared(&mut transport, &before.snapshot, &mut agents);
    let host = port(&fabric, "host-1", 1);
    let expected = [(host, Counter::SymbolErrors, 65_535), (host, Counter::LinkDowned, 200)];
    assert_eq!((named(&result), transport.sets.len()), (expected.to_vec(), 1));
    // What was counted since the Set is still there, and the next clear is sent.
    assert_eq!(transport.counted("host-1[1]", Counter::SymbolErrors), 7);
    transport.lost_set = None;
    transport.count("host-1[1]", Counter::SymbolErrors, 65_535);
    let before = swept(&mut transport, &fabric, &mut agents);
    assert_eq!(cleared(&mut transport, &before.snapshot, &mut agents).len(), 1);
}

#[test]
fn clears_fullest_ports_first_up_to_limit() {
    let tree = "{hosts: 96, radix: 16, switch: infiniscale-4, hca: connectx-3}";
    let text = format!("{{fabric: {{fat-tree: {tree}}}, traffic: {{pattern: none}}}}");
    let scenario = Scenario::parse("test", &text).unwrap().resolve(&Overrides::default()).unwrap();
    let (local_port, world) = (scenario.local_ports[0], share(Simulation::new(scenario)));
    let time = SimClock::Virtual { began: std::time::SystemTime::UNIX_EPOCH };
    let transport = SimTransport::new(Arc::clone(&world), local_port, time);
    let mut transport = RecordingTransport::on(transport, world);
    for host in 0..96 {
        transport.count(&format!("host-{host}[1]"), Counter::SymbolErrors, 50_000 + 100 * host);
    }
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let before = swept(&mut transport, &fabric, &mut agents);
    let result = cleared(&mut transport, &before.snapshot, &mut agents);
    assert_eq!(result.len(), 64);
    assert!(result.iter().all(|it| it.last >= 50_000 + 100 * 31), "thousandths are close enough");
    let after = swept(&mut transport, &fabric, &mut agents);
    assert_eq!(cleared(&mut transport, &after.snapshot, &mut agents).len(), 32);
    assert_eq!(transport.sets.len(), 96);
}
