use std::time::Duration;

use super::*;
use crate::EventKind;
use crate::model::{Series, Step};
use crate::testing::Canned;
use ib_fabric::topology::LinkId;
use ib_mad::Counter;

fn report(source: &Canned) -> Report {
    let from = SystemTime::UNIX_EPOCH;
    let window = Window { from, to: from + Duration::from_secs(3600) };
    Report::compute(source, window, None, window.to, &|_| "then".into()).unwrap()
}

fn evidence(finding: &Finding) -> String {
    finding.evidence.join("\n")
}

/// At the end of the window the bad cable's port has another cable.
#[test]
fn replaced_cable_keeps_its_errors() {
    let [port, was, is] = ["leaf", "host", "next"].map(|node| Canned::port("fab", node, 1));
    let id = LinkId::between(port.end(), was.end());
    let source = Canned {
        events: vec![Canned::event(EventKind::Flap, Some(id), &port)],
        moved: vec![Canned::counted(&port, Some(&is), 4_711)],
        ..Canned::default()
    };
    let report = report(&source);
    let text = evidence(&report.findings[0]);
    assert!(text.contains("leaf port 1 counted 4711 symbol_errors"), "{text}");
    assert!(report.others.is_empty());
}

/// A subnet that is monitored by two devices has each of its cables in two fabrics.
#[test]
fn same_guids_in_two_fabrics_are_counted_once_each() {
    let mut source = Canned::default();
    for fabric in ["one", "two"] {
        let [a, b] = ["aaaa", "bbbb"].map(|node| Canned::port(fabric, node, 1));
        let id = LinkId::between(a.end(), b.end());
        source.events.push(Canned::event(EventKind::Flap, Some(id), &a));
        source.moved.push(Canned::counted(&a, Some(&b), 3));
        let (from, counter) = (SystemTime::UNIX_EPOCH, Counter::SymbolErrors);
        let steps = vec![Step { from, to: from, by: 3 }];
        source.series.push(Series { port: a.clone(), counter, steps });
    }
    let report = report(&source);
    assert_eq!(report.findings.len(), 2);
    for (finding, fabric) in report.findings.iter().zip(["one", "two"]) {
        let text = evidence(finding);
        assert!(text.contains("went down unexpectedly at then"), "{text}");
        assert_eq!(text.matches(" counted 3 ").count(), 1, "{text}");
        let of: Vec<&str> = finding.series.iter().map(|it| it.port.fabric.as_str()).collect();
        assert_eq!(of, [fabric]);
    }
}

/// The response of another program may contain any name.
#[test]
fn name_with_line_breaks_stays_on_one_line() {
    let [a, b] = ["a\nb\u{1b}[2J", "bbbb"].map(|node| Canned::port("fab", node, 1));
    let id = LinkId::between(a.end(), b.end());
    let (from, counter) = (SystemTime::UNIX_EPOCH, Counter::SymbolErrors);
    let steps = vec![Step { from, to: from, by: 3 }];
    let source = Canned {
        events: vec![Canned::event(EventKind::Flap, Some(id), &a)],
        series: vec![Series { port: a, counter, steps }],
        ..Canned::default()
    };
    let page = markdown::write(&report(&source), &LocalClock::now());
    assert!(page.contains("errors at a b \\[2J port 1\n"), "{page}");
    assert!(!page.contains('\u{1b}'), "{page}");
}

#[test]
fn cause_of_discards_is_named() {
    let [root, other] = ["aaaa", "bbbb"].map(|node| Canned::port("fab", node, 1));
    let mut start = Canned::event(EventKind::CongestionStart, None, &root);
    start.text = "congestion root: 5 ports waiting".into();
    let moved = [&root, &other].map(|port| Canned::counted(port, None, 7));
    let source = Canned { events: vec![start], moved: moved.into(), ..Canned::default() };
    let page = markdown::write(&report(&source), &LocalClock::now());
    let lines: Vec<&str> = page.lines().filter(|line| line.contains("7 symbol")).collect();
    assert!(lines[0].ends_with("; Congestion at aaaa port 1: 5 ports waiting |"), "{page}");
    assert!(!lines[1].contains("Congestion"), "{page}");
}

#[test]
fn evidence_of_a_thousand_flaps_stays_short() {
    let [a, b] = ["aaaa", "bbbb"].map(|node| Canned::port("fab", node, 1));
    let id = LinkId::between(a.end(), b.end());
    let kinds = [EventKind::Flap, EventKind::LinkDown, EventKind::LinkUp, EventKind::RateChanged];
    let events = (0..1_000).flat_map(|_| kinds).map(|kind| Canned::event(kind, Some(id), &a));
    let source = Canned { events: events.collect(), ..Canned::default() };
    let report = report(&source);
    let text = evidence(&report.findings[0]);
    assert!(text.lines().count() < 30, "{}", text.lines().count());
    assert!(text.contains("Link downs: 990 more."), "{text}");
    assert!(text.contains("Rate changed at "), "{text}");
    assert!(text.contains("Rate changes: 990 more."), "{text}");
}
