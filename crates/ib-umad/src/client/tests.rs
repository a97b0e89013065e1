//! The client against a transport that behaves arbitrarily.

use std::collections::{HashMap, HashSet};
use std::net::Ipv6Addr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::plan::{QueryPlan, RunError, run};
use crate::testing::{ROUND_TRIP, Reply, ScriptedTransport, fabric};
use crate::transport::QP1_QKEY;
use crate::{GlobalRoute, LocalPort, MadTransport};
use ib_mad::clear::CounterSelect;
use ib_mad::counter::Attribute;
use ib_mad::node::NodeKind;
use ib_mad::p_key::PKey;
use ib_mad::{Counter, DirectedRoute, Lid, method, pma, smp};

const NODES: usize = 40;

/// A fixed list of requests; records the outcome of each and its time.
struct RequestList {
    requests: Vec<Request>,
    next: [Vec<usize>; 2],
    ended: Vec<Option<(Result<(), RequestError>, Moment)>>,
}

impl RequestList {
    fn new(requests: Vec<Request>) -> Self {
        let mut next = [Vec::new(), Vec::new()];
        for (index, request) in requests.iter().enumerate().rev() {
            next[request.queue_pair() as usize].push(index);
        }
        RequestList { ended: vec![None; requests.len()], requests, next }
    }

    fn outcomes(&self) -> Vec<Result<(), RequestError>> {
        self.ended.iter().map(|end| end.expect("every request ends").0).collect()
    }

    fn last_end(&self) -> Moment {
        self.ended.iter().flatten().map(|(_, at)| *at).max().unwrap_or_default()
    }
}

impl QueryPlan for RequestList {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        let index = self.next[qp as usize].pop()?;
        Some((self.requests[index], index as u64))
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment) {
        let end = self.ended[tag as usize].replace((outcome.map(|_| ()), at));
        assert!(end.is_none(), "request {tag} ended twice");
    }
}

/// A switch with hosts at its ports 1 to 39; the switch has LID 1, host n LID n + 1.
fn star() -> ScriptedTransport {
    let mut kinds = vec![(NodeKind::Switch, 40)];
    kinds.extend([(NodeKind::Ca, 1); NODES - 1]);
    let cables: Vec<_> = (1..NODES).map(|host| ((0, host as u8), (host, 1))).collect();
    ScriptedTransport::new(fabric(&kinds, &cables))
}

fn counters(lid: u16, port: u8) -> Request {
    Request { to: Address::Lid(Lid(lid)), query: pma::counters(Attribute::PortCounters, port) }
}

fn run_with(
    transport: &mut ScriptedTransport,
    client: &mut MadClient,
    requests: Vec<Request>,
) -> RequestList {
    let mut plan = RequestList::new(requests);
    run(&mut plan, client, transport, &AtomicBool::new(false)).unwrap();
    assert!(client.is_idle());
    plan
}

fn run_new(transport: &mut ScriptedTransport, requests: Vec<Request>) -> (RequestList, MadClient) {
    let mut client = MadClient::new(SendConfig::default());
    let plan = run_with(transport, &mut client, requests);
    (plan, client)
}

#[test]
fn windows_limit_total_and_per_lid() {
    let mut transport = star();
    let mut requests: Vec<Request> =
        (1..=NODES as u16).flat_map(|lid| (0..20).map(move |port| counters(lid, port))).collect();
    requests.extend(
        (2..40).map(|lid| Request { to: Address::Lid(Lid(lid)), query: smp::switch_info() }),
    );
    requests.extend(
        (0..8).map(|_| Request {
            to: Address::Directed(DirectedRoute::LOCAL),
            query: smp::node_info(),
        }),
    );
    let (plan, client) = run_new(&mut transport, requests);
    assert!(plan.outcomes().iter().all(Result::is_ok));
    assert_eq!(transport.max_in_flight, [8, 128]);
    assert_eq!(transport.max_to_one_lid, 4);
    assert_eq!(client.stats().count(Class::Performance, MadOutcome::Answered), 800);
    assert_eq!(client.stats().round_trips(Class::Performance).count(), 800);
    // 800 requests at 128 in flight: seven round trips, not 800.
    assert!(plan.last_end().since(Moment(0)) < 12 * ROUND_TRIP, "{:?}", plan.last_end());
}

