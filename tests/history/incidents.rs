//! Incidents of simulated nights: what happened is one line each, with its cause, and the report begins with what did
//! the most harm.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fabric_history::Reader;
use fabric_history::file::dump::Existing;
use fabric_history::incidents::{Incident, Incidents, MAX_INCIDENTS, Severity};
use fabric_history::local_clock::LocalClock;
use fabric_history::model::Window;
use fabric_history::report::{Report, markdown};
use ib_sim::scenario::Scenario;
use tempfile::TempDir;

use crate::{RecordedSimulation, minutes, wall};
use test_rig::Simulated;

/// A scenario, recorded.
fn recorded(name: &str, to: Duration) -> (TempDir, PathBuf) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/history/scenarios/{name}.yml"));
    let scenario = Scenario::read(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::of(Simulated::of(&scenario), &file);
    simulation.run_to(to);
    (folder, file)
}

fn window(from: Duration, to: Duration) -> Window {
    Window { from: wall(from), to: wall(to) }
}

fn incidents(file: &Path, window: Window) -> Vec<Incident> {
    let reader = Reader::open(file).unwrap();
    let found = Incidents::find(&reader, window, MAX_INCIDENTS).unwrap();
    assert_eq!(found.more, 0);
    found.incidents
}

fn report(file: &Path, window: Window) -> Report {
    let reader = Reader::open(file).unwrap();
    let time = |at| humantime::format_rfc3339_seconds(at).to_string();
    Report::compute(&reader, window, None, window.to, &time).unwrap()
}

fn lines(incidents: &[Incident]) -> String {
    let line = |it: &Incident| {
        format!(
            "{} {} {} ({:?}): {:?}\n",
            it.severity.label(),
            it.kind.label(),
            it.title,
            it.cause,
            it.counts
        )
    };
    incidents.iter().map(line).collect()
}

/// What failed, when, why, and what to do, from the first lines of the report.
#[test]
fn report_of_a_night_begins_with_its_largest_incidents() {
    let end = minutes(175);
    let (_folder, file) = recorded("one-night", end);
    let report = report(&file, window(Duration::ZERO, end));
    let titles: Vec<&str> =
        report.findings.iter().map(|finding| &*finding.incident.title).collect();
    let expected = [
        ("Switch leaf-0-2 was down for 10m", ", 12 HCAs cut off"),
        ("Host host-9 is down", ""),
        ("Bad link leaf-0-0 port 16 – spine-1 port 2", ""),
        ("Congestion for 49m 45s: full link to host-40 (leaf-0-3 port 5): ", "ports waited"),
        ("Link leaf-0-1 port 6 – host-17 port 1 flapped: went down once", ""),
    ];
    assert_eq!(titles.len(), expected.len(), "{titles:#?}\n{}", lines(&report.incidents));
    for (title, (begins, has)) in titles.iter().zip(expected) {
        assert!(title.starts_with(begins) && title.contains(has), "{titles:#?}");
    }
    let [switch, host, cable, congestion, flap] = &report.findings[..] else { unreachable!() };
    assert!(switch.incident.cause.as_deref().unwrap().contains("reset or rebooted"));
    assert_eq!(switch.incident.host_count, 12);
    assert!(switch.incident.event_count > 60 && switch.incident.events.len() < 100);
    assert!(host.incident.ended.is_none() && host.since_then.contains("lasts at the end"));
    // The cable was replaced: its part and serial number are those of the old one.
    let text = format!("{} {}", cable.evidence.join(" "), cable.since_then);
    assert!(
        cable.incident.cause.as_deref().unwrap().contains("spine-1 port 2 receives symbol BER")
    );
    assert!(cable.since_then.contains("was replaced"), "{text}");
    assert_eq!(cable.incident.repair, None, "{text}");
    assert!(!cable.modules.is_empty() && !cable.modules[0].serial.is_empty());
    assert!(congestion.incident.ended.is_some());
    assert_eq!(flap.incident.hosts, ["host-17"]);
    // What was routine is told, too, in a line each.
    let others = lines(&report.incidents);
    assert!(others.contains("2 cables moved"), "{others}");
    assert!(others.contains("Counters of 53 nodes were cleared"), "{others}");
    assert_eq!(report.incidents.len(), 3, "{others}");
    // Markdown is what is pasted into a ticket.
    let page = markdown::write(&report, &LocalClock::now());
    assert!(page.lines().nth(2).unwrap().starts_with(
        "**5 findings: 1 switch outage, 1 host outage, 1 bad link, 1 congestion, 1 flapping link"
    ));
}

