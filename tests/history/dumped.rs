//! A copy of a window answers queries like the original, and can be recorded into.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use fabric_history::export::ExportFilter;
use fabric_history::file::dump::Existing;
use fabric_history::history_query::{DUMP, HistoryQuery, window as said};
use fabric_history::model::{Port, Window};
use fabric_history::settings::HistorySettings;
use fabric_history::source::{EventFilter, Page, SeriesDetail};
use fabric_history::{EventKind, Reader, Source};

use crate::exported::openmetrics;
use crate::{RecordedSimulation, SWEEP, minutes, wall};
use test_rig::program;
use test_rig::{Exporter, wait_until};

const STORY: &str = "timeline:\n\
    - unplug: {at: 50m, link: \"leaf-0-0[9]\", for: 3m}\n\
    - reboot: {at: 70m, node: host-13, down: 90s}\n\
    - bad-cable: {at: 16m, into: \"leaf-0-1[9]\", ratio: 1e-9}\n\
    - move-cable: {at: 72m, from: \"leaf-0-1[2]\", to: \"leaf-0-1[5]\"}\n\
    - clear: {at: 75m, node: spine-1}\n";

fn beside(file: &Path, name: &str) -> PathBuf {
    file.with_file_name(name)
}

/// All queries on a window.
fn questions(reader: &Reader, window: Window) -> Vec<HistoryQuery> {
    let port = reader.ports("leaf-0-0[9]").unwrap().remove(0);
    let ends: Vec<_> =
        reader.ports("leaf-0-1").unwrap().iter().map(Port::end).chain([port.end()]).collect();
    let all = EventFilter::all(window);
    let events = |wanted| HistoryQuery::Events(wanted, Page::largest(None));
    vec![
        HistoryQuery::Ports("leaf-0-0[9]".into()),
        HistoryQuery::Ports("host-3".into()),
        HistoryQuery::Ports("nobody".into()),
        events(all.clone()),
        events(EventFilter { kinds: vec![EventKind::LinkDown], ..all.clone() }),
        events(EventFilter { nodes: vec![port.guid], ..all.clone() }),
        events(EventFilter { ports: ends.clone(), ..all }),
        HistoryQuery::Cables(window, ends.clone()),
        HistoryQuery::ErrorDeltas(window),
        HistoryQuery::Series(window, ends.clone(), SeriesDetail::All),
        HistoryQuery::Series(window, ends, SeriesDetail::Errors),
        HistoryQuery::Fabrics(window.from),
        HistoryQuery::Fabrics(window.from + window.length() / 2),
        HistoryQuery::Fabrics(window.to),
        HistoryQuery::Coverage(window),
    ]
}

fn answers_are_the_same(copy: &Path, file: &Path, window: Window) {
    let (copy, file) = (Reader::open(copy).unwrap(), Reader::open(file).unwrap());
    for question in questions(&file, window) {
        let text =
            |reader: &Reader| String::from_utf8(question.answer(reader).unwrap().unwrap()).unwrap();
        assert!(text(&copy) == text(&file), "{question:?}");
    }
}

fn nothing_is_beside(copy: &Path) {
    for suffix in ["-wal", "-shm", "-journal"] {
        let mut name = copy.as_os_str().to_owned();
        name.push(suffix);
        assert!(!Path::new(&name).exists(), "{}", name.display());
    }
    let names = std::fs::read_dir(copy.parent().unwrap()).unwrap();
    let names: Vec<_> = names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("-copy-")), "{names:?}");
}

#[test]
fn copy_answers_like_the_original() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let settings = HistorySettings {
        least_free: 0,
        // So that traffic of the first hour is left by the hour alone.
        traffic_retention: minutes(90),
        ..HistorySettings::new(file.clone())
    };
    let mut simulation = RecordedSimulation::with(STORY, settings);
    simulation.run_to(minutes(200));
    for (name, from, to) in [
        ("thinned.db", minutes(20), minutes(80)),
        ("middle.db", minutes(69), minutes(130)),
        ("late.db", minutes(150), minutes(195)),
        ("all.db", Duration::ZERO, minutes(9_999)),
    ] {
        let copy = beside(&file, name);
        let window = Window { from: wall(from), to: wall(to) };
        let dumped = Reader::open(&file).unwrap().dump(window, &copy, Existing::Keep, 0).unwrap();
        assert!(dumped.sweeps > 100 && dumped.bytes > 10_000, "{dumped:?}");
        nothing_is_beside(&copy);
        answers_are_the_same(&copy, &file, window);
        let of = |file: &Path| openmetrics(file, &ExportFilter::all(window));
        assert!(of(&copy) == of(&file), "{name}");
        assert!(of(&copy).lines().count() > 1000, "{name}");
        // The original is written on.
        let end = simulation.at + SWEEP;
        simulation.run_to(end);
    }
}

/// A recorder continues from the totals at the end of the copy.
#[test]
fn copy_can_be_recorded_into() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(20));
    let before = EventFilter::all(Window { from: wall(Duration::ZERO), to: wall(minutes(20)) });
    let copy = beside(&file, "copy.db");
    Reader::open(&file).unwrap().dump(before.window, &copy, Existing::Keep, 0).unwrap();
    let memory = simulation.recorder.totals("default");
    let settings = HistorySettings { least_free: 0, ..HistorySettings::new(copy.clone()) };
    simulation.recorder = fabric_history::Recorder::new(settings, simulation.metrics.clone());
    assert_eq!(simulation.recorder.totals("default").len(), memory.len());
    for (end, port) in simulation.recorder.totals("default") {
        assert_eq!(format!("{port:?}"), format!("{:?}", memory[&end]), "{end:?}");
    }
    simulation.run_to(minutes(40));
    assert_eq!((simulation.metrics.errors(), simulation.metrics.get().missed), (0, 0));
    let events = Reader::open(&copy).unwrap().events(&before).unwrap();
    assert_eq!(events, Reader::open(&file).unwrap().events(&before).unwrap());
    answers_are_the_same(&copy, &copy, Window { to: wall(minutes(40)), ..before.window });
}

