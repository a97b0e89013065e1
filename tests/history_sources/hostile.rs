//! Answers that nobody should give.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, SystemTime};

use fabric_exporter::history_sources::Api;
use fabric_exporter::history_sources::prometheus::Prometheus;
use fabric_exporter::remote::Access;
use fabric_history::Source;
use fabric_history::model::Window;
use fabric_history::source::{Detail, Wanted};

use test_rig::program;

/// A server that answers everybody with this; its address.
fn answering(status: &str, body: &str) -> String {
    listening(status, body).0
}

/// The same, and what it was told.
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
            // Heads and forms come apart.
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            while let Ok(count @ 1..) = stream.read(&mut part) {
                said.extend_from_slice(&part[..count]);
                if is_whole(&said) {
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

fn is_whole(said: &[u8]) -> bool {
    let text = String::from_utf8_lossy(said).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head
        .split_once("content-length: ")
        .map_or(0, |(_, rest)| rest.lines().next().unwrap().trim().parse().unwrap());
    body.len() >= length
}

fn ask_all(source: &dyn Source) -> Vec<String> {
    let now = SystemTime::now();
    let window = Window { from: now - Duration::from_secs(60), to: now };
    let ends = [(ib_mad::Guid(1), 1)];
    let answers = [
        source.ports("x").err(),
        source.events(&Wanted::all(window)).err(),
        source.cables(&ends, window).err(),
        source.moved(window).err(),
        source.series(&ends, Detail::All, window).err(),
        source.fabrics(now).err(),
        source.cover(window).err(),
    ];
    answers.into_iter().flatten().map(|error| error.to_string()).collect()
}

#[test]
fn no_answer_makes_anybody_panic() {
    let one = |value: &str, metric: &str| {
        format!(
            r#"{{"status":"success","data":{{"resultType":"vector","result":[
                {{"metric":{{{metric}}},"value":[1e9,"{value}"],"values":[[1e9,"{value}"],[1e300,"1"],[-5,"1"]]}}]}}}}"#
        )
    };
    let odd = r#""fabric":"f","guid":"x","port":"999","link":"-","reason":"?""#;
    let well = r#""fabric":"f","guid":"0x1","port":"1","link":"0x1:1-0x2:1","root_guid":"0x1","root_port":"1""#;
    for (status, body, fails) in [
        ("200 OK", String::new(), true),
        ("200 OK", "<html>no</html>".into(), true),
        ("500 Internal Server Error", "it broke\nin two lines".into(), true),
        ("422 Unprocessable Entity", r#"{"status":"error","error":"too\nlong"}"#.into(), true),
        ("200 OK", one("NaN", ""), true),
        ("200 OK", one("-1e308", odd), true),
        ("200 OK", one("1e308", well), true),
        ("200 OK", one("1700000000", ""), false),
        ("200 OK", one("1700000000", odd), false),
        ("200 OK", one("1700000000", well), false),
        ("200 OK", one("2000000000", well), false),
    ] {
        let url = answering(status, &body);
        let errors = ask_all(&Prometheus::new(&url, &Access::default()).unwrap());
        assert_eq!(errors.len(), if fails { 7 } else { 0 }, "{body}: {errors:?}");
        for error in errors.iter().chain(&ask_all(&Api::new(&url, &Access::default()).unwrap())) {
            assert!(error.starts_with(&url) && error.lines().count() == 1, "{error}");
        }
    }
}

#[test]
fn nobody_or_two_to_ask() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{free}");
    let page = answering("404 Not Found", "<html>\n404");
    for (args, code, says) in [
        (vec![], 2, "--file, --url or --source: which history?"),
        (vec!["--file", "x", "--url", "http://x"], 2, "one of them alone"),
        (vec!["--url", "http://x", "--source", "http://x"], 2, "one of them alone"),
        (vec!["--url", "ftp://x"], 2, "--url: \"ftp://x\" is no address such as"),
        (vec!["--source", "x:9090"], 2, "--source: \"x:9090\" is no address such as"),
        (vec!["--source.header", "X: y", "--file", "x"], 2, "goes with --source"),
        (vec!["--source.header", "nothing"], 2, "no \"NAME: VALUE\""),
        (vec!["--url", &nobody], 1, "does not answer"),
        (vec!["--source", &nobody], 1, "does not answer"),
        (vec!["--url", &page], 1, "is it an exporter that records"),
        (vec!["--source", &page], 1, "name the address of a Prometheus"),
    ] {
        let output =
            Command::new(program()).args(["history", "events"]).args(&args).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {error}");
        assert!(error.contains(says), "{args:?}: {error}");
    }
}

#[test]
fn paths_and_headers_are_passed_on() {
    let (url, told) = listening("200 OK", "[]");
    let api = Api::new(&format!("{url}/rack/7/"), &Access::default()).unwrap();
    assert!(api.ports("leaf 1[3]").unwrap().is_empty());
    let said = told.recv().unwrap();
    let asked = "GET /rack/7/api/v1/history/ports?called=leaf%201%5B3%5D HTTP/1.1";
    assert_eq!(said.lines().next(), Some(asked));

    let none = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;
    let (url, told) = listening("200 OK", none);
    let args = ["history", "events", "--source", &format!("{url}/select/0/prometheus")];
    let headers =
        ["--source.header=X-Scope-OrgID: fabric", "--source.header", "Authorization: Bearer x"];
    let output = Command::new(program()).args(args).args(headers).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("does not say what time it is"), "{error}");
    let said = told.recv().unwrap().to_lowercase();
    assert!(said.starts_with("post /select/0/prometheus/api/v1/query http/1.1"), "{said}");
    for header in ["x-scope-orgid: fabric\r\n", "authorization: bearer x\r\n"] {
        assert!(said.contains(header), "{said}");
    }
    assert!(said.ends_with("query=vector(time())"), "{said}");
}
