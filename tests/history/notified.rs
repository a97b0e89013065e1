//! Events are sent to a webhook: those that the history has, also without one, whatever the receiver does.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fabric_history::model::Event;
use fabric_history::record::event_watch::EventWatch;
use fabric_history::record::listener::EventListener;
use fabric_history::source::Page;
use fabric_history::{Reader, Source, source::EventFilter};
use serde_json::Value;
use test_rig::certs::Ca;
use test_rig::receiver::{Answer, Receiver};
use test_rig::{Exporter, program, wait_until};

use crate::{RecordedSimulation, always, minutes, wall};

const LIMIT: Duration = Duration::from_secs(120);

/// The cable of a host has one lane left, another one flaps, and a host reboots.
const STORY: &str = "
fabric: {fat-tree: {hosts: 4, radix: 8, down: 2, up: 2}}
traffic: {load: 10%}
timeline:
- degrade: {at: 1m, link: 'host-1[1]', width: 1x}
- flap: {at: 2m, link: 'host-2[1]', down: 40s}
- reboot: {at: 4m, node: host-3, down: 90s}
";

/// A listener, and what it has heard.
fn listener() -> (EventListener, Arc<Mutex<Vec<Event>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&heard);
    (EventListener::new(move |fabric, event| all.lock().unwrap().push(event.of(fabric))), heard)
}

#[test]
fn listener_hears_what_the_history_has_and_so_does_one_without_a_history() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut recorded = RecordedSimulation::new(STORY, &file);
    let (listens, heard) = listener();
    recorded.recorder.set_listener(listens);
    let (listens, unrecorded) = listener();
    let mut watch = EventWatch::new(listens);
    while recorded.at <= minutes(10) {
        let at = recorded.at;
        recorded.run_to(at);
        watch.observe(&recorded.simulated.observation(), wall(at));
    }
    let end = wall(minutes(10));
    recorded.recorder.finish(end);
    drop(recorded);
    let reader = Reader::open(&file).unwrap();
    let page = reader.page(&EventFilter::all(always()), Page::recorded(None)).unwrap();
    let heard = heard.lock().unwrap().clone();
    assert_eq!(heard, page.events);
    let has = |kind: &str| heard.iter().any(|event| event.kind == kind);
    for kind in ["exporter_start", "rate_changed", "flap", "node_down", "node_up", "exporter_stop"]
    {
        assert!(has(kind), "{kind}");
    }
    let flap = heard.iter().position(|event| event.kind == "flap").unwrap();
    assert!(heard[flap].at < heard[flap - 1].at, "a flap is told when the link is up again");
    watch.finish(end);
    assert_eq!(*unrecorded.lock().unwrap(), heard);
}

/// The flags of a demo in which a cable degrades after some seconds.
fn story(folder: &Path) -> String {
    let file = folder.join("scenario.yml");
    let text = "
fabric: {fat-tree: {hosts: 4, radix: 8, down: 2, up: 2}}
traffic: {load: 10%}
timeline:
- degrade: {at: 3s, link: 'host-1[1]', width: 1x}
- unplug: {at: 5s, link: 'host-2[1]'}
";
    std::fs::write(&file, text).unwrap();
    format!("--scenario={}", file.display())
}

/// Waits for accepted events of these kinds.
fn wait_for(receiver: &Receiver, kinds: &[&str]) -> Vec<Value> {
    wait_until(LIMIT, "events", || {
        let events = receiver.accepted();
        let has = |kind: &&str| events.iter().any(|event| event["kind"] == **kind);
        kinds.iter().all(has).then_some(events)
    })
}

/// An event without what only the webhook gets.
fn as_of_api(mut event: Value) -> Value {
    let fields = event.as_object_mut().unwrap();
    assert!(fields.remove("id").unwrap().is_string());
    fields.remove("url").unwrap();
    event
}

