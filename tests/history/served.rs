//! Responses on a history over HTTP: bounded in size, cancelled with the client, and harmless to other files.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use exporter_web::{Limits, Security, Server, WebMetrics};
use fabric_exporter::history_client::HistoryClient;
use fabric_exporter::metrics::OwnMetrics;
use fabric_exporter::published::Published;
use fabric_exporter::remote::Access;
use fabric_exporter::server::{WebApp, request_class};
use fabric_history::history_query::{DUMP, PATH, window as said};
use fabric_history::model::Window;
use fabric_history::source::{EventFilter, SeriesDetail};
use fabric_history::{Reader, Source};
use fabric_observation::SharedState;
use serde_json::Value;

use crate::{RecordedSimulation, always, minutes, wall};
use test_rig::exporter::{Response, agent, get};
use test_rig::wait_until;

/// So many events are in the way of an answer that is not bounded.
const MANY: u64 = 25_000;

/// A history of a few minutes, in a folder of its own.
fn recorded() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    RecordedSimulation::new("", &file).run_to(minutes(2));
    (folder, file)
}

/// A server in this process that answers from a history.
pub struct Served {
    pub address: String,
    runtime: Option<tokio::runtime::Runtime>,
    _server: Server,
}

impl Served {
    pub fn new(file: &Path, limits: Limits) -> Self {
        Self::of(SharedState::default(), file, limits)
    }

    /// One whose fabrics are in this state, and stay in it.
    pub fn of(state: SharedState, file: &Path, limits: Limits) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (address, server) = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let exposition = Arc::new(Published::first(state));
            let (_, latest) = tokio::sync::watch::channel(exposition);
            let (process, file) = (OwnMetrics::new(Path::new("/proc")), Some(file.to_owned()));
            let site = WebApp::new(latest, process, "/metrics", file);
            let security = Security::load(None).unwrap();
            let server = Server::new(
                Arc::new(security),
                site.router(),
                limits,
                WebMetrics::default(),
                |path| request_class("/metrics", path),
            );
            server.serve(listener);
            (address, server)
        });
        Served { address, runtime: Some(runtime), _server: server }
    }

    pub fn get(&self, path: &str) -> Response {
        get(&agent(Duration::from_secs(60)), &self.address, path, &[]).unwrap()
    }

    /// Asks, and waits for no answer.
    fn ask(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        stream
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Not even for a question that never ends.
        self.runtime.take().unwrap().shutdown_background();
    }
}

fn address(path: &str, window: Window, rest: &str) -> String {
    let pairs = said(window).into_iter().map(|(key, value)| format!("{key}={value}"));
    format!("{path}?{}{rest}", pairs.collect::<Vec<_>>().join("&"))
}

/// The files of a folder and their content, without those of a history in use.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap())
    });
    files.filter(|(name, _)| !name.ends_with("-wal") && !name.ends_with("-shm")).collect()
}

#[test]
fn http_copy_leaves_other_files_alone() {
    let (folder, file) = recorded();
    for name in [
        "history.db.copy",
        "history.db.copy-before-upgrade",
        "history.db.copy.part-1",
        "history.db.copied",
        ".fabric-exporter-copy-mine",
    ] {
        std::fs::write(folder.path().join(name), name).unwrap();
    }
    let before = files(folder.path());
    let served = Served::new(&file, Limits::default());
    for _ in 0..2 {
        let answer = served.get(&address(DUMP, always(), ""));
        assert_eq!(answer.status, 200, "{}", answer.text());
        let copy = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(copy.path(), &answer.body).unwrap();
        let sweeps = |file: &Path| Reader::open(file).unwrap().counts().unwrap();
        assert_eq!(sweeps(copy.path()), sweeps(&file));
        let after = files(folder.path());
        assert!(after == before, "{:?} and {:?}", before.keys(), after.keys());
    }
}

/// Many events, seven at a time.
fn fill(file: &Path) -> Window {
    let (from, to) = (wall(minutes(10)), wall(minutes(100)));
    let began = from.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap().as_micros();
    let db = rusqlite::Connection::open(file).unwrap();
    db.execute_batch(&format!(
        "INSERT INTO events (at, fabric, kind, place, text)
             WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < {MANY})
             SELECT {began} + n / 7 * 1000, (SELECT min(id) FROM fabrics), 'flap', 'a[1]', 'number ' || n
             FROM numbers"
    ))
    .unwrap();
    Window { from, to }
}

