//! Wrong settings and wrong hosts: one clear line that names the remedy, and an exit code that
//! means something.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod rig;

use std::path::Path;
use std::process::{Command, Output};

use rig::{Exporter, Ibsim, OpenSm, run_to_exit, topology};

const USAGE: i32 = 2;
const NO_DEVICE: i32 = 3;
const NO_LISTENER: i32 = 4;

/// Runs the program without any fabric.
fn alone(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fabric-exporter"))
        .args(args)
        .output()
        .expect("the program under test starts")
}

fn refused(code: Option<i32>, stderr: &str, expected: i32, says: &[&str]) {
    assert_eq!(code, Some(expected), "{stderr}");
    // What the log said on the way is not the last word.
    let last = stderr.lines().last().unwrap_or_default();
    for part in says {
        assert!(last.contains(part), "{part:?} is not in: {last}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

fn refused_alone(args: &[&str], expected: i32, says: &[&str]) {
    let output = alone(args);
    refused(output.status.code(), &String::from_utf8_lossy(&output.stderr), expected, says);
}

/// A sysfs with one RDMA port of which `attributes` are told.
fn sysfs(root: &Path, attributes: &[(&str, &str)]) -> String {
    let mut files = vec![
        ("infiniband_mad/umad0/ibdev".to_owned(), "mlx5_0"),
        ("infiniband_mad/umad0/port".to_owned(), "1"),
    ];
    files.extend(
        attributes
            .iter()
            .map(|(name, value)| (format!("infiniband/mlx5_0/ports/1/{name}"), *value)),
    );
    for (path, text) in files {
        let path = root.join("class").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }
    format!("--path.sysfs={}", root.display())
}

#[test]
fn a_host_without_an_rdma_device() {
    let root = tempfile::tempdir().unwrap();
    let sysfs = format!("--path.sysfs={}", root.path().display());
    refused_alone(&["serve", &sysfs], NO_DEVICE, &["no RDMA device", "modprobe ib_umad"]);
}

#[test]
fn a_roce_port() {
    let root = tempfile::tempdir().unwrap();
    let sysfs = sysfs(root.path(), &[("link_layer", "Ethernet"), ("phys_state", "5: LinkUp")]);
    refused_alone(
        &["serve", &sysfs],
        NO_DEVICE,
        &["mlx5_0 port 1", "Ethernet (RoCE)", "--fabric.hca"],
    );
}

#[test]
fn a_port_without_a_link() {
    let root = tempfile::tempdir().unwrap();
    let sysfs = sysfs(root.path(), &[("link_layer", "InfiniBand"), ("phys_state", "2: Polling")]);
    refused_alone(
        &["serve", &sysfs],
        NO_DEVICE,
        &["mlx5_0 port 1", "no link", "plug in its cable"],
    );
}

#[test]
fn an_unknown_hca_and_an_unknown_port() {
    let root = tempfile::tempdir().unwrap();
    let sysfs = sysfs(root.path(), &[("link_layer", "InfiniBand"), ("phys_state", "5: LinkUp")]);
    refused_alone(&["serve", &sysfs, "--fabric.hca=mlx5_7"], NO_DEVICE, &["\"mlx5_7\"", "mlx5_0"]);
    refused_alone(&["serve", &sysfs, "--fabric.port=2"], NO_DEVICE, &["mlx5_0 has no port 2"]);
}

#[test]
fn wrong_flags_and_files() {
    let root = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = root.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let config = file("c.yml", "fabric:\n  interval: 15s\n  intervall: 1s\n");
    refused_alone(&["serve", "--config.file", &config], USAGE, &["c.yml", "intervall", "3"]);
    refused_alone(
        &["serve", "--config.file=/nowhere.yml"],
        USAGE,
        &["/nowhere.yml", "No such file"],
    );
    refused_alone(&["serve", "--fabric.interval=soon"], USAGE, &[]);
    refused_alone(&["serve", "--fabric.gmp-window=0"], USAGE, &["--fabric.gmp-window"]);
    refused_alone(&["dance"], USAGE, &[]);
}

#[test]
fn what_is_wrong_on_a_fabric_that_is_there() {
    let ibsim = Ibsim::start(&topology::example("net.1"));
    let root = tempfile::tempdir().unwrap();
    let names = root.path().join("names");
    std::fs::write(&names, "0x1 \"one\"\n0x2 \"two\n").unwrap();
    let names = format!("--fabric.node-name-map={}", names.display());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("--web.listen-address={}", taken.local_addr().unwrap());
    for (flag, code, says) in [
        (names.as_str(), USAGE, &["names", "line 2", "have no end"][..]),
        ("--fabric.node-name-map=/nowhere", USAGE, &["/nowhere", "No such file"]),
        ("--fabric.capture=/nowhere/c.pcap", USAGE, &["/nowhere/c.pcap", "No such file"]),
        ("--fabric.hca=mlx5_0", NO_DEVICE, &["\"mlx5_0\"", "ibsim0"]),
        ("--fabric.port=9", NO_DEVICE, &["no port 9"]),
        (&listen, NO_LISTENER, &["cannot listen on 127.0.0.1", "--web.listen-address"]),
    ] {
        let output = run_to_exit(&ibsim, &["serve", flag]);
        refused(output.status.code(), &output.stderr, code, says);
    }
}

#[test]
fn a_port_that_lost_its_cable_before_the_start() {
    let ibsim = Ibsim::start(&topology::fat_tree_2(8, 6, 4, 2));
    ibsim.console("Unlink \"host-1\"");
    let output = run_to_exit(&ibsim, &["serve"]);
    refused(output.status.code(), &output.stderr, NO_DEVICE, &["ibsim0 port 1", "no link"]);
}

#[test]
fn hostile_names_and_the_sites_own() {
    let net = topology::fat_tree_2(8, 6, 4, 2).replace("# \"host-3\"", "# \"<b>ho\\st {3}, 'x'\"");
    let ibsim = Ibsim::start(&net);
    let opensm = OpenSm::start(&ibsim);
    let names = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(names.path(), "0x0002c90300000000 \"rack \\ 7\"\n").unwrap();
    let flag = format!("--fabric.node-name-map={}", names.path().display());
    let mut exporter = Exporter::start(&ibsim, &[&flag]);
    exporter.wait_ready();
    let metrics = exporter.metrics();
    let nodes: Vec<String> =
        metrics.all("infiniband_node_info").map(|(labels, _)| labels["node"].clone()).collect();
    assert!(nodes.contains(&"rack \\ 7".to_owned()), "{nodes:?}");
    assert!(nodes.contains(&"<b>ho\\st {3}, 'x'".to_owned()), "{nodes:?}");
    assert!(exporter.stop().success());
    drop(opensm);
}

#[test]
fn unknown_paths_and_hostile_requests() {
    let ibsim = Ibsim::start(&topology::example("net.1"));
    let mut exporter = Exporter::start(&ibsim, &["--web.telemetry-path=/numbers"]);
    exporter.wait_ready();
    assert_eq!(exporter.get("/metrics", &[]).status, 404);
    assert_eq!(exporter.get("/numbers", &[]).status, 200);
    let landing = exporter.get("/", &[]);
    assert!(landing.text().contains("href=\"/numbers\""));
    for header in ["Accept", "Accept-Encoding"] {
        for value in
            [";;;,,,q=", "application/openmetrics-text;version=\"", "gzip;q=NaN", "*/*;q=1e400"]
        {
            assert_eq!(
                exporter.get("/numbers", &[(header, value)]).status,
                200,
                "{header}: {value}"
            );
        }
    }
    assert!(exporter.stop().success());
}
