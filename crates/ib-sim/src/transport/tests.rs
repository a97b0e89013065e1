//! Requests over a simulated transport: the time and order of responses.

use super::*;
use crate::scenario::{FabricChange, MadDelivery, Overrides, Scenario};
use ib_mad::counter::Attribute;
use ib_mad::{Class, Query, pma, smp};

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
    while let Some(received) =
        transport.receive(Moment::default() + Duration::from_secs(60)).unwrap()
    {
        all.push(match received {
            Received::Mad { mad, .. } => (transport.now(), mad.transaction_id(), true),
            Received::Expired { transaction_id } => (transport.now(), transaction_id, false),
            Received::Malformed { .. } => panic!("nothing is malformed here"),
        });
    }
    all
}

fn apply(transport: &SimTransport, action: FabricChange) {
    lock(&transport.simulation).apply(transport.now(), action);
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
