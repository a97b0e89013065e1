//! `history events --follow` prints each event once, whatever becomes of the exporter and of the file.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fabric_history::model::Event;
use fabric_history::source::{EventFilter, Page};
use fabric_history::{Reader, Source};
use serde_json::Value;
use test_rig::child::Running;
use test_rig::{Exporter, free_port, program, wait_until};

use crate::{RecordedSimulation, always, events, minutes};

const LIMIT: Duration = Duration::from_secs(120);

/// A cable of a host is unplugged time and again.
const STORY: &str = "
fabric: {fat-tree: {hosts: 4, radix: 8, down: 2, up: 2}}
traffic: {load: 10%}
timeline:
- flap: {at: 1m, link: 'host-2[1]', down: 20s, every: 1m, times: 60}
";

/// A command that follows, and where it writes.
struct Follower {
    running: Running,
    folder: tempfile::TempDir,
}

impl Follower {
    fn start(args: &[&str]) -> Self {
        Self::start_with(None, args)
    }

    /// Writes to this file instead of one of its own.
    fn start_with(out: Option<File>, args: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let create = |name: &str| File::create(folder.path().join(name)).unwrap();
        let out = out.unwrap_or_else(|| create("out"));
        let mut command = Command::new(program());
        command.args(["history", "events", "--follow", "--interval=100ms"]).args(args);
        command.env("TZ", "UTC").stdin(Stdio::null()).stdout(out).stderr(create("notes"));
        let running = Running::spawn("history events --follow", &mut command);
        let follower = Follower { running, folder };
        wait_until(LIMIT, "the begin", || follower.notes().contains("following ").then_some(()));
        follower
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    fn notes(&self) -> String {
        self.read("notes")
    }

    /// What was printed as lines of JSON.
    fn json(&self) -> Vec<Value> {
        let text = self.read("out");
        let lines = text.lines();
        lines
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    fn wait_for(&self, count: usize) -> Vec<Value> {
        wait_until(LIMIT, "events", || Some(self.json()).filter(|events| events.len() >= count))
    }
}

/// The events of a file in the order in which they were recorded.
fn recorded(file: &Path) -> Vec<Event> {
    let all = EventFilter::all(always());
    Reader::open(file).unwrap().page(&all, Page::recorded(None)).unwrap().events
}

fn as_json<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<Value> {
    events.into_iter().map(|event| serde_json::to_value(event).unwrap()).collect()
}

fn file_in(folder: &tempfile::TempDir) -> (PathBuf, String) {
    let file = folder.path().join("history.db");
    let flag = format!("--file={}", file.display());
    (file, flag)
}

#[test]
fn file_is_followed_while_it_is_written_and_after_it_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (file, flag) = file_in(&folder);
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(3));
    let before = recorded(&file).len();
    // From the begin on: the simulated time is another one than that of the host.
    let mut all = Follower::start(&["--since=2000-01-01", "--json", &flag]);
    let mut flaps = Follower::start(&["--since=2000-01-01", "--kind=flap", &flag]);
    all.wait_for(before);
    for end in 4..=6 {
        simulation.run_to(minutes(end));
    }
    let first = recorded(&file);
    assert!(first.len() > before + 6, "{first:#?}");
    assert_eq!(all.wait_for(first.len()), as_json(&first));
    // What it has not read before the file is deleted it cannot print.
    let flapped = first.iter().filter(|event| event.kind == "flap").count();
    wait_until(LIMIT, "flaps", || (flaps.read("out").lines().count() >= flapped).then_some(()));
    drop(simulation);
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.path().join(format!("history.db{suffix}")));
    }
    wait_until(LIMIT, "a note", || all.notes().contains("No such file").then_some(()));
    // Another recording, of other times: an equal one could not be told from the file before.
    let other = folder.path().join("other.db");
    RecordedSimulation::new(&STORY.replace("at: 1m", "at: 47s"), &other).run_to(minutes(10));
    std::fs::rename(&other, &file).unwrap();
    // What is older than the latest event is known from the file before.
    let latest = first.last().unwrap().at;
    let second = recorded(&file);
    let newer: Vec<_> = second.iter().filter(|event| event.at >= latest).collect();
    assert!(newer.len() >= 6);
    let printed = all.wait_for(first.len() + newer.len());
    assert_eq!(printed[first.len()..], as_json(newer.iter().copied()));
    assert_eq!(all.notes().lines().count(), 3, "{}", all.notes());
    let expected = first.iter().chain(newer).filter(|event| event.kind == "flap").count();
    let lines = wait_until(LIMIT, "flaps", || {
        Some(flaps.read("out")).filter(|text| text.lines().count() >= expected)
    });
    assert!(lines.lines().all(|line| line[21..].starts_with("flap  ")), "{lines}");
    // A signal ends it as it ends other programs.
    for (follower, signal, number) in [(&mut all, "INT", 2), (&mut flaps, "TERM", 15)] {
        follower.running.signal(signal);
        let status = follower.running.wait_at_most(LIMIT).unwrap();
        assert_eq!(status.signal(), Some(number));
    }
}