#[test]
fn copy_leaves_the_reserved_disk_space() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(2));
    let window = Window { from: wall(Duration::ZERO), to: wall(minutes(2)) };
    let copy = beside(&file, "copy.db");
    let reader = Reader::open(&file).unwrap();
    let error = reader.dump(window, &copy, Existing::Replace, u64::MAX).unwrap_err();
    assert!(error.to_string().contains("are reserved"), "{error}");
    assert!(!copy.exists());
    let error = reader.dump_unnamed(window, u64::MAX).unwrap_err();
    assert!(error.to_string().contains("are reserved"), "{error}");
    nothing_is_beside(&copy);
}

/// Also one that came to be there while the copy was made.
#[test]
fn existing_file_is_kept_unless_forced() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(2));
    let window = Window { from: wall(Duration::ZERO), to: wall(minutes(2)) };
    let copy = beside(&file, "copy.db");
    std::fs::write(&copy, "mine").unwrap();
    let reader = Reader::open(&file).unwrap();
    let error = reader.dump(window, &copy, Existing::Keep, 0).unwrap_err();
    assert!(error.to_string().contains("File exists"), "{error}");
    assert_eq!(std::fs::read(&copy).unwrap(), b"mine");
    nothing_is_beside(&copy);
    reader.dump(window, &copy, Existing::Replace, 0).unwrap();
    answers_are_the_same(&copy, &file, window);
}

fn run(args: &[&str]) -> (bool, String, String) {
    let output = Command::new(program()).arg("history").args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// While an exporter records: from its file and over HTTP, by the command line.
#[test]
fn copies_are_made_during_recording() {
    let folder = tempfile::tempdir().unwrap();
    let (story, file) = (folder.path().join("story.yml"), folder.path().join("history.db"));
    std::fs::write(&story, "timeline: [unplug: {at: 3s, link: \"leaf-0-0[9]\", for: 6s}]").unwrap();
    let from = SystemTime::now() - Duration::from_secs(1);
    let recorded = format!("--history.file={}", file.display());
    let scenario = story.to_str().unwrap();
    let mut exporter = Exporter::demo(&[&recorded, "--fabric.interval=1s", "--scenario", scenario]);
    exporter.wait_ready();
    exporter.wait_sweeps(8);
    let reader = Reader::open(&file).unwrap();
    // A flap is recorded with its past time: later it would be missing in a copy.
    let kinds = vec![EventKind::Flap, EventKind::LinkUp];
    let ever = Window { from, to: from + minutes(60) };
    let wanted = EventFilter { kinds, ..EventFilter::all(ever) };
    wait_until(Duration::from_secs(60), "the flap and the link up", || {
        (reader.events(&wanted).unwrap().len() == 2).then_some(())
    });
    let window = Window { from, to: SystemTime::now() };
    let later = Window { from: window.to, to: window.to + minutes(60) };
    wait_until(Duration::from_secs(30), "sweeps after the window", || {
        let cover = reader.coverage(later).unwrap();
        (cover.fabrics["default"].sweeps >= 2).then_some(())
    });
    let url = format!("http://{}", exporter.address());
    let [since, until] =
        [window.from, window.to].map(|at| humantime::format_rfc3339(at).to_string());
    let path = |name: &str| beside(&file, name).display().to_string();
    let (here, there) = (path("here.db"), path("there.db"));
    for (origin, at, to) in [("--file", &*path("history.db"), &here), ("--url", &url, &there)] {
        let ask = ["dump", origin, at, "--since", &since, "--until", &until, "-o", to];
        let (ok, _, said) = run(&ask);
        assert!(ok && said.contains("sweeps") && said.contains(" MB"), "{said}");
        answers_are_the_same(Path::new(to), &file, window);
        nothing_is_beside(Path::new(to));
        let (ok, _, said) = run(&ask);
        assert!(!ok && said.contains("already exists") && said.lines().count() == 1, "{said}");
        assert!(run(&[&ask[..], &["--force"]].concat()).0);
    }
    // The export is the same, wherever the copy is made.
    let export = |origin: &str, at: &str| {
        let ask = ["export", origin, at, "--since", &since, "--until", &until];
        let (ok, out, said) = run(&[&ask[..], &["--format", "openmetrics"]].concat());
        assert!(ok, "{said}");
        let (_, rows, said) =
            run(&[&ask[..], &["--what", "events", "--link", "leaf-0-0[9]"]].concat());
        assert!(rows.contains("link_down"), "{rows} {said}");
        out
    };
    let text = export("--file", &path("history.db"));
    assert!(text.lines().count() > 1000);
    for (origin, at) in [("--url", &*url), ("--file", &here), ("--file", &there)] {
        assert!(export(origin, at) == text, "{origin} {at}");
    }
    let pairs: Vec<String> =
        said(window).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    let answer = exporter.get(&format!("{DUMP}?{}", pairs.join("&")), &[]);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/vnd.sqlite3"));
    for (ask, status) in [("?from=noon&to=noon", 400), ("", 400), ("?form=x", 400)] {
        let answer = exporter.get(&format!("{DUMP}{ask}"), &[]);
        assert_eq!((answer.status, answer.text().lines().count()), (status, 1), "{ask}");
    }
    // A history in use is never overwritten.
    let (ok, _, said) = run(&["dump", "--file", &here, "-o", &path("history.db"), "--force"]);
    assert!(!ok && said.contains("is a history in use: use another file"), "{said}");
    assert!(exporter.stop().success());
}
