//! The host's devices, with trees as the kernel writes them: the samples are right, and an odd device affects
//! no other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod captured;
mod chosen;
mod files;
mod formats;
mod gone;
mod hosts;
mod moving;
mod node_exporter;
mod odd;
mod planes;
mod refusing;
mod scenes;

use test_rig as rig;

use rig::sysfs::Tree;
use rig::{Exporter, Metrics};

/// The metrics after one read of a tree.
fn read_once(tree: &Tree) -> Metrics {
    look_with(tree, &[])
}

/// The same with flags.
fn look_with(tree: &Tree, flags: &[&str]) -> Metrics {
    let mut exporter = Exporter::on_host(tree, flags);
    exporter.wait_ready();
    let metrics = exporter.metrics();
    // It succeeds where there is no device, or where one can be read.
    let ups: Vec<f64> = metrics.all("infiniband_device_up").map(|(_, up)| up).collect();
    let well = ups.is_empty() || ups.iter().any(|&up| up > 0.0);
    let success = metrics.get("fabric_exporter_collector_success", &[("collector", "host")]);
    assert_eq!(success, Some(f64::from(u8::from(well))));
    assert!(exporter.stop().success());
    metrics
}

/// The devices with samples of a family, in the order of the text.
fn devices(metrics: &Metrics, family: &str) -> Vec<String> {
    metrics.all(family).map(|(labels, _)| labels["device"].clone()).collect()
}
