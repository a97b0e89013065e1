//! What `history` prints.

use std::path::Path;
use std::process::{Command, Output};

use crate::rig::exporter::PROGRAM;
use crate::{Taped, minutes};

const STORY: &str = "timeline:\n- bad-cable: {at: 3m, into: \"leaf-0-1[9]\", ratio: 1e-9}\n\
                     - reboot: {at: 5m, node: host-13, down: 90s}";

fn ask(file: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.arg("history").args(args).arg("--file").arg(file).env("TZ", "UTC");
    command.output().unwrap()
}

fn told(file: &Path, args: &[&str]) -> String {
    let output = ask(file, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let last = String::from_utf8(output.stderr).unwrap();
    assert!(last.contains("times are of"), "{last}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_history_is_told_as_tables_and_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut taped = Taped::new(STORY, &file);
    taped.run_to(minutes(15));
    // Virtual time begins at 22:13:20.
    let since = "--since=2023-11-14 22:13";
    let events = told(&file, &["events", since]);
    let down = events.lines().find(|line| line.contains("node_gone")).unwrap();
    assert!(down.starts_with("2023-11-14 22:18:"), "{down}");
    assert!(down.contains("host-13"), "{down}");
    for (args, has, has_not) in [
        (&["--kind=node_gone", "--kind=node_back"][..], "node_gone", "verdict"),
        (&["--node=host-13"], "node_gone", "leaf-0-1 port 9"),
        (&["--link=leaf-0-1[9]"], "bit_errors", "node_gone"),
    ] {
        let told = told(&file, &[&["events", since], args].concat());
        assert!(told.contains(has) && !told.contains(has_not), "{args:?}:\n{told}");
    }
    assert_eq!(told(&file, &["events", "--since=24h"]), "", "nothing in the last day");
    assert_eq!(told(&file, &["events"]), events, "the last day of what is known");
    let at = told(&file, &["events", "--at=2023-11-14T22:18:20Z", "--kind=node_gone"]);
    assert_eq!(at.lines().count(), 1, "{at}");
    let json = told(&file, &["events", since, "--json"]);
    let json: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(json.len(), events.lines().count());
    let is_bad =
        |event: &&serde_json::Value| event["kind"] == "verdict" && event["detail"]["to"] == "bad";
    let verdict = json.iter().find(is_bad).unwrap();
    let link = verdict["link"].as_str().unwrap();
    assert_eq!(verdict["detail"]["reasons"][0]["reason"], "bit_errors", "{verdict}");
    let by_name = told(&file, &["link", "leaf-0-1[9]", since, "--readings"]);
    assert_eq!(
        told(&file, &["link", link, since, "--readings"]).lines().count(),
        by_name.lines().count()
    );
    for part in ["symbol_errors +", "verdict: ", "█", "leaf-0-1 port 9"] {
        assert!(by_name.contains(part), "{part} is not in\n{by_name}");
    }
}

#[test]
fn what_cannot_be_told_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut taped = Taped::new("about: nothing", &file);
    taped.run_to(minutes(1));
    for (args, says) in [
        (&["events", "--since=noon"][..], "\"noon\" is no time"),
        (&["events", "--kind=party"], "none of exporter_start"),
        (&["events", "--node=nobody"], "knows no \"nobody\""),
        (&["link", "nobody[1]"], "knows no \"nobody[1]\""),
    ] {
        let output = ask(&file, args);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(says), "{args:?}: {error}");
    }
    let missing = ask(&folder.path().join("missing"), &["events"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("cannot find it"));
    let none = Command::new(PROGRAM).args(["history", "events"]).output().unwrap();
    assert!(String::from_utf8_lossy(&none.stderr).contains("--file"));
}
