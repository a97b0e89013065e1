//! An exporter that records answers queries like its file.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use fabric_exporter::history_client::HistoryClient;
use fabric_exporter::remote::Access;
use fabric_history::history_query::{HistoryQuery, PATH};
use fabric_history::model::Window;
use fabric_history::source::{EventFilter, Page, SeriesDetail};
use fabric_history::{EventKind, Reader, Source};

use test_rig::child::Running;
use test_rig::program;
use test_rig::{Exporter, wait_until};

const STORY: &str = "timeline:\n\
    - unplug: {at: 3s, link: \"leaf-0-0[9]\", for: 6s}\n\
    - degrade: {at: 5s, link: \"leaf-0-0[10]\", width: 1x}\n\
    - bad-cable: {at: 2s, into: \"leaf-0-1[9]\", ratio: 1e-6}\n";

fn told(args: &[&str]) -> String {
    let output = Command::new(program()).arg("history").args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn path(question: &HistoryQuery) -> String {
    let pairs = question.pairs().into_iter();
    // Nothing in these needs to be escaped but a plus, which is not there.
    let pairs: Vec<String> = pairs.map(|(key, value)| format!("{key}={value}")).collect();
    format!("{PATH}/{}?{}", question.name(), pairs.join("&"))
}

#[test]
fn exporter_answers_like_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let (story, file) = (folder.path().join("story.yml"), folder.path().join("history.db"));
    std::fs::write(&story, STORY).unwrap();
    let from = SystemTime::now() - Duration::from_secs(1);
    let recorded = format!("--history.file={}", file.display());
    let mut exporter =
        Exporter::demo(&[&recorded, "--fabric.interval=1s", "--scenario", story.to_str().unwrap()]);
    exporter.wait_ready();
    exporter.wait_sweeps(14);
    let window = Window { from, to: SystemTime::now() };
    let reader = Reader::open(&file).unwrap();
    let port = reader.ports("leaf-0-0[9]").unwrap().remove(0);
    // What is later is written after everything in the window, and is in no response.
    let later = Window { from: window.to, to: window.to + Duration::from_secs(3600) };
    wait_until(Duration::from_secs(30), "a sweep after the window", || {
        let series = reader.series(&[port.end()], SeriesDetail::All, later).unwrap();
        series.iter().flat_map(|it| &it.steps).any(|step| step.from > window.to).then_some(())
    });
    let all = EventFilter::all(window);
    let events = |wanted| HistoryQuery::Events(wanted, Page::default());
    let questions = [
        HistoryQuery::Ports("leaf-0-0[9]".into()),
        HistoryQuery::Ports("host-3".into()),
        HistoryQuery::Ports("nobody".into()),
        events(all.clone()),
        events(EventFilter {
            kinds: vec![EventKind::LinkDown, EventKind::RateChanged],
            ..all.clone()
        }),
        events(EventFilter { nodes: vec![port.guid], ..all.clone() }),
        events(EventFilter { ports: vec![port.end()], ..all.clone() }),
        HistoryQuery::Cables(window, vec![port.end()]),
        HistoryQuery::ErrorDeltas(window),
        HistoryQuery::Series(window, vec![port.end()], SeriesDetail::All),
        HistoryQuery::Series(window, vec![port.end()], SeriesDetail::Errors),
        HistoryQuery::Fabrics(window.to),
        HistoryQuery::Coverage(window),
    ];
    for question in &questions {
        let answer = exporter.get(&path(question), &[]);
        assert_eq!(answer.status, 200, "{question:?}: {}", answer.text());
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let file = question.answer(&reader).unwrap().unwrap();
        assert_eq!(answer.text(), String::from_utf8(file).unwrap(), "{question:?}");
    }

    // The client gets the same values. In JSON times have milliseconds.
    let url = format!("http://{}/", exporter.address());
    let api = HistoryClient::new(&url, &Access::default()).unwrap();
    for question in &questions {
        let (api, file) = (question.answer(&api), question.answer(&reader));
        assert_eq!(api.unwrap().unwrap(), file.unwrap().unwrap(), "{question:?}");
    }
    assert!(!api.events(&all).unwrap().is_empty() && !api.error_deltas(window).unwrap().is_empty());
    // So many that they do not fit in one address.
    let many: Vec<_> = (0..2500).map(|guid| ib_mad::PortKey::new(ib_mad::Guid(guid), 1)).collect();
    let wanted = EventFilter { ports: [vec![port.end()], many].concat(), ..all };
    let few = reader.events(&EventFilter { ports: vec![port.end()], ..wanted.clone() }).unwrap();
    assert_eq!(api.events(&wanted).unwrap().len(), few.len());

    // As the command line does.
    let since = humantime::format_rfc3339(from).to_string();
    let until = humantime::format_rfc3339(window.to).to_string();
    let file = file.to_str().unwrap();
    for ask in [&["events"][..], &["events", "--json"], &["link", "leaf-0-0[9]"]] {
        let with = |flag: &str, value: &str| {
            told(&[ask, &["--since", &since, "--until", &until, flag, value]].concat())
        };
        assert_eq!(with("--url", &url), with("--file", file), "{ask:?}");
        assert!(!with("--url", &url).is_empty());
    }
    refusals(&exporter);
    assert!(exporter.stop().success());
}

