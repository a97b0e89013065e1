//! node_exporter and our exporter on the same host, in one Prometheus: its series and the recorded ones.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::compat::table::Per;
use crate::compat::{assert_healthy, prometheus, written};
use test_rig::sysfs::{Device, hgx};
use test_rig::{Exporter, NodeExporter, Prometheus, wait_until};

/// Series of node_exporter that are not recorded, and why: counters_ext of an old mlx4 have the names that
/// newer kernels have.
const LEGACY: &str = "node_infiniband_legacy_";

/// Series that differ on devices with `legacy_…`, and which value they have: 32-bit data counters are
/// saturated after seconds, and we export the 64-bit ones next to them.
const NARROW: [(&str, &str); 4] = [
    ("node_infiniband_port_data_received_bytes_total", "data_received_bytes_total"),
    ("node_infiniband_port_data_transmitted_bytes_total", "data_transmitted_bytes_total"),
    ("node_infiniband_port_packets_received_total", "packets_received_total"),
    ("node_infiniband_port_packets_transmitted_total", "packets_transmitted_total"),
];

/// Series that only we have, from counters_ext.
const WIDE: [&str; 4] = [
    "node_infiniband_unicast_packets_received_total",
    "node_infiniband_unicast_packets_transmitted_total",
    "node_infiniband_multicast_packets_received_total",
    "node_infiniband_multicast_packets_transmitted_total",
];

type Series = BTreeMap<(String, BTreeMap<String, String>), String>;

/// All `node_infiniband_…` series of a job, without the labels that a scrape adds.
fn series_of_job(prometheus: &Prometheus, job: &str) -> Series {
    let query = format!("{{__name__=~\"node_infiniband_.+\", job=\"{job}\"}}");
    let mut series = Series::new();
    for it in prometheus.query(&query) {
        let mut labels: BTreeMap<String, String> =
            serde_json::from_value(it["metric"].clone()).unwrap();
        assert!(labels.remove("instance").is_some() && labels.remove("job").is_some());
        let has_fabric = labels.remove("fabric").is_some();
        assert_eq!(has_fabric, job == "ours", "{labels:?}");
        let name = labels.remove("__name__").unwrap();
        let value = it["value"][1].as_str().unwrap().to_owned();
        assert!(series.insert((name, labels), value).is_none(), "{it} twice");
    }
    series
}

#[test]
fn all_node_exporter_series_are_recorded() {
    let tree = hgx();
    for device in [
        Device::mlx5_xdr("mlx5_20"),
        Device::mthca("mthca0"),
        Device::i40iw("i40iw0"),
        Device::mlx4("mlx4_0"),
        Device::hfi1("hfi1_0"),
        Device::mlx5_vf("mlx5_24", 1),
        Device::mlx5_vf("mlx5_25", 2),
    ] {
        tree.add(&device);
    }
    let node_exporter = NodeExporter::start(&tree);
    let mut exporter = Exporter::on_host(&tree, &[]);
    exporter.wait_ready();
    let jobs = [("theirs", node_exporter.address()), ("ours", exporter.address())]
        .map(|(job, address)| (job.to_owned(), vec![address.to_owned()]));
    let prometheus = prometheus(jobs.into(), &["node_exporter"]);
    let (theirs, ours) = wait_until(Duration::from_secs(60), "both to be scraped", || {
        let (theirs, ours) =
            (series_of_job(&prometheus, "theirs"), series_of_job(&prometheus, "ours"));
        let is_there = |series: &Series| series.keys().any(|(name, _)| name.ends_with("_info"));
        // Rules that build on others record an evaluation later.
        let are_recorded = |(name, labels): &(String, BTreeMap<String, String>)| {
            name.starts_with(LEGACY) || ours.contains_key(&(name.clone(), labels.clone()))
        };
        (is_there(&theirs) && is_there(&ours) && theirs.keys().all(are_recorded))
            .then_some((theirs, ours))
    });
    assert_healthy(&prometheus);

    let mut names = BTreeSet::new();
    let (mut legacy, mut narrow) = (0, 0);
    for ((name, labels), value) in &theirs {
        if name.starts_with(LEGACY) {
            legacy += 1;
            continue;
        }
        names.insert(name.as_str());
        let wide = (NARROW.iter().find(|(narrow, _)| narrow == name))
            .and_then(|(_, wide)| theirs.get(&(format!("{LEGACY}{wide}"), labels.clone())));
        narrow += usize::from(wide.is_some());
        let recorded = ours.get(&(name.clone(), labels.clone()));
        assert_eq!(recorded, Some(wide.unwrap_or(value)), "{name} {labels:?}");
    }
    // Two ports of the mlx4.
    assert_eq!((legacy, narrow), (2 * 8, 2 * NARROW.len()));
    let table =
        crate::compat::exporters().into_iter().find(|it| it.name == "node_exporter").unwrap();
    let is_hw = |name: &str| {
        let row = table.rows.iter().find(|row| row.rules[0].record == name).unwrap();
        row.ours.starts_with("infiniband_hw_")
    };
    // Every name of Debian's release was tested, and nothing else is recorded.
    for row in table.rows.iter().filter(|row| !row.ours.starts_with("infiniband_hw_")) {
        assert!(names.contains(row.rules[0].record.as_str()), "{}", row.rules[0].record);
    }
    for ((name, labels), value) in &ours {
        let known = theirs.contains_key(&(name.clone(), labels.clone()));
        let wide = WIDE.contains(&name.as_str()) && labels["device"] == "mlx4_0";
        assert!(known || wide || is_hw(name), "{name} {labels:?} {value}");
    }
    let of_port = ours.keys().filter(|(name, labels)| {
        labels["device"] == "mlx5_0" && labels.contains_key("port") && !is_hw(name)
    });
    assert_eq!(of_port.count(), written::cost(&table, Per::Port));
    // Releases that read hw_counters have no other labels.
    let drivers: Vec<_> = ours.keys().filter(|(name, _)| is_hw(name)).collect();
    assert!(drivers.len() > 9 * 20, "{}", drivers.len());
    for (name, labels) in drivers {
        let labels: Vec<&str> = labels.keys().map(String::as_str).collect();
        assert_eq!(labels, ["device", "port"], "{name}");
    }
    assert!(exporter.stop().success());
}
