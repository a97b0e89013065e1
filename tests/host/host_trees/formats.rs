//! Both exposition formats, with the devices of all hosts together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read;

use test_rig::promtool::{OPEN_METRICS, assert_accepts, complaints};
use test_rig::reference;
use test_rig::sysfs::{Device, Tree};
use test_rig::{Exporter, Metrics};

fn everything() -> Tree {
    Tree::new([
        Device::mlx5_ndr("mlx5_0", 0),
        Device::mlx5_bond("mlx5_bond_0", 1),
        Device::mlx5_vf("mlx5_7", 1),
        Device::mlx4("mlx4_0"),
        Device::hfi1("hfi1_0"),
        Device::irdma("irdma0"),
        Device::irdma_gen3("rocep50s0"),
        Device::efa("rdmap0s30"),
        Device::bnxt_re("bnxt_re0"),
        Device::rxe("rxe0", "veth0"),
        Device::siw("siw0"),
    ])
}

#[test]
fn promtool_accepts_every_device() {
    let mut exporter = Exporter::on_host(&everything(), &[]);
    exporter.wait_ready();
    assert_accepts(&exporter);
    assert!(exporter.stop().success());
}

/// Also for metrics that no test device has: counters of other drivers, and histograms of outages.
#[test]
fn promtool_accepts_every_documented_metric() {
    let mut families = BTreeMap::new();
    let mut insert = |name: &str, label: &str| {
        let kind = match label {
            "histogram" => "histogram",
            _ if name.ends_with("_total") => "counter",
            _ => "gauge",
        };
        families.insert(name.to_owned(), kind);
    };
    for line in reference::page().lines() {
        let cells: Vec<&str> = line.split(" | ").collect();
        if let Some(name) = cells[0].strip_prefix("| `").and_then(|it| it.strip_suffix('`')) {
            insert(name, cells[1]);
        }
    }
    for name in reference::driver_names() {
        insert(&name, "");
    }
    assert!(families.len() > 600, "{} metrics", families.len());
    let mut text = String::new();
    for (name, kind) in families {
        let _ = writeln!(text, "# HELP {name} Help.\n# TYPE {name} {kind}");
        let _ = match kind {
            "histogram" => {
                writeln!(text, "{name}_bucket{{le=\"+Inf\"}} 1\n{name}_sum 1\n{name}_count 1")
            }
            _ => writeln!(text, "{name} 1"),
        };
    }
    assert_eq!(complaints(&text), (Some(0), String::new()));
}

/// Panics unless the lines of a family are contiguous, below one type and one help.
fn assert_whole_families(text: &str) {
    let (mut seen, mut typed, mut helped) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut current = String::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let family = match words[..] {
            ["#", "TYPE", family, _] => {
                assert!(typed.insert(family.to_owned()), "{family} is typed twice");
                family
            }
            ["#", "UNIT", family, _] => family,
            ["#", "HELP", family, help] => {
                assert!(helped.insert(family.to_owned()), "{family} is explained twice");
                assert!(help.ends_with('.'), "{line}");
                family
            }
            _ => {
                let name = line.split(['{', ' ']).next().unwrap();
                assert!(name.starts_with(&current), "{name} is below {current}");
                continue;
            }
        };
        if family != current {
            assert!(seen.insert(family.to_owned()), "{family} is in two places");
            family.clone_into(&mut current);
        }
    }
    assert_eq!(typed, helped);
    assert!(typed.contains("infiniband_port_state"));
}

#[test]
fn families_are_contiguous_and_series_unique() {
    let mut exporter = Exporter::on_host(&everything(), &[]);
    exporter.wait_ready();
    let plain = exporter.get("/metrics", &[]);
    assert_whole_families(plain.text());
    let open = exporter.get("/metrics", &[("Accept", OPEN_METRICS)]);
    assert_whole_families(open.text());
    // Both have the same samples of devices.
    let of_devices = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains("device=\""));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(of_devices(plain.text()), of_devices(open.text()));
    // So does the compressed one.
    let packed = exporter.get("/metrics", &[("Accept-Encoding", "gzip")]);
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
    assert_eq!(of_devices(&text), of_devices(plain.text()));
    let metrics = Metrics::parse(plain.text());
    let mut series = BTreeSet::new();
    for sample in &metrics.samples {
        assert!(series.insert((&sample.name, &sample.labels)), "twice: {sample:?}");
    }
    assert!(exporter.stop().success());
}

#[test]
fn counters_are_typed_and_end_in_total() {
    let mut exporter = Exporter::on_host(&everything(), &[]);
    exporter.wait_ready();
    for (family, kind) in exporter.metrics().types {
        if family.starts_with("infiniband_") {
            assert_eq!(family.ends_with("_total"), kind == "counter", "{family} {kind}");
        }
    }
    assert!(exporter.stop().success());
}
