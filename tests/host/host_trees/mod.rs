//! The host's own devices, on trees built from what the kernel writes: the right samples, and
//! whatever is odd about one device costs no other.
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

use test_rig as rig;

use rig::sysfs::Tree;
use rig::{Exporter, Metrics};

/// What one look at a tree tells.
fn look(tree: &Tree) -> Metrics {
    look_with(tree, &[])
}

/// The same with flags.
fn look_with(tree: &Tree, flags: &[&str]) -> Metrics {
    let mut exporter = Exporter::on_host(tree, flags);
    exporter.wait_ready();
    let metrics = exporter.metrics();
    // It succeeds where there is nothing to see, or something can be seen.
    let ups: Vec<f64> = metrics.all("infiniband_device_up").map(|(_, up)| up).collect();
    let well = ups.is_empty() || ups.iter().any(|&up| up > 0.0);
    let success = metrics.get("infiniband_collector_success", &[("collector", "host")]);
    assert_eq!(success, Some(f64::from(u8::from(well))));
    assert!(exporter.stop().success());
    metrics
}

/// The devices that samples of a family are told of, in the order of the text.
fn devices(metrics: &Metrics, family: &str) -> Vec<String> {
    metrics.all(family).map(|(labels, _)| labels["device"].clone()).collect()
}