#[test]
fn report_during_a_fault_says_since_when_why_and_what_to_do() {
    let (_folder, file) = recorded("one-night", minutes(130));
    // Both the cable and the host failed long before the period.
    let report = report(&file, window(minutes(110), minutes(130)));
    let found: Vec<&str> = report.findings.iter().map(|it| &*it.incident.title).collect();
    assert_eq!(
        found,
        ["Host host-9 is down", "Bad link leaf-0-0 port 16 – spine-1 port 2"],
        "{}",
        lines(&report.incidents)
    );
    let [host, cable] = &report.findings[..] else { unreachable!() };
    let since = |incident: &Incident| incident.began.duration_since(wall(Duration::ZERO)).unwrap();
    assert!((minutes(65)..minutes(66)).contains(&since(&host.incident)));
    assert!((minutes(20)..minutes(30)).contains(&since(&cable.incident)));
    for finding in [host, cable] {
        assert!(!finding.incident.began_earlier && finding.incident.ended.is_none());
        assert!(finding.incident.advice.is_some() && finding.incident.cause.is_some());
    }
    assert!(cable.incident.repair.is_some());
    assert!(cable.since_then.contains("the link is bad"), "{}", cable.since_then);
}

/// Reboots, clears, short incasts and a failover are no findings.
#[test]
fn routine_hour_is_a_dozen_incidents_and_no_finding() {
    let (_folder, file) = recorded("routine", minutes(60));
    let found = incidents(&file, window(Duration::ZERO, minutes(60)));
    let listed = lines(&found);
    assert!(found.len() <= 14, "{listed}");
    assert!(found.iter().all(|incident| incident.severity == Severity::Info), "{listed}");
    let with_cause = |kind: &str| {
        let of_kind = found.iter().filter(|incident| incident.kind.label() == kind);
        of_kind.filter(|incident| incident.cause.is_some()).count()
    };
    assert_eq!([with_cause("host_down"), with_cause("counters_cleared")], [6, 2], "{listed}");
    let events: usize = found.iter().map(|incident| incident.event_count).sum();
    assert!(events > 250, "{events} events\n{listed}");
}

/// The report of a copy is that of the original, whatever the period.
#[test]
fn copies_have_the_same_reports() {
    let end = minutes(175);
    let (folder, file) = recorded("one-night", end);
    let copy = folder.path().join("copy.db");
    let mut random = 0x5eed_u64;
    let mut next = |below: u64| {
        // Numerical Recipes' generator: the upper bits are random enough.
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let mut findings = 0;
    for _ in 0..200 {
        let from = next(end.as_secs());
        let to = (from + next(7_200)).min(end.as_secs());
        let period = window(Duration::from_secs(from), Duration::from_secs(to));
        let live = Reader::open(&file).unwrap();
        live.dump(period, &copy, Existing::Replace, 0).unwrap();
        let [mut original, mut copied] = [&file, &copy].map(|file| report(file, period));
        findings += original.findings.len();
        original.source.clear();
        copied.source.clear();
        let [original, copied] = [original, copied].map(|it| serde_json::to_value(&it).unwrap());
        assert_eq!(original, copied, "from {from} s to {to} s");
    }
    assert!(findings > 200, "{findings}");
}

/// Ports 3 and 4 of a switch are in its second cage, port 5 in its third.
#[test]
fn two_bad_links_in_one_cage_are_one_finding_that_names_it() {
    let end = minutes(90);
    let (_folder, file) = recorded("one-cage", end);
    let report = report(&file, window(Duration::ZERO, end));
    let mut titles: Vec<&str> =
        report.findings.iter().map(|finding| &*finding.incident.title).collect();
    titles.sort_unstable();
    assert_eq!(titles.len(), 3, "{titles:#?}");
    let of_cage = "leaf-0-0 cage 2: both ports are bad (";
    assert!(titles[2].starts_with(of_cage), "{titles:#?}");
    assert!(titles[2].contains("leaf-0-0 port 3") && titles[2].contains("leaf-0-0 port 4"));
    let of_one = |title: &&str| title.starts_with("Bad link leaf-0-1 port");
    assert!(titles[..2].iter().all(of_one), "{titles:#?}");
    let found = report.findings.iter().find(|it| it.incident.title.starts_with(of_cage)).unwrap();
    assert_eq!((found.incident.links, found.incident.hosts.len()), (2, 2));
    assert!(!found.evidence.is_empty() && !found.series.is_empty(), "of one of the links");
}
