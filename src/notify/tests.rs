//! Events arrive once each and in order, whatever a receiver does; what is held meanwhile is bounded.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use fabric_history::event::{About, NewEvent};
use fabric_history::{EventKind, record::listener::EventListener};
use ib_fabric::topology::LinkId;
use ib_mad::{Guid, PortKey};
use serde_json::{Value, json};
use test_rig::receiver::{Answer, Receiver};
use test_rig::{free_port, wait_until};

use super::kinds;
use super::queue::{DropReason, Limits};
use super::sender::Timing;
use super::webhook::{Outcome, Webhook};
use super::{Notifications, NotifySettings, Queue};

const LIMIT: Duration = Duration::from_secs(120);

/// Waits that a test can afford.
const QUICK: Timing = Timing {
    gather: Duration::from_millis(1),
    waits: [Duration::from_millis(5), Duration::from_millis(20)],
    request: Duration::from_millis(500),
};

fn settings(url: &str) -> NotifySettings {
    NotifySettings {
        webhook: url.parse().unwrap(),
        kinds: kinds::DEFAULT.into(),
        token_file: None,
        ca_file: None,
    }
}

/// Sends to a URL from a thread of its own.
struct Sending {
    queue: std::sync::Arc<Queue>,
    listener: EventListener,
    thread: std::thread::JoinHandle<()>,
}

impl Sending {
    fn to(url: &str, limits: Limits) -> Self {
        Self::with(&settings(url), limits)
    }

    fn with(settings: &NotifySettings, limits: Limits) -> Self {
        let url = Some("https://ib.example");
        let Notifications { queue, listener, sender } =
            Notifications::with(settings, url, limits, QUICK).unwrap();
        let thread = std::thread::spawn(move || sender.run());
        Sending { queue, listener, thread }
    }

    /// Reports events. The text of each is its number.
    fn tell(&mut self, numbers: std::ops::Range<usize>) {
        for number in numbers {
            self.listener.tell("ib0", &event(EventKind::LinkDown, About::All, number));
        }
    }

    /// Waits until nothing is left to be sent.
    fn wait_sent(&self) {
        wait_until(LIMIT, "all events to be sent", || {
            (self.queue.stats().length == 0).then_some(())
        });
    }
}

fn event(kind: EventKind, about: About, number: usize) -> NewEvent {
    let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_764_558_720_123_456_789);
    let (place, text) = ("spine-1 – leaf-2".to_owned(), number.to_string());
    NewEvent { at, kind, about, place, text, detail: json!({"n": number}) }
}

/// The numbers of events.
fn numbers(events: &[Value]) -> Vec<usize> {
    events.iter().map(|event| event["text"].as_str().unwrap().parse().unwrap()).collect()
}

