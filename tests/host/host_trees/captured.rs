//! Trees of a real kernel: captured on Linux 6.1 with soft RoCE, siw and an HCA from a kernel test
//! module.

use crate::host_trees::files::TALLIED;
use crate::host_trees::read_once;
use test_rig::Metrics;
use test_rig::metrics::Sample;
use test_rig::sysfs::Tree;

pub fn captured() -> Tree {
    Tree::from_manifest(include_str!("../../fixtures/sysfs-linux-6.1.txt"))
}

/// The samples about devices, one per line, as `name{labels} value`.
fn device_samples(metrics: &Metrics) -> Vec<String> {
    let samples = metrics.samples.iter().filter(|sample| {
        sample.labels.contains_key("device") && !TALLIED.contains(&sample.name.as_str())
    });
    let line = |sample: &Sample| {
        let labels: Vec<String> = sample
            .labels
            .iter()
            .filter(|(name, _)| *name != "fabric")
            .map(|(name, value)| format!("{name}={value:?}"))
            .collect();
        format!("{}{{{}}} {}", sample.name, labels.join(","), sample.raw)
    };
    samples.map(line).collect()
}

/// The file next to the manifest has the expected samples, and was reviewed (`UPDATE_FIXTURES=1` writes it
/// again, for another review): the two ports of the HCA at 200 Gb/s with the 21 counters of their
/// PMA, LIDs 8 and 9; soft RoCE with its 15 counters and none of a PMA, at what the kernel calls
/// 1X FDR10 for its 10 Gb/s veth; siw with neither. `class/net` was not captured.
#[test]
fn captured_tree_of_a_real_kernel_is_exported() {
    let metrics = read_once(&captured());
    let count = |name: &str, device: &str| {
        let of_device = metrics.all(name).filter(|(labels, _)| labels["device"] == device);
        of_device.count()
    };
    assert_eq!(count("infiniband_port_symbol_errors_total", "mlx5_0"), 2);
    assert_eq!(count("infiniband_port_symbol_errors_total", "rxe0"), 0);
    assert_eq!(count("infiniband_port_state", "siw1"), 1);
    let samples = device_samples(&metrics);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/sysfs-linux-6.1.metrics");
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(file, samples.join("\n") + "\n").unwrap();
    }
    let expected = std::fs::read_to_string(file).unwrap();
    assert_eq!(samples, expected.lines().collect::<Vec<_>>());
}
