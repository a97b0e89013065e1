//! What a kernel really shows: captured on Linux 6.1 with soft RoCE, siw and an HCA made by a kernel
//! test module.

use crate::host_trees::files::TALLIED;
use crate::host_trees::look;
use test_rig::Metrics;
use test_rig::metrics::Sample;
use test_rig::sysfs::Tree;

pub fn captured() -> Tree {
    Tree::from_manifest(include_str!("../../fixtures/sysfs-linux-6.1.txt"))
}

/// The samples of what is read of devices, one a line, as `name{labels} value`.
fn told(metrics: &Metrics) -> Vec<String> {
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

/// The file beside the manifest holds what is expected, and was read through (`UPDATE_FIXTURES=1`
/// writes it anew, to be read through again): the HCA's two ports at 200 Gb/s with the 21 counters of
/// their PMA, LIDs 8 and 9; soft RoCE with its 15 counters and none of a PMA, at what the kernel calls
/// 1X FDR10 for its 10 Gb/s veth; siw with neither. `class/net` was not captured.
#[test]
fn a_real_kernel_is_told_as_it_was_read_through() {
    let metrics = look(&captured());
    let count = |name: &str, device: &str| {
        let of_device = metrics.all(name).filter(|(labels, _)| labels["device"] == device);
        of_device.count()
    };
    assert_eq!(count("infiniband_port_symbol_errors_total", "mlx5_0"), 2);
    assert_eq!(count("infiniband_port_symbol_errors_total", "rxe0"), 0);
    assert_eq!(count("infiniband_port_state", "siw1"), 1);
    let told = told(&metrics);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/sysfs-linux-6.1.metrics");
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(file, told.join("\n") + "\n").unwrap();
    }
    let expected = std::fs::read_to_string(file).unwrap();
    assert_eq!(told, expected.lines().collect::<Vec<_>>());
}
