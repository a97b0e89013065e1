//! Slurm itself: its health check drains a node whose cable is bad, alerts drain nodes, and histories are asked about
//! its jobs. A cluster of several nodes runs on the loopback.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use fabric_api::model::{
    Condition, End, FabricLinks, FabricNodes, Link, LinkReason, Links, Node, Nodes, Overview,
};
use fabric_history::Recorder;
use fabric_history::settings::HistorySettings;
use fabric_observation::RecorderMetrics;
use serde::Serialize;
use serde_json::json;
use test_rig::slurm::Options;
use test_rig::sysfs::{Device, Tree};
use test_rig::{Simulated, Slurm, program, require, wait_until};

const LIMIT: Duration = Duration::from_secs(40);

/// What the stand-in for an exporter says of a host.
#[derive(Clone, Copy)]
enum Host {
    Good,
    BadCable,
    /// As if it hung or were overloaded.
    NoAnswer,
}

/// Serves the three answers that `check-node` reads.
struct StandIn {
    hosts: Arc<Mutex<BTreeMap<&'static str, Host>>>,
    url: String,
}

fn body(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).unwrap()
}

fn answer(target: &str, host: &str, state: Host) -> (u16, String) {
    let condition = Condition { verdict: "ok".into(), ..Condition::default() };
    if matches!(state, Host::NoAnswer) {
        return (503, String::new());
    }
    if target.starts_with("/api/v1/nodes") {
        let node = Node {
            node: format!("{host} mlx5_0"),
            host: Some(host.to_owned()),
            node_type: "ca".into(),
            up: true,
            ..Node::default()
        };
        let fabric = FabricNodes {
            fabric: "ib0".into(),
            condition,
            nodes: vec![node],
            ..FabricNodes::default()
        };
        return (200, body(&Nodes { fabrics: vec![fabric] }));
    }
    if !target.starts_with("/api/v1/links") {
        return (200, body(&Overview::default()));
    }
    let (verdict, evidence) = match state {
        Host::BadCable => ("bad", "symbol BER 3e-9"),
        _ => ("ok", ""),
    };
    let end = |node: &str, node_type: &'static str, port| End {
        guid: format!("0x{:016x}", node.len()),
        node: node.into(),
        node_type: node_type.into(),
        port,
        ..End::default()
    };
    let reason = LinkReason {
        reason: "bit_errors".into(),
        verdict: verdict.into(),
        evidence: evidence.into(),
    };
    let link = Link {
        verdict: verdict.into(),
        reasons: if evidence.is_empty() { Vec::new() } else { vec![reason] },
        ends: [end("leaf-1", "switch", 9), end(&format!("{host} mlx5_0"), "ca", 1)],
        up: Some(true),
        ..Link::default()
    };
    // That of the uplinks of the leaf has no host.
    let links = if target.contains("verdict=bad") { Vec::new() } else { vec![link] };
    let fabric = FabricLinks { fabric: "ib0".into(), condition, links, ..FabricLinks::default() };
    (200, body(&Links { fabrics: vec![fabric] }))
}

impl StandIn {
    fn start(hosts: &[(&'static str, Host)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let hosts = Arc::new(Mutex::new(hosts.iter().copied().collect::<BTreeMap<_, _>>()));
        let known = Arc::clone(&hosts);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, known) = (stream.unwrap(), Arc::clone(&known));
                std::thread::spawn(move || {
                    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                    while let Some(Ok(line)) = lines.next() {
                        let Some(target) = line.strip_prefix("GET ") else { continue };
                        let target = target.split(' ').next().unwrap();
                        let known = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
                        // A question about a leaf names its GUID.
                        let asked = known
                            .into_iter()
                            .find(|(host, _)| target.contains(&format!("node={host}")));
                        let (host, state) = asked.unwrap_or(("", Host::Good));
                        let (status, body) = answer(target, host, state);
                        let length = body.len();
                        let _ = write!(
                            stream,
                            "HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n\r\n{body}"
                        );
                    }
                });
            }
        });
        StandIn { hosts, url }
    }

    fn set(&self, host: &'static str, state: Host) {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).insert(host, state);
    }
}

/// A cluster whose health checks ask a stand-in, and the ends of these checks: host and exit code.
struct Checked {
    slurm: Slurm,
    results: std::path::PathBuf,
    _tree: Tree,
    _folder: tempfile::TempDir,
}

