//! Responses that no exporter gives, and flags that name no source.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use fabric_exporter::history_client::HistoryClient;
use fabric_exporter::remote::Access;
use fabric_history::Source;
use fabric_history::model::Window;
use fabric_history::source::{EventFilter, SeriesDetail};

use test_rig::program;

/// A server that always gives this response; returns its address.
fn answering(status: &str, body: &str) -> String {
    listening(status, body).0
}

/// The same, and the requests that it gets.
fn listening(status: &str, body: &str) -> (String, mpsc::Receiver<String>) {
    let (tell, told) = mpsc::channel();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut said = Vec::new();
            let mut part = [0; 4096];
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            while let Ok(count @ 1..) = stream.read(&mut part) {
                said.extend_from_slice(&part[..count]);
                if said.ends_with(b"\r\n\r\n") {
                    break;
                }
            }
            // Most tests do not want to know.
            let _ = tell.send(String::from_utf8_lossy(&said).into_owned());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (url, told)
}

fn ask_all(source: &dyn Source) -> Vec<String> {
    let now = SystemTime::now();
    let window = Window { from: now - Duration::from_secs(60), to: now };
    let ends = [ib_mad::PortKey::new(ib_mad::Guid(1), 1)];
    let answers = [
        source.ports("x").err(),
        source.events(&EventFilter::all(window)).err(),
        source.cables(&ends, window).err(),
        source.error_deltas(window).err(),
        source.series(&ends, SeriesDetail::All, window).err(),
        source.fabrics(now).err(),
        source.coverage(window).err(),
    ];
    answers.into_iter().flatten().map(|error| error.to_string()).collect()
}

#[test]
fn unusable_responses_are_one_line_errors() {
    let row = r#""fabric":"f","guid":"x","port":999,"node":"n""#;
    for (status, body) in [
        ("200 OK", String::new()),
        ("200 OK", "<html>no</html>".into()),
        ("500 Internal Server Error", "it broke\nin two lines".into()),
        ("422 Unprocessable Entity", r#"{"status":"error","error":"too\nlong"}"#.into()),
        ("404 Not Found", "<html>\n404".into()),
        ("200 OK", r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#.into()),
        ("200 OK", format!("[{{{row}}}]")),
    ] {
        let url = answering(status, &body);
        let errors = ask_all(&HistoryClient::new(&url, &Access::default()).unwrap());
        assert_eq!(errors.len(), 7, "{body}: {errors:?}");
        for error in errors {
            assert!(error.starts_with(&url) && error.lines().count() == 1, "{error}");
        }
    }
}

#[test]
fn bad_source_flags_are_refused() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{free}");
    let page = answering("404 Not Found", "<html>\n404");
    for (args, code, says) in [
        (vec![], 2, "--url"),
        (vec!["--file", "x", "--url", "http://x"], 2, "--url"),
        (vec!["--file", "x", "--source", "http://x"], 2, "--url"),
        (vec!["--url", "ftp://x"], 2, "\"ftp://x\""),
        (vec!["--url", &nobody], 1, &*nobody),
        (vec!["--source", &nobody], 1, &*nobody),
        (vec!["--url", &page], 1, &*page),
    ] {
        let output =
            Command::new(program()).args(["history", "events"]).args(&args).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(says), "{args:?}: {error}");
    }
}

#[test]
fn prometheus_source_is_refused_with_advice() {
    let nothing = test_rig::prometheus::Setup {
        jobs: Vec::new(),
        interval: Duration::from_secs(15),
        lookback: Duration::from_secs(300),
        rules: Vec::new(),
        alertmanager: None,
        keep: None,
    };
    let server = test_rig::prometheus::Prometheus::start(&nothing);
    let url = server.url();
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    for verb in
        [&["events"][..], &["report"], &["export"], &["dump", "--output", copy.to_str().unwrap()]]
    {
        let output = Command::new(program())
            .arg("history")
            .args(verb)
            .args(["--source", &url])
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{verb:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(&format!("{url}: this is Prometheus, not an exporter")), "{error}");
        assert!(error.contains("--file"), "{error}");
    }
    assert!(!copy.exists());
}

#[test]
fn path_of_the_address_precedes_the_query() {
    let (url, told) = listening("200 OK", "[]");
    let api = HistoryClient::new(&format!("{url}/rack/7/"), &Access::default()).unwrap();
    assert!(api.ports("leaf&1?3").unwrap().is_empty());
    let said = told.recv().unwrap();
    let asked = "GET /rack/7/api/v1/history/ports?called=leaf%261%3F3 HTTP/1.1";
    assert_eq!(said.lines().next(), Some(asked));
}