#[test]
fn webhook_gets_the_events_of_the_api() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[Answer::Repeat(503), Answer::Close, Answer::Status(200)]);
    // A name has to be resolved after the process is confined.
    let url = format!("--notify.webhook=http://localhost:{}/hook", receiver.port());
    let flags = [&*story(folder.path()), &url, "--notify.kinds=all", "--fabric.interval=1s"];
    let mut exporter = Exporter::demo(&flags);
    let sent = wait_for(&receiver, &["rate_changed", "link_down", "verdict_changed"]);
    let path =
        "/api/v1/history/events?order=recorded&from=1970-01-01T00:00:00Z&to=2200-01-01T00:00:00Z";
    let recorded: Value = serde_json::from_str(exporter.get(path, &[]).text()).unwrap();
    let recorded = recorded["events"].as_array().unwrap();
    let sent: Vec<Value> = sent.into_iter().map(as_of_api).collect();
    assert!(sent.len() >= 3);
    assert_eq!(recorded[..sent.len()], sent);
    let metrics = exporter.metrics();
    let count = |name: &str| metrics.get(&format!("fabric_exporter_notify_{name}"), &[]);
    assert_eq!(count("attempts_failed_total"), Some(2.0));
    assert!(count("events_sent_total") >= Some(3.0));
    assert!(count("last_success_timestamp_seconds") > Some(1.7e9));
    let dropped = metrics.all("fabric_exporter_notify_events_dropped_total");
    let dropped: Vec<_> =
        dropped.map(|(labels, count)| (labels["reason"].clone(), count)).collect();
    assert_eq!(dropped, [("queue_full".to_owned(), 0.0), ("rejected".to_owned(), 0.0)]);
    assert!(exporter.stop().success());
    // The last event is sent, too.
    assert_eq!(receiver.accepted().last().unwrap()["kind"], "exporter_stop");
    let log = exporter.log();
    assert_eq!(
        log.matches("notifications could not be sent: they are retried").count(),
        1,
        "{log}"
    );
    assert_eq!(log.matches("the receiver accepts notifications again").count(), 1, "{log}");
    assert!(!log.contains("/hook"), "its path may be a secret: {log}");
}

#[test]
fn webhook_needs_no_history_and_gets_the_kinds_that_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[Answer::Close, Answer::Repeat(401), Answer::Status(200)]);
    let url = format!("--notify.webhook={}", receiver.url());
    let kinds = "--notify.kinds=verdict_changed,link_down";
    let token = folder.path().join("token");
    std::fs::write(&token, "of-this-site").unwrap();
    let token_file = format!("--notify.token-file={}", token.display());
    let story = story(folder.path());
    let flags = [&*story, &url, kinds, &token_file, "--fabric.interval=1s", "--no-history"];
    let mut exporter = Exporter::demo(&flags);
    let sent = wait_until(LIMIT, "the link of host-2 to be down", || {
        let sent = receiver.accepted();
        let is_it = |event: &Value| {
            event["kind"] == "link_down" && event["place"].as_str().unwrap().contains("host-2")
        };
        sent.iter().any(is_it).then_some(sent)
    });
    let is_wanted =
        |event: &Value| ["verdict_changed", "link_down"].contains(&event["kind"].as_str().unwrap());
    assert!(sent.iter().all(is_wanted), "{sent:#?}");
    // It is read for each request, also by a process that is confined.
    for head in receiver.requests().into_iter().map(|request| request.head) {
        assert!(head.contains("authorization: bearer of-this-site"), "{head}");
    }
    assert!(exporter.stop().success());
    let log = exporter.log();
    let advice = "set --notify.token-file to a file with a token that the receiver accepts";
    assert_eq!(log.matches(advice).count(), 1, "also after another failure: {log}");
    assert!(!log.contains("of-this-site") && !log.contains("/hook"), "{log}");
}