impl Checked {
    fn start(nodes: &[&str], exporter: &StandIn) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results");
        let tree = Tree::new([Device::mlx5_ndr("mlx5_0", 0)]);
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/node-checks/slurm-health-check");
        let health_check = format!(
            "export PATH={}:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n\
             export FABRIC_EXPORTER_SETTINGS=/nonexistent FABRIC_EXPORTER_URL={}\n\
             export FABRIC_EXPORTER_OPTIONS='--timeout 10s --path.sysfs {}'\n\
             [ ! -e {results}-resume ] || export FABRIC_EXPORTER_RESUME=yes\n\
             {}\n\
             echo \"$SLURMD_NODENAME $?\" >> {results}",
            Path::new(program()).parent().unwrap().display(),
            exporter.url,
            tree.path().display(),
            script.display(),
            results = results.display(),
        );
        let slurm =
            Slurm::start(nodes, &Options { health_check: Some(health_check), accounting: false });
        Checked { slurm, results, _tree: tree, _folder: folder }
    }

    /// Waits until a check of a node that began after this call has ended with a code.
    fn wait(&self, node: &str, code: u8) {
        let count = || {
            let text = std::fs::read_to_string(&self.results).unwrap_or_default();
            text.lines().filter(|line| *line == format!("{node} {code}")).count()
        };
        // The first that ends may have begun before.
        let before = count();
        wait_until(LIMIT, &format!("two checks of {node} that end with {code}"), || {
            (count() >= before + 2).then_some(())
        });
    }

    fn is_drained(&self, node: &str) -> bool {
        let line = self.slurm.node(node);
        let state = line.split(" State=").nth(1).unwrap().split(' ').next().unwrap();
        state.contains("DRAIN")
    }
}

#[test]
fn health_check_drains_the_node_with_the_bad_cable_alone() {
    let exporter =
        StandIn::start(&[("gpu1", Host::BadCable), ("gpu2", Host::Good), ("gpu3", Host::NoAnswer)]);
    let checked = Checked::start_drained(&exporter);
    let line = checked.slurm.node("gpu1");
    assert!(
        line.contains(" Reason=fabric: BAD gpu1: cable leaf-1 port 9 bad: symbol BER 3e-9 ["),
        "{line}"
    );
    checked.wait("gpu2", 0);
    checked.wait("gpu3", 2);
    assert!(!checked.is_drained("gpu2") && !checked.is_drained("gpu3"));

    // Without the setting a node stays drained; with it, only what the script has drained is resumed.
    exporter.set("gpu1", Host::Good);
    checked.wait("gpu1", 0);
    assert!(checked.is_drained("gpu1"));
    checked.slurm.told("scontrol", &["update", "NodeName=gpu2", "State=DRAIN", "Reason=disk"]);
    std::fs::write(format!("{}-resume", checked.results.display()), "").unwrap();
    wait_until(LIMIT, "gpu1 to be resumed", || (!checked.is_drained("gpu1")).then_some(()));
    checked.wait("gpu2", 0);
    assert!(checked.is_drained("gpu2"));

    // A node that somebody has drained keeps its reason.
    exporter.set("gpu2", Host::BadCable);
    checked.wait("gpu2", 1);
    assert!(checked.slurm.node("gpu2").contains(" Reason=disk ["));
}

impl Checked {
    /// Waits until the first node is drained. A node may be drained before all nodes were idle.
    fn start_drained(exporter: &StandIn) -> Self {
        let checked = Self::start(&["gpu1", "gpu2", "gpu3"], exporter);
        wait_until(LIMIT, "gpu1 to be drained", || checked.is_drained("gpu1").then_some(()));
        checked
    }
}

/// The names of nodes that are drained, with Slurm's `scontrol`.
fn drained(slurm: &Slurm) -> Vec<String> {
    let nodes = slurm.told("sinfo", &["-h", "-N", "-t", "drain", "-o", "%N"]);
    nodes.lines().map(|line| line.trim().to_owned()).collect()
}

