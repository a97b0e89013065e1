//! LIDs that move: what is asked by the old ones, and which readings count.

use super::*;
use crate::PortIndex;
use crate::collect::confirmation::max_requests;
use ib_mad::m_key::MKeys;
use ib_mad::moment::Anchor;
use ib_umad::{LocalPort, Received, SendError, TransportError};

/// A wire on which LIDs rotate among the adapters and among the switches, at given MADs.
struct Rotating {
    scripted: ScriptedTransport,
    /// How many MADs were sent, and at which of them LIDs rotate.
    sent: usize,
    rotates_at: Vec<usize>,
}

/// Each adapter gets the LID of the next one, and each switch that of the next one.
fn rotate(transport: &mut ScriptedTransport, kind: NodeKind) {
    let of_kind = |it: &usize| transport.nodes[*it].kind == kind;
    let nodes: Vec<usize> = (0..transport.nodes.len()).filter(of_kind).collect();
    let mut lids: Vec<u16> =
        nodes.iter().flat_map(|&it| transport.nodes[it].lids.values().copied()).collect();
    lids.rotate_left(1);
    let mut lids = lids.into_iter();
    for node in nodes {
        for lid in transport.nodes[node].lids.values_mut() {
            *lid = lids.next().unwrap();
        }
    }
}

impl Rotating {
    fn new(scripted: ScriptedTransport, rotates_at: Vec<usize>) -> Self {
        Rotating { scripted, sent: 0, rotates_at }
    }
}

impl MadTransport for Rotating {
    fn now(&self) -> Moment {
        self.scripted.now()
    }

    fn anchor(&self) -> Anchor {
        self.scripted.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.scripted.local_port()
    }

    fn refresh(&mut self) {}

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        if self.rotates_at.contains(&self.sent) {
            rotate(&mut self.scripted, CA);
            rotate(&mut self.scripted, SWITCH);
        }
        self.sent += 1;
        self.scripted.send(outgoing)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        self.scripted.receive(until)
    }
}

pub(super) fn swept_confirming(
    transport: &mut impl MadTransport,
    fabric: &Arc<Fabric>,
    agents: &mut AgentCache,
) -> SweepResult {
    let mut sweep = Sweep::new(fabric, agents, transport.anchor(), true).confirming_each();
    run_plan(transport, &mut sweep);
    sweep.finish()
}

/// Readings that are another port's, and how many are right.
fn wrong_and_right(swept: &SweepResult) -> (usize, usize) {
    let fabric = &swept.snapshot.fabric;
    let is_right = |port: PortIndex| {
        let read = swept.snapshot.reading(port)?.get(Counter::SymbolErrors)?;
        let PortKey { guid, number } = fabric.port_key(port);
        Some(read == u64::from(symbol_errors(guid.0 as usize - 1, number)))
    };
    let readings: Vec<bool> = fabric.port_indexes().filter_map(is_right).collect();
    (readings.iter().filter(|it| !**it).count(), readings.iter().filter(|it| **it).count())
}

/// Us, two switches, and five hosts at each.
fn two_leaves() -> ScriptedTransport {
    let mut kinds = vec![(CA, 1), (SWITCH, 8), (SWITCH, 8)];
    kinds.extend([(CA, 1); 10]);
    let mut links = vec![((0, 1), (1, 8)), ((1, 7), (2, 7))];
    links.extend((0..10).map(|n| ((1 + n / 5, (n % 5) as u8 + 1), (3 + n, 1))));
    ScriptedTransport::new(fabric(&kinds, &links))
}

