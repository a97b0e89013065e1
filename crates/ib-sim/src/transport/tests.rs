//! Requests over a simulated transport: the time and order of responses.

use super::*;
use crate::scenario::{FabricChange, MadDelivery, Overrides, Scenario};
use ib_mad::counter::Attribute;
use ib_mad::{Class, DirectedRoute, Query, pma, smp};

const TIMEOUT: Duration = Duration::from_millis(500);

/// A transport from the first host of a small tree, with this delivery of MADs.
fn transport(way: &str) -> SimTransport {
    let text = format!(
        "{{fabric: {{fat-tree: {{hosts: 8, radix: 8}}}}, traffic: {{pattern: none}}, way: {way}}}"
    );
    let scenario = Scenario::parse("test", &text).unwrap();
    let scenario = scenario.resolve(&Overrides::default()).unwrap();
    let local_port = scenario.local_ports[0];
    let clock = SimClock::Virtual { began: SystemTime::UNIX_EPOCH };
    SimTransport::new(share(Simulation::new(scenario)), local_port, clock)
}

fn lid_of(transport: &SimTransport, node: &str) -> Lid {
    let simulation = lock(&transport.simulation);
    let net = simulation.net();
    let id = net.node_ids().find(|id| net.node(*id).id == node).unwrap();
    let port = net.sm_port(net.port_by_number(id, 1).unwrap());
    simulation.port(port).lid
}

fn send_get(transport: &mut SimTransport, query: Query, lid: Lid, transaction: u32) {
    let class = query.class(false);
    let mad = query.request(None, transaction);
    let (qp, qkey) = if class == Class::Performance { (1, 0x8001_0000) } else { (0, 0) };
    let request = OutgoingMad {
        class,
        plane: 0,
        lid,
        route: None,
        qp,
        qkey,
        sl: 0,
        p_key: None,
        timeout: TIMEOUT,
        mad,
    };
    transport.send(&request).unwrap();
}

/// All that arrives: the time, the request, and whether it is a response.
fn incoming(transport: &mut SimTransport) -> Vec<(Moment, u32, bool)> {
    let mut all = Vec::new();
    let until = transport.now() + Duration::from_secs(60);
    while let Some(received) = transport.receive(until).unwrap() {
        all.push(match received {
            Received::Mad { mad, .. } => (transport.now(), mad.transaction_id(), true),
            Received::Expired { transaction_id, .. } => (transport.now(), transaction_id, false),
            Received::Malformed { .. } => panic!("nothing is malformed here"),
        });
    }
    all
}

fn apply(transport: &SimTransport, change: FabricChange) {
    lock(&transport.simulation).apply(transport.now(), change);
}

#[test]
fn delay_is_a_round_trip_and_more_for_each_hop() {
    let mut transport = transport("{round-trip: 20us, per-hop: 1us, jitter: 0s}");
    for (number, (node, micros)) in
        [("host-0", 0), ("leaf-0-0", 20), ("host-1", 21), ("spine-0", 21), ("host-7", 23)]
            .into_iter()
            .enumerate()
    {
        let (lid, began) = (lid_of(&transport, node), transport.now());
        send_get(&mut transport, smp::node_info(), lid, number as u32);
        let received = transport.receive(began + TIMEOUT).unwrap();
        assert!(matches!(received, Some(Received::Mad { from, .. }) if from == lid), "{node}");
        assert_eq!(transport.now().since(began), Duration::from_micros(micros), "{node}");
    }
}

#[test]
fn nothing_arrives_early() {
    let mut transport = transport("{round-trip: 20us, jitter: 0s}");
    let lid = lid_of(&transport, "leaf-0-0");
    send_get(&mut transport, smp::node_info(), lid, 1);
    let early = Moment::default() + Duration::from_micros(19);
    assert!(transport.receive(early).unwrap().is_none());
    assert_eq!(transport.now(), early, "the time has passed");
    assert!(transport.receive(Moment::NEVER).unwrap().is_some());
}

