//! Requests over a simulated wire: when their answers come, in which order, and which do not.

use super::*;
use crate::scenario::{Action, Overrides, Scenario, Way};
use ib_mad::counter::Attribute;
use ib_mad::{Class, Query, pma, smp};

const TIMEOUT: Duration = Duration::from_millis(500);

/// A wire from the first host of a small tree, whose MADs travel like this.
fn wire(way: &str) -> SimWire {
    let text = format!(
        "{{fabric: {{fat-tree: {{hosts: 8, radix: 8}}}}, traffic: {{pattern: none}}, way: {way}}}"
    );
    let scenario = Scenario::parse("test", &text).unwrap();
    let story = scenario.story(&Overrides::default()).unwrap();
    let seat = story.seats[0];
    let time = Time::Virtual { began: SystemTime::UNIX_EPOCH };
    SimWire::new(share(World::new(story)), seat, time)
}

fn lid_of(wire: &SimWire, node: &str) -> Lid {
    let world = look(&wire.world);
    let net = world.net();
    let id = net.node_ids().find(|id| net.node(*id).id == node).unwrap();
    let seat = net.manager_seat(net.port_of(id, 1).unwrap());
    world.port(seat).lid
}

fn ask(wire: &mut SimWire, query: Query, lid: Lid, transaction: u32) {
    let class = query.class(false);
    let mad = Mad::get(&query, None, transaction);
    let (qp, qkey) = if class == Class::Performance { (1, 0x8001_0000) } else { (0, 0) };
    let parcel = OutgoingMad {
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
    wire.send(&parcel).unwrap();
}

/// All that comes in: when, for which question, and whether it is an answer.
fn incoming(wire: &mut SimWire) -> Vec<(Moment, u32, bool)> {
    let mut all = Vec::new();
    while let Some(received) = wire.receive(Moment::default() + Duration::from_secs(60)).unwrap() {
        all.push(match received {
            Received::Mad { mad, .. } => (wire.now(), mad.transaction_id(), true),
            Received::Expired { transaction_id } => (wire.now(), transaction_id, false),
            Received::Malformed { .. } => panic!("nothing is malformed here"),
        });
    }
    all
}

fn act(wire: &SimWire, action: Action) {
    look(&wire.world).act(wire.now(), action);
}

#[test]
fn an_answer_takes_a_round_trip_and_more_for_each_hop() {
    let mut wire = wire("{round-trip: 20us, per-hop: 1us, jitter: 0s}");
    for (number, (node, micros)) in
        [("host-0", 0), ("leaf-0-0", 20), ("host-1", 21), ("spine-0", 21), ("host-7", 23)]
            .into_iter()
            .enumerate()
    {
        let (lid, began) = (lid_of(&wire, node), wire.now());
        ask(&mut wire, smp::node_info(), lid, number as u32);
        let received = wire.receive(began + TIMEOUT).unwrap();
        assert!(matches!(received, Some(Received::Mad { from, .. }) if from == lid), "{node}");
        assert_eq!(wire.now().since(began), Duration::from_micros(micros), "{node}");
    }
}

#[test]
fn nothing_comes_before_its_time() {
    let mut wire = wire("{round-trip: 20us, jitter: 0s}");
    let lid = lid_of(&wire, "leaf-0-0");
    ask(&mut wire, smp::node_info(), lid, 1);
    let early = Moment::default() + Duration::from_micros(19);
    assert!(wire.receive(early).unwrap().is_none());
    assert_eq!(wire.now(), early, "it was waited for");
    assert!(wire.receive(Moment::NEVER).unwrap().is_some());
}

#[test]
fn answers_overtake_each_other_and_the_same_ones_each_time() {
    let run = || {
        let mut wire = wire("{round-trip: 20us, jitter: 100us}");
        let lid = lid_of(&wire, "spine-0");
        for number in 0..100 {
            ask(&mut wire, pma::counters(Attribute::PortCounters, 1), lid, number);
        }
        incoming(&mut wire)
    };
    let told = run();
    assert_eq!(told.len(), 100);
    assert!(told.is_sorted_by_key(|(at, ..)| *at), "time does not go back");
    assert!(!told.is_sorted_by_key(|(_, number, _)| *number), "somebody was overtaken");
    assert_eq!(told, run());
}

#[test]
fn what_is_lost_or_too_late_is_given_up_when_its_time_is_over() {
    let mut wire = wire("{loss: 20%}");
    let (lid, number) = (lid_of(&wire, "spine-0"), 2000);
    for transaction in 0..number {
        ask(&mut wire, smp::node_info(), lid, transaction);
    }
    let told = incoming(&mut wire);
    let lost = told.iter().filter(|(.., answered)| !answered).count();
    // Five standard deviations: 2000 x 0.2 +- 5 x sqrt(2000 x 0.2 x 0.8).
    assert!((310..490).contains(&lost), "{lost}");
    let given_up = Moment::default() + TIMEOUT;
    assert!(told.iter().all(|&(at, _, answered)| answered || at == given_up));

    let way = Way { loss: 0.0, ..*look(&wire.world).way() };
    act(&wire, Action::Way(way));
    let node = {
        let world = look(&wire.world);
        let net = world.net();
        net.node_ids().find(|id| net.node(*id).id == "spine-0").unwrap()
    };
    for (manner, answered) in [
        (Manner::Late(Duration::from_millis(400)), true),
        (Manner::Late(TIMEOUT), false),
        (Manner::Silent, false),
        (Manner::Well, true),
    ] {
        act(&wire, Action::Agents { node, manner });
        let began = wire.now();
        ask(&mut wire, smp::node_info(), lid, 7);
        let received = wire.receive(began + TIMEOUT).unwrap();
        assert_eq!(matches!(received, Some(Received::Mad { .. })), answered, "{manner:?}");
    }
}

#[test]
fn counters_need_more_of_a_link_than_subnet_management() {
    let mut wire = wire("{}");
    let lid = lid_of(&wire, "host-7");
    let far = look(&wire.world).holder(wire.seat, lid).unwrap();
    // It comes up at once, and the subnet manager puts it to use a second later.
    act(&wire, Action::Signal { end: far, up: false });
    act(&wire, Action::Signal { end: far, up: true });
    ask(&mut wire, smp::node_info(), lid, 1);
    ask(&mut wire, pma::class_port_info(), lid, 2);
    let answered = |told: &[(Moment, u32, bool)]| -> Vec<u32> {
        told.iter().filter(|(.., answered)| *answered).map(|(_, number, _)| *number).collect()
    };
    let until = wire.now() + TIMEOUT;
    let mut told = Vec::new();
    while let Some(received) = wire.receive(until).unwrap() {
        if let Received::Mad { mad, .. } = received {
            told.push((wire.now(), mad.transaction_id(), true));
        }
    }
    assert_eq!(answered(&told), [1]);
    let later = wire.now() + Duration::from_secs(1);
    assert!(wire.receive(later).unwrap().is_none());
    ask(&mut wire, pma::class_port_info(), lid, 3);
    assert_eq!(answered(&incoming(&mut wire)), [3]);
}

#[test]
fn real_time_is_waited_for() {
    let mut wire = wire("{round-trip: 2ms, jitter: 0s}");
    wire.time = Time::Real(Clock::start());
    let lid = lid_of(&wire, "leaf-0-0");
    let began = std::time::Instant::now();
    ask(&mut wire, smp::node_info(), lid, 1);
    let limit = wire.now() + Duration::from_secs(60);
    assert!(wire.receive(limit).unwrap().is_some());
    assert!(began.elapsed() >= Duration::from_millis(2));
}
