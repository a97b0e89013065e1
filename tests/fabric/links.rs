//! The verb `links`: from a running exporter, and by an own sweep.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use fabric_api::model::{Link, Links};
use rig::child::{self, Output};
use rig::program;
use rig::{Exporter, Ibsim, OpenSm, run_to_exit, topology};

const LIMIT: Duration = Duration::from_secs(60);

/// Runs `links` without a fabric.
fn links(args: &[&str]) -> Output {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(program());
    command.arg("links").args(args);
    child::run("fabric-exporter", &mut command, directory.path(), LIMIT)
}

fn well(output: Output) -> Output {
    assert!(output.status.success(), "{}: {}", output.status, output.stderr);
    output
}

fn parsed(json: &str) -> Links {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn ids(told: &Links) -> BTreeSet<String> {
    let links = told.fabrics.iter().flat_map(|fabric| &fabric.links);
    links.map(|link| link.link.clone()).collect()
}

#[test]
fn links_of_a_running_exporter() {
    let mut exporter = Exporter::demo(&["--fabric.interval=1s"]);
    exporter.wait_ready();
    let url = format!("http://{}", exporter.address());

    let all = parsed(&well(links(&["--url", &url, "--json"])).stdout);
    let in_metrics: BTreeSet<String> = exporter
        .metrics()
        .all("infiniband_port_info")
        .filter_map(|(labels, _)| labels.get("link").cloned())
        .collect();
    assert!(in_metrics.len() > 20);
    assert_eq!(ids(&all), in_metrics, "the same ids, and all of them");
    assert!(all.fabrics.iter().all(|fabric| fabric.swept_at.is_some()));

    // The same as the response of the API.
    let plain = exporter.get("/api/v1/links?fabric=default", &[]);
    assert_eq!((plain.status, plain.header("content-type")), (200, Some("application/json")));
    assert_eq!(ids(&parsed(plain.text())), in_metrics);

    let suspects = parsed(&well(links(&["--url", &url, "--json", "--suspect"])).stdout);
    assert!(ids(&suspects).is_subset(&in_metrics));
    assert!(suspects.fabrics.iter().flat_map(|fabric| &fabric.links).all(Link::is_suspect));

    let table = well(links(&["--url", &format!("{url}/")]));
    let mut lines = table.stdout.lines();
    assert!(lines.next().unwrap().starts_with("VERDICT"), "{}", table.stdout);
    assert_eq!(lines.count(), in_metrics.len());
    assert!(!table.stdout.contains('\x1b'), "no colours in a file");
    assert!(table.stderr.contains(" ok") && !table.stderr.contains("--for"), "{}", table.stderr);
    assert_eq!(table.stderr.lines().count(), 1, "{}", table.stderr);

    // The one link of a host, and an error if there is no such host.
    let host = well(links(&["--url", &url, "--node", "host-3"]));
    assert_eq!(host.stdout.lines().count(), 2, "{}", host.stdout);
    let part = format!("1 of {} links at host-3; verdicts of all: ", in_metrics.len());
    assert!(host.stderr.starts_with(&part), "{}", host.stderr);
    refused(&links(&["--url", &url, "--node", "host"]), 2, "\"host\" not found in");
    let bad = links(&["--url", &url, "--node", "host-3/1", "--fail-on", "watch", "--json"]);
    assert_eq!(parsed(&well(bad).stdout).fabrics[0].links.len(), 1);

    let other = links(&["--url", &url, "--fabric", "plane-7"]);
    refused(&other, 1, "unknown fabric \"plane-7\"; known: default");
    for query in ["suspicious=true", "suspect=maybe", "fabric=plane-7"] {
        let answer = exporter.get(&format!("/api/v1/links?{query}"), &[]);
        assert_eq!((answer.status, answer.text().lines().count()), (400, 1), "{query}");
    }
    assert!(exporter.stop().success());
}

/// A host that is down fails at each level, in each list, with one line that a script can store.
#[test]
fn gate_fails_for_a_host_that_is_down() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("down.yml");
    std::fs::write(&scenario, "timeline: [{reboot: {at: 5s, node: host-3, down: 1h}}]").unwrap();
    let scenario = format!("--scenario={}", scenario.display());
    let mut exporter = Exporter::demo(&[&scenario, "--fabric.interval=1s", "--no-history"]);
    exporter.wait_ready();
    let url = format!("http://{}", exporter.address());
    let gate = |list: &[&str], level: &str| {
        let mut command = Command::new(program());
        command.args(list).args(["--url", &url, "--fail-on", level]);
        let output = child::run("fabric-exporter", &mut command, folder.path(), LIMIT);
        let last = output.stderr.lines().last().unwrap_or_default().to_owned();
        (output.status.code(), last)
    };
    let links = ["links", "--node", "host-3"];
    rig::wait_until(LIMIT, "the host to be down", || {
        (gate(&links, "bad").0 == Some(7)).then_some(())
    });
    for list in [&links[..], &["nodes", "--node", "host-3"], &["ports", "host-3"], &["links"]] {
        for level in ["bad", "watch", "unknown"] {
            let (code, line) = gate(list, level);
            assert_eq!(code, Some(7), "{list:?}: {line}");
            let start = format!("fabric-exporter: --fail-on {level}: 1 node down: host-3 since 2");
            assert!(line.starts_with(&start), "{line}");
            assert!(line.ends_with(". Try first: Check whether the host is up."), "{line}");
        }
    }
    // Its links were not observed for long enough yet.
    let other = ["links", "--node", "host-4"];
    assert_eq!([gate(&other, "bad").0, gate(&other, "unknown").0], [Some(0), Some(7)]);
    assert_eq!(gate(&["links", "--node", "no-*"], "bad").0, Some(2));
    assert!(exporter.stop().success());
}

