//! A device that disappears while the exporter runs, and an unreadable sysfs. There are no events: these trees are
//! not the kernel's, so libibverbs is not used, as on a host without it.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use crate::host_trees::files::TALLIED;
use test_rig::sysfs::{Device, Tree, hgx};
use test_rig::{Exporter, Metrics, wait_until};

const LIMIT: Duration = Duration::from_secs(60);

fn up(metrics: &Metrics, device: &str) -> Option<u64> {
    metrics.get_u64("infiniband_device_up", &[("device", device)])
}

fn losses(metrics: &Metrics, device: &str) -> Option<u64> {
    metrics.get_u64("infiniband_port_link_losses_total", &[("device", device)])
}

fn success(metrics: &Metrics) -> Option<u64> {
    metrics.get_u64("fabric_exporter_collector_success", &[("collector", "host")])
}

fn wait_up(exporter: &Exporter, device: &str, wanted: Option<u64>) -> Metrics {
    wait_until(LIMIT, &format!("infiniband_device_up of {device} to be {wanted:?}"), || {
        Some(exporter.metrics()).filter(|metrics| up(metrics, device) == wanted)
    })
}

/// The number of log lines about a device.
fn logged(exporter: &Exporter, device: &str, text: &str) -> usize {
    let device = format!("device={device}");
    exporter.log().lines().filter(|line| line.contains(text) && line.contains(&device)).count()
}

#[test]
fn missing_device_is_down_until_it_returns() {
    let (first, second) = (Device::mlx5_ndr("mlx5_0", 0), Device::mlx5_ndr("mlx5_1", 1));
    let tree = Tree::new([first, second.clone()]);
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_ready();
    tree.remove(&second);
    let metrics = wait_up(&exporter, "mlx5_1", Some(0));
    let of_gone = metrics.samples.iter().filter(|sample| sample.has(&[("device", "mlx5_1")]));
    let kept: BTreeSet<&str> = of_gone.map(|sample| sample.name.as_str()).collect();
    let known = |name: &&str| TALLIED.contains(name) || *name == "infiniband_device_up";
    assert!(kept.iter().all(known), "what was not read has no sample: {kept:?}");
    let guid =
        &metrics.sample("infiniband_device_up", &[("device", "mlx5_1")]).unwrap().labels["guid"];
    assert!(guid.starts_with("0x") && guid.len() == 18, "{guid}");
    assert_eq!((success(&metrics), up(&metrics, "mlx5_0")), (Some(1), Some(1)));
    exporter.wait_reads(2);
    assert_eq!(logged(&exporter, "mlx5_1", "device disappeared"), 1, "{}", exporter.log());
    tree.add(&second);
    wait_up(&exporter, "mlx5_1", Some(1));
    exporter.wait_reads(2);
    assert_eq!(logged(&exporter, "mlx5_1", "device reappeared"), 1, "{}", exporter.log());
    assert!(exporter.stop().success());
}

#[test]
fn missing_device_loses_its_link_once() {
    let device = Device::mlx5_ndr("mlx5_0", 0);
    let tree = Tree::new([device.clone()]);
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_ready();
    assert_eq!(losses(&exporter.metrics(), "mlx5_0"), Some(0));
    for lost in [1, 2] {
        tree.remove(&device);
        assert_eq!(losses(&exporter.wait_reads(2), "mlx5_0"), Some(lost), "while it is gone");
        assert_eq!(losses(&exporter.wait_reads(2), "mlx5_0"), Some(lost), "and it stays so");
        tree.add(&device);
        assert_eq!(losses(&exporter.wait_reads(2), "mlx5_0"), Some(lost), "and when it is back");
    }
    // Gone and back between two reads, as by a reset.
    tree.remove(&device);
    tree.add(&device);
    wait_until(LIMIT, "the reset to be seen", || {
        (losses(&exporter.metrics(), "mlx5_0") == Some(3)).then_some(())
    });
    assert_eq!(losses(&exporter.wait_reads(2), "mlx5_0"), Some(3));
    assert!(exporter.stop().success());
}

#[test]
fn read_without_any_known_device_fails() {
    let device = Device::mlx5_ndr("mlx5_0", 0);
    let tree = Tree::new([device.clone()]);
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_ready();
    assert_eq!(success(&exporter.metrics()), Some(1));
    tree.remove(&device);
    let metrics = exporter.wait_reads(2);
    assert_eq!(success(&metrics), Some(0));
    assert_eq!(exporter.get("/-/ready", &[]).status, 200, "it says that the device is gone");
    tree.add(&device);
    assert_eq!(success(&exporter.wait_reads(2)), Some(1));
    assert!(exporter.stop().success());
}

#[test]
fn missing_device_is_forgotten_after_a_time() {
    let device = Device::mlx5_ndr("mlx5_0", 0);
    let tree = Tree::new([device.clone()]);
    let mut exporter =
        Exporter::on_host(&tree, &["--host.interval=1s", "--fabric.forget-after=3s"]);
    exporter.wait_ready();
    tree.remove(&device);
    wait_up(&exporter, "mlx5_0", Some(0));
    let metrics = wait_up(&exporter, "mlx5_0", None);
    assert_eq!(success(&metrics), Some(1), "a host without devices");
    assert!(exporter.stop().success());
}

#[test]
fn missing_sysfs_fails_and_is_not_ready() {
    let tree = Tree::empty();
    std::fs::remove_dir_all(tree.path()).unwrap();
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    let metrics = exporter.wait_reads(2);
    assert_eq!(success(&metrics), Some(0));
    let ready = exporter.get("/-/ready", &[]);
    let path = tree.path().display().to_string();
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains(&path) && ready.text().contains("No such file"), "{ready:?}");
    assert!(exporter.log().contains(&path), "{}", exporter.log());
    // It is mounted at last, without any RDMA module.
    std::fs::create_dir_all(tree.path()).unwrap();
    exporter.wait_ready();
    assert_eq!(success(&exporter.metrics()), Some(1));
    assert!(exporter.stop().success());
}

#[test]
fn unreadable_sysfs_is_logged_once() {
    let tree = hgx();
    let devices = tree.devices().len();
    let mut exporter =
        Exporter::on_host(&tree, &["--host.interval=1s", "--host.device-include=nobody"]);
    exporter.wait_ready();
    exporter.wait_reads(2);
    let says = format!("devices={devices}");
    let lines = |log: &str, texts: &[&str]| {
        log.lines().filter(|line| texts.iter().all(|text| line.contains(text))).count()
    };
    let log = exporter.log();
    assert_eq!(lines(&log, &["--host.device-include", &says]), 1, "{log}");
    assert!(!log.contains("load its driver"), "{log}");
    assert!(exporter.stop().success());

    let class = tree.path().join("class/infiniband");
    let permit = |mode| std::fs::set_permissions(&class, PermissionsExt::from_mode(mode)).unwrap();
    permit(0o000);
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_reads(2);
    let log = exporter.log();
    assert_eq!(lines(&log, &["class/infiniband", "Permission denied"]), 1, "{log}");
    assert!(!log.contains("load its driver"), "{log}");
    assert_eq!(exporter.get("/-/ready", &[]).status, 503);
    permit(0o755);
    exporter.wait_ready();
    assert!(exporter.stop().success());
}
