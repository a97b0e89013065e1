//! ConnectX-8: multi-plane on InfiniBand, with its SMI device, and 12 ports on Ethernet.

use std::time::Duration;

use crate::host_trees::read_once;
use test_rig::sysfs::{Copies, connectx8, connectx8_ethernet};
use test_rig::{Exporter, Metrics, wait_until};

const ERRORS: &str = "infiniband_port_symbol_errors_total";
const RECEIVED: &str = "infiniband_port_receive_bytes_total";
const FILE: &str = "counters/symbol_error";

fn value(metrics: &Metrics, family: &str, device: &str, port: &str) -> Option<u64> {
    metrics.get_u64(family, &[("device", device), ("port", port)])
}

/// The values of a family for each plane.
fn planes(metrics: &Metrics, family: &str) -> Vec<Option<u64>> {
    ["1", "2", "3", "4"].map(|port| value(metrics, family, "planes", port)).into()
}

#[test]
fn planes_are_labeled_and_their_traffic_is_their_own() {
    let tree = connectx8(Copies::Yes);
    let metrics = read_once(&tree);
    let info =
        |family: &str, of: &[(&str, &str)]| metrics.sample(family, of).unwrap().labels.clone();
    let device = info("infiniband_device_info", &[("device", "planes")]);
    assert_eq!((&*device["kind"], &*device["parent"]), ("smi", "mlx5_0"));
    let parent = info("infiniband_device_info", &[("device", "mlx5_0")]);
    assert_eq!((&*parent["kind"], parent.get("parent")), ("physical", None));
    for port in ["1", "2", "3", "4"] {
        let labels = info("infiniband_device_port_info", &[("device", "planes"), ("port", port)]);
        assert_eq!((&*labels["kind"], &*labels["plane"], &*labels["width"]), ("smi", port, "1x"));
        let file = format!("ports/{port}/counters");
        let words = tree.numbers("planes", &file)["port_rcv_data"];
        assert_eq!(value(&metrics, RECEIVED, "planes", port), Some(4 * words));
    }
    let port = info("infiniband_device_port_info", &[("device", "mlx5_0")]);
    assert!(!port.contains_key("plane"), "{port:?}");
}

#[test]
fn error_counters_are_those_of_planes_only_if_planes_count_them() {
    let tree = connectx8(Copies::Yes);
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_ready();
    let metrics = exporter.wait_reads(4);
    let sum = tree.numbers("mlx5_0", "ports/1/counters")["symbol_error"];
    assert_eq!(value(&metrics, ERRORS, "mlx5_0", "1"), Some(sum));
    assert_eq!(planes(&metrics, ERRORS), [None; 4], "copies of the parent's");
    assert!(planes(&metrics, RECEIVED).iter().all(Option::is_some));
    // A kernel that reads them for each plane.
    for (port, errors) in (1..).zip([1, 0, 4, 0]) {
        tree.set("planes", &format!("ports/{port}/{FILE}"), &format!("{errors}\n"));
    }
    tree.set("mlx5_0", &format!("ports/1/{FILE}"), "5\n");
    let own = [Some(1), Some(0), Some(4), Some(0)];
    wait_until(Duration::from_secs(60), "errors of each plane", || {
        (planes(&exporter.metrics(), ERRORS) == own).then_some(())
    });
    assert!(exporter.stop().success());
}

#[test]
fn ports_of_ethernet_are_3_6_9_and_12() {
    let metrics = read_once(&connectx8_ethernet());
    let interfaces: Vec<(String, String)> = metrics
        .all("infiniband_netdev_info")
        .map(|(labels, _)| (labels["port"].clone(), labels["netdev"].clone()))
        .collect();
    let expected = [("12", "ens9np3"), ("3", "ens9np0"), ("6", "ens9np1"), ("9", "ens9np2")];
    let mut interfaces: Vec<(&str, &str)> =
        interfaces.iter().map(|(port, name)| (&**port, &**name)).collect();
    interfaces.sort_unstable();
    assert_eq!(interfaces, expected);
    for port in 1..=12 {
        let state = value(&metrics, "infiniband_port_state", "mlx5_0", &port.to_string());
        assert_eq!(state, Some(if port % 3 == 0 { 4 } else { 1 }), "{port}");
    }
}