#[test]
fn jitter_reorders_responses_in_the_same_way_each_time() {
    let run = || {
        let mut transport = transport("{round-trip: 20us, jitter: 100us}");
        let lid = lid_of(&transport, "spine-0");
        for number in 0..100 {
            send_get(&mut transport, pma::counters(Attribute::PortCounters, 1), lid, number);
        }
        incoming(&mut transport)
    };
    let arrived = run();
    assert_eq!(arrived.len(), 100);
    assert!(arrived.is_sorted_by_key(|(at, ..)| *at), "in order of time");
    assert!(!arrived.is_sorted_by_key(|(_, number, _)| *number), "not in order of requests");
    assert_eq!(arrived, run());
}

#[test]
fn lost_and_late_responses_expire_at_the_timeout() {
    let mut transport = transport("{loss: 20%}");
    let (lid, number) = (lid_of(&transport, "spine-0"), 2000);
    for transaction in 0..number {
        send_get(&mut transport, smp::node_info(), lid, transaction);
    }
    let arrived = incoming(&mut transport);
    let lost = arrived.iter().filter(|(.., answered)| !answered).count();
    // Five standard deviations: 2000 x 0.2 +- 5 x sqrt(2000 x 0.2 x 0.8).
    assert!((310..490).contains(&lost), "{lost}");
    let given_up = Moment::default() + TIMEOUT;
    assert!(arrived.iter().all(|&(at, _, answered)| answered || at == given_up));

    let delivery = MadDelivery { loss: 0.0, ..lock(&transport.simulation).delivery };
    apply(&transport, FabricChange::SetDelivery(delivery));
    let node = {
        let simulation = lock(&transport.simulation);
        let net = simulation.net();
        net.node_ids().find(|id| net.node(*id).id == "spine-0").unwrap()
    };
    for (behavior, answered) in [
        (AgentBehavior::Delayed(Duration::from_millis(400)), true),
        (AgentBehavior::Delayed(TIMEOUT), false),
        (AgentBehavior::Silent, false),
        (AgentBehavior::Normal, true),
    ] {
        apply(&transport, FabricChange::SetAgents { node, behavior });
        let began = transport.now();
        send_get(&mut transport, smp::node_info(), lid, 7);
        let received = transport.receive(began + TIMEOUT).unwrap();
        assert_eq!(matches!(received, Some(Received::Mad { .. })), answered, "{behavior:?}");
    }
}

#[test]
fn counters_need_an_active_link() {
    let mut transport = transport("{}");
    let lid = lid_of(&transport, "host-7");
    let far = lock(&transport.simulation).port_of_lid(transport.port, lid).unwrap();
    // The link comes up at once, and the subnet manager activates it a second later.
    apply(&transport, FabricChange::SetSignal { port: far, up: false });
    apply(&transport, FabricChange::SetSignal { port: far, up: true });
    send_get(&mut transport, smp::node_info(), lid, 1);
    send_get(&mut transport, pma::class_port_info(), lid, 2);
    let answered = |arrived: &[(Moment, u32, bool)]| -> Vec<u32> {
        arrived.iter().filter(|(.., answered)| *answered).map(|(_, number, _)| *number).collect()
    };
    let until = transport.now() + TIMEOUT;
    let mut arrived = Vec::new();
    while let Some(received) = transport.receive(until).unwrap() {
        if let Received::Mad { mad, .. } = received {
            arrived.push((transport.now(), mad.transaction_id(), true));
        }
    }
    assert_eq!(answered(&arrived), [1]);
    let later = transport.now() + Duration::from_secs(1);
    assert!(transport.receive(later).unwrap().is_none());
    send_get(&mut transport, pma::class_port_info(), lid, 3);
    assert_eq!(answered(&incoming(&mut transport)), [3]);
}

#[test]
fn real_clock_waits() {
    let mut transport = transport("{round-trip: 2ms, jitter: 0s}");
    transport.clock = SimClock::Real(Clock::start());
    let lid = lid_of(&transport, "leaf-0-0");
    let began = std::time::Instant::now();
    send_get(&mut transport, smp::node_info(), lid, 1);
    let limit = transport.now() + Duration::from_secs(60);
    assert!(transport.receive(limit).unwrap().is_some());
    assert!(began.elapsed() >= Duration::from_millis(2));
}

