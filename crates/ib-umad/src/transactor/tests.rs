//! The transactor against a wire that does what it likes.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::testing::{Fate, ROUND_TRIP, Scripted, fabric};
use crate::walk::{Broken, Walk, drive};
use crate::{GlobalRoute, Wire, WireError};
use ib_mad::counter::Attribute;
use ib_mad::node::NodeKind;
use ib_mad::p_key::PKey;
use ib_mad::{Path, pma, smp};

const NODES: usize = 40;

/// A fixed list of questions; takes down how each ended and when.
struct Asking {
    questions: Vec<Request>,
    next: [Vec<usize>; 2],
    ended: Vec<Option<(Result<(), Failure>, Moment)>>,
}

impl Asking {
    fn new(questions: Vec<Request>) -> Self {
        let mut next = [Vec::new(), Vec::new()];
        for (index, request) in questions.iter().enumerate().rev() {
            next[Key::of(request).lane() as usize].push(index);
        }
        Asking { ended: vec![None; questions.len()], questions, next }
    }

    fn outcomes(&self) -> Vec<Result<(), Failure>> {
        self.ended.iter().map(|end| end.expect("every question ends").0).collect()
    }

    fn last_end(&self) -> Moment {
        self.ended.iter().flatten().map(|(_, at)| *at).max().unwrap_or_default()
    }
}

impl Walk for Asking {
    fn next(&mut self, lane: Lane) -> Option<(Request, u64)> {
        let index = self.next[lane as usize].pop()?;
        Some((self.questions[index], index as u64))
    }

    fn finished(&mut self, tag: u64, outcome: Result<&Mad, Failure>, at: Moment) {
        let end = self.ended[tag as usize].replace((outcome.map(|_| ()), at));
        assert!(end.is_none(), "question {tag} ended twice");
    }
}

/// A switch with hosts at its ports 1 to 39; the switch has LID 1, host n LID n + 1.
fn star() -> Scripted {
    let mut kinds = vec![(NodeKind::Switch, 40)];
    kinds.extend([(NodeKind::Ca, 1); NODES - 1]);
    let cables: Vec<_> = (1..NODES).map(|host| ((0, host as u8), (host, 1))).collect();
    Scripted::new(fabric(&kinds, &cables))
}

fn counters(lid: u16, port: u8) -> Request {
    Request { to: Address::Lid(Lid(lid)), query: pma::counters(Attribute::PortCounters, port) }
}

fn ask(wire: &mut Scripted, transactor: &mut Transactor, questions: Vec<Request>) -> Asking {
    let mut walk = Asking::new(questions);
    drive(&mut walk, transactor, wire, &AtomicBool::new(false)).unwrap();
    assert!(transactor.is_idle());
    walk
}

fn asked(wire: &mut Scripted, questions: Vec<Request>) -> (Asking, Transactor) {
    let mut transactor = Transactor::new(Pace::default());
    let walk = ask(wire, &mut transactor, questions);
    (walk, transactor)
}

#[test]
fn many_are_in_flight_but_few_to_any_one_lid() {
    let mut wire = star();
    let mut questions: Vec<Request> =
        (1..=NODES as u16).flat_map(|lid| (0..20).map(move |port| counters(lid, port))).collect();
    questions.extend(
        (2..40).map(|lid| Request { to: Address::Lid(Lid(lid)), query: smp::switch_info() }),
    );
    questions.extend(
        (0..8).map(|_| Request { to: Address::Directed(Path::HERE), query: smp::node_info() }),
    );
    let (walk, transactor) = asked(&mut wire, questions);
    assert!(walk.outcomes().iter().all(Result::is_ok));
    assert_eq!(wire.most_in_flight, [8, 128]);
    assert_eq!(wire.most_to_one_lid, 4);
    assert_eq!(transactor.stats().of(Class::Performance, Outcome::Answered), 800);
    assert_eq!(transactor.stats().round_trips(Class::Performance).count(), 800);
    // 800 questions at 128 in flight: seven round trips, not 800.
    assert!(walk.last_end().since(Moment(0)) < 12 * ROUND_TRIP, "{:?}", walk.last_end());
}