fn ids(events: &[Value]) -> BTreeSet<String> {
    events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn events_arrive_once_each_and_in_order_after_every_failure() {
    let failures = [
        Answer::Close,
        Answer::Status(500),
        Answer::Status(408),
        Answer::Silence,
        Answer::Status(503),
        Answer::Status(401),
        Answer::Status(403),
        Answer::RetryAfter(429, 1),
    ];
    let receiver = Receiver::start(&[&failures[..], &[Answer::Status(204)]].concat());
    let mut sending = Sending::to(&receiver.url(), Limits::default());
    sending.tell(0..250);
    sending.wait_sent();
    let accepted = receiver.accepted();
    assert_eq!(numbers(&accepted), (0..250).collect::<Vec<_>>());
    assert_eq!(ids(&accepted).len(), 250, "no id is of two events");
    let requests = receiver.requests();
    let (failed, sent) = requests.split_at(failures.len());
    assert!(failed.iter().all(|request| !request.is_accepted()));
    assert!(sent.iter().all(|request| request.is_accepted() && request.events().len() <= 100));
    // A receiver that got a request and failed can leave out what it has got.
    let first = sent[0].events();
    for request in failed {
        let events = request.events();
        assert_eq!(events[..], first[..events.len()], "the same events with the same ids");
        assert!(request.head.starts_with("post /hook?key=secret http/1.1"), "{}", request.head);
        assert!(request.head.contains("content-type: application/json"), "{}", request.head);
    }
    let waited = sent[0].at - failed.last().unwrap().at;
    assert!(waited >= Duration::from_secs(1), "the receiver demands a second: {waited:?}");
    let stats = sending.queue.stats();
    assert_eq!((stats.sent, stats.failed_attempts), (250, failures.len() as u64));
    assert_eq!(stats.dropped, [0, 0]);
    assert!(stats.last_success.is_some());
}

#[test]
fn receiver_that_is_away_for_long_gets_the_latest_events_and_the_number_of_others() {
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/");
    let mut sending = Sending::to(&url, Limits { events: 300, ..Limits::default() });
    sending.tell(0..25_000);
    // A request that was made before the last event tells fewer that were dropped: it must not be the accepted one.
    let failed = || sending.queue.stats().failed_attempts;
    let before = failed();
    wait_until(LIMIT, "a failure", || (failed() > before).then_some(()));
    assert_eq!(sending.queue.stats().length, 300);
    let receiver = Receiver::start_at(port, &[]);
    sending.wait_sent();
    // Those of a request in flight were not the ones to be dropped.
    let accepted = numbers(&receiver.accepted());
    assert_eq!((accepted.len(), accepted[200], accepted[299]), (300, 24_900, 24_999));
    assert!(accepted.is_sorted());
    let told: Vec<_> =
        receiver.requests().iter().map(|request| request.body["dropped"].clone()).collect();
    assert_eq!(told, [json!(24_700), json!(0), json!(0)], "told once");
    assert_eq!(sending.queue.stats().dropped[DropReason::QueueFull as usize], 24_700);
}

#[test]
fn events_are_bounded_by_their_bytes_and_those_in_flight_are_not_dropped() {
    let receiver = Receiver::start(&[Answer::Silence, Answer::Status(200)]);
    let limits = Limits { events: 10_000, bytes: 40_000, batch: 10 };
    let mut sending = Sending::to(&receiver.url(), limits);
    sending.tell(0..10);
    let hung = wait_until(LIMIT, "a request", || receiver.requests().first().cloned());
    // Reporting does not wait for the request that hangs.
    sending.tell(10..5_000);
    let held = sending.queue.stats().length;
    assert!((50..200).contains(&held), "some 400 bytes each: {held}");
    sending.wait_sent();
    let accepted = receiver.accepted();
    let (first, rest) = accepted.split_at(hung.events().len());
    assert_eq!(first, hung.events(), "what was in flight is sent again");
    let rest = numbers(rest);
    assert_eq!(rest, (5_000 - rest.len()..5_000).collect::<Vec<_>>());
    let stats = sending.queue.stats();
    assert_eq!(stats.sent + stats.dropped[DropReason::QueueFull as usize], 5_000);
}

#[test]
fn events_that_a_receiver_refuses_are_dropped_and_told_later() {
    for status in [400, 404, 413, 302] {
        let receiver = Receiver::start(&[Answer::Status(status), Answer::Status(200)]);
        let mut sending = Sending::to(&receiver.url(), Limits::default());
        sending.tell(0..1);
        let dropped = || sending.queue.stats().dropped[DropReason::Rejected as usize];
        wait_until(LIMIT, "a rejection", || (dropped() == 1).then_some(()));
        sending.tell(1..2);
        sending.wait_sent();
        let requests = receiver.requests();
        assert_eq!(requests.len(), 2, "{status}: not repeated, and no redirection is followed");
        assert_eq!(requests[1].body["dropped"], 1);
        assert_eq!(sending.queue.stats().failed_attempts, 0);
    }
}

#[test]
fn event_is_that_of_the_api_with_id_and_page() {
    let receiver = Receiver::start(&[]);
    let mut sending = Sending::to(&receiver.url(), Limits::default());
    let (low, high) = (PortKey::new(Guid(1), 2), PortKey::new(Guid(3), 4));
    for about in [
        About::Link(LinkId { low, high }),
        About::Node(Guid(1)),
        About::Port(Guid(1), 2),
        About::All,
    ] {
        sending.listener.tell("ib 0", &event(EventKind::VerdictChanged, about, 7));
    }
    // This kind is not sent by default.
    sending.listener.tell("ib0", &event(EventKind::CounterReset, About::All, 8));
    sending.listener.tell("host", &event(EventKind::NodeDown, About::Node(Guid(1)), 9));
    sending.wait_sent();
    let request = &receiver.requests()[0];
    let instance = request.body["exporter_instance"].as_str().unwrap();
    let head = json!({
        "schema_version": 1,
        "exporter_version": env!("CARGO_PKG_VERSION"),
        "exporter_instance": instance,
        "external_url": "https://ib.example",
        "dropped": 0,
        "events": request.body["events"],
    });
    assert_eq!(request.body, head);
    let events = receiver.accepted();
    assert_eq!(numbers(&events), [7, 7, 7, 7, 9]);
    let link = json!({
        "id": format!("{instance}-1"),
        "url": "https://ib.example/link/0x0000000000000001:2-0x0000000000000003:4?fabric=ib%200",
        "at": "2025-12-01T03:12:00.123Z",
        "fabric": "ib 0",
        "kind": "verdict_changed",
        "node": null,
        "port": null,
        "link": "0x0000000000000001:2-0x0000000000000003:4",
        "place": "spine-1 – leaf-2",
        "text": "7",
        "detail": {"n": 7},
    });
    assert_eq!(events[0], link);
    let pages: Vec<_> = events.iter().map(|event| event["url"].as_str().unwrap()).collect();
    let node = "https://ib.example/node/0x0000000000000001?fabric=ib%200";
    let port = format!("{node}#port-2");
    assert_eq!(pages[1..], [node, &*port, "https://ib.example/", "https://ib.example/host"]);
}

#[test]
fn token_is_read_for_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "first\n").unwrap();
    let receiver = Receiver::start(&[]);
    let settings = NotifySettings { token_file: Some(file.clone()), ..settings(&receiver.url()) };
    let mut sending = Sending::with(&settings, Limits::default());
    sending.tell(0..1);
    sending.wait_sent();
    std::fs::write(&file, "two words").unwrap();
    sending.tell(1..2);
    wait_until(LIMIT, "a failure", || (sending.queue.stats().failed_attempts > 0).then_some(()));
    std::fs::write(&file, "second").unwrap();
    sending.wait_sent();
    let heads: Vec<_> = receiver.requests().into_iter().map(|request| request.head).collect();
    assert_eq!(heads.len(), 2, "nothing is sent without the token");
    assert!(heads[0].contains("authorization: bearer first"), "{}", heads[0]);
    assert!(heads[1].contains("authorization: bearer second"), "{}", heads[1]);
    std::fs::write(&file, "t".repeat((16 << 10) + 1)).unwrap();
    let problem = Notifications::new(&settings, None).unwrap_err();
    assert!(problem.contains("token: it is larger than 16384 bytes"), "{problem}");
    std::fs::write(&file, "").unwrap();
    let problem = Notifications::new(&settings, None).unwrap_err();
    assert!(problem.contains("token: it is not one token in one line"), "{problem}");
    std::fs::remove_file(&file).unwrap();
    let problem = Notifications::new(&settings, None).unwrap_err();
    assert!(problem.starts_with("--notify.token-file: ") && problem.contains("No such file"));
}