#[test]
fn closed_pipe_is_no_error() {
    let mut exporter = Exporter::demo(&["--fabric.interval=1s"]);
    exporter.wait_ready();
    let url = format!("http://{}", exporter.address());
    for format in [&[][..], &["--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        // As with `| head -1`: nothing reads the rest of the output.
        drop(reader);
        let output = Command::new(program())
            .args([&["links", "--url", &url], format].concat())
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output =
        Command::new(program()).args(["links", "--url", &url]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "a full disk is one");
    assert!(exporter.stop().success());
}

/// It failed with this code and one line.
fn refused(output: &Output, code: i32, says: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", output.stderr);
    assert!(output.stderr.contains(says), "{says}: {}", output.stderr);
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
    assert_eq!(output.stdout, "");
}

/// The address of a server with this response.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn addresses_without_an_exporter_are_refused() {
    for url in ["ftp://127.0.0.1:1", "127.0.0.1:10315", "http://", "http://h:99999", ""] {
        refused(&links(&["--url", url]), 2, "is not an address such as");
    }
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = links(&["--url", &format!("http://{free}")]);
    refused(&nobody, 1, "is an exporter running there?");
    for (answer, says) in [
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "HTTP status 404"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>", "not a list of links"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "not a list of links"),
        ("HTTP/1.1 200 OK\r\ncontent-length: 60\r\n\r\n{\"fab", "request failed"),
        ("HTTP/1.1 400 Bad\r\ncontent-length: 8\r\n\r\na\x1b[2J\r\nb", "links: a[2J"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "request failed"),
    ] {
        refused(&links(&["--url", &answering(answer)]), 1, says);
    }
}

#[test]
fn conflicting_flags_are_refused() {
    for args in [
        &["--url=http://127.0.0.1:1", "--for=1m"][..],
        &["--url=http://127.0.0.1:1", "--fabric.hca=mlx5_0"],
        &["--url=http://127.0.0.1:1", "--path.sysfs=/sys"],
        &["--for=soon"],
        &["--web.listen-address=:1"],
    ] {
        assert_eq!(links(args).status.code(), Some(2), "{args:?}");
    }
    let output = links(&["--fabric=plane-7"]);
    refused(&output, 2, "unknown fabric \"plane-7\"; known: default");
    refused(&links(&["--path.sysfs=/nowhere"]), 3, "");
}

#[test]
fn links_by_an_own_sweep() {
    let net = topology::fat_tree_2(8, 10, 4, 3);
    let ibsim = Ibsim::start(&net);
    let _opensm = OpenSm::start(&ibsim);
    let ends = topology::all_connected_ports(&net);
    let (node, port) = &ends[0];
    ibsim.console(&format!("PerformanceSet \"{node}\"[{port}] PortCounters.SymbolErrorCounter=77"));

    let all = well(run_to_exit(&ibsim, &["links"]));
    assert_eq!(all.stdout.lines().count(), 1 + ends.len() / 2, "{}", all.stdout);
    assert!(all.stderr.contains("for bit error ratios use --for 1m"), "{}", all.stderr);
    assert_eq!(all.stderr.lines().count(), 1, "{}", all.stderr);

    let suspects = well(run_to_exit(&ibsim, &["links", "--suspect"]));
    let [_, suspect] = suspects.stdout.lines().collect::<Vec<_>>()[..] else {
        panic!("one suspect: {}", suspects.stdout);
    };
    assert!(suspect.contains("symbol_errors 77"), "{suspect}");

    let json = well(run_to_exit(&ibsim, &["links", "--json", "--suspect", "--for=2s"]));
    let told = parsed(&json.stdout);
    let [link] = &told.fabrics[0].links[..] else { panic!("one suspect: {told:?}") };
    let counted = link.ends.iter().find_map(|end| end.counters.get("symbol_errors"));
    assert_eq!(counted, Some(&77));
    assert_eq!(json.stderr, "");
}