#[test]
fn events_are_served_by_page() {
    let (_folder, file) = recorded();
    let window = fill(&file);
    let reader = Reader::open(&file).unwrap();
    let all = reader.events(&EventFilter::all(window)).unwrap();
    assert_eq!(all.len() as u64, MANY);
    let served = Served::new(&file, Limits::default());
    let path = format!("{PATH}/events");
    for (rest, size) in [("", 1_000), ("&limit=10000", 10_000), ("&limit=9999", 9_999)] {
        let (mut told, mut after) = (Vec::new(), String::new());
        loop {
            let answer = served.get(&address(&path, window, &format!("{rest}{after}")));
            assert_eq!(answer.status, 200, "{}", answer.text());
            let page: Value = serde_json::from_str(answer.text()).unwrap();
            let events = page["events"].as_array().unwrap_or_else(|| panic!("no page of events"));
            assert!(events.len() <= size, "{} of {size} at most", events.len());
            told.extend(events.iter().map(|event| event["text"].as_str().unwrap().to_owned()));
            let Some(next) = page["next"].as_str() else { break };
            assert_eq!(events.len(), size, "all pages but the last are full");
            after = format!("&after={next}");
        }
        let texts: Vec<&String> = all.iter().map(|event| &event.text).collect();
        assert!(told.iter().eq(texts), "{} of {MANY} with {rest:?}", told.len());
    }
    for (rest, says) in [
        ("&limit=10001", "limit: \"10001\" must be a number from 1 to 10000"),
        ("&limit=0", "limit: \"0\" must be a number from 1 to 10000"),
        (
            "&after=yesterday",
            "after: \"yesterday\" must be the value of \"next\" of the previous page",
        ),
    ] {
        let answer = served.get(&address(&path, window, rest));
        assert_eq!((answer.status, answer.text().trim_end()), (400, says));
    }
    // A client that wants all of them follows the pages.
    let api =
        HistoryClient::new(&format!("http://{}", served.address), &Access::default()).unwrap();
    assert!(api.events(&EventFilter::all(window)).unwrap() == all);
}

#[test]
fn series_have_a_limit_of_readings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    RecordedSimulation::new("", &file).run_to(minutes(3));
    let port = Reader::open(&file).unwrap().ports("leaf-0-0[9]").unwrap().remove(0).end();
    let series = |most| {
        let reader = Reader::open(&file).unwrap().limited(most);
        reader.series(&[port], SeriesDetail::All, always())
    };
    let steps = series(usize::MAX).unwrap().iter().map(|it| it.steps.len()).sum::<usize>();
    assert!(steps > 5, "{steps}");
    assert_eq!(series(steps).unwrap().iter().map(|it| it.steps.len()).sum::<usize>(), steps);
    let error = series(steps - 1).unwrap_err().to_string();
    assert!(error.contains("request fewer ports or a shorter period"), "{error}");
}

/// Makes a question about events one that never ends.
fn never_ends(file: &Path) {
    let db = rusqlite::Connection::open(file).unwrap();
    db.execute_batch(
        "ALTER TABLE events RENAME TO kept;
         CREATE VIEW events AS
             WITH RECURSIVE numbers (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM numbers)
             SELECT id, id % 2 AS at, 1 AS fabric, 'flap' AS kind, NULL AS node, NULL AS port,
                 NULL AS link, '' AS place, '' AS text, NULL AS detail
             FROM numbers;",
    )
    .unwrap();
}

/// How many times a file is open in this process.
fn times_open(file: &Path) -> usize {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let paths = descriptors.filter_map(|it| std::fs::read_link(it.ok()?.path()).ok());
    paths.filter(|path| path == file).count()
}

/// How many questions are answered at once.
const SEATS: usize = 4;

#[test]
fn disconnected_client_frees_its_slot() {
    let (_folder, file) = recorded();
    never_ends(&file);
    let served = Served::new(&file, Limits::default());
    let events = address(&format!("{PATH}/events"), always(), "");
    let waiting: Vec<TcpStream> = (0..SEATS).map(|_| served.ask(&events)).collect();
    wait_until(Duration::from_secs(60), "all seats taken", || {
        (times_open(&file) == SEATS).then_some(())
    });
    drop(waiting);
    // A question that finds no seat within 20 s is refused.
    let answer = served.get(&format!("{PATH}/span"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    wait_until(Duration::from_secs(60), "the end of all questions", || {
        (times_open(&file) == 0).then_some(())
    });
}

#[test]
fn response_timeout_frees_its_slot() {
    let (_folder, file) = recorded();
    never_ends(&file);
    let limits = Limits { handler_timeout: Duration::from_secs(1), ..Limits::default() };
    let served = Served::new(&file, limits);
    let events = address(&format!("{PATH}/events"), always(), "");
    let mut waiting: Vec<TcpStream> = (0..SEATS).map(|_| served.ask(&events)).collect();
    for stream in &mut waiting {
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 503");
    }
    wait_until(Duration::from_secs(60), "the end of all questions", || {
        (times_open(&file) == 0).then_some(())
    });
}