#[test]
fn what_a_receiver_repeats_of_address_and_token_is_not_logged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "of-this-site").unwrap();
    for status in [400, 401, 404, 503] {
        let receiver = Receiver::start(&[Answer::Repeat(status)]);
        let settings =
            NotifySettings { token_file: Some(file.clone()), ..settings(&receiver.url()) };
        let answer = match Webhook::new(&settings, QUICK.request).unwrap().post(b"{}") {
            Outcome::Sent => panic!("{status} is no success"),
            Outcome::Rejected(_, answer) => answer,
            Outcome::Failed(failure) => failure.problem,
        };
        assert!(answer.contains("post … http/1.1"), "{answer}");
        assert!(answer.contains("authorization: bearer …"), "{answer}");
        for secret in ["hook", "secret", "of-this-site"] {
            assert!(!answer.contains(secret), "{answer}");
        }
    }
}

#[test]
fn end_sends_what_is_left_and_does_not_wait_for_a_receiver_that_is_silent() {
    let receiver = Receiver::start(&[]);
    let mut sending = Sending::to(&receiver.url(), Limits::default());
    sending.tell(0..350);
    drop(sending.listener);
    assert_eq!(sending.queue.finish(LIMIT), 0);
    sending.thread.join().unwrap();
    assert_eq!(numbers(&receiver.accepted()), (0..350).collect::<Vec<_>>());

    let receiver = Receiver::start(&[Answer::Silence]);
    let mut sending = Sending::to(&receiver.url(), Limits::default());
    sending.tell(0..350);
    let began = Instant::now();
    assert_eq!(sending.queue.finish(Duration::from_millis(50)), 350);
    assert!(began.elapsed() < LIMIT / 2, "{:?}", began.elapsed());
    // The thread gives up by itself.
    sending.thread.join().unwrap();
    assert!(receiver.requests().len() <= 2, "{}", receiver.requests().len());
}
