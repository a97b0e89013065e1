//! Devices appear and disappear, and counters increase, while the exporter runs.

use std::time::Duration;

use crate::host_trees::devices;
use test_rig::sysfs::{Device, Tree};
use test_rig::{Exporter, Metrics, wait_until};

const LIMIT: Duration = Duration::from_secs(60);

fn wait_for_devices(exporter: &Exporter, expected: &[&str]) -> Metrics {
    wait_until(LIMIT, &format!("the devices to be {expected:?}"), || {
        let metrics = exporter.metrics();
        (devices(&metrics, "infiniband_device_info") == expected).then_some(metrics)
    })
}

#[test]
fn devices_appear_and_disappear() {
    let [first, second] = [Device::mlx5_ndr("mlx5_0", 0), Device::mlx5_ndr("mlx5_1", 1)];
    let tree = Tree::new([first]);
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_ready();
    wait_for_devices(&exporter, &["mlx5_0"]);
    tree.add(&second);
    let metrics = wait_for_devices(&exporter, &["mlx5_0", "mlx5_1"]);
    assert_eq!(devices(&metrics, "infiniband_port_state"), ["mlx5_0", "mlx5_1"]);
    tree.remove(&second);
    wait_for_devices(&exporter, &["mlx5_0"]);
    // Another device with its name, as after a reload of the driver.
    let other = Device::mlx5_xdr("mlx5_1");
    tree.add(&other);
    let metrics = wait_for_devices(&exporter, &["mlx5_0", "mlx5_1"]);
    let rate = metrics.get("infiniband_port_rate_bytes_per_second", &[("device", "mlx5_1")]);
    assert_eq!(rate, Some(1e11));
    let collector = [("collector", "host")];
    assert_eq!(metrics.get("fabric_exporter_collector_success", &collector), Some(1.0));
    assert!(exporter.stop().success());
}

#[test]
fn counter_reset_between_reads_is_recognized() {
    let before = Device::mlx5_ndr("mlx5_0", 0);
    let tree = Tree::new([before.clone()]);
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_ready();
    // The same name again at once, with other folders below it, and new firmware.
    tree.remove(&before);
    tree.add(&Device::mlx5_xdr("mlx5_0").file("fw_ver", "40.42.1000"));
    wait_until(LIMIT, "the new device", || {
        let metrics = exporter.metrics();
        let info = metrics.sample("infiniband_device_info", &[])?;
        (info.labels["firmware"] == "40.42.1000").then_some(())
    });
    assert_eq!(exporter.metrics().get("infiniband_port_rate_bytes_per_second", &[]), Some(1e11));
    assert!(exporter.stop().success());
}

#[test]
fn values_change_with_the_files() {
    let tree = Tree::new([Device::mlx5_ndr("mlx5_0", 0)]);
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_ready();
    let before = exporter.metrics().get_u64("infiniband_port_link_downed_total", &[]).unwrap();
    for (state, count) in [("1: DOWN", before + 5), ("4: ACTIVE", before + 6)] {
        tree.set("mlx5_0", "ports/1/counters/link_downed", &format!("{count}\n"));
        tree.set("mlx5_0", "ports/1/state", &format!("{state}\n"));
        let metrics = exporter.wait_reads(2);
        assert_eq!(metrics.get_u64("infiniband_port_link_downed_total", &[]), Some(count));
        let number = state.split(':').next().unwrap().parse().ok();
        assert_eq!(metrics.get("infiniband_port_state", &[]), number);
    }
    assert!(exporter.stop().success());
}