#[test]
fn what_is_lost_is_asked_again_and_nothing_hangs() {
    let mut wire = star();
    let mut tries: HashMap<Lid, u32> = HashMap::new();
    wire.fate = Box::new(move |parcel| {
        let tries = tries.entry(parcel.lid).or_default();
        *tries += 1;
        if *tries <= 2 { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
    });
    let (walk, transactor) = asked(&mut wire, vec![counters(2, 1), counters(3, 1)]);
    assert_eq!(walk.outcomes(), [Ok(()), Ok(())]);
    assert_eq!(transactor.stats().of(Class::Performance, Outcome::TimedOut), 4);
    let waited = walk.last_end().since(Moment(0));
    assert!(
        (Duration::from_millis(1200)..Duration::from_millis(1300)).contains(&waited),
        "{waited:?}"
    );
}

#[test]
fn a_silent_node_is_given_up_with_all_that_waits_for_it() {
    let mut wire = star();
    wire.fate =
        Box::new(
            |parcel| if parcel.lid == Lid(5) { Fate::Lost } else { Fate::Answered(ROUND_TRIP) },
        );
    let mut questions: Vec<Request> = (0..40).map(|port| counters(5, port)).collect();
    questions.extend((0..40).map(|port| counters(6, port)));
    let mut transactor = Transactor::new(Pace::default());
    let walk = ask(&mut wire, &mut transactor, questions.clone());
    let outcomes = walk.outcomes();
    assert!(outcomes[..40].iter().all(|end| end.unwrap_err().is_silence()));
    assert!(outcomes[40..].iter().all(Result::is_ok), "another node's");
    let first = wire.sent.iter().filter(|parcel| parcel.lid == Lid(5)).count();
    assert!(first <= 12, "{first} MADs to a silent node");

    // The next walk asks it twice, without a retry.
    let walk = ask(&mut wire, &mut transactor, questions.clone());
    assert!(walk.outcomes()[..40].iter().all(Result::is_err));
    assert_eq!(wire.sent.iter().filter(|parcel| parcel.lid == Lid(5)).count(), first + 2);

    // And when it is back, all of it is read.
    wire.fate = Box::new(|_| Fate::Answered(ROUND_TRIP));
    assert!(ask(&mut wire, &mut transactor, questions).outcomes().iter().all(Result::is_ok));
}

#[test]
fn many_silent_nodes_are_waited_for_at_once_and_hold_nobody_up() {
    let mut wire = star();
    wire.fate = Box::new(|parcel| match parcel.lid.0 {
        10..=37 => Fate::Lost,
        _ => Fate::Answered(ROUND_TRIP),
    });
    let questions: Vec<Request> =
        (1..=NODES as u16).flat_map(|lid| [counters(lid, 1), counters(lid, 2)]).collect();
    let mut transactor = Transactor::new(Pace { gmp_window: 24, ..Pace::default() });
    let walk = ask(&mut wire, &mut transactor, questions);
    assert_eq!(walk.outcomes().iter().filter(|end| end.is_ok()).count(), 2 * (NODES - 28));
    // 56 requests of 3 tries of 600 ms take 5.4 s if 24 are in flight, and 3 s if 48 are.
    let waited = walk.last_end().since(Moment(0));
    assert!(waited < Duration::from_millis(3100), "{waited:?}");
}

#[test]
fn slow_requests_add_at_most_one_more_window() {
    let mut wire = star();
    wire.fate = Box::new(|parcel| match parcel.lid {
        Lid(1) => Fate::Answered(ROUND_TRIP),
        _ => Fate::Lost,
    });
    // 100 dead hosts are asked by directed route and by LID, on both lanes.
    let route = |port| Path::HERE.then(port).unwrap();
    let questions = (2..102).flat_map(|host: u16| {
        let to = [Address::Directed(route(host as u8)), Address::Lid(Lid(host))];
        let smps = to.map(|to| Request { to, query: smp::node_info() });
        smps.into_iter().chain((0..4).map(move |port| counters(host, port)))
    });
    let (walk, _) = asked(&mut wire, questions.collect());
    assert!(walk.outcomes().iter().all(Result::is_err));
    assert_eq!(wire.most_in_flight, [16, 256], "8 + 8 SMPs, 128 + 128 GMPs");
}

#[test]
fn a_node_that_leaves_out_one_attribute_is_not_silent() {
    for lid_window in [1, 4] {
        let mut wire = star();
        wire.fate = Box::new(|parcel| match parcel.mad.attribute() {
            0x12 => Fate::Expired,
            _ => Fate::Answered(ROUND_TRIP),
        });
        let extended = |port| Request {
            to: Address::Lid(Lid(2)),
            query: pma::counters(Attribute::PortCountersExtended, port),
        };
        let questions = (0..20).flat_map(|port| [counters(2, port), extended(port)]).collect();
        let mut transactor =
            Transactor::new(Pace { gmp_lid_window: lid_window, ..Pace::default() });
        let outcomes = ask(&mut wire, &mut transactor, questions).outcomes();
        for pair in outcomes.chunks(2) {
            assert!(pair[0].unwrap_err().is_silence() && pair[1].is_ok(), "{pair:?}");
        }
    }
}

#[test]
fn what_may_go_unanswered_is_asked_once_and_says_nothing_of_its_node() {
    let mut wire = star();
    wire.fate = Box::new(|parcel| match parcel.mad.attribute() {
        0x10 | 0x33 | 0xff90 => Fate::Lost,
        _ => Fate::Answered(ROUND_TRIP),
    });
    let request = |lid, query| Request { to: Address::Lid(Lid(lid)), query };
    let in_passing = (1..9).flat_map(|port| {
        [
            request(1, pma::samples_control(port)),
            request(1, smp::port_info_extended(port)),
            request(1, smp::mellanox_extended_port_info(port)),
        ]
    });
    let (walk, mut transactor) = asked(&mut wire, in_passing.collect());
    assert!(walk.outcomes().iter().all(|outcome| *outcome == Err(Failure::TimedOut)));
    assert_eq!(wire.sent.len(), 24, "one try each");
    // In the next walk the node is not in doubt: what is lost once is asked again.
    let mut first = true;
    wire.fate =
        Box::new(
            move |_| {
                if std::mem::take(&mut first) { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
            },
        );
    let walk = ask(&mut wire, &mut transactor, vec![counters(1, 1), counters(1, 2)]);
    assert_eq!(walk.outcomes(), [Ok(()), Ok(())]);
}

#[test]
fn a_burst_of_losses_is_one_miss_and_costs_nothing() {
    let mut wire = star();
    let mut sent = 0;
    wire.fate = Box::new(move |_| {
        sent += 1;
        if sent <= 4 { Fate::Lost } else { Fate::Answered(ROUND_TRIP) }
    });
    let (walk, transactor) = asked(&mut wire, (0..40).map(|port| counters(1, port)).collect());
    assert!(walk.outcomes().iter().all(Result::is_ok));
    assert_eq!(transactor.stats().of(Class::Performance, Outcome::TimedOut), 4);
}

#[test]
fn one_that_is_always_busy_does_not_hold_the_others_up_for_long() {
    let mut wire = star();
    let route = Path::HERE.then(1).unwrap();
    wire.fate = Box::new(move |parcel| {
        let routed = parcel.lid == Lid::PERMISSIVE && parcel.mad.u8(7) == 1;
        let busy = parcel.lid == Lid(1) || routed;
        if busy { Fate::Status(status::BUSY) } else { Fate::Answered(ROUND_TRIP) }
    });
    let by_route = |port| Request { to: Address::Directed(route), query: smp::port_info(port) };
    let mut questions: Vec<Request> = (0..64).map(|port| counters(1, port)).collect();
    questions.extend((0..64).map(by_route));
    questions.extend((2..40).map(|lid| counters(lid, 1)));
    questions.push(Request { to: Address::Directed(Path::HERE), query: smp::node_info() });
    let (walk, _) = asked(&mut wire, questions);
    let outcomes = walk.outcomes();
    assert!(outcomes[..128].iter().all(|end| *end == Err(Failure::Busy)));
    assert!(outcomes[128..].iter().all(Result::is_ok));
    assert!(walk.last_end().since(Moment(0)) < Duration::from_secs(4), "{:?}", walk.last_end());
    // The others were not kept waiting at all.
    let others = walk.ended[128..].iter().flatten().map(|(_, at)| *at).max();
    assert!(others < Some(Moment(20_000_000)), "{others:?}");
}

#[test]
fn a_device_without_room_is_not_waited_for_for_ever() {
    let mut wire = star();
    wire.fate = Box::new(|_| Fate::Full);
    let (walk, _) = asked(&mut wire, (0..200).map(|lid| counters(2 + lid % 30, 1)).collect());
    assert!(walk.outcomes().iter().all(|end| *end == Err(Failure::Unsent)));
    assert!(walk.last_end().since(Moment(0)) < Duration::from_secs(3), "{:?}", walk.last_end());
}

#[test]
fn busy_is_asked_again_later_and_one_at_a_time() {
    let mut wire = star();
    let mut busy = 2;
    wire.fate = Box::new(move |_| {
        busy -= 1;
        if busy >= 0 { Fate::Status(status::BUSY) } else { Fate::Answered(ROUND_TRIP) }
    });
    let (walk, transactor) = asked(&mut wire, vec![counters(2, 1)]);
    assert_eq!(walk.outcomes(), [Ok(())]);
    assert_eq!(transactor.stats().of(Class::Performance, Outcome::Busy), 2);
    let waited = walk.last_end().since(Moment(0));
    assert!(waited >= Duration::from_millis(60), "20 and 40 ms of back-off: {waited:?}");

    let mut wire = star();
    wire.fate = Box::new(|_| Fate::Status(status::BUSY));
    assert_eq!(asked(&mut wire, vec![counters(2, 1)]).0.outcomes(), [Err(Failure::Busy)]);
}

#[test]
fn redirects_are_followed_and_remembered() {
    let mut wire = star();
    wire.fate = Box::new(|parcel| match parcel.lid {
        Lid(2) => Fate::Redirected(Lid(3), 7),
        _ => Fate::Answered(ROUND_TRIP),
    });
    let mut transactor = Transactor::new(Pace::default());
    assert_eq!(ask(&mut wire, &mut transactor, vec![counters(2, 1)]).outcomes(), [Ok(())]);
    assert_eq!(ask(&mut wire, &mut transactor, vec![counters(2, 2)]).outcomes(), [Ok(())]);
    let sent_to: Vec<(u16, u32)> =
        wire.sent.iter().map(|parcel| (parcel.lid.0, parcel.qp)).collect();
    assert_eq!(sent_to, [(2, 1), (3, 7), (3, 7)]);
    assert_eq!(transactor.stats().of(Class::Performance, Outcome::Redirected), 1);

    // Until LIDs may have changed hands.
    transactor.forget_redirects();
    wire.sent.clear();
    assert_eq!(ask(&mut wire, &mut transactor, vec![counters(2, 3)]).outcomes(), [Ok(())]);
    assert_eq!(wire.sent[0].lid, Lid(2));

    // Where it leads is silent now: the node itself is asked again.
    wire.fate =
        Box::new(
            |parcel| if parcel.lid == Lid(3) { Fate::Lost } else { Fate::Answered(ROUND_TRIP) },
        );
    assert_eq!(ask(&mut wire, &mut transactor, vec![counters(2, 1)]).outcomes(), [Ok(())]);

    // Nobody is sent in circles.
    let mut wire = star();
    wire.fate =
        Box::new(|parcel| Fate::Redirected(if parcel.lid == Lid(2) { Lid(3) } else { Lid(2) }, 1));
    let (walk, _) = asked(&mut wire, vec![counters(2, 1)]);
    assert!(matches!(walk.outcomes()[..], [Err(Failure::Status(2))]));
}

#[test]
fn a_redirect_is_followed_in_the_partition_that_it_names_and_ends_where_we_are_no_member() {
    for (bits, named) in [(0x8001, PKey::new(0x8001)), (0, None)] {
        let mut wire = star();
        wire.redirect_p_key = bits;
        wire.fate = Box::new(|parcel| match parcel.lid {
            Lid(2) => Fate::Redirected(Lid(3), 7),
            _ => Fate::Answered(ROUND_TRIP),
        });
        let mut transactor = Transactor::new(Pace::default());
        assert_eq!(ask(&mut wire, &mut transactor, vec![counters(2, 1)]).outcomes(), [Ok(())]);
        let asked_in: Vec<_> = wire.sent.iter().map(|parcel| parcel.p_key).collect();
        assert_eq!(asked_in, [None, named], "{bits:#x}");
    }
    // The carrier refuses what it has no key for.
    let mut wire = star();
    wire.redirect_p_key = 0x8009;
    wire.fate = Box::new(|parcel| match (parcel.lid, parcel.p_key) {
        (Lid(2), _) => Fate::Redirected(Lid(3), 7),
        (_, Some(_)) => Fate::Refused,
        _ => Fate::Answered(ROUND_TRIP),
    });
    let mut transactor = Transactor::new(Pace::default());
    let outcomes = ask(&mut wire, &mut transactor, vec![counters(2, 1), counters(3, 1)]).outcomes();
    assert_eq!(outcomes, [Err(Failure::Unsent), Ok(())]);
    assert_eq!(transactor.stats().of(Class::Performance, Outcome::Unsent), 1);
}

#[test]
fn behind_one_router_each_gid_has_a_window_of_its_own_and_is_not_sent_to_a_lid() {
    let global = |gid: u16| {
        let gid = Ipv6Addr::new(0xfec0, 0, 0, 1, 0, 0, 0, gid);
        let (lid, gid_index, hop_limit) = (Lid(2), 0, 64);
        let route = GlobalRoute { lid, gid, gid_index, hop_limit, traffic_class: 0, flow_label: 0 };
        Request { to: Address::Global(route), ..counters(0, 1) }
    };
    let mut wire = star();
    let (walk, _) = asked(&mut wire, (0..40).map(|n| global(n % 3)).collect());
    assert!(walk.outcomes().iter().all(Result::is_ok));
    let window = usize::from(Pace::default().gmp_lid_window);
    assert_eq!(wire.most_to_one_lid, 3 * window);
    assert!(wire.sent.iter().all(|parcel| parcel.route.is_some() && parcel.qp == 1));

    // A LID means nothing where the one who names it is in another subnet.
    wire.fate = Box::new(|_| Fate::Redirected(Lid(3), 7));
    let (walk, _) = asked(&mut wire, vec![global(1)]);
    assert!(matches!(walk.outcomes()[..], [Err(Failure::Status(2))]));
}

#[test]
fn answers_that_answer_nothing_are_counted_and_change_nothing() {
    let mut wire = star();
    let mut number = 0;
    wire.fate = Box::new(move |_| {
        number += 1;
        match number {
            1 => Fate::Foreign,
            2 => Fate::Short,
            _ => Fate::Answered(ROUND_TRIP),
        }
    });
    let (walk, transactor) = asked(&mut wire, vec![counters(2, 1)]);
    assert_eq!(walk.outcomes(), [Ok(())]);
    let told = |outcome| transactor.stats().of(Class::Performance, outcome);
    assert_eq!(
        (told(Outcome::Stray), told(Outcome::Malformed), told(Outcome::TimedOut)),
        (1, 1, 2)
    );
}

#[test]
fn an_answer_that_comes_too_late_is_a_stray_and_not_a_second_outcome() {
    let mut wire = star();
    let mut first = true;
    wire.fate = Box::new(move |_| {
        let late = std::mem::take(&mut first);
        Fate::Answered(if late { Duration::from_millis(900) } else { Duration::from_millis(450) })
    });
    let (walk, transactor) = asked(&mut wire, vec![counters(2, 1)]);
    assert_eq!(walk.outcomes(), [Ok(())]);
    assert_eq!(transactor.stats().of(Class::Performance, Outcome::Stray), 1);
}

#[test]
fn a_carrier_that_tells_of_a_time_out_after_our_own_deadline_tells_nothing_new() {
    let mut transactor = Transactor::new(Pace { retries: 0, ..Pace::default() });
    transactor.submit(counters(2, 1), 0);
    let parcel = transactor.next_parcel(Moment(0)).unwrap();
    let late = Moment(0) + Duration::from_millis(700);
    transactor.expire(late);
    transactor.received(Received::Expired { transaction: parcel.mad.transaction() }, late);
    let told = |outcome| transactor.stats().of(Class::Performance, outcome);
    assert_eq!((told(Outcome::TimedOut), told(Outcome::Stray)), (1, 0));
}

#[test]
fn what_the_device_refuses_fails_alone() {
    let mut wire = star();
    wire.fate =
        Box::new(
            |parcel| if parcel.lid == Lid(2) { Fate::Refused } else { Fate::Answered(ROUND_TRIP) },
        );
    let (walk, _) = asked(&mut wire, vec![counters(2, 1), counters(3, 1)]);
    assert_eq!(walk.outcomes(), [Err(Failure::Unsent), Ok(())]);
}

#[test]
fn a_full_device_is_waited_for() {
    let mut wire = star();
    let mut full = 5;
    wire.fate = Box::new(move |_| {
        full -= 1;
        if full >= 0 { Fate::Full } else { Fate::Answered(ROUND_TRIP) }
    });
    let (walk, transactor) = asked(&mut wire, vec![counters(2, 1), counters(3, 1)]);
    assert_eq!(walk.outcomes(), [Ok(()), Ok(())]);
    assert_eq!(transactor.stats().of(Class::Performance, Outcome::TimedOut), 0);
}

/// Stops after its first question.
struct Stopping<'a>(Asking, &'a AtomicBool);

impl Walk for Stopping<'_> {
    fn next(&mut self, lane: Lane) -> Option<(Request, u64)> {
        self.1.store(true, std::sync::atomic::Ordering::Relaxed);
        self.0.next(lane)
    }

    fn finished(&mut self, tag: u64, outcome: Result<&Mad, Failure>, at: Moment) {
        self.0.finished(tag, outcome, at);
    }
}

