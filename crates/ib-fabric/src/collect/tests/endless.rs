//! A device that reports ever new neighbors, and what a discovery does about it.

use std::collections::{BTreeMap, HashSet};

use super::*;
use crate::collect::discovery::{DiscoveryLimits, DiscoveryResult, LimitReached};
use ib_mad::moment::Anchor;
use ib_mad::port_info::PortInfo;
use ib_mad::rate::{Speed, SpeedSet, Width};
use ib_mad::smp::NodeInfo;
use ib_umad::{LocalPort, Received, SendError, TransportError};

/// Behind port 8 of the leaf is a tree of switches without end.
struct Inventing {
    scripted: ScriptedTransport,
    /// How long its nodes take to respond.
    delay: Duration,
    arrivals: BTreeMap<(Moment, usize), Received>,
    sent: usize,
}

impl Inventing {
    fn new(delay: Duration) -> Self {
        let kinds = [(CA, 1), (SWITCH, 8), (SWITCH, 8), (CA, 1), (CA, 1)];
        let links = [((0, 1), (1, 1)), ((1, 2), (2, 1)), ((2, 2), (3, 1)), ((2, 3), (4, 1))];
        let mut nodes = fabric(&kinds, &links);
        nodes[1].links.insert(8, (1, 8));
        let scripted = ScriptedTransport::new(nodes);
        Inventing { scripted, delay, arrivals: BTreeMap::new(), sent: 0 }
    }

    /// The response of an invented switch with 36 ports.
    fn respond(outgoing: &OutgoingMad, route: &[u8]) -> Received {
        let mut mad = outgoing.mad.response();
        let guid = route.iter().fold(0xbad, |guid: u64, port| guid << 6 | u64::from(*port));
        match mad.attribute() {
            NodeInfo::ID => NodeInfo {
                node_type: NodeInfo::type_of(SWITCH),
                port_count: 36,
                node_guid: Guid(guid),
                port_guid: Guid(guid),
                local_port: 36,
                ..NodeInfo::default()
            }
            .encode(&mut mad),
            PortInfo::ID => {
                let speeds = Speed::ALL.into_iter().collect::<SpeedSet>().up_to(Speed::Edr);
                PortInfo {
                    width_supported: Width::X4.up_to(),
                    width_active: Width::X4.code(),
                    state: PortState::Active,
                    physical_state: PhysicalState::LinkUp,
                    ..PortInfo::default()
                }
                .with_speeds(speeds, speeds, Some(Speed::Edr))
                .encode(&mut mad);
            }
            _ => {}
        }
        Received::Mad { from: outgoing.lid, mad }
    }
}

impl MadTransport for Inventing {
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
        self.sent += 1;
        let route = outgoing.mad.route_ports();
        if let [1, 8, ..] = route {
            let at = self.now() + self.delay;
            self.arrivals.insert((at, self.sent), Self::respond(outgoing, route));
            return Ok(());
        }
        self.scripted.send(outgoing)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        let first = self.arrivals.first_key_value().map(|(key, _)| *key);
        let due = first.filter(|(at, _)| *at <= until);
        let received = self.scripted.receive(due.map_or(until, |(at, _)| at))?;
        Ok(received.or_else(|| self.arrivals.remove(&due?)))
    }
}

fn discovered_within(
    transport: &mut Inventing,
    limits: DiscoveryLimits,
    cut: HashSet<Guid>,
) -> (DiscoveryResult, Duration) {
    let began = transport.now();
    let mut discovery = Discovery::new(Arc::default(), None, HashSet::new()).limited(limits, cut);
    run_plan(transport, &mut discovery);
    (discovery.finish(), transport.now().since(began))
}

const INVENTOR: Guid = Guid(0xbad << 12 | 1 << 6 | 8);

/// The real nodes that were found.
fn real(found: &DiscoveryResult) -> usize {
    found.fabric.nodes.iter().filter(|node| node.identity.guid.0 < 10).count()
}

#[test]
fn discovery_of_a_slow_inventor_ends_and_finds_the_real_nodes() {
    let mut transport = Inventing::new(Duration::from_millis(400));
    let limits = DiscoveryLimits::default();
    let (found, took) = discovered_within(&mut transport, limits, HashSet::new());
    assert!(took < Duration::from_secs(600), "{took:?}");
    assert_eq!((real(&found), found.limit_reached), (5, Some(LimitReached::Time)));
    assert_eq!(found.culprit, Some(INVENTOR));
    assert!(found.gaps.iter().any(|gap| gap.contains(&INVENTOR.to_string())), "{:?}", found.gaps);
    // It is found again, and nothing behind it.
    let (found, took) = discovered_within(&mut transport, limits, HashSet::from([INVENTOR]));
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert_eq!((real(&found), found.fabric.nodes.len(), found.limit_reached), (5, 6, None));
    assert_eq!(found.fabric.unreached.len(), 36);
}

#[test]
fn discovery_of_a_fast_inventor_ends_at_its_limit_of_requests() {
    let mut transport = Inventing::new(Duration::from_micros(50));
    let limits = DiscoveryLimits::default().next(None, 100, Duration::from_secs(1));
    let (found, _) = discovered_within(&mut transport, limits, HashSet::new());
    assert!(transport.sent <= 10_000, "{}", transport.sent);
    assert_eq!((real(&found), found.limit_reached), (5, Some(LimitReached::Steps)));
    assert_eq!(found.culprit, Some(INVENTOR));
}

#[test]
fn known_nodes_behind_a_cut_stay_known() {
    let mut transport = generations();
    let before = assembled(&mut transport);
    let mut discovery = Discovery::new(Arc::default(), None, HashSet::new())
        .limited(DiscoveryLimits::default(), HashSet::from([Guid(2)]));
    run_plan(&mut transport, &mut discovery);
    let found = discovery.finish();
    assert_eq!((found.fabric.nodes.len(), found.failures), (2, 1));
    let after =
        Fabric::assemble(found.fabric, &Naming::default(), Moment(1), Some((&before, Moment(0))));
    let presences: Vec<_> = after.nodes.iter().map(|node| node.presence).collect();
    let (found, hidden) = (Presence::Found, Presence::Hidden);
    assert_eq!(presences, [found, found, hidden, hidden, hidden]);
}
