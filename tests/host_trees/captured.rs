//! What a kernel really shows: captured on Linux 6.1 with soft RoCE, siw and an HCA made by a kernel
//! test module.

use crate::look;
use crate::rig::Metrics;
use crate::rig::sysfs::Tree;

fn captured() -> Tree {
    Tree::from_manifest(include_str!("../fixtures/sysfs-linux-6.1.txt"))
}

/// The samples of devices, one a line, as `name{labels} value`: what is the same in each run.
fn told(metrics: &Metrics) -> Vec<String> {
    let samples = metrics.samples.iter().filter(|sample| sample.labels.contains_key("device"));
    let line = |sample: &crate::rig::metrics::Sample| {
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

#[test]
fn a_real_kernel() {
    let metrics = look(&captured());
    let told = told(&metrics);
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/sysfs-linux-6.1.metrics");
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(file, told.join("\n") + "\n").unwrap();
    }
    let expected = std::fs::read_to_string(file).unwrap();
    assert_eq!(told, expected.lines().collect::<Vec<_>>());
}