fn told(slurm: &Slurm, options: &[&str], hosts: &[&str]) -> Output {
    let alert = |host: &&str| {
        json!({"status": "firing", "labels": {
            "alertname": "InfinibandCableBad", "fabric": "default", "link": "0xa1:1-0xb2:7",
            "node_type": "ca", "host": host, "peer_node_type": "switch",
        }})
    };
    let alerts: Vec<_> = hosts.iter().map(alert).collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/drain-on-alert/drain-on-alert");
    let mut command = Command::new(require("python3"));
    command
        .arg(script)
        .args(options)
        .env("SLURM_CONF", slurm.config_file())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let body = json!({"version": "4", "alerts": alerts}).to_string();
    child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn alerts_drain_nodes_up_to_the_limit() {
    let slurm = Slurm::start(&["gpu1", "gpu2", "gpu3", "gpu4"], &Options::default());
    let job = slurm.submit(&["-w", "gpu1"], "sleep 60");
    slurm.wait_job(&job, "RUNNING");
    let hosts = ["ALL", "gpu[2-4]", "gpu2,gpu3", "gpu1.cluster.example"];
    let dry = told(&slurm, &[], &hosts);
    let log = String::from_utf8_lossy(&dry.stderr).into_owned();
    assert!(dry.status.success() && log.contains("decision=would-drain"), "{log}");
    assert_eq!(drained(&slurm), [""; 0]);

    let run = told(&slurm, &["--act"], &hosts);
    let log = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{log}");
    assert_eq!(drained(&slurm), ["gpu1"], "{log}");
    let line = slurm.node("gpu1");
    assert!(
        line.contains(" Reason=fabric-alert: InfinibandCableBad 0xa1:1-0xb2:7 in default ["),
        "{line}"
    );
    // A job that runs goes on.
    assert!(line.contains("+DRAIN "), "{line}");
    slurm.wait_job(&job, "RUNNING");

    // Half of four nodes: one more.
    let run = told(&slurm, &["--act", "--max-nodes", "50%"], &["gpu3", "gpu1", "gpu2"]);
    let log = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(drained(&slurm), ["gpu1", "gpu2"], "{log}");
    assert!(log.contains("already drained") && log.contains("--max-nodes 50%"), "{log}");
    slurm.told("scancel", &[&job]);
}

/// A history of a simulated fabric with hosts host-0, host-1 and so on: from ten minutes ago until in two minutes.
fn recorded(file: &Path) {
    let began = SystemTime::now() - Duration::from_secs(600);
    let simulated = Simulated::text_at(
        "timeline: [{bad-cable: {at: 2m, into: 'leaf-0-1[9]', ratio: 1e-9}}]",
        began,
    );
    let settings = HistorySettings { least_free: 0, ..HistorySettings::new(file.into()) };
    let mut recorder = Recorder::new(settings, Arc::new(RecorderMetrics::default()));
    for at in (5..720).step_by(15).map(Duration::from_secs) {
        simulated.run_to(at);
        recorder.record(&simulated.observation(), began + at);
    }
}

/// What a report about a job says, or why there is none.
fn report(slurm: &Slurm, file: &Path, job: &str) -> Result<String, String> {
    let mut command = Command::new(program());
    command.args(["history", "report", "--job", job, "--file"]).arg(file);
    let output = command.env("SLURM_CONF", slurm.config_file()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[test]
fn job_that_runs_is_found_without_accounting() {
    let slurm = Slurm::start(&["host-1", "host-2", "host-3"], &Options::default());
    let file = slurm.dir().join("history.db");
    recorded(&file);
    let job = slurm.submit(&["-w", "host-1,host-3"], "sleep 60");
    slurm.wait_job(&job, "RUNNING");
    let page = report(&slurm, &file, &job).unwrap();
    assert!(page.contains(r"2 hosts (host-\[1,3\]) with 2 HCAs"), "{page}");
    // Tasks of an array, each on a node.
    let array = slurm.submit(&["-a", "0-1", "-w", "host-2"], "sleep 60");
    slurm.wait_job(&format!("{array}_0"), "RUNNING");
    let page = report(&slurm, &file, &format!("{array}_0")).unwrap();
    assert!(page.contains("1 host (host-2)"), "{page}");

    let problem = report(&slurm, &file, "999").unwrap_err();
    for part in ["job 999", "sacct", "accounting storage is disabled", "squeue", "Invalid job id"] {
        assert!(problem.contains(part), "{part}: {problem}");
    }
    slurm.told("scancel", &[&job, &array]);

    // One that has ended, which slurmctld still knows.
    let ended = slurm.submit(&["-w", "host-2"], "true");
    let state = || slurm.told("squeue", &["-h", "-t", "all", "-j", &ended, "-o", "%T"]);
    wait_until(LIMIT, "the end of the job", || (state().trim() == "COMPLETED").then_some(()));
    let page = report(&slurm, &file, &ended).unwrap();
    assert!(page.contains("1 host (host-2)"), "{page}");
}

#[test]
fn job_that_has_ended_is_found_by_accounting() {
    let slurm =
        Slurm::start(&["host-1", "host-2"], &Options { accounting: true, health_check: None });
    let file = slurm.dir().join("history.db");
    recorded(&file);
    let job = slurm.submit(&["-N", "2"], "true");
    let ended = || slurm.told("sacct", &["-X", "-n", "-P", "-j", &job, "-o", "State,NodeList"]);
    wait_until(LIMIT, "the job in the accounting", || {
        (ended().trim() == "COMPLETED|host-[1-2]").then_some(())
    });
    let page = report(&slurm, &file, &job).unwrap();
    assert!(page.contains(r"2 hosts (host-\[1-2\]) with 2 HCAs"), "{page}");
    let problem = report(&slurm, &file, "999").unwrap_err();
    assert!(problem.contains("sacct does not know it"), "{problem}");
}