#[test]
fn lids_that_rotate_within_a_sweep_leave_no_wrong_reading() {
    let mut sizes = [0; 2];
    for (is_each, size) in [false, true].into_iter().zip(&mut sizes) {
        for at in 0..300 {
            let mut scripted = two_leaves();
            let fabric = assembled(&mut scripted);
            let mut transport = Rotating::new(scripted, vec![at]);
            let mut agents = AgentCache::default();
            let swept = if is_each {
                swept_confirming(&mut transport, &fabric, &mut agents)
            } else {
                swept(&mut transport, &fabric, &mut agents)
            };
            let (wrong, right) = wrong_and_right(&swept);
            assert_eq!(wrong, 0, "at MAD {at}, {is_each}");
            if transport.sent <= at {
                // The sweep has ended before.
                assert_eq!((right, swept.lids_changed), (27, false));
                *size = transport.sent;
                break;
            }
            assert!(swept.lids_changed, "at MAD {at}, {is_each}");
        }
    }
    assert!(sizes.iter().all(|size| (60..200).contains(size)), "{sizes:?}");
}

#[test]
fn swapped_hosts_and_switches_leave_only_confirmed_readings() {
    let mut transport = two_leaves();
    let fabric = assembled(&mut transport);
    let swap = |transport: &mut ScriptedTransport, one: usize, other: usize| {
        let lids = transport.nodes[one].lids.clone();
        transport.nodes[one].lids = std::mem::replace(&mut transport.nodes[other].lids, lids);
    };
    swap(&mut transport, 5, 9);
    let after = swept_confirming(&mut transport, &fabric, &mut AgentCache::default());
    assert!(after.lids_changed);
    assert_eq!(wrong_and_right(&after), (0, 25));
    // An ordinary sweep sees it, too, and is void.
    let void = swept(&mut transport, &fabric, &mut AgentCache::default());
    assert!(void.lids_changed);
    assert_eq!(wrong_and_right(&void), (0, 0));
}

#[test]
fn no_key_goes_to_wrong_nodes_after_a_mismatch() {
    let mut kinds = vec![(CA, 1)];
    kinds.extend([(SWITCH, 8); 20]);
    let mut links = vec![((0, 1), (1, 8))];
    links.extend((1..20).map(|switch| ((switch, 1), (switch + 1, 2))));
    let mut transport = ScriptedTransport::new(fabric(&kinds, &links));
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let ports = fabric.port_indexes().filter(|&port| fabric.management_port(port) == port);
    let keys: Vec<String> = ports
        .map(|port| format!("0x{:016x} 0x{:016x}", fabric.port(port).guid.0, 0x1000 + port.0))
        .collect();
    agents.keys = Arc::new(MKeys::parse(&keys.join("\n")).unwrap());
    rotate(&mut transport, SWITCH);
    transport.sent.clear();
    let swept = swept(&mut transport, &fabric, &mut agents);
    assert!(swept.lids_changed);
    let keyed = transport.sent.iter().filter(|outgoing| outgoing.class.is_smp()).count();
    // The window is 8.
    assert!((1..16).contains(&keyed), "{keyed} keyed SMPs");
}

#[test]
fn unconfirmed_agents_are_introduced_again() {
    let mut scripted = two_leaves();
    let fabric = assembled(&mut scripted);
    // In the midst of the first counters.
    let mut transport = Rotating::new(scripted, vec![50]);
    let mut agents = AgentCache::default();
    assert!(swept(&mut transport, &fabric, &mut agents).lids_changed);
    let mut scripted = transport.scripted;
    let fabric = assembled(&mut scripted);
    scripted.sent.clear();
    let after = swept(&mut scripted, &fabric, &mut agents);
    assert_eq!(wrong_and_right(&after), (0, 27));
    let introductions =
        scripted.sent.iter().filter(|it| !it.class.is_smp() && it.mad.attribute() == 1);
    assert_eq!(introductions.count(), 13);
}

