//! Situations, each with the line and the exit codes.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::Parser;
use fabric_api::model::{
    Condition, End, Fabric, FabricLinks, FabricNodes, Finding, Link, LinkReason, Links, Node,
    Nodes, Overview, PortName, Region,
};

use super::outcome::Status;
use super::*;

/// The answers of an exporter by path, with their status; other requests are never answered.
type Answers = HashMap<String, (u16, String)>;

/// Serves answers until the test ends. Returns the address.
fn serve(answers: Answers) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let answers = answers.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut line = String::new();
                while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
                    if let Some(path) = line.strip_prefix("GET ") {
                        let path = path.split([' ', '?']).next().unwrap_or_default();
                        let answer = answers.get(path).cloned();
                        let is_bad_only = line.contains("verdict=bad");
                        let answer = if is_bad_only {
                            answers.get("uplinks").cloned().or(answer)
                        } else {
                            answer
                        };
                        // An exporter that hangs keeps the connection open.
                        let Some((status, body)) = answer else { continue };
                        let _ = write!(
                            stream,
                            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}",
                            body.len()
                        );
                    }
                    line.clear();
                }
            });
        }
    });
    address
}

fn condition(kind: Option<&'static str>, text: &str) -> Condition {
    let finding = |kind: &'static str| Finding {
        kind: kind.into(),
        verdict: "unknown".into(),
        count: 1,
        text: text.into(),
        ..Finding::default()
    };
    Condition {
        verdict: if kind.is_some() { "unknown" } else { "ok" }.into(),
        headline: String::new(),
        findings: kind.map(finding).into_iter().collect(),
    }
}

/// A fabric with host gpu17, an HCA with a cable to a leaf switch.
struct Site {
    condition: Condition,
    up: bool,
    hosts: &'static [&'static str],
    /// The verdict, the reason and the evidence of its cable.
    cable: (&'static str, &'static str, &'static str),
    bad_uplink: bool,
    congested: bool,
}

impl Default for Site {
    fn default() -> Self {
        let condition = condition(None, "");
        let cable = ("ok", "", "");
        Site { condition, up: true, hosts: &["gpu17"], cable, bad_uplink: false, congested: false }
    }
}

