//! The demo: its own host, fabrics of other sizes, and the browser that it opens.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use test_rig::child::{Running, read_lossy};
use test_rig::metrics::Metrics;
use test_rig::{Exporter, program, wait_until};

const LIMIT: Duration = Duration::from_secs(60);

/// A host with eight adapters, whose counters are set, and a RoCE device.
const STORY: &str = "
fabric: {fat-tree: {hosts: 8, radix: 16, down: 4, up: 4, rail-hosts: 1}}
seat: gpu-0-mlx5_0
traffic: {pattern: none}
own-host: {roce: mlx5_8, pfc-storm: 0s}
timeline:
  - set: {port: 'gpu-0-mlx5_3[1]', counters: {SymbolErrorCounter: 42, PortRcvErrors: 7, PortXmitData: 5000000000}}
";

/// The values of a family by port, of the fabric's view or of the host's.
fn by_guid(metrics: &Metrics, name: &str, of_host: bool) -> Vec<(String, f64)> {
    let of_view = metrics.all(name).filter(|(labels, _)| labels.contains_key("device") == of_host);
    let mut values: Vec<_> = of_view.map(|(labels, it)| (labels["guid"].clone(), it)).collect();
    values.sort_by(|a, b| a.0.cmp(&b.0));
    values
}

#[test]
fn own_host_has_the_counters_of_its_ports_in_the_fabric() {
    let scenario = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
    std::fs::write(scenario.path(), STORY).unwrap();
    let story = format!("--scenario={}", scenario.path().display());
    let mut exporter = Exporter::demo(&[&story, "--fabric.interval=1s"]);
    exporter.wait_ready();
    let errors = "infiniband_port_symbol_errors_total";
    let metrics = wait_until(LIMIT, "both views", || {
        let metrics = exporter.metrics();
        let is_set = |of_host| by_guid(&metrics, errors, of_host).iter().any(|it| it.1 > 41.0);
        (is_set(false) && is_set(true)).then_some(metrics)
    });
    let devices: Vec<_> = metrics.all("infiniband_device_info").map(|(labels, _)| labels).collect();
    assert_eq!(devices.len(), 9);
    let mut rails = 0;
    for device in devices {
        let guid = device["guid"].as_str();
        let mut nodes = metrics.all("infiniband_node_info").map(|(labels, _)| labels);
        let Some(node) = nodes.find(|node| node["guid"] == guid) else {
            assert_eq!(device["device"], "mlx5_8", "the RoCE device is in no fabric");
            continue;
        };
        rails += 1;
        assert_eq!(node["node"], format!("gpu-0 {}", device["device"]));
        assert_eq!(node["host"], "gpu-0");
        for name in [
            errors,
            "infiniband_port_receive_errors_total",
            "infiniband_port_transmit_bytes_total",
            "infiniband_port_link_downed_total",
            "infiniband_port_state",
        ] {
            let [fabric, host] = [false, true].map(|of_host| {
                let mut values = by_guid(&metrics, name, of_host);
                values.retain(|it| it.0 == guid);
                values
            });
            assert_eq!(fabric, host, "{name}");
            assert_eq!(fabric.len(), 1, "{name}");
        }
    }
    assert_eq!(rails, 8);
    // The storm, between two readings.
    let roce = [("device", "mlx5_8"), ("priority", "3")];
    let pauses = |metrics: &Metrics| {
        metrics.get("infiniband_netdev_priority_transmit_pause_seconds_total", &roce).unwrap()
    };
    let read_at = |metrics: &Metrics| {
        metrics.get("fabric_exporter_host_read_timestamp_seconds", &[]).unwrap()
    };
    let later = exporter.wait_reads(3);
    let share = (pauses(&later) - pauses(&metrics)) / (read_at(&later) - read_at(&metrics));
    assert!((0.75..0.90).contains(&share), "{share}");
    let page = exporter.get("/host", &[]);
    assert!(page.text().contains("PFC storm") && page.text().contains("CNPs: "), "{}", page.text());
    assert!(exporter.stop().success());
}

#[test]
fn fabrics_of_other_sizes_are_swept() {
    // The smallest one, and the smallest one of three levels.
    for (hosts, switches) in [("2", 3), ("1921", 65 + 90 + 60)] {
        let mut exporter =
            Exporter::demo_uncaptured(&["--hosts", hosts, "--fabric.interval=15s", "--no-history"]);
        exporter.wait_ready();
        let metrics = exporter.metrics();
        let count =
            |kind| metrics.get("infiniband_fabric_nodes", &[("node_type", kind), ("state", "up")]);
        let wanted = hosts.parse::<f64>().unwrap() + 8.0;
        assert_eq!((count("ca"), count("switch")), (Some(wanted), Some(f64::from(switches))));
        assert!(exporter.stop().success());
    }
}

/// Runs a demo with this browser, until its log or the file has a text, which is returned.
fn opened(folder: &Path, browser: &str, file: &Path) -> String {
    let log = folder.join("log");
    let mut command = Command::new(program());
    command
        .args(["demo", "--web.listen-address=127.0.0.1:0", "--open", "--no-history"])
        .env("BROWSER", browser)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap());
    let mut demo = Running::spawn("fabric-exporter", &mut command);
    let text = wait_until(LIMIT, "the browser", || {
        let text = [read_lossy(file), read_lossy(&log)].concat();
        text.ends_with('\n').then_some(text)
    });
    assert!(demo.stop().success(), "{text}");
    text
}

#[test]
fn browser_is_opened_outside_of_the_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    let (script, file) = (folder.path().join("browser"), folder.path().join("url"));
    // The sandbox permits neither to start programs nor to write this file.
    std::fs::write(&script, format!("#!/bin/sh\necho \"$@\" > {}\n", file.display())).unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let text = opened(folder.path(), &format!("/nowhere:{} --new", script.display()), &file);
    assert!(text.starts_with("--new http://127.0.0.1:"), "{text}");
    std::fs::remove_file(&file).unwrap();
    // Without one the demo goes on, and says where to look.
    let text = opened(folder.path(), "/nowhere", &file);
    assert!(
        text.contains("no browser could be opened") && text.contains("url=http://127"),
        "{text}"
    );
}

#[test]
fn health_options_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work.yml");
    std::fs::write(&work, "- {node: leaf-0-1, why: new firmware}\n").unwrap();
    let flag = format!("--health.maintenance-file={}", work.display());
    let mut exporter = Exporter::demo_uncaptured(&[&flag, "--health.ber-confidence=medium"]);
    exporter.wait_ready();
    let page = exporter.get("/links?verdict=unknown", &[]).text().to_owned();
    assert!(page.contains("leaf-0-1") && page.contains("aintenance"), "{page}");
    assert!(exporter.stop().success());
}