#[test]
fn node_that_confirmed_its_lid_and_falls_silent_is_dropped_once() {
    let mut transport = two_leaves();
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    assert_eq!(wrong_and_right(&swept(&mut transport, &fabric, &mut agents)), (0, 27));
    // A host, with one port, and a switch with eight, which still confirms at the begin of a sweep.
    let [host, switch] =
        [6, 2].map(|node: usize| *transport.nodes[node].lids.values().next().unwrap());
    for (silent, dropped) in [(host, &[1, 0][..]), (switch, &[8])] {
        let was_asked = std::cell::Cell::new(false);
        transport.reply = Box::new(move |outgoing| {
            let is_node_info =
                outgoing.class.is_smp() && outgoing.mad.attribute() == ib_mad::smp::NodeInfo::ID;
            let is_silent = is_node_info && outgoing.lid.0 == silent;
            // A switch responds at the begin.
            let responds = !is_silent || (silent == switch && !was_asked.replace(true));
            if responds { Reply::Answered(ROUND_TRIP) } else { Reply::Lost }
        });
        for dropped in dropped {
            let after = swept(&mut transport, &fabric, &mut agents);
            assert_eq!((wrong_and_right(&after), after.lids_changed), ((0, 27 - dropped), false));
        }
    }
}

/// A thousand hosts at 32 leaves, with 16 spines.
fn thousand_hosts() -> ScriptedTransport {
    let mut kinds = vec![(CA, 1); 1024];
    kinds.extend([(SWITCH, 64); 48]);
    let mut links = Vec::new();
    for leaf in 0..32_usize {
        links.extend((0..32).map(|n| ((leaf * 32 + n, 1), (1024 + leaf, n as u8 + 1))));
        links.extend((0..16).map(|n| ((1024 + leaf, 33 + n as u8), (1056 + n, leaf as u8 + 1))));
    }
    ScriptedTransport::new(fabric(&kinds, &links))
}

fn node_infos_by_lid(transport: &ScriptedTransport) -> Vec<u16> {
    let is_node_info = |outgoing: &&OutgoingMad| {
        outgoing.class.is_smp()
            && outgoing.lid != Lid::PERMISSIVE
            && outgoing.mad.attribute() == ib_mad::smp::NodeInfo::ID
    };
    transport.sent.iter().filter(is_node_info).map(|outgoing| outgoing.lid.0).collect()
}

#[test]
fn confirmation_costs_few_requests_and_takes_turns() {
    let mut transport = thousand_hosts();
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    swept(&mut transport, &fabric, &mut agents);
    let mut hosts = HashSet::new();
    for _ in 0..3 {
        transport.sent.clear();
        assert!(!swept(&mut transport, &fabric, &mut agents).lids_changed);
        let asked = node_infos_by_lid(&transport);
        // 48 switches were asked before, too.
        let confirming = asked.len() - 48;
        assert_eq!(confirming, 48 + 32);
        assert!(confirming <= max_requests(&fabric, false));
        assert!(confirming * 20 < transport.sent.len(), "of {}", transport.sent.len());
        hosts.extend(asked.into_iter().filter(|&lid| lid <= 1024));
    }
    assert_eq!(hosts.len(), 3 * 32, "others each time");
    transport.sent.clear();
    swept_confirming(&mut transport, &fabric, &mut agents);
    let confirming = node_infos_by_lid(&transport).len() - 48;
    assert_eq!(confirming, max_requests(&fabric, true));
}

#[test]
fn adapter_is_confirmed_after_its_link_went_down() {
    let mut transport = thousand_hosts();
    // LinkDowned of the port is all that changes.
    let downs = Arc::new(std::sync::atomic::AtomicU8::new(0));
    let fabric = assembled(&mut transport);
    let mut agents = AgentCache::default();
    let count = Arc::clone(&downs);
    transport.garble = Box::new(move |data| {
        // PortSelect and LinkDownedCounter of PortCounters.
        if data[1] == 32 {
            data[7] = count.load(std::sync::atomic::Ordering::Relaxed);
        }
    });
    swept(&mut transport, &fabric, &mut agents);
    downs.store(1, std::sync::atomic::Ordering::Relaxed);
    transport.sent.clear();
    swept(&mut transport, &fabric, &mut agents);
    let asked = node_infos_by_lid(&transport);
    assert!((1..=32).all(|leaf| asked.contains(&(leaf * 32))), "{asked:?}");
    assert_eq!(asked.len(), 48 + 48 + 32 + 32);
}
