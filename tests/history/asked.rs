//! The output of `history`.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::{RecordedSimulation, minutes};
use test_rig::program;

const STORY: &str = "timeline:\n- bad-cable: {at: 3m, into: \"leaf-0-1[9]\", ratio: 1e-9}\n\
                     - reboot: {at: 5m, node: host-13, down: 90s}";

pub fn ask(file: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("history").args(args).arg("--file").arg(file).env("TZ", "UTC");
    command.output().unwrap()
}

pub fn told(file: &Path, args: &[&str]) -> String {
    let output = ask(file, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let last = String::from_utf8(output.stderr).unwrap();
    assert!(last.contains("UTC"), "{last}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn events_are_printed_as_table_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(15));
    // Virtual time begins at 22:13:20.
    let since = "--since=2023-11-14 22:13";
    let events = told(&file, &["events", since]);
    let down = events.lines().find(|line| line.contains("node_down")).unwrap();
    assert!(down.starts_with("2023-11-14 22:18:"), "{down}");
    assert!(down.contains("host-13"), "{down}");
    for (args, has, has_not) in [
        (&["--kind=node_down", "--kind=node_up"][..], "node_down", "verdict"),
        (&["--node=host-13"], "node_down", "leaf-0-1 port 9"),
        (&["--link=leaf-0-1[9]"], "symbol BER", "node_down"),
    ] {
        let told = told(&file, &[&["events", since], args].concat());
        assert!(told.contains(has) && !told.contains(has_not), "{args:?}:\n{told}");
    }
    assert_eq!(told(&file, &["events", "--since=24h"]), "", "nothing in the last day");
    assert_eq!(told(&file, &["events"]), events, "the last day of recorded data");
    let at = told(&file, &["events", "--at=2023-11-14T22:18:20Z", "--kind=node_down"]);
    assert_eq!(at.lines().count(), 1, "{at}");
    let json = told(&file, &["events", since, "--json"]);
    let json: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(json.len(), events.lines().count());
    let is_bad =
        |event: &&Value| event["kind"] == "verdict_changed" && event["detail"]["to"] == "bad";
    let verdict = json.iter().find(is_bad).unwrap();
    let link = verdict["link"].as_str().unwrap();
    assert_eq!(verdict["detail"]["reasons"][0]["reason"], "bit_errors", "{verdict}");
    let by_name = told(&file, &["link", "leaf-0-1[9]", since, "--readings"]);
    assert_eq!(
        told(&file, &["link", link, since, "--readings"]).lines().count(),
        by_name.lines().count()
    );
    for part in ["symbol_errors +", "verdict_changed: ", "█", "leaf-0-1 port 9"] {
        assert!(by_name.contains(part), "{part} is not in\n{by_name}");
    }
}

#[test]
fn unusable_arguments_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new("about: nothing", &file);
    simulation.run_to(minutes(1));
    for (args, says) in [
        (&["events", "--since=noon"][..], "\"noon\""),
        (&["events", "--kind=party"], "exporter_start"),
        (&["events", "--node=nobody"], "\"nobody\""),
        (&["link", "nobody[1]"], "\"nobody[1]\""),
    ] {
        let output = ask(&file, args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(says), "{args:?}: {error}");
    }
    let missing = ask(&folder.path().join("missing"), &["events"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot open the file"));
    let none = Command::new(program()).args(["history", "events"]).output().unwrap();
    assert!(String::from_utf8_lossy(&none.stderr).contains("--file"));
}

#[test]
fn port_diff_and_report_are_printed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(15));
    let since = "--since=2023-11-14 22:13";
    let port = told(&file, &["port", "leaf-0-1[9]"]);
    for counter in ["symbol_errors", "transmit_bytes", "fec_corrected_blocks"] {
        let line = port.lines().find(|line| line.contains(counter)).unwrap();
        assert!(line.contains('█'), "{line}");
    }
    assert!(!port.contains("spine-0 port 5  0x"), "the other end is the link's:\n{port}");
    let node: Value = serde_json::from_str(&told(&file, &["port", "host-13", "--json"])).unwrap();
    assert_eq!(node["ports"][0]["node"], "host-13");
    assert!(node["events"].as_array().unwrap().iter().any(|event| event["kind"] == "node_down"));

    // Virtual time begins at 22:13:20, the cable goes bad at 22:16:20, the host at 22:18:20.
    let [t1, t2] = ["2023-11-14 22:15", "2023-11-14 22:25"];
    let diff = told(&file, &["diff", t1, t2]);
    let first = diff.lines().next().unwrap();
    assert!(
        first.starts_with("leaf-0-1 port 9 – spine-0 port 5: verdict unknown -> bad"),
        "{diff}"
    );
    assert!(diff.contains("1 expected_link_down event"), "{diff}");
    let diff: Value = serde_json::from_str(&told(&file, &["diff", t1, t2, "--json"])).unwrap();
    assert_eq!(diff[0]["cable"][1]["verdict"], "bad", "{diff}");
    assert!(diff[0]["errors"][0][0]["by"].as_u64().unwrap() > 0, "{diff}");
    assert_eq!(told(&file, &["diff", t1, t2, "--limit=1"]).lines().next(), Some(first));
    // Nothing changed before the cable went bad and the host went down.
    assert_eq!(told(&file, &["diff", "2023-11-14 22:14", "2023-11-14 22:15"]), "");

    let page = folder.path().join("page.html");
    assert_eq!(told(&file, &["report", since, "-o", page.to_str().unwrap()]), "");
    let page = std::fs::read_to_string(page).unwrap();
    for part in ["<!DOCTYPE html>", "leaf-0-1 port 9 – spine-0 port 5", "<svg", "Missing data"] {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["http:", "https:", "<script", "url(", "src="] {
        assert!(!page.contains(outside), "{outside} in a page that must be self-contained");
    }
    let text = told(&file, &["report", since]);
    assert!(text.contains("**1 finding: 1 bad link; "), "{text}");
    assert!(text.contains("### critical: Bad link leaf-0-1 port 9 – spine-0 port 5"), "{text}");
    let json: Value =
        serde_json::from_str(&told(&file, &["report", since, "--format=json"])).unwrap();
    assert_eq!(json["findings"].as_array().unwrap().len(), 1);
    for (args, says) in [
        (&["report", "-o", "page.pdf"][..], ".html, .md, .json"),
        (&["diff", "noon"], "\"noon\""),
        (&["diff", "2023-11-14 22:25", "2023-11-14 22:15"], "T2"),
        (&["port", "nobody[1]"], "\"nobody[1]\""),
        (&["report", "--since=1h", "--until=2h"], "--until"),
    ] {
        let output = ask(&file, args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            (output.status.code(), error.lines().count()),
            (Some(2), 1),
            "{args:?}: {error}"
        );
        assert!(error.contains(says), "{args:?}: {error}");
    }
}

/// Node descriptions come from the fabric: they must not become markup or terminal control sequences.
#[test]
fn names_with_control_characters_are_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    RecordedSimulation::new(STORY, &file).run_to(minutes(15));
    let db = rusqlite::Connection::open(&file).unwrap();
    let hostile = "x</title><script>alert(1)</script>|\u{1b}[31m`*[a](b)";
    db.execute("UPDATE names SET name = ?1 WHERE name = 'leaf-0-1'", [hostile]).unwrap();
    db.execute("UPDATE events SET place = replace(place, 'leaf-0-1', ?1)", [hostile]).unwrap();
    drop(db);
    let html = told(&file, &["report", "--format=html"]);
    assert!(html.contains("alert(1)") && !html.contains("<script"), "{html}");
    let markdown = told(&file, &["report"]);
    assert!(!markdown.contains("<script") && !markdown.contains('\u{1b}'), "{markdown}");
    assert!(markdown.contains(r"\|") && markdown.contains(r"\[a\](b)"), "{markdown}");
    for ask in [&["events"][..], &["diff", "2023-11-14 22:14"], &["port", "spine-0[5]"]] {
        assert!(!told(&file, ask).contains('\u{1b}'), "{ask:?}");
    }
}