#[test]
fn a_stop_waits_for_what_is_in_flight_and_sends_nothing_more() {
    let mut wire = star();
    wire.fate = Box::new(|_| Fate::Lost);
    let stop = AtomicBool::new(false);
    let mut walk =
        Stopping(Asking::new((0..200).map(|port| counters(2 + port % 30, 1)).collect()), &stop);
    let mut transactor = Transactor::new(Pace::default());
    let broken = drive(&mut walk, &mut transactor, &mut wire, &stop).unwrap_err();
    assert!(matches!(broken, Broken::Stopped));
    assert!(transactor.is_idle());
    assert!(wire.sent.len() <= 128);
    assert!(wire.now().since(Moment(0)) < Duration::from_secs(1));
}

/// A wire that breaks at its first receive.
struct Breaking(Scripted);

impl Wire for Breaking {
    fn now(&self) -> Moment {
        self.0.now()
    }

    fn anchor(&self) -> ib_mad::moment::Anchor {
        self.0.anchor()
    }

    fn send(&mut self, parcel: &Parcel) -> Result<(), crate::SendError> {
        self.0.send(parcel)
    }

    fn receive(&mut self, _: Moment) -> Result<Option<Received>, WireError> {
        Err(WireError { device: "mlx5_0 port 1".into(), problem: "the device is gone".into() })
    }
}