#[test]
fn exporter_is_followed_after_it_was_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _) = file_in(&folder);
    let scenario = folder.path().join("scenario.yml");
    std::fs::write(
        &scenario,
        STORY.replace("at: 1m", "at: 2s").replace("20s", "2s").replace("every: 1m", "every: 4s"),
    )
    .unwrap();
    let port = free_port();
    let flags = [
        format!("--scenario={}", scenario.display()),
        format!("--history.file={}", file.display()),
        format!("--web.listen-address=127.0.0.1:{port}"),
        "--fabric.interval=1s".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let start = || {
        let mut exporter = Exporter::demo(&flags);
        exporter.wait_ready();
        exporter
    };
    let mut exporter = start();
    let url = format!("--url=http://127.0.0.1:{port}");
    // Only what is recorded from now on.
    let later = Follower::start(&["--json", &url]);
    let mut all = Follower::start(&["--since=2000-01-01", "--json", "--node=host-2", &url]);
    all.wait_for(4);
    assert!(exporter.stop().success());
    wait_until(LIMIT, "a note", || all.notes().contains(": retrying").then_some(()));
    let before = all.json().len();
    let mut exporter = start();
    all.wait_for(before + 4);
    assert!(all.notes().contains("following again"), "{}", all.notes());
    assert!(exporter.stop().success());
    let recorded = as_json(&recorded(&file));
    let of_host: Vec<_> = recorded
        .iter()
        .filter(|event| event["place"].as_str().unwrap().contains("host-2"))
        .cloned()
        .collect();
    let printed = all.json();
    assert_eq!(printed, of_host[..printed.len()], "each once and in order");
    let printed = later.json();
    let skipped = recorded.len() - printed.len();
    assert!(skipped > 0 && !printed.is_empty());
    let begin = recorded.iter().position(|event| *event == printed[0]).unwrap();
    assert_eq!(printed, recorded[begin..begin + printed.len()], "without gaps");
    assert!(events(&file).len() == recorded.len());
    all.running.stop();
}

#[test]
fn follower_ends_with_its_reader_also_while_nothing_happens() {
    let folder = tempfile::tempdir().unwrap();
    let (file, flag) = file_in(&folder);
    RecordedSimulation::new(STORY, &file).run_to(minutes(2));
    let follow = format!("{} history events --follow {flag}", program());
    for (reader, since) in [("head -n 1 > /dev/null", "--since=2000-01-01"), ("true", "")] {
        let script = format!("({follow} {since}; echo \"ended $?\" >&2) | {reader}");
        let mut command = Command::new("bash");
        let notes = folder.path().join("notes");
        command.args(["-c", &script]).stdin(Stdio::null()).stderr(File::create(&notes).unwrap());
        let mut running = Running::spawn("bash", &mut command);
        assert!(running.wait_at_most(LIMIT).is_some(), "{reader}");
        let notes = std::fs::read_to_string(&notes).unwrap();
        assert!(notes.contains("ended 0"), "{reader}: {notes}");
    }
}

#[test]
fn output_that_cannot_be_written_ends_the_follower() {
    let folder = tempfile::tempdir().unwrap();
    let (file, flag) = file_in(&folder);
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(2));
    // The first query has no events, so it is a later one that fails.
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut follower = Follower::start_with(Some(full), &["--json", &flag]);
    let mut end = 2;
    let status = wait_until(LIMIT, "the end", || {
        end += 1;
        simulation.run_to(minutes(end));
        follower.running.try_wait()
    });
    assert_eq!(status.code(), Some(1));
    let notes = follower.notes();
    assert!(notes.contains("cannot write to standard output: No space left"), "{notes}");
    assert!(!notes.contains("retrying"), "{notes}");
}

#[test]
fn what_cannot_be_followed_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let (_, flag) = file_in(&folder);
    for (args, code, says) in [
        (&["--follow", "--until=1h", &*flag][..], 2, "--until"),
        (&["--follow", "--from", "dumps"], 2, "--follow: dumps do not change"),
        (&["--interval=1s", &flag], 2, "--follow"),
        (&["--follow", "--interval=1ms", &flag], 2, "less than the minimum of 100ms"),
        // Nobody shall wait for a name that was mistyped.
        (&["--follow", &flag], 1, "No such file"),
    ] {
        let output =
            Command::new(program()).args(["history", "events"]).args(args).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {told}");
        assert!(told.contains(says), "{args:?}: {told}");
    }
}