#[test]
fn mads_per_second_are_limited_for_both_clients_with_retries() {
    for is_lossy in [false, true] {
        let mut transport = star();
        let mut number = 0;
        transport.reply = Box::new(move |_| {
            number += 1;
            let is_lost = is_lossy && number % 3 == 0;
            if is_lost { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
        });
        let max_mads_per_second = NonZeroU32::new(1_000);
        let config = SendConfig { max_mads_per_second, ..SendConfig::default() };
        let mut first = MadClient::new(config);
        let mut second = first.beside(config);
        let mut round = 0;
        while transport.sent.len() < 2_000 {
            let client = if round % 2 == 0 { &mut first } else { &mut second };
            round += 1;
            let requests = (0..100).map(|nth| counters(nth % 40 + 1, 1)).collect();
            let plan = run_with(&mut transport, client, requests);
            assert!(is_lossy || plan.outcomes().iter().all(Result::is_ok));
        }
        let (sent, took) = (transport.sent.len(), transport.now().since(Moment(0)));
        let allowed = took.as_secs_f64() * 1_000.0 + 20.0 + 1.0;
        assert!(sent as f64 <= allowed, "{sent} {took:?}");
        // Without losses it is the limit that determines the time.
        assert!(is_lossy || sent as f64 >= allowed - 50.0, "{sent} {took:?}");
    }
}

#[test]
fn limited_client_sleeps_until_it_may_send() {
    let config = SendConfig { max_mads_per_second: NonZeroU32::new(10), ..SendConfig::default() };
    let mut client = MadClient::new(config);
    (0..3).for_each(|tag| client.submit(counters(2, tag as u8), tag));
    assert!(client.poll_transmit(Moment(0)).is_some());
    assert!(client.poll_transmit(Moment(0)).is_none());
    let until = client.poll_timeout(Moment(0));
    // Before it is checked whether the first one is slow.
    assert_eq!(until, Moment(0) + Duration::from_millis(50));
    client.handle_timeout(until);
    let until = client.poll_timeout(until);
    assert_eq!(until, Moment(0) + Duration::from_millis(80));
    assert!(client.poll_transmit(until).is_some());
    // Busy destinations do not end the wait.
    let full = client.poll_timeout(until);
    assert!(full > until);
}

#[test]
fn lost_requests_are_retried() {
    let mut transport = star();
    let mut tries: HashMap<Lid, u32> = HashMap::new();
    transport.reply = Box::new(move |outgoing| {
        let tries = tries.entry(outgoing.lid).or_default();
        *tries += 1;
        if *tries <= 2 { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
    });
    let (plan, client) = run_new(&mut transport, vec![counters(2, 1), counters(3, 1)]);
    assert_eq!(plan.outcomes(), [Ok(()), Ok(())]);
    assert_eq!(client.stats().count(Class::Performance, MadOutcome::TimedOut), 4);
    let waited = plan.last_end().since(Moment(0));
    assert!(
        (Duration::from_millis(1200)..Duration::from_millis(1300)).contains(&waited),
        "{waited:?}"
    );
}

#[test]
fn silent_node_fails_all_its_queued_requests() {
    let mut transport = star();
    transport.reply =
        Box::new(
            |outgoing| {
                if outgoing.lid == Lid(5) { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
            },
        );
    let mut requests: Vec<Request> = (0..40).map(|port| counters(5, port)).collect();
    requests.extend((0..40).map(|port| counters(6, port)));
    let mut client = MadClient::new(SendConfig::default());
    let plan = run_with(&mut transport, &mut client, requests.clone());
    let outcomes = plan.outcomes();
    assert!(outcomes[..40].iter().all(|end| end.unwrap_err().is_no_response()));
    assert!(outcomes[40..].iter().all(Result::is_ok), "another node's");
    let first = transport.sent.iter().filter(|outgoing| outgoing.lid == Lid(5)).count();
    assert!(first <= 12, "{first} MADs to a silent node");

    // The next run probes it twice, without a retry.
    let plan = run_with(&mut transport, &mut client, requests.clone());
    assert!(plan.outcomes()[..40].iter().all(Result::is_err));
    assert_eq!(transport.sent.iter().filter(|outgoing| outgoing.lid == Lid(5)).count(), first + 2);

    // When it is back, all requests succeed.
    transport.reply = Box::new(|_| Reply::Answered(ROUND_TRIP));
    assert!(run_with(&mut transport, &mut client, requests).outcomes().iter().all(Result::is_ok));
}

#[test]
fn what_is_always_sent_reaches_a_node_that_drops_all_else() {
    let mut transport = star();
    let is_node_info = |outgoing: &OutgoingMad| outgoing.mad.attribute() == smp::NodeInfo::ID;
    transport.reply =
        Box::new(
            move |outgoing| {
                if is_node_info(outgoing) { Reply::Answered(ROUND_TRIP) } else { Reply::Lost }
            },
        );
    let request = |query| Request { to: Address::Lid(Lid(5)), query };
    let mut requests = vec![request(smp::switch_info()); 6];
    requests.insert(4, request(smp::node_info().always_sent()));
    // At the end of a run, to a node that was given up; and while others are sent.
    requests.push(request(smp::node_info().always_sent()));
    let (plan, _) = run_new(&mut transport, requests);
    let responded: Vec<usize> =
        plan.outcomes().iter().enumerate().filter(|(_, end)| end.is_ok()).map(|(n, _)| n).collect();
    assert_eq!(responded, [4, 7]);
}

#[test]
fn what_is_always_sent_and_dropped_does_not_cost_the_others() {
    let mut transport = star();
    let is_node_info = |outgoing: &OutgoingMad| outgoing.mad.attribute() == smp::NodeInfo::ID;
    transport.reply =
        Box::new(
            move |outgoing| {
                if is_node_info(outgoing) { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
            },
        );
    let request = |query| Request { to: Address::Lid(Lid(5)), query };
    let mut client = MadClient::new(SendConfig { smp_lid_window: 1, ..SendConfig::default() });
    // Three rounds without a response before the last request.
    let mut requests = vec![request(smp::node_info().always_sent()); 3];
    requests.push(request(smp::switch_info()));
    let outcomes = run_with(&mut transport, &mut client, requests).outcomes();
    assert!(outcomes[..3].iter().all(|end| *end == Err(RequestError::TimedOut)));
    assert_eq!(outcomes[3], Ok(()));
}

#[test]
fn only_what_was_not_sent_is_unresponsive() {
    let mut transport = star();
    transport.reply = Box::new(|_| Reply::Lost);
    let (plan, _) = run_new(&mut transport, (1..=20).map(|port| counters(5, port)).collect());
    let sent: HashSet<u8> = transport.sent.iter().map(|it| it.mad.port_select()).collect();
    for (port, outcome) in (1..).zip(plan.outcomes()) {
        let error =
            if sent.contains(&port) { RequestError::TimedOut } else { RequestError::Unresponsive };
        assert_eq!(outcome, Err(error), "port {port}");
    }
    assert_eq!(sent.len(), 7);
}

#[test]
fn silent_nodes_time_out_in_parallel() {
    let mut transport = star();
    transport.reply = Box::new(|outgoing| match outgoing.lid.0 {
        10..=37 => Reply::Lost,
        _ => Reply::Answered(ROUND_TRIP),
    });
    let requests: Vec<Request> =
        (1..=NODES as u16).flat_map(|lid| [counters(lid, 1), counters(lid, 2)]).collect();
    let mut client = MadClient::new(SendConfig { gmp_window: 24, ..SendConfig::default() });
    let plan = run_with(&mut transport, &mut client, requests);
    assert_eq!(plan.outcomes().iter().filter(|end| end.is_ok()).count(), 2 * (NODES - 28));
    // 56 requests of 3 tries of 600 ms take 5.4 s if 24 are in flight, and 3 s if 48 are.
    let waited = plan.last_end().since(Moment(0));
    assert!(waited < Duration::from_millis(3100), "{waited:?}");
}

#[test]
fn slow_requests_add_at_most_one_window() {
    let mut transport = star();
    transport.reply = Box::new(|outgoing| match outgoing.lid {
        Lid(1) => Reply::Answered(ROUND_TRIP),
        _ => Reply::Lost,
    });
    // 100 dead hosts, by directed route and by LID, on both queue pairs.
    let route = |port| DirectedRoute::LOCAL.then(port).unwrap();
    let requests = (2..102).flat_map(|host: u16| {
        let to = [Address::Directed(route(host as u8)), Address::Lid(Lid(host))];
        let smps = to.map(|to| Request { to, query: smp::node_info() });
        smps.into_iter().chain((0..4).map(move |port| counters(host, port)))
    });
    let (plan, _) = run_new(&mut transport, requests.collect());
    assert!(plan.outcomes().iter().all(Result::is_err));
    assert_eq!(transport.max_in_flight, [16, 256], "8 + 8 SMPs, 128 + 128 GMPs");
}

#[test]
fn slow_destination_is_given_up_after_its_time() {
    let mut transport = star();
    let slow = Duration::from_millis(450);
    transport.reply = Box::new(move |outgoing| {
        Reply::Answered(if outgoing.lid == Lid(1) { slow } else { ROUND_TRIP })
    });
    let mut client = MadClient::new(SendConfig::default());
    client.time_limit = Some(Duration::from_secs(5));
    // A switch with 64 ports and counters of FEC.
    let requests = || {
        let port_info = |port| Request { to: Address::Lid(Lid(1)), query: smp::port_info(port) };
        let gmps = (0..128).map(|port| counters(1, port));
        let others = (2..40).map(|lid| counters(lid, 1));
        gmps.chain((0..67).map(port_info)).chain(others).collect::<Vec<Request>>()
    };
    let run = |client: &mut MadClient, transport: &mut ScriptedTransport| {
        transport.max_to_one_lid = 0;
        let began = transport.now();
        let plan = run_with(transport, client, requests());
        (plan.outcomes(), plan.last_end().since(began), transport.max_to_one_lid)
    };
    let (outcomes, took, window) = run(&mut client, &mut transport);
    assert!(took < Duration::from_secs(6), "{took:?}");
    let of = |range: std::ops::Range<usize>, outcome| {
        outcomes[range].iter().filter(|it| **it == outcome).count()
    };
    assert_eq!((of(0..128, Ok(())), of(0..128, Err(RequestError::Slow))), (48, 80));
    assert_eq!((of(128..195, Ok(())), of(128..195, Err(RequestError::Slow))), (24, 43));
    assert!(outcomes[195..].iter().all(Result::is_ok), "others are not affected");
    assert_eq!(window, 4);
    // One request at a time, until it is not slow any more.
    let (_, took, window) = run(&mut client, &mut transport);
    assert!(took < Duration::from_secs(6) && window == 1, "{took:?} {window}");
    transport.reply = Box::new(|_| Reply::Answered(ROUND_TRIP));
    for expected in [1, 4] {
        let (outcomes, _, window) = run(&mut client, &mut transport);
        assert!(outcomes.iter().all(Result::is_ok));
        assert_eq!(window, expected);
    }
}

#[test]
fn one_unanswered_attribute_is_not_silence() {
    for lid_window in [1, 4] {
        let mut transport = star();
        transport.reply = Box::new(|outgoing| match outgoing.mad.attribute() {
            0x12 => Reply::Expired,
            _ => Reply::Answered(ROUND_TRIP),
        });
        let extended = |port| Request {
            to: Address::Lid(Lid(2)),
            query: pma::counters(Attribute::PortCountersExtended, port),
        };
        let requests = (0..20).flat_map(|port| [counters(2, port), extended(port)]).collect();
        let mut client =
            MadClient::new(SendConfig { gmp_lid_window: lid_window, ..SendConfig::default() });
        let outcomes = run_with(&mut transport, &mut client, requests).outcomes();
        for pair in outcomes.chunks(2) {
            assert!(pair[0].unwrap_err().is_no_response() && pair[1].is_ok(), "{pair:?}");
        }
    }
}

#[test]
fn optional_attributes_are_tried_once() {
    let mut transport = star();
    transport.reply = Box::new(|outgoing| match outgoing.mad.attribute() {
        0x10 | 0x33 | 0xff90 => Reply::Lost,
        _ => Reply::Answered(ROUND_TRIP),
    });
    let request = |lid, query| Request { to: Address::Lid(Lid(lid)), query };
    let in_passing = (1..9).flat_map(|port| {
        [
            request(1, pma::samples_control(port)),
            request(1, smp::port_info_extended(port)),
            request(1, smp::mellanox_extended_port_info(port)),
        ]
    });
    let (plan, mut client) = run_new(&mut transport, in_passing.collect());
    assert!(plan.outcomes().iter().all(|outcome| *outcome == Err(RequestError::TimedOut)));
    assert_eq!(transport.sent.len(), 24, "one try each");
    // In the next run the node is not probed: a lost request is retried.
    let mut first = true;
    transport.reply = Box::new(move |_| {
        if std::mem::take(&mut first) { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
    });
    let plan = run_with(&mut transport, &mut client, vec![counters(1, 1), counters(1, 2)]);
    assert_eq!(plan.outcomes(), [Ok(()), Ok(())]);
}

#[test]
fn burst_of_losses_is_one_timeout_round() {
    let mut transport = star();
    let mut sent = 0;
    transport.reply = Box::new(move |_| {
        sent += 1;
        if sent <= 4 { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
    });
    let (plan, client) = run_new(&mut transport, (0..40).map(|port| counters(1, port)).collect());
    assert!(plan.outcomes().iter().all(Result::is_ok));
    assert_eq!(client.stats().count(Class::Performance, MadOutcome::TimedOut), 4);
}

#[test]
fn busy_node_does_not_delay_others() {
    let mut transport = star();
    let route = DirectedRoute::LOCAL.then(1).unwrap();
    transport.reply = Box::new(move |outgoing| {
        let routed = outgoing.lid == Lid::PERMISSIVE && outgoing.mad.u8(7) == 1;
        let busy = outgoing.lid == Lid(1) || routed;
        if busy { Reply::Status(status::BUSY) } else { Reply::Answered(ROUND_TRIP) }
    });
    let by_route = |port| Request { to: Address::Directed(route), query: smp::port_info(port) };
    let mut requests: Vec<Request> = (0..64).map(|port| counters(1, port)).collect();
    requests.extend((0..64).map(by_route));
    requests.extend((2..40).map(|lid| counters(lid, 1)));
    requests.push(Request { to: Address::Directed(DirectedRoute::LOCAL), query: smp::node_info() });
    let (plan, _) = run_new(&mut transport, requests);
    let outcomes = plan.outcomes();
    assert!(outcomes[..128].iter().all(|end| *end == Err(RequestError::Busy)));
    assert!(outcomes[128..].iter().all(Result::is_ok));
    assert!(plan.last_end().since(Moment(0)) < Duration::from_secs(4), "{:?}", plan.last_end());
    // The others were not delayed.
    let others = plan.ended[128..].iter().flatten().map(|(_, at)| *at).max();
    assert!(others < Some(Moment(20_000_000)), "{others:?}");
}

#[test]
fn full_device_fails_requests_after_limit() {
    let mut transport = star();
    transport.reply = Box::new(|_| Reply::Full);
    let (plan, _) =
        run_new(&mut transport, (0..200).map(|lid| counters(2 + lid % 30, 1)).collect());
    assert!(plan.outcomes().iter().all(|end| *end == Err(RequestError::Unsent)));
    assert!(plan.last_end().since(Moment(0)) < Duration::from_secs(3), "{:?}", plan.last_end());
}

#[test]
fn busy_response_is_retried_with_back_off() {
    let mut transport = star();
    let mut busy = 2;
    transport.reply = Box::new(move |_| {
        busy -= 1;
        if busy >= 0 { Reply::Status(status::BUSY) } else { Reply::Answered(ROUND_TRIP) }
    });
    let (plan, client) = run_new(&mut transport, vec![counters(2, 1)]);
    assert_eq!(plan.outcomes(), [Ok(())]);
    assert_eq!(client.stats().count(Class::Performance, MadOutcome::Busy), 2);
    let waited = plan.last_end().since(Moment(0));
    assert!(waited >= Duration::from_millis(60), "20 and 40 ms of back-off: {waited:?}");

    let mut transport = star();
    transport.reply = Box::new(|_| Reply::Status(status::BUSY));
    assert_eq!(
        run_new(&mut transport, vec![counters(2, 1)]).0.outcomes(),
        [Err(RequestError::Busy)]
    );
}

#[test]
fn redirects_are_followed_and_cached() {
    let mut transport = star();
    transport.reply = Box::new(|outgoing| match outgoing.lid {
        Lid(2) => Reply::Redirected(Lid(3), 7),
        _ => Reply::Answered(ROUND_TRIP),
    });
    let mut client = MadClient::new(SendConfig::default());
    assert_eq!(run_with(&mut transport, &mut client, vec![counters(2, 1)]).outcomes(), [Ok(())]);
    assert_eq!(run_with(&mut transport, &mut client, vec![counters(2, 2)]).outcomes(), [Ok(())]);
    let sent_to: Vec<(u16, u32)> =
        transport.sent.iter().map(|outgoing| (outgoing.lid.0, outgoing.qp)).collect();
    assert_eq!(sent_to, [(2, 1), (3, 7), (3, 7)]);
    assert_eq!(client.stats().count(Class::Performance, MadOutcome::Redirected), 1);

    // Until LIDs may have changed.
    client.clear_redirects();
    transport.sent.clear();
    assert_eq!(run_with(&mut transport, &mut client, vec![counters(2, 3)]).outcomes(), [Ok(())]);
    assert_eq!(transport.sent[0].lid, Lid(2));

    // The redirect target does not respond now: the node itself is tried again.
    transport.reply =
        Box::new(
            |outgoing| {
                if outgoing.lid == Lid(3) { Reply::Lost } else { Reply::Answered(ROUND_TRIP) }
            },
        );
    assert_eq!(run_with(&mut transport, &mut client, vec![counters(2, 1)]).outcomes(), [Ok(())]);

    // Redirect loops end.
    let mut transport = star();
    transport.reply = Box::new(|outgoing| {
        Reply::Redirected(if outgoing.lid == Lid(2) { Lid(3) } else { Lid(2) }, 1)
    });
    let (plan, _) = run_new(&mut transport, vec![counters(2, 1)]);
    assert!(matches!(plan.outcomes()[..], [Err(RequestError::Status(2))]));
}

#[test]
fn redirect_uses_its_p_key_or_fails() {
    for (bits, named) in [(0x8001, PKey::new(0x8001)), (0, None)] {
        let mut transport = star();
        transport.redirect_p_key = bits;
        transport.reply = Box::new(|outgoing| match outgoing.lid {
            Lid(2) => Reply::Redirected(Lid(3), 7),
            _ => Reply::Answered(ROUND_TRIP),
        });
        let mut client = MadClient::new(SendConfig::default());
        assert_eq!(
            run_with(&mut transport, &mut client, vec![counters(2, 1)]).outcomes(),
            [Ok(())]
        );
        let asked_in: Vec<_> = transport.sent.iter().map(|outgoing| outgoing.p_key).collect();
        assert_eq!(asked_in, [None, named], "{bits:#x}");
    }
    // The transport refuses unknown P_Keys.
    let mut transport = star();
    transport.redirect_p_key = 0x8009;
    transport.reply = Box::new(|outgoing| match (outgoing.lid, outgoing.p_key) {
        (Lid(2), _) => Reply::Redirected(Lid(3), 7),
        (_, Some(_)) => Reply::Refused,
        _ => Reply::Answered(ROUND_TRIP),
    });
    let mut client = MadClient::new(SendConfig::default());
    let outcomes =
        run_with(&mut transport, &mut client, vec![counters(2, 1), counters(3, 1)]).outcomes();
    assert_eq!(outcomes, [Err(RequestError::Unsent), Ok(())]);
    assert_eq!(client.stats().count(Class::Performance, MadOutcome::Unsent), 1);
}

#[test]
fn redirect_names_its_own_service_level() {
    let mut transport = star();
    transport.reply = Box::new(|outgoing| match outgoing.lid {
        Lid(2) => Reply::Redirected(Lid(3), 7),
        _ => Reply::Answered(ROUND_TRIP),
    });
    let mut client = MadClient::new(SendConfig { sl: 5, ..SendConfig::default() });
    run_with(&mut transport, &mut client, vec![counters(2, 1)]);
    let levels: Vec<u8> = transport.sent.iter().map(|outgoing| outgoing.sl).collect();
    assert_eq!(levels, [5, 0]);
}

#[test]
fn redirect_with_another_q_key_is_not_followed() {
    for (q_key, sent, outcome) in [
        (0x1234, vec![2], Err(RequestError::Status(status::REDIRECT))),
        (QP1_QKEY, vec![2, 3], Ok(())),
        (0, vec![2, 3], Ok(())),
    ] {
        let mut transport = star();
        transport.redirect_q_key = q_key;
        transport.reply = Box::new(|outgoing| match outgoing.lid {
            Lid(2) => Reply::Redirected(Lid(3), 7),
            // The queue pair drops what has another Q_Key than its own.
            _ if outgoing.qkey != QP1_QKEY => Reply::Lost,
            _ => Reply::Answered(ROUND_TRIP),
        });
        let (plan, _) = run_new(&mut transport, vec![counters(2, 1)]);
        assert_eq!(plan.outcomes(), [outcome], "{q_key:#x}");
        let sent_to: Vec<u16> = transport.sent.iter().map(|outgoing| outgoing.lid.0).collect();
        assert_eq!(sent_to, sent, "{q_key:#x}");
    }
}

fn clear(lid: u16) -> Request {
    let select = CounterSelect::new([Counter::SymbolErrors]);
    Request { to: Address::Lid(Lid(lid)), query: pma::clear_counters(1, select) }
}

#[test]
fn set_follows_no_redirect() {
    let mut transport = star();
    transport.reply = Box::new(|outgoing| match outgoing.lid {
        Lid(2) => Reply::Redirected(Lid(3), 7),
        _ => Reply::Answered(ROUND_TRIP),
    });
    let mut client = MadClient::new(SendConfig::default());
    // Neither one that answers it, nor one that is known.
    for read_before in [false, true] {
        if read_before {
            run_with(&mut transport, &mut client, vec![counters(2, 1)]);
        }
        let plan = run_with(&mut transport, &mut client, vec![clear(2)]);
        assert_eq!(plan.outcomes(), [Err(RequestError::Status(status::REDIRECT))]);
    }
    let is_set = |outgoing: &&OutgoingMad| outgoing.mad.method() == method::SET;
    let sets: Vec<u16> = transport.sent.iter().filter(is_set).map(|it| it.lid.0).collect();
    assert_eq!(sets, [2, 2]);
}

#[test]
fn set_is_sent_once() {
    let mut transport = star();
    transport.reply = Box::new(|_| Reply::Lost);
    let (plan, _) = run_new(&mut transport, vec![clear(2)]);
    assert_eq!(plan.outcomes(), [Err(RequestError::TimedOut)]);
    assert_eq!(transport.sent.len(), 1);
}

#[test]
fn each_gid_has_its_own_window_and_no_lid_redirect() {
    let global = |gid: u16| {
        let gid = Ipv6Addr::new(0xfec0, 0, 0, 1, 0, 0, 0, gid);
        let (lid, gid_index, hop_limit) = (Lid(2), 0, 64);
        let route = GlobalRoute { lid, gid, gid_index, hop_limit, traffic_class: 0, flow_label: 0 };
        Request { to: Address::Global(route), ..counters(0, 1) }
    };
    let mut transport = star();
    let (plan, _) = run_new(&mut transport, (0..40).map(|n| global(n % 3)).collect());
    assert!(plan.outcomes().iter().all(Result::is_ok));
    let window = usize::from(SendConfig::default().gmp_lid_window);
    assert_eq!(transport.max_to_one_lid, 3 * window);
    assert!(transport.sent.iter().all(|outgoing| outgoing.route.is_some() && outgoing.qp == 1));

    // A redirect LID of another subnet is not valid here.
    transport.reply = Box::new(|_| Reply::Redirected(Lid(3), 7));
    let (plan, _) = run_new(&mut transport, vec![global(1)]);
    assert!(matches!(plan.outcomes()[..], [Err(RequestError::Status(2))]));
}

#[test]
fn stray_and_malformed_responses_are_counted() {
    let mut transport = star();
    let mut number = 0;
    transport.reply = Box::new(move |_| {
        number += 1;
        match number {
            1 => Reply::Foreign,
            2 => Reply::Short,
            _ => Reply::Answered(ROUND_TRIP),
        }
    });
    let (plan, client) = run_new(&mut transport, vec![counters(2, 1)]);
    assert_eq!(plan.outcomes(), [Ok(())]);
    let count = |outcome| client.stats().count(Class::Performance, outcome);
    assert_eq!(
        (count(MadOutcome::Stray), count(MadOutcome::Malformed), count(MadOutcome::TimedOut)),
        (1, 0, 2)
    );
    assert_eq!(client.stats().count(None, MadOutcome::Malformed), 1);
}

#[test]
fn response_of_another_lid_is_stray() {
    let (asked, near, far) = (counters(0x20, 1), Lid(0x23), Lid(2));
    for (lmc, from, strays) in [
        (Some(0), far, 1),
        (Some(0), near, 1),
        (Some(2), near, 0),
        (Some(1), near, 1),
        (None, near, 0),
        (None, Lid(0x80), 1),
    ] {
        let mut transport = star();
        transport.reply = Box::new(move |_| Reply::Forged(from));
        let mut client = MadClient::new(SendConfig::default());
        if let Some(lmc) = lmc {
            client.set_lmc(lmc);
        }
        let plan = run_with(&mut transport, &mut client, vec![asked]);
        assert_eq!(plan.outcomes(), [Ok(())]);
        let count = |outcome| client.stats().count(Class::Performance, outcome);
        // The one that is right later is the other one's stray.
        let arrived = if strays == 0 { Moment(0) } else { Moment(0) + ROUND_TRIP };
        assert_eq!(plan.last_end(), arrived, "{lmc:?} {from}");
        assert_eq!((count(MadOutcome::Stray), count(MadOutcome::TimedOut)), (strays, 0));
    }
    // By a directed route whatever LID the response has.
    let mut transport = star();
    transport.reply = Box::new(|_| Reply::Forged(Lid(7)));
    let local = Request { to: Address::Directed(DirectedRoute::LOCAL), query: smp::node_info() };
    let (plan, _) = run_new(&mut transport, vec![local]);
    assert_eq!((plan.outcomes(), plan.last_end()), (vec![Ok(())], Moment(0)));
}

#[test]
fn redirected_request_is_answered_by_the_redirect_only() {
    let mut transport = star();
    transport.reply = Box::new(|outgoing| match outgoing.lid {
        Lid(2) => Reply::Redirected(Lid(3), 7),
        _ => Reply::Forged(Lid(2)),
    });
    let mut client = MadClient::new(SendConfig::default());
    client.set_lmc(0);
    let plan = run_with(&mut transport, &mut client, vec![counters(2, 1)]);
    assert_eq!(plan.outcomes(), [Ok(())]);
    let count = |outcome| client.stats().count(Class::Performance, outcome);
    assert_eq!((count(MadOutcome::Stray), count(MadOutcome::Answered)), (1, 1));
}

#[test]
fn counters_of_another_port_are_stray() {
    for (port, strays, outcome) in [
        (9, 3, Err(RequestError::TimedOut)),
        (1, 0, Ok(())),
        // mlx5 names no port.
        (0, 0, Ok(())),
    ] {
        let mut transport = star();
        transport.garble = Box::new(move |data| data[1] = port);
        let (plan, client) = run_new(&mut transport, vec![counters(2, 1)]);
        assert_eq!(plan.outcomes(), [outcome], "{port}");
        assert_eq!(client.stats().count(Class::Performance, MadOutcome::Stray), strays);
    }
}

#[test]
fn late_response_is_stray_not_second_outcome() {
    let mut transport = star();
    let mut first = true;
    transport.reply = Box::new(move |_| {
        let late = std::mem::take(&mut first);
        Reply::Answered(if late { Duration::from_millis(900) } else { Duration::from_millis(450) })
    });
    let (plan, client) = run_new(&mut transport, vec![counters(2, 1)]);
    assert_eq!(plan.outcomes(), [Ok(())]);
    assert_eq!(client.stats().count(Class::Performance, MadOutcome::Stray), 1);
}

#[test]
fn late_kernel_timeout_is_ignored() {
    let mut client = MadClient::new(SendConfig { retries: 0, ..SendConfig::default() });
    client.submit(counters(2, 1), 0);
    let outgoing = client.poll_transmit(Moment(0)).unwrap();
    let late = Moment(0) + Duration::from_millis(700);
    client.handle_timeout(late);
    let transaction_id = outgoing.mad.transaction_id();
    client.handle_response(
        Received::Expired { class: Class::Performance as u8, transaction_id },
        late,
    );
    let count = |outcome| client.stats().count(Class::Performance, outcome);
    assert_eq!((count(MadOutcome::TimedOut), count(MadOutcome::Stray)), (1, 0));
}

#[test]
fn kernel_timeout_of_another_class_is_ignored() {
    for (class, timed_out) in [(Class::Vendor, 0), (Class::SubnetLid, 0), (Class::Performance, 1)] {
        let mut client = MadClient::new(SendConfig { retries: 0, ..SendConfig::default() });
        client.submit(counters(2, 1), 0);
        let transaction_id = client.poll_transmit(Moment(0)).unwrap().mad.transaction_id();
        let expired = Received::Expired { class: class as u8, transaction_id };
        client.handle_response(expired, Moment(1));
        let count = client.stats().count(Class::Performance, MadOutcome::TimedOut);
        assert_eq!((count, client.is_idle()), (timed_out, false), "{class:?}");
    }
}

#[test]
fn kernel_timeouts_of_the_other_client_are_ignored() {
    let config = SendConfig { retries: 0, ..SendConfig::default() };
    let mut first = MadClient::new(config);
    let mut second = first.beside(config);
    let mut foreign = 0;
    for at in 0..100_000 {
        let send = |client: &mut MadClient| {
            client.begin_run();
            client.submit(counters(2, 1), 0);
            client.poll_transmit(Moment(at)).unwrap().mad.transaction_id()
        };
        let class = Class::Performance as u8;
        let (ours, theirs) = (send(&mut first), send(&mut second));
        for transaction_id in [theirs, ours] {
            foreign += u64::from(first.poll_finished().is_some());
            first.handle_response(Received::Expired { class, transaction_id }, Moment(at));
        }
        assert!(first.poll_finished().is_some());
        second.handle_response(Received::Expired { class, transaction_id: theirs }, Moment(at));
        assert!(second.poll_finished().is_some());
    }
    assert_eq!(foreign, 0);
    // Also after the transport was lost.
    second.reset();
    second.submit(counters(2, 1), 0);
    assert!(second.poll_transmit(Moment(0)).unwrap().mad.transaction_id() >> 31 == 1);
}

#[test]
fn refused_send_fails_only_that_request() {
    let mut transport = star();
    transport.reply =
        Box::new(
            |outgoing| {
                if outgoing.lid == Lid(2) { Reply::Refused } else { Reply::Answered(ROUND_TRIP) }
            },
        );
    let (plan, _) = run_new(&mut transport, vec![counters(2, 1), counters(3, 1)]);
    assert_eq!(plan.outcomes(), [Err(RequestError::Unsent), Ok(())]);
}

#[test]
fn full_device_is_retried() {
    let mut transport = star();
    let mut full = 5;
    transport.reply = Box::new(move |_| {
        full -= 1;
        if full >= 0 { Reply::Full } else { Reply::Answered(ROUND_TRIP) }
    });
    let (plan, client) = run_new(&mut transport, vec![counters(2, 1), counters(3, 1)]);
    assert_eq!(plan.outcomes(), [Ok(()), Ok(())]);
    assert_eq!(client.stats().count(Class::Performance, MadOutcome::TimedOut), 0);
}

/// Stops after its first request.
struct StoppingPlan<'a>(RequestList, &'a AtomicBool);

impl QueryPlan for StoppingPlan<'_> {
    fn next_request(&mut self, qp: QueuePair) -> Option<(Request, u64)> {
        self.1.store(true, Ordering::Relaxed);
        self.0.next_request(qp)
    }

    fn handle_outcome(&mut self, tag: u64, outcome: Result<&Mad, RequestError>, at: Moment) {
        self.0.handle_outcome(tag, outcome, at);
    }
}

#[test]
fn stop_waits_for_in_flight_and_sends_nothing() {
    let mut transport = star();
    transport.reply = Box::new(|_| Reply::Lost);
    let stop = AtomicBool::new(false);
    let mut plan = StoppingPlan(
        RequestList::new((0..200).map(|port| counters(2 + port % 30, 1)).collect()),
        &stop,
    );
    let mut client = MadClient::new(SendConfig::default());
    let error = run(&mut plan, &mut client, &mut transport, &stop).unwrap_err();
    assert!(matches!(error, RunError::Stopped));
    assert!(client.is_idle());
    assert!(transport.sent.len() <= 128);
    assert!(transport.now().since(Moment(0)) < Duration::from_secs(1));
}

#[test]
fn requests_after_a_stopped_run_are_retried() {
    for reset in [false, true] {
        let mut transport = star();
        transport.reply = Box::new(|_| Reply::Lost);
        let mut client = MadClient::new(SendConfig::default());
        client.cancel_queued();
        if reset {
            client.reset();
        }
        run_with(&mut transport, &mut client, vec![counters(2, 1)]);
        assert_eq!(transport.sent.len(), 3, "{reset}");
    }
}

/// A transport that counts how often the time is read.
struct CountingTransport(ScriptedTransport, std::cell::Cell<usize>);

impl MadTransport for CountingTransport {
    fn now(&self) -> Moment {
        self.1.set(self.1.get() + 1);
        self.0.now()
    }

    fn anchor(&self) -> ib_mad::moment::Anchor {
        self.0.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.0.local_port()
    }

    fn refresh(&mut self) {
        self.0.refresh();
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        self.0.send(outgoing)
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        self.0.receive(until)
    }
}

#[test]
fn each_mad_reads_the_time_twice_and_hashes_once() {
    let requests: Vec<Request> =
        (0..20).flat_map(|port| (2..30).map(move |lid| counters(lid, port))).collect();
    let mads = requests.len();
    let mut transport = CountingTransport(star(), std::cell::Cell::new(0));
    let mut client = MadClient::new(SendConfig::default());
    let mut plan = RequestList::new(requests);
    let hashed = destinations::tests::HASHED.get();
    run(&mut plan, &mut client, &mut transport, &AtomicBool::new(false)).unwrap();
    assert!(plan.outcomes().iter().all(Result::is_ok));
    // When it was sent, and when the response arrived; at the begin once more.
    assert_eq!(transport.1.get(), 2 * mads + 1);
    // The table of destinations grows in the first run, and hashes all of its names again.
    let growth = 2 * 28 + 8;
    let count = destinations::tests::HASHED.get() - hashed;
    assert!((mads..=mads + growth).contains(&count), "{count} of {mads}");
}

#[test]
fn queues_of_destinations_are_used_again() {
    let (now, mut client) = (Moment(0), MadClient::new(SendConfig::default()));
    let mut places = HashSet::new();
    for tag in 0..1_000_u64 {
        let request = counters(2 + tag as u16, 1);
        let key = client.destinations.key(QueuePair::Qp1, request.to);
        client.submit(request, tag);
        places.insert(client.destination(key).queue.front().map(std::ptr::from_ref));
        let sent = client.poll_transmit(now).unwrap();
        assert_eq!(client.destination(key).queue.capacity(), 0, "10,000 LIDs keep none");
        client.handle_response(Received::Mad { from: sent.lid, mad: sent.mad.response() }, now);
        assert!(client.poll_finished().is_some());
    }
    assert_eq!((places.len(), client.spare.len()), (1, 1));
}

/// A transport that fails at its first receive.
struct FailingTransport(ScriptedTransport);

impl MadTransport for FailingTransport {
    fn now(&self) -> Moment {
        self.0.now()
    }

    fn anchor(&self) -> ib_mad::moment::Anchor {
        self.0.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.0.local_port()
    }

    fn refresh(&mut self) {
        self.0.refresh();
    }

    fn send(&mut self, outgoing: &OutgoingMad) -> Result<(), SendError> {
        self.0.send(outgoing)
    }

    fn receive(&mut self, _: Moment) -> Result<Option<Received>, TransportError> {
        Err(TransportError {
            device: "mlx5_0 port 1".into(),
            problem: "the device was removed".into(),
        })
    }
}

#[test]
fn client_is_reusable_after_transport_failure() {
    let mut client = MadClient::new(SendConfig::default());
    let mut plan = RequestList::new((2..30).map(|lid| counters(lid, 1)).collect());
    let error = run(&mut plan, &mut client, &mut FailingTransport(star()), &AtomicBool::new(false));
    assert!(matches!(error, Err(RunError::Transport(_))));
    assert!(client.is_idle());
    let plan = run_with(&mut star(), &mut client, (2..30).map(|lid| counters(lid, 1)).collect());
    assert!(plan.outcomes().iter().all(Result::is_ok));
}

fn any_reply() -> impl Strategy<Value = Reply> {
    prop_oneof![
        10 => (1u64..3_000_000).prop_map(|micros| Reply::Answered(Duration::from_micros(micros))),
        3 => Just(Reply::Lost),
        1 => Just(Reply::Expired),
        1 => Just(Reply::Foreign),
        1 => Just(Reply::Short),
        1 => Just(Reply::Refused),
        1 => Just(Reply::Full),
        1 => any::<u16>().prop_map(Reply::Status),
        1 => (0u16..60, 0u32..3).prop_map(|(lid, qp)| Reply::Redirected(Lid(lid), qp)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever the fabric does, every request ends once, in bounded time, within the windows, and the
    /// client is clean afterwards.
    #[test]
    fn every_request_ends_exactly_once(
        replies in prop::collection::vec(any_reply(), 1..60),
        lids in prop::collection::vec(1u16..50, 1..150),
        smp_window in 1u16..6,
        gmp_window in 1u16..20,
        lid_window in 1u16..5,
        retries in 0u8..4,
    ) {
        let mut transport = star();
        let mut turn = 0;
        transport.reply = Box::new(move |_| {
            turn += 1;
            replies[turn % replies.len()].clone()
        });
        let config = SendConfig { smp_window, gmp_window, gmp_lid_window: lid_window, retries, ..SendConfig::default() };
        let mut client = MadClient::new(config);
        let requests: Vec<Request> = lids
            .iter()
            .map(|&lid| match lid % 3 {
                0 => Request { to: Address::Directed(DirectedRoute::LOCAL), query: smp::node_info() },
                1 => Request { to: Address::Lid(Lid(lid)), query: smp::switch_info() },
                _ => counters(lid, 1),
            })
            .collect();
        let plan = run_with(&mut transport, &mut client, requests);
        prop_assert_eq!(plan.outcomes().len(), lids.len());
        // Slow requests add at most one more window.
        prop_assert!(transport.max_in_flight[0] <= 2 * usize::from(smp_window));
        prop_assert!(transport.max_in_flight[1] <= 2 * usize::from(gmp_window));
    }
}