#[test]
fn after_a_broken_wire_a_new_one_is_used_as_if_nothing_had_been_in_flight() {
    let mut transactor = Transactor::new(Pace::default());
    let mut walk = Asking::new((2..30).map(|lid| counters(lid, 1)).collect());
    let broken = drive(&mut walk, &mut transactor, &mut Breaking(star()), &AtomicBool::new(false));
    assert!(matches!(broken, Err(Broken::Wire(_))));
    assert!(transactor.is_idle());
    let walk = ask(&mut star(), &mut transactor, (2..30).map(|lid| counters(lid, 1)).collect());
    assert!(walk.outcomes().iter().all(Result::is_ok));
}

fn any_fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        10 => (1u64..3_000_000).prop_map(|micros| Fate::Answered(Duration::from_micros(micros))),
        3 => Just(Fate::Lost),
        1 => Just(Fate::Expired),
        1 => Just(Fate::Foreign),
        1 => Just(Fate::Short),
        1 => Just(Fate::Refused),
        1 => Just(Fate::Full),
        1 => any::<u16>().prop_map(Fate::Status),
        1 => (0u16..60, 0u32..3).prop_map(|(lid, qp)| Fate::Redirected(Lid(lid), qp)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever the fabric does: every question ends, once, in bounded time, within the windows,
    /// and the transactor is clean afterwards.
    #[test]
    fn every_question_ends_once(
        fates in prop::collection::vec(any_fate(), 1..60),
        lids in prop::collection::vec(1u16..50, 1..150),
        smp_window in 1u16..6,
        gmp_window in 1u16..20,
        lid_window in 1u16..5,
        retries in 0u8..4,
    ) {
        let mut wire = star();
        let mut turn = 0;
        wire.fate = Box::new(move |_| {
            turn += 1;
            fates[turn % fates.len()].clone()
        });
        let pace = Pace { smp_window, gmp_window, gmp_lid_window: lid_window, retries, ..Pace::default() };
        let mut transactor = Transactor::new(pace);
        let questions: Vec<Request> = lids
            .iter()
            .map(|&lid| match lid % 3 {
                0 => Request { to: Address::Directed(Path::HERE), query: smp::node_info() },
                1 => Request { to: Address::Lid(Lid(lid)), query: smp::switch_info() },
                _ => counters(lid, 1),
            })
            .collect();
        let walk = ask(&mut wire, &mut transactor, questions);
        prop_assert_eq!(walk.outcomes().len(), lids.len());
        // Slow requests add one more window at most.
        prop_assert!(wire.most_in_flight[0] <= 2 * usize::from(smp_window));
        prop_assert!(wire.most_in_flight[1] <= 2 * usize::from(gmp_window));
    }
}