/// Two leaves with four hosts each, and two spines, of four planes. We are at host-0.
fn multi_plane() -> SimTransport {
    let scenario = Scenario::parse("test", "{fabric: {xdr: {}}, traffic: {pattern: none}}");
    let scenario = scenario.unwrap().resolve(&Overrides::default()).unwrap();
    let local_port = scenario.local_ports[0];
    let clock = SimClock::Virtual { began: SystemTime::UNIX_EPOCH };
    SimTransport::new(share(Simulation::new(scenario)), local_port, clock)
}

/// The node that responds to NodeInfo by a route of a plane.
fn node_at(transport: &mut SimTransport, plane: u8, hops: &[u8]) -> Option<String> {
    let route = DirectedRoute::of_plane(plane);
    let route = hops.iter().fold(route, |route, port| route.then(*port).unwrap());
    let mad = smp::node_info().request(Some(&route), 7);
    let (class, lid, timeout) = (Class::SubnetDirected, Lid::PERMISSIVE, TIMEOUT);
    let (qp, qkey, sl) = (0, 0, 0);
    let request =
        OutgoingMad { class, plane, lid, route: None, qp, qkey, sl, p_key: None, timeout, mad };
    transport.send(&request).ok()?;
    let until = transport.now() + Duration::from_secs(1);
    let Some(Received::Mad { mad, .. }) = transport.receive(until).unwrap() else { return None };
    let guid = smp::NodeInfo::decode(&mad).node_guid;
    let simulation = lock(&transport.simulation);
    let node = simulation.net().nodes.iter().find(|node| node.guid == guid);
    node.map(|node| node.id.clone())
}

fn planes(transport: &SimTransport) -> Vec<u8> {
    transport.local_port().planes.iter().collect()
}

/// The first plane's port of host-0 loses its link.
fn lose_first_plane(transport: &SimTransport) {
    let port = transport.port;
    apply(transport, FabricChange::SetSignal { port, up: false });
}

#[test]
fn directed_route_leaves_by_the_port_of_its_plane() {
    let mut transport = multi_plane();
    assert_eq!(planes(&transport), [1, 2, 3, 4]);
    for (plane, hops, node) in [
        (1, &[][..], Some("host-0")),
        (4, &[], Some("host-0")),
        (1, &[1], Some("leaf-0-a1")),
        (0, &[1], Some("leaf-0-a1")),
        (3, &[3], Some("leaf-0-a3")),
        // By the ring to the next plane.
        (3, &[3, 145], Some("leaf-0-a4")),
        // The port of another plane, and a plane that the HCA does not have.
        (2, &[1], None),
        (5, &[], None),
    ] {
        assert_eq!(node_at(&mut transport, plane, hops).as_deref(), node, "{plane} {hops:?}");
    }
    // A plane that is not Active sends nothing, and any plane is another one.
    lose_first_plane(&transport);
    assert_eq!(planes(&transport), [2, 3, 4]);
    assert_eq!(node_at(&mut transport, 1, &[]), None);
    assert_eq!(node_at(&mut transport, 0, &[2]).as_deref(), Some("leaf-0-a2"));
}

#[test]
fn only_gmps_cross_a_multi_plane_fabric_by_lid() {
    let mut transport = multi_plane();
    let nodes = ["host-0", "leaf-0-a1", "leaf-0-a2", "spine-1-a3", "host-7"];
    let lids = nodes.map(|node| lid_of(&transport, node));
    let answered = |transport: &mut SimTransport, query: Query| -> Vec<u32> {
        for (number, lid) in (0..).zip(lids) {
            send_get(transport, query, lid, number);
        }
        let arrived = incoming(transport).into_iter().filter(|(.., answered)| *answered);
        let mut numbers: Vec<u32> = arrived.map(|(_, number, _)| number).collect();
        numbers.sort_unstable();
        numbers
    };
    // LID-routed SMPs reach our own port and the first switch, of the first plane that is Active.
    assert_eq!(answered(&mut transport, smp::node_info()), [0, 1]);
    assert_eq!(answered(&mut transport, pma::class_port_info()), [0, 1, 2, 3, 4]);
    lose_first_plane(&transport);
    assert_eq!(answered(&mut transport, smp::node_info()), [0, 2]);
    assert_eq!(answered(&mut transport, pma::class_port_info()), [0, 1, 2, 3, 4]);
}