fn refusals(exporter: &Exporter) {
    for (ask, status, says) in [
        ("party", 404, "unknown query"),
        ("events?from=noon&to=noon", 400, "must be a time such as"),
        ("events", 400, "parameter \"from\" is required"),
        ("ports?called=x&called=y", 400, "more than once"),
        ("moved?form=x", 400, "unknown parameter \"form\"; known: from, to"),
    ] {
        let answer = exporter.get(&format!("{PATH}/{ask}"), &[]);
        assert_eq!((answer.status, answer.text().lines().count()), (status, 1), "{ask}");
        assert!(answer.text().contains(says), "{ask}: {}", answer.text());
    }
}

#[test]
fn exporter_without_history_says_so() {
    let mut exporter = Exporter::demo(&["--fabric.interval=1s", "--no-history"]);
    exporter.wait_ready();
    let answer = exporter.get(&format!("{PATH}/ports?called=x"), &[]);
    assert_eq!((answer.status, answer.text().lines().count()), (404, 1));
    assert!(answer.text().contains("--history.file"));
    let url = format!("http://{}", exporter.address());
    let error =
        HistoryClient::new(&url, &Access::default()).unwrap().ports("x").unwrap_err().to_string();
    assert!(error.contains("no history: the exporter was started without"), "{error}");
    assert!(exporter.stop().success());
}

/// A demo records for its pages, and leaves nothing behind.
#[test]
fn demo_deletes_its_history() {
    let folder = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut command = Command::new(program());
    command.args(["demo", "--web.listen-address=127.0.0.1:0"]).env("TMPDIR", folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Once as soon as there is something to leave behind, and once while it is written.
    for (what, within) in [("its folder", ""), ("its history", "history.db")] {
        let mut demo = Running::spawn("fabric-exporter", &mut command);
        let limit = Duration::from_secs(30);
        wait_until(limit, what, || files().find(|it| it.join(within).exists()));
        assert!(demo.stop().success());
        assert_eq!(files().count(), 0, "{what}");
    }
}

#[test]
fn unreadable_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let recorded = format!("--history.file={}", file.display());
    // The next sweep would begin a new file.
    let mut exporter = Exporter::demo(&[&recorded, "--fabric.interval=10m"]);
    exporter.wait_sweeps(1);
    let gone: &Path = &folder.path().join("gone.db");
    std::fs::rename(&file, gone).unwrap();
    let answer = exporter.get(&format!("{PATH}/ports?called=x"), &[]);
    assert_eq!((answer.status, answer.text().lines().count()), (503, 1), "{}", answer.text());
    let url = format!("http://{}", exporter.address());
    let error =
        HistoryClient::new(&url, &Access::default()).unwrap().ports("x").unwrap_err().to_string();
    assert!(error.starts_with(&url) && error.contains("cannot open the file"), "{error}");
    std::fs::rename(gone, &file).unwrap();
    assert!(exporter.stop().success());
}