fn link(ends: [(&str, &'static str, u8); 2], cable: (&str, &str, &str)) -> Link {
    let (verdict, reason, evidence) = cable;
    let reason = LinkReason {
        reason: reason.to_owned().into(),
        verdict: verdict.to_owned().into(),
        evidence: evidence.into(),
    };
    let end = |(node, kind, port): (&str, &'static str, u8)| End {
        guid: format!("0x{:016x}", node.len()),
        node: node.into(),
        node_type: kind.into(),
        port,
        ..End::default()
    };
    Link {
        verdict: verdict.to_owned().into(),
        reasons: if evidence.is_empty() { Vec::new() } else { vec![reason] },
        ends: ends.map(end),
        up: Some(true),
        ..Link::default()
    }
}

impl Site {
    fn links(&self, links: Vec<Link>) -> String {
        let fabric = FabricLinks {
            fabric: "ib0".into(),
            condition: self.condition.clone(),
            links,
            ..FabricLinks::default()
        };
        serde_json::to_string(&Links { fabrics: vec![fabric] }).unwrap()
    }

    fn answers(&self) -> Answers {
        let node = |host: &&str| Node {
            node: format!("{host} mlx5_0"),
            host: Some((*host).to_owned()),
            node_type: "ca".into(),
            up: self.up,
            ..Node::default()
        };
        let nodes = Nodes {
            fabrics: vec![FabricNodes {
                fabric: "ib0".into(),
                condition: self.condition.clone(),
                nodes: self.hosts.iter().map(node).collect(),
                ..FabricNodes::default()
            }],
        };
        let own = link([("leaf-1", "switch", 9), ("gpu17 mlx5_0", "ca", 1)], self.cable);
        let uplink = ("bad", "bit_errors", "symbol BER 3e-9");
        let uplink = link([("leaf-1", "switch", 33), ("spine-12", "switch", 1)], uplink);
        let uplinks = if self.bad_uplink { vec![uplink] } else { Vec::new() };
        let root = PortName { node: "leaf-1".into(), port: 9, ..PortName::default() };
        let peer = PortName { host: Some("gpu17".into()), ..PortName::default() };
        let region = Region {
            root,
            peer: Some(peer),
            ports: 42,
            cause: "slow_receiver".into(),
            ..Region::default()
        };
        let congestion = if self.congested { vec![region] } else { Vec::new() };
        let fabric = Fabric { congestion, ..Fabric::default() };
        let overview = Overview { fabrics: vec![fabric], ..Overview::default() };
        let ok = |body: String| (200, body);
        [
            ("/api/v1/nodes".to_owned(), ok(serde_json::to_string(&nodes).unwrap())),
            ("/api/v1/links".to_owned(), ok(self.links(vec![own]))),
            ("uplinks".to_owned(), ok(self.links(uplinks))),
            ("/api/v1/overview".to_owned(), ok(serde_json::to_string(&overview).unwrap())),
        ]
        .into()
    }

    fn url(&self) -> String {
        serve(self.answers())
    }
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: CheckNodeArgs,
}

/// The exit codes without and with `--nagios`, and the line.
fn check(arguments: &[&str]) -> ((u8, u8), String) {
    let line = ["check-node"].iter().chain(arguments);
    let Line { args } = Line::try_parse_from(line).unwrap();
    // As slow as a busy machine is.
    let outcome = args.check(Instant::now() + Duration::from_secs(20));
    let status = outcome.status();
    ((status.exit_code(false), status.exit_code(true)), outcome.line())
}

const FINE: (u8, u8) = (0, 0);
const DEGRADED: (u8, u8) = (0, 1);
const BAD: (u8, u8) = (1, 2);
const UNKNOWN: (u8, u8) = (2, 3);

/// The address of an exporter, further arguments, the exit codes and how the line begins.
type Case<'a> = (String, &'a [&'a str], (u8, u8), &'a str);

fn expect(table: &[Case]) {
    for (url, options, codes, line) in table {
        let arguments = [&["gpu17", "--url", url][..], options].concat();
        let (found, text) = check(&arguments);
        assert!(found == *codes && text.starts_with(line), "{line}: {found:?} {text}");
        assert!(text.len() <= 80 && !text.contains('\n'), "{text}");
    }
}

#[test]
fn exporter_decides_about_hosts() {
    let sound = Site::default;
    let cable =
        |verdict, reason, evidence| Site { cable: (verdict, reason, evidence), ..sound() }.url();
    expect(&[
        (sound().url(), &[], FINE, "FINE gpu17: 1 cable ok"),
        (
            cable("bad", "bit_errors", "symbol BER 3e-9"),
            &[],
            BAD,
            "BAD gpu17: cable leaf-1 port 9 bad: symbol BER 3e-9",
        ),
        (
            cable("watch", "width", "2x, had 4x"),
            &[],
            DEGRADED,
            "DEGRADED gpu17: cable leaf-1 port 9 degraded: 2x, had 4x",
        ),
        (
            cable("unknown", "insufficient_data", "observed for 3 s"),
            &[],
            UNKNOWN,
            "UNKNOWN gpu17: 1 cable not judged: leaf-1 port 9 is unknown",
        ),
        (
            cable("unknown", "maintenance", "in maintenance"),
            &[],
            FINE,
            "FINE gpu17: cable leaf-1 port 9 not judged: in maintenance",
        ),
        (Site { up: false, ..sound() }.url(), &[], BAD, "BAD gpu17: gpu17 mlx5_0 is down"),
        (
            Site { bad_uplink: true, ..sound() }.url(),
            &[],
            FINE,
            "FINE gpu17: 1 cable ok; 1 bad uplink of its leaf: leaf-1 port 33",
        ),
        (
            Site { bad_uplink: true, ..sound() }.url(),
            &["--strict"],
            BAD,
            "BAD gpu17: 1 bad uplink of its leaf: leaf-1 port 33",
        ),
        (
            Site { congested: true, ..sound() }.url(),
            &["--strict"],
            BAD,
            "BAD gpu17: 42 ports wait for it (slow_receiver)",
        ),
    ]);
}

/// Nobody drains a host because of an exporter.
#[test]
fn exporter_that_does_not_know_decides_nothing() {
    let sound = Site::default;
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", silent.local_addr().unwrap());
    drop(silent);
    let refuse = |status: u16, text: &str| {
        serve([("/api/v1/nodes".to_owned(), (status, text.to_owned()))].into())
    };
    let blind = |kind, text| Site { condition: condition(Some(kind), text), ..sound() }.url();
    expect(&[
        (
            blind("stale", "the latest sweep is 10m old"),
            &[],
            UNKNOWN,
            "UNKNOWN gpu17: fabric ib0: the latest sweep is 10m old",
        ),
        (
            Site {
                hosts: &[],
                condition: condition(Some("not_swept"), "not swept yet"),
                ..sound()
            }
            .url(),
            &[],
            UNKNOWN,
            "UNKNOWN gpu17: not swept yet",
        ),
        (
            Site { hosts: &[], ..sound() }.url(),
            &[],
            UNKNOWN,
            "UNKNOWN gpu17: the exporter does not know this host",
        ),
        (
            refuse(400, "node: no node or host has the name \"gpu17\", and no node has it as GUID"),
            &[],
            UNKNOWN,
            "UNKNOWN gpu17: the exporter does not know this host",
        ),
        (refuse(401, ""), &[], UNKNOWN, "UNKNOWN gpu17: exporter: login required"),
        (refuse(500, "x"), &[], UNKNOWN, "UNKNOWN gpu17: exporter: HTTP status 500"),
        (
            refuse(200, "<html>"),
            &[],
            UNKNOWN,
            "UNKNOWN gpu17: exporter: the answer is not that of an exporter",
        ),
        (closed, &[], UNKNOWN, "UNKNOWN gpu17: exporter: Connection refused"),
        ("gpu-monitor:10315".into(), &[], UNKNOWN, "UNKNOWN --url: "),
    ]);
}

#[test]
fn several_hosts_are_one_line() {
    let url = Site { cable: ("bad", "bit_errors", "symbol BER 3e-9"), ..Site::default() }.url();
    let (codes, line) = check(&["gpu[17-19].cluster", "--url", &url]);
    assert_eq!(codes, BAD);
    assert!(line.starts_with("BAD 3 of 3 hosts: gpu[17-19].cluster: cable leaf-1"), "{line}");
    assert_eq!(check(&["gpu[17-", "--url", &url]).0, UNKNOWN);
    let (codes, line) = check(&["gpu17"]);
    assert_eq!((codes, &*line), (UNKNOWN, "UNKNOWN gpu17: --url is required for another host"));
}

/// The program ends in time, whatever hangs.
#[test]
fn exporter_that_hangs_is_unknown_in_time() {
    let url = serve(Answers::new());
    let Line { args } = Line::try_parse_from(["check-node", "gpu17", "--url", &url]).unwrap();
    let outcome = args.check(Instant::now() + Duration::from_millis(400));
    assert_eq!(outcome.status(), Status::Unknown);
    assert!(outcome.line().contains("exporter: "), "{}", outcome.line());
}

#[test]
fn nagios_has_its_own_code_for_wrong_arguments() {
    let is = |line: &str| is_nagios(line.split(' ').map(Into::into));
    assert!(is("fabric-exporter check-node --nagios --wrong"));
    assert!(!is("fabric-exporter check-node --wrong") && !is("fabric-exporter links --nagios"));
}

/// The ports of a host with two adapters, by their states.
fn own(states: [&str; 2], physical: &str, options: &[&str]) -> ((u8, u8), String) {
    let tree = tempfile::tempdir().unwrap();
    for (index, state) in states.iter().enumerate() {
        let device = tree.path().join(format!("class/infiniband/mlx5_{index}"));
        let port = device.join("ports/1");
        std::fs::create_dir_all(&port).unwrap();
        std::fs::write(device.join("node_type"), "1: CA\n").unwrap();
        let files = [("state", *state), ("phys_state", physical), ("link_layer", "InfiniBand")];
        for (file, text) in files {
            std::fs::write(port.join(file), format!("{text}\n")).unwrap();
        }
    }
    checked(tree.path(), options)
}

fn checked(sysfs: &Path, options: &[&str]) -> ((u8, u8), String) {
    let sysfs = sysfs.to_str().unwrap();
    let (codes, line) = check(&[&["--path.sysfs", sysfs][..], options].concat());
    let text = line.split_once(": ").map_or(line.clone(), |(_, text)| text.to_owned());
    (codes, text)
}

#[test]
fn kernel_decides_about_own_ports() {
    let (active, down, init) = ("4: ACTIVE", "1: DOWN", "2: INIT");
    let up = "5: LinkUp";
    let text = |text: &str| text.to_owned();
    assert_eq!(own([active, active], up, &[]), (FINE, text("2 of 2 ports Active")));
    assert_eq!(own([active, down], up, &[]), (FINE, text("1 of 2 ports Active")));
    let expected = own([active, down], up, &["--expect-ports", "2"]);
    assert_eq!(expected, (BAD, text("1 of 2 ports Active, 2 expected")));
    assert_eq!(own([down, down], "2: Polling", &[]), (BAD, text("0 of 2 ports Active")));
    let (codes, line) = own([active, init], up, &[]);
    assert_eq!(codes, BAD);
    assert!(line.starts_with("mlx5_1/1 is Init: no subnet manager"), "{line}");
    let disabled = own([down, down], "3: Disabled", &[]);
    assert_eq!(disabled, (UNKNOWN, text("no RDMA port with a cable")));
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(checked(empty.path(), &[]), (UNKNOWN, text("no RDMA port with a cable")));
}
