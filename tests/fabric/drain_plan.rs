//! The verb `drain-plan`: from a running exporter, and from a dump.

use test_rig as rig;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rig::Exporter;
use rig::child::{self, Output};
use rig::program;
use serde_json::Value;

const LIMIT: Duration = Duration::from_secs(60);

fn drain_plan(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("drain-plan").args(args);
    child::run("fabric-exporter", &mut command, folder, LIMIT)
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}: {}", output.status, output.stderr);
    serde_json::from_str(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", output.stdout))
}

/// Four leaves with four hosts each, and two cables to each of two spines. A cable between two switches is bad.
const SCENARIO: &str = "\
fabric: {fat-tree: {levels: 2, hosts: 16, radix: 8, down: 4, up: 4}}
timeline:
  - bad-cable: {at: 1s, into: \"leaf-0-1[5]\", ratio: 1e-8}
";

#[test]
fn plan_of_a_running_exporter() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("scenario.yml");
    std::fs::write(&scenario, SCENARIO).unwrap();
    let drained = folder.path().join("drained");
    std::fs::write(&drained, "host-4\n").unwrap();
    let mut exporter = Exporter::demo(&[
        &format!("--scenario={}", scenario.display()),
        &format!("--health.drained-hosts-file={}", drained.display()),
        "--fabric.interval=2s",
        "--clock=20",
        "--no-history",
    ]);
    exporter.wait_ready();
    let url = format!("http://{}", exporter.address());
    let plan = |args: &[&str]| drain_plan(folder.path(), &[&["--url", &url], args].concat());
    let fails = |args: &[&str], code: i32, says: &str| {
        let output = plan(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(says), "{says}: {}", output.stderr);
    };

    // Without arguments: what is bad.
    let bad = rig::wait_until(2 * LIMIT, "a bad link", || {
        let found = json(&plan(&["--json"]));
        (found["repairs"] == 1).then_some(found)
    });
    let repair = &bad["windows"][0]["repairs"][0];
    assert!(repair["name"].as_str().unwrap().contains("leaf-0-1 port 5"), "{bad:#}");
    assert_eq!(repair["kind"], "link");
    assert_eq!(repair["verdict"], "bad");
    assert_eq!(bad["windows"][0]["remaining_capacity"], 0.75);
    assert_eq!(bad["drained"], "host-4");
    let id = repair["link"].as_str().unwrap().to_owned();
    let by_id = json(&plan(&["--json", &id, "leaf-0-1/5", "leaf-0-1 port 5"]));
    assert_eq!(by_id["windows"], bad["windows"], "each spelling means the same repair");

    // Several cables of one leaf, a spine, a leaf, hosts.
    let table = plan(&["leaf-0-1/5", "leaf-0-1/6", "leaf-0-1/7"]);
    assert!(table.status.success(), "{}", table.stderr);
    assert!(table.stdout.starts_with("Window 1: 1 repair; each leaf keeps at least 75% (worst:"));
    let last = table.stderr.lines().last().unwrap();
    assert_eq!(last, "3 windows (smallest) for 3 repairs, in which each leaf keeps 75% or more");
    let halves = plan(&["leaf-0-1/5", "leaf-0-1/6", "leaf-0-1/7", "--min-capacity=0.5"]);
    assert!(halves.stderr.contains("2 windows (smallest) for 3 repairs"), "{}", halves.stderr);

    let nodes = Command::new(program()).args(["nodes", "--url", &url, "--json"]).output().unwrap();
    let nodes: Value = serde_json::from_slice(&nodes.stdout).unwrap();
    let nodes = nodes["fabrics"][0]["nodes"].as_array().unwrap().clone();
    let is_spine = |node: &&Value| {
        node["node_type"] == "switch" && !node["node"].as_str().unwrap().starts_with("leaf")
    };
    let spine = nodes.iter().find(is_spine).unwrap()["node"].as_str().unwrap();
    fails(&[spine, "--fail-on-unsafe"], 7, "--fail-on-unsafe: 1 repair not safe");
    let spine = json(&plan(&[spine, "--json", "--min-capacity", "50%", "--fail-on-unsafe"]));
    assert_eq!(spine["windows"][0]["reduced_leaves"], 4);
    let leaf = json(&plan(&["leaf-0-1", "--json", "--min-capacity=0.5"]));
    let refused = &leaf["unsafe_repairs"][0];
    assert_eq!(refused["drain"], "host-[5-7]", "host-4 is drained already: {leaf:#}");
    assert_eq!(refused["cut_hosts"].as_array().unwrap().len(), 3);
    let drained = json(&plan(&["leaf-0-1", "--json", "--drained", "host-[5-7]"]));
    assert_eq!(drained["windows"][0]["repairs"][0]["kind"], "switch", "{drained:#}");
    let host = plan(&["host-9", "host-4"]);
    assert!(
        host.stdout.contains("cuts host-9 off from all hosts: drain host-9"),
        "{}",
        host.stdout
    );
    assert!(host.stdout.contains("host host-4"), "{}", host.stdout);

    fails(&["leaf-9"], 2, "drain-plan: \"leaf-9\" not found in");
    fails(&["no-*"], 2, "no node matches");
    fails(&["--drained", "cpu7"], 2, "--drained: cpu7: not found");
    fails(&["--min-capacity=75"], 2, "must be a number from 0 to 1");
    assert!(exporter.stop().success());
}

/// A dump without rates and without hosts behind its second leaf.
#[test]
fn plan_of_a_dump() {
    let dumps = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/fabric-dumps/tests/dumps");
    let dump = dumps.join("fabric.ibnetdiscover");
    let folder = tempfile::tempdir().unwrap();
    let plan = |args: &[&str]| {
        let from = dump.to_str().unwrap();
        drain_plan(folder.path(), &[args, &["--from", from]].concat())
    };
    let nothing = plan(&[]);
    assert!(nothing.status.success(), "{}", nothing.stderr);
    assert!(nothing.stderr.contains("no bad links: nothing to repair"), "{}", nothing.stderr);
    let cable = json(&plan(&["--json", "host-1 mlx5_0"]));
    assert_eq!(cable["unsafe_repairs"][0]["cut_hosts"][0]["host"], "host-1", "{cable:#}");
    // A fabric of this program needs a device.
    let none = drain_plan(folder.path(), &["--path.sysfs=/nowhere"]);
    assert_eq!(none.status.code(), Some(3), "{}", none.stderr);
}
