//! The script that drains Slurm nodes when Alertmanager says so: which alerts it acts on, the limit, and its answers.
//!
//! `scontrol` is replaced by a script that keeps the nodes in files; `slurm.rs` has tests with Slurm itself.

mod service;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use test_rig::require;

/// What the script is called with is in `calls`, one argument per line; `fails` makes it fail as a whole or for a node.
const SCONTROL: &str = r#"#!/bin/bash
cd "$(dirname "$0")" || exit 9
printf '%s\n' "$@" >> calls
[ ! -e "fails-$1" ] || { echo 'slurm_update error: Unable to contact slurm controller' >&2; exit 1; }
case $1 in
-o) cat nodes/* ;;
update)
    name=${2#NodeName=}
    [ -e "nodes/$name" ] || { echo 'Invalid node name specified' >&2; exit 1; }
    [ ! -e "fails-$name" ] || exit 1
    echo "NodeName=$name Arch=x86_64 State=IDLE+DRAIN ThreadsPerCore=1 ${4} [slurm@2026-11-28T05:10:00]" > "nodes/$name"
    ;;
esac
"#;

/// A cluster of the stand-in.
struct Cluster {
    folder: TempDir,
}

/// What a run of the script did.
struct Run {
    code: i32,
    log: String,
}

impl Run {
    /// The decisions about a host.
    fn of(&self, host: &str) -> Vec<&str> {
        let about = format!("host={host}");
        let lines = self.log.lines().filter(|line| line.split(' ').any(|word| word == about));
        lines.map(|line| line.split(' ').next().unwrap().trim_start_matches("decision=")).collect()
    }

    fn count(&self, decision: &str) -> usize {
        let start = format!("decision={decision} ");
        self.log.lines().filter(|line| line.starts_with(&start)).count()
    }
}

fn drain_on_alert() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/drain-on-alert/drain-on-alert")
}

impl Cluster {
    /// Nodes `gpu1`, `gpu2` and so on, all idle.
    fn new(nodes: usize) -> Cluster {
        let folder = tempfile::tempdir().unwrap();
        let scontrol = folder.path().join("scontrol");
        std::fs::write(&scontrol, SCONTROL).unwrap();
        std::fs::set_permissions(&scontrol, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir(folder.path().join("nodes")).unwrap();
        let cluster = Cluster { folder };
        for at in 1..=nodes {
            cluster.node(&format!("gpu{at}"), "IDLE ThreadsPerCore=1");
        }
        cluster
    }

    fn node(&self, name: &str, state: &str) {
        let line = format!("NodeName={name} Arch=x86_64 CoresPerSocket=1 State={state}\n");
        std::fs::write(self.folder.path().join("nodes").join(name), line).unwrap();
    }

    fn fails(&self, what: &str) {
        std::fs::write(self.folder.path().join(format!("fails-{what}")), "").unwrap();
    }

    fn drained(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path().join("nodes")).unwrap();
        let mut names: Vec<String> = entries
            .map(|it| it.unwrap().path())
            .filter(|path| std::fs::read_to_string(path).unwrap().contains("+DRAIN"))
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The arguments of all calls that change something.
    fn updates(&self) -> String {
        let calls = std::fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        calls.split_once("update\n").map_or_else(String::new, |(_, rest)| rest.to_owned())
    }

    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(require("python3"));
        let path = format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap());
        command.arg(drain_on_alert()).args(options).env("PATH", path);
        command
    }

    fn run(&self, options: &[&str], body: &[u8]) -> Run {
        let mut command = self.command(options);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may end before it has read all.
        let _ = child.stdin.take().unwrap().write_all(body);
        let output = child.wait_with_output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!log.contains("Traceback"), "{log}");
        Run { code: output.status.code().unwrap(), log }
    }

    fn told(&self, options: &[&str], alerts: &[Value]) -> Run {
        self.run(options, notification(alerts).as_bytes())
    }
}

fn notification(alerts: &[Value]) -> String {
    json!({"version": "4", "status": "firing", "receiver": "drain-on-alert", "alerts": alerts})
        .to_string()
}

/// An alert about the cable of a host, which is the first end of the link.
fn cable(name: &str, host: &str) -> Value {
    json!({"status": "firing", "labels": {
        "alertname": name, "severity": "warning", "fabric": "default", "link": "0xa1:1-0xb2:7",
        "node": format!("{host} mlx5_0"), "port": "1", "node_type": "ca", "host": host,
        "peer_node": "leaf-1", "peer_port": "7", "peer_node_type": "switch",
    }, "annotations": {"summary": "Bad cable"}, "startsAt": "2026-11-28T05:10:00Z"})
}

const BAD: &str = "InfinibandCableBad";
const ACT: &[&str] = &["--act"];

#[test]
fn node_of_a_bad_cable_is_drained_once() {
    let cluster = Cluster::new(4);
    let mut second_end = cable(BAD, "gpu2");
    let labels = second_end["labels"].as_object_mut().unwrap();
    for (one, other) in
        [("node", "peer_node"), ("node_type", "peer_node_type"), ("host", "peer_host")]
    {
        let (a, b) = (labels.remove(one), labels.remove(other));
        labels.extend(a.map(|it| (other.to_owned(), it)));
        labels.extend(b.map(|it| (one.to_owned(), it)));
    }
    let alerts = [
        cable(BAD, "gpu1.cluster.example"),
        cable("InfinibandLinkDown", "gpu1.cluster.example"),
        second_end,
    ];

    let dry = cluster.told(&[], &alerts);
    assert_eq!((dry.code, dry.count("would-drain")), (0, 2), "{}", dry.log);
    assert_eq!(cluster.updates(), "");

    let run = cluster.told(ACT, &alerts);
    assert_eq!((run.code, run.count("drained")), (0, 2), "{}", run.log);
    assert_eq!(run.of("gpu1.cluster.example"), ["ignored", "drained"], "{}", run.log);
    let reason = "Reason=fabric-alert: InfinibandCableBad 0xa1:1-0xb2:7 in default\n";
    assert_eq!(
        cluster.updates(),
        format!("NodeName=gpu1\nState=DRAIN\n{reason}update\nNodeName=gpu2\nState=DRAIN\n{reason}")
    );

    let again = cluster.told(ACT, &alerts);
    assert_eq!((again.code, again.count("drained")), (0, 0), "{}", again.log);
    assert!(again.log.contains("already drained"), "{}", again.log);
    assert_eq!(cluster.updates().matches("NodeName=").count(), 2);
}

#[test]
fn only_firing_alerts_about_cables_of_hosts_are_acted_on() {
    let cluster = Cluster::new(4);
    let with = |changes: &[(&str, Value)]| {
        let mut alert = cable(BAD, "gpu1");
        for (label, value) in changes {
            alert["labels"][label] = value.clone();
        }
        alert
    };
    let mut resolved = cable(BAD, "gpu1");
    resolved["status"] = "resolved".into();
    let no_host = {
        let mut alert = cable(BAD, "gpu1");
        alert["labels"].as_object_mut().unwrap().remove("host");
        alert
    };
    for (alert, decision, why) in [
        (resolved, "ignored", "resolved"),
        (cable("InfinibandCableDegraded", "gpu1"), "ignored", "another alert"),
        (cable("InfinibandManyLinksBad", "gpu1"), "ignored", "another alert"),
        (
            with(&[("node_type", "switch".into())]),
            "refused",
            "no cable between a host and a switch",
        ),
        (
            with(&[("node_type", "switch".into()), ("peer_host", "gpu2".into())]),
            "refused",
            "no cable between a host and a switch",
        ),
        (
            with(&[("peer_node_type", "ca".into()), ("peer_host", "gpu2".into())]),
            "refused",
            "two hosts",
        ),
        (with(&[("peer_node_type", "router".into())]), "refused", "no switch"),
        (no_host, "refused", "no label host"),
        (cable(BAD, "storage9"), "refused", "no node of this name"),
        // Where no exporter sweeps, an alert has only the name of the HCA.
        (
            json!({"status": "firing", "labels": {
                "alertname": BAD, "view": "host", "node": "gpu1 mlx5_0", "device": "mlx5_0", "port": "1",
            }}),
            "refused",
            "no cable between a host and a switch",
        ),
    ] {
        let run = cluster.told(ACT, &[alert]);
        assert_eq!((run.code, run.count(decision)), (0, 1), "{}", run.log);
        assert!(run.log.contains(why), "{why}: {}", run.log);
    }
    assert_eq!(cluster.updates(), "");
}

/// `scontrol` takes these for many nodes, or a shell for a command.
#[test]
fn labels_with_special_characters_are_refused() {
    let cluster = Cluster::new(4);
    for host in [
        "gpu[1-4]",
        "gpu1,gpu2",
        "ALL",
        "all",
        "gpu1 gpu2",
        "$(touch x)",
        "`id`",
        "gpu1;reboot",
        "gpu1\nState=RESUME",
        "../gpu1",
        "-o",
        "gpu1|x",
        "'gpu1'",
        "gpu1\u{0}",
        "gpu\u{fc}1",
        "",
    ] {
        let run = cluster.told(ACT, &[cable(BAD, host)]);
        assert_eq!((run.code, run.count("refused")), (0, 1), "{host:?}: {}", run.log);
        assert_eq!(run.log.lines().count(), 1, "{host:?}: {}", run.log);
    }
    assert_eq!(cluster.updates(), "");

    // Other labels are in the reason.
    let mut alert = cable(BAD, "gpu1");
    alert["labels"]["fabric"] = "a\"b'$(id)`\n;&|\u{1b}[31m \u{202e}x".into();
    alert["labels"]["link"] = "x".repeat(9000).into();
    let run = cluster.told(ACT, &[alert]);
    assert_eq!((run.count("drained"), run.log.lines().count()), (1, 1), "{}", run.log);
    let updates = cluster.updates();
    assert_eq!(updates.lines().count(), 3, "{updates}");
    let reason = updates.lines().last().unwrap();
    assert!(
        reason.len() < 200 && !reason.contains(['$', '`', '"', '\'', ';', '|', '&']),
        "{reason}"
    );
    assert!(run.log.is_ascii(), "{}", run.log);
}

#[test]
fn never_more_nodes_than_the_limit() {
    let alerts: Vec<Value> = (1..=500).map(|at| cable(BAD, &format!("gpu{at}"))).collect();
    for (limit, allowed) in [("3", 3), ("1%", 5), ("0.1%", 0), ("0", 0), ("100%", 500)] {
        let cluster = Cluster::new(500);
        let options = ["--act", "--max-nodes", limit];
        let run = cluster.told(&options, &alerts[..if allowed == 500 { 20 } else { 500 }]);
        let expected = allowed.min(20);
        assert_eq!((run.code, cluster.drained().len()), (0, expected), "{limit}");
        assert_eq!(run.count("drained"), expected);
        assert_eq!(
            run.log.lines().filter(|line| line.contains(" host=")).count(),
            if allowed == 500 { 20 } else { 500 }
        );
        if allowed < 500 {
            assert_eq!(run.count("refused"), 500 - allowed, "{limit}");
            // The nodes that it has drained before count.
            let again = cluster.told(&options, &alerts);
            assert_eq!((again.count("drained"), cluster.drained().len()), (0, allowed), "{limit}");
        }
    }
}

/// What a health check has drained counts, and what people have drained does not.
#[test]
fn nodes_drained_by_health_checks_count() {
    let cluster = Cluster::new(6);
    cluster.node(
        "gpu1",
        "IDLE+DRAIN ThreadsPerCore=1 Reason=fabric: BAD gpu1 [root@2026-11-28T05:10:00] Comment=x",
    );
    cluster.node("gpu2", "DOWN+DRAIN ThreadsPerCore=1 Reason=disk [admin@2026-11-28T05:10:00]");
    cluster.node(
        "gpu3",
        "IDLE ThreadsPerCore=1 Reason=fabric-alert: resumed since [root@2026-11-28T05:10:00]",
    );
    // A reason of two lines.
    cluster.node(
        "gpu4",
        "IDLE+DRAIN ThreadsPerCore=1 Reason=see\nticket 7 [admin@2026-11-28T05:10:00]",
    );
    let alerts: Vec<Value> = (1..=6).rev().map(|at| cable(BAD, &format!("gpu{at}"))).collect();
    let run = cluster.told(&["--act", "--max-nodes", "2"], &alerts);
    assert_eq!(run.code, 0);
    for (host, decision) in [
        ("gpu1", "ignored"),
        ("gpu2", "ignored"),
        ("gpu3", "drained"),
        ("gpu4", "ignored"),
        ("gpu5", "refused"),
        ("gpu6", "refused"),
    ] {
        assert_eq!(run.of(host), [decision], "{}", run.log);
    }
}

#[test]
fn worst_alert_comes_first() {
    let cluster = Cluster::new(3);
    let alerts = [
        cable("InfinibandLinkWidthReduced", "gpu1"),
        cable("InfinibandLinkDown", "gpu2"),
        cable(BAD, "gpu3"),
    ];
    cluster.told(&["--act", "--max-nodes", "2"], &alerts);
    assert_eq!(cluster.drained(), ["gpu2", "gpu3"]);
    let other = Cluster::new(3);
    other.told(&["--act", "--alerts", "InfinibandLinkWidthReduced"], &alerts);
    assert_eq!(other.drained(), ["gpu1"]);
}

#[test]
fn failures_of_slurm_end_with_1_and_count() {
    let cluster = Cluster::new(3);
    cluster.fails("-o");
    let run = cluster.told(ACT, &[cable(BAD, "gpu1")]);
    assert_eq!((run.code, run.count("failed")), (1, 1), "{}", run.log);
    assert!(run.log.contains("Unable to contact"), "{}", run.log);
    assert_eq!(cluster.updates(), "");

    // One fails. It may be drained nevertheless, so it counts.
    let cluster = Cluster::new(3);
    cluster.fails("gpu1");
    let alerts = ["gpu1", "gpu2", "gpu3"].map(|host| cable(BAD, host));
    let run = cluster.told(&["--act", "--max-nodes", "2"], &alerts);
    assert_eq!(
        (run.code, run.of("gpu1"), run.of("gpu2"), run.of("gpu3")),
        (1, vec!["failed"], vec!["drained"], vec!["refused"])
    );

    // No scontrol at all, or one that says something else.
    for text in
        ["", "#!/bin/sh\necho 'No nodes in the system'\n", "#!/bin/sh\necho NodeName=gpu1 Arch=x\n"]
    {
        let cluster = Cluster::new(1);
        let scontrol = cluster.folder.path().join("scontrol");
        std::fs::write(&scontrol, text).unwrap();
        let run = cluster.told(ACT, &[cable(BAD, "gpu1")]);
        assert_eq!((run.code, run.count("failed")), (1, 1), "{text}: {}", run.log);
    }
}

#[test]
fn wrong_notifications_end_with_2() {
    let cluster = Cluster::new(1);
    let deep = "[".repeat(200_000);
    let mut number = cable(BAD, "gpu1");
    number["labels"]["host"] = 7.into();
    let bodies: [Vec<u8>; 13] = [
        b"".into(),
        b"not json".into(),
        b"\xff\xfe".into(),
        b"[]".into(),
        b"null".into(),
        b"{}".into(),
        br#"{"alerts": {}}"#.into(),
        br#"{"alerts": [7]}"#.into(),
        br#"{"alerts": [{"status": "firing"}]}"#.into(),
        br#"{"alerts": [{"status": "firing", "labels": []}]}"#.into(),
        br#"{"alerts": [{"status": "burning", "labels": {}}]}"#.into(),
        deep.into_bytes(),
        notification(&[cable(BAD, "gpu1"), number]).into_bytes(),
    ];
    for body in bodies {
        let run = cluster.run(ACT, &body);
        assert_eq!((run.code, run.log.lines().count()), (2, 1), "{}", run.log);
    }
    assert_eq!(cluster.updates(), "");
    assert_eq!(cluster.run(ACT, br#"{"alerts": []}"#).code, 0);
    for options in [
        &["--max-nodes", "-1"][..],
        &["--max-nodes", "many"],
        &["--max-nodes", "101%"],
        &["--max-nodes", "1.5"],
        &["--listen", "0.0.0.0:9199"],
        &["--listen", "192.0.2.1:9199"],
        &["--listen", "localhost"],
        &["--undrain"],
    ] {
        assert_eq!(cluster.run(options, b"{}").code, 2, "{options:?}");
    }
}