#[test]
fn receiver_that_never_answers_delays_neither_sweeps_nor_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(&[Answer::Silence]);
    let url = format!("--notify.webhook={}", receiver.url());
    let mut exporter = Exporter::demo(&[&*story(folder.path()), &url, "--fabric.interval=1s"]);
    wait_until(LIMIT, "a request", || receiver.requests().first().map(drop));
    let sweeps = |exporter: &Exporter| {
        exporter.metrics().get("fabric_exporter_sweeps_total", &[("fabric", "default")]).unwrap()
    };
    let failed = |exporter: &Exporter| {
        exporter.metrics().get("fabric_exporter_notify_attempts_failed_total", &[])
    };
    let before = sweeps(&exporter);
    assert_eq!(failed(&exporter), Some(0.0), "the request hangs");
    // A sweep that waited for it would not end before it fails, after 10 s.
    wait_until(LIMIT, "sweeps", || (sweeps(&exporter) >= before + 4.0).then_some(()));
    assert_eq!(failed(&exporter), Some(0.0), "the request still hangs");
    assert_eq!(receiver.requests().len(), 1);
    assert!(exporter.stop().success());
    assert!(exporter.log().contains("notifications are lost"), "{}", exporter.log());
}

#[test]
fn receiver_with_tls_is_reached_after_the_process_is_confined() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, path) = (Ca::new("ca"), folder.path());
    ca.server().write(path, "server");
    std::fs::write(path.join("ca.pem"), ca.pem()).unwrap();
    let web = "tls_server_config: {cert_file: server.pem, key_file: server.key}";
    std::fs::write(path.join("web.yml"), web).unwrap();
    let secure = format!("--web.config.file={}", path.join("web.yml").display());
    // An exporter is no receiver, but it answers with TLS: it refuses POST.
    let mut other = Exporter::demo(&[&secure, "--no-history"]);
    let url = format!("--notify.webhook=https://{}/", other.address());
    let authority = format!("--notify.ca-file={}", path.join("ca.pem").display());
    let flags = [&*story(path), &url, "--fabric.interval=1s", &authority];
    let mut exporter = Exporter::demo(&flags);
    wait_until(LIMIT, "a refusal", || exporter.log().contains("status=405").then_some(()));
    assert!(exporter.log().contains("set --notify.webhook to an address that accepts POST"));
    assert!(exporter.stop().success());
    // Without its certificate nothing is sent.
    let mut exporter = Exporter::demo(&flags[..3]);
    let says = "notifications could not be sent: they are retried";
    wait_until(LIMIT, "a failure", || exporter.log().contains(says).then_some(()));
    assert!(!exporter.log().contains("status=405"), "{}", exporter.log());
    assert!(exporter.stop().success() && other.stop().success());
}

#[test]
fn wrong_webhook_ends_the_program_with_usage_error() {
    for (flags, says) in [
        (&["--notify.webhook=ntfy"][..], "--notify.webhook: not a URL such as "),
        (&["--notify.webhook=http://me:secret@h/"], "--notify.webhook: not a URL such as "),
        (&["--notify.kinds=all"], "--notify.kinds: nothing is sent without --notify.webhook"),
        (
            &["--notify.webhook=http://h/", "--notify.kinds=party"],
            "--notify.kinds: \"party\" is not one of: default, all, exporter_start, ",
        ),
        (
            &["--notify.webhook=http://h/", "--notify.token-file=/nowhere"],
            "--notify.token-file: /nowhere: No such file",
        ),
        (
            &["--notify.webhook=https://h/", "--notify.ca-file=/nowhere"],
            "--notify.ca-file: /nowhere: No such file",
        ),
    ] {
        for verb in [&["demo"][..], &["serve", "--no-collector.fabric"]] {
            let flags = [verb, &["--web.listen-address=127.0.0.1:0"], flags].concat();
            let output = Command::new(program()).args(&flags).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{flags:?}: {told}");
            assert!(told.contains(says) && !told.contains("secret"), "{flags:?}: {told}");
        }
    }
}
