//! Each file has its sample, and no sample is without a file: compared with the tree itself, for every
//! host.

use std::collections::BTreeMap;

use crate::host_trees::captured::captured;
use crate::host_trees::read_once;
use test_rig::Metrics;
use test_rig::sysfs::{Host, Tree, every_host};

/// A file of `counters` or `counters_ext`, its metric, and the unit of a count.
const COUNTERS: &[(&str, &str, u64)] = &[
    ("VL15_dropped", "vl15_dropped", 1),
    ("excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors", 1),
    ("link_downed", "link_downed", 1),
    ("link_error_recovery", "link_error_recoveries", 1),
    ("local_link_integrity_errors", "local_link_integrity_errors", 1),
    ("multicast_rcv_packets", "multicast_receive_packets", 1),
    ("multicast_xmit_packets", "multicast_transmit_packets", 1),
    ("port_rcv_constraint_errors", "receive_constraint_errors", 1),
    ("port_rcv_data", "receive_bytes", 4),
    ("port_rcv_errors", "receive_errors", 1),
    ("port_rcv_packets", "receive_packets", 1),
    ("port_rcv_remote_physical_errors", "receive_remote_physical_errors", 1),
    ("port_rcv_switch_relay_errors", "receive_switch_relay_errors", 1),
    ("port_xmit_constraint_errors", "transmit_constraint_errors", 1),
    ("port_xmit_data", "transmit_bytes", 4),
    ("port_xmit_discards", "transmit_discards", 1),
    ("port_xmit_packets", "transmit_packets", 1),
    ("port_xmit_wait", "transmit_wait_ticks", 1),
    ("symbol_error", "symbol_errors", 1),
    ("unicast_rcv_packets", "unicast_receive_packets", 1),
    ("unicast_xmit_packets", "unicast_transmit_packets", 1),
];

/// The files of `counters_ext`, which count the same and do not saturate.
const WIDER: &[(&str, &str, u64)] = &[
    ("port_multicast_rcv_packets", "multicast_receive_packets", 1),
    ("port_multicast_xmit_packets", "multicast_transmit_packets", 1),
    ("port_rcv_data_64", "receive_bytes", 4),
    ("port_rcv_packets_64", "receive_packets", 1),
    ("port_unicast_rcv_packets", "unicast_receive_packets", 1),
    ("port_unicast_xmit_packets", "unicast_transmit_packets", 1),
    ("port_xmit_data_64", "transmit_bytes", 4),
    ("port_xmit_packets_64", "transmit_packets", 1),
];

/// The values in the files of a port, by metric.
fn filed(tree: &Tree, device: &str, port: &str) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for (directory, table) in [("counters", COUNTERS), ("counters_ext", WIDER)] {
        for (file, number) in tree.numbers(device, &format!("ports/{port}/{directory}")) {
            let (_, metric, worth) = table
                .iter()
                .find(|row| row.0 == file)
                .unwrap_or_else(|| panic!("{file} is not in this test's table"));
            all.insert(format!("infiniband_port_{metric}_total"), number * worth);
        }
    }
    all
}

/// Metrics that do not come from a file of counters.
pub const TALLIED: [&str; 4] = [
    "fabric_exporter_device_events_subscribed",
    "infiniband_port_counters_reset_total",
    "infiniband_port_events_total",
    "infiniband_port_link_losses_total",
];

/// The exported counters of a port, by metric.
fn port_samples(metrics: &Metrics, device: &str, port: &str) -> BTreeMap<String, u64> {
    let of_port = metrics.samples.iter().filter(|sample| {
        sample.name.starts_with("infiniband_port_")
            && sample.name.ends_with("_total")
            && !TALLIED.contains(&sample.name.as_str())
            && sample.has(&[("device", device), ("port", port)])
    });
    of_port.map(|sample| (sample.name.clone(), sample.u64())).collect()
}

/// The exported values of a driver's own counters, sorted; each with the file's name where its metric does
/// not identify it.
fn told_hw(metrics: &Metrics, device: &str, port: Option<&str>) -> Vec<(Option<String>, u64)> {
    let mut all: Vec<_> = metrics
        .samples
        .iter()
        .filter(|sample| sample.name.starts_with("infiniband_hw_"))
        .filter(|sample| sample.has(&[("device", device)]))
        .filter(|sample| sample.labels.get("port").map(String::as_str) == port)
        .map(|sample| (sample.labels.get("counter").cloned(), sample.u64()))
        .collect();
    all.sort_unstable_by_key(|(_, number)| *number);
    all
}

/// Compares a folder of hw_counters with the samples, by the values, which are all different.
fn check_hw(host: &Host, metrics: &Metrics, device: &str, port: Option<&str>) {
    let directory =
        port.map_or("hw_counters".to_owned(), |port| format!("ports/{port}/hw_counters"));
    let mut files: Vec<(String, u64)> = host.tree.numbers(device, &directory).into_iter().collect();
    files.retain(|(name, _)| name != "lifespan");
    for (name, number) in &mut files {
        // The only one that is counted in words and exported in bytes.
        *number *= if name == "TxWords" { 4 } else { 1 };
    }
    files.sort_unstable_by_key(|(_, number)| *number);
    let told = told_hw(metrics, device, port);
    assert_eq!(
        told.iter().map(|it| it.1).collect::<Vec<_>>(),
        files.iter().map(|it| it.1).collect::<Vec<_>>(),
        "{}: {device} {directory}: {files:?} {told:?}",
        host.name
    );
    // A counter with its own metric needs no label; another one has the name of its file.
    for (label, number) in told.iter().filter_map(|(label, number)| Some((label.as_ref()?, number)))
    {
        let is_there = files.iter().any(|file| (&file.0, &file.1) == (label, number));
        assert!(is_there, "{}: {label}", host.name);
    }
}

#[test]
fn each_file_has_its_sample_and_no_other_exists() {
    let captured = Host { name: "captured on Linux 6.1", tree: captured() };
    for host in every_host().into_iter().chain([captured]) {
        let metrics = read_once(&host.tree);
        let mut ports = 0;
        for device in host.tree.devices() {
            check_hw(&host, &metrics, &device, None);
            for port in host.tree.ports(&device) {
                ports += 1;
                let place = format!("{}: {device} port {port}", host.name);
                assert_eq!(
                    port_samples(&metrics, &device, &port),
                    filed(&host.tree, &device, &port),
                    "{place}"
                );
                check_hw(&host, &metrics, &device, Some(&port));
                let labels = [("device", device.as_str()), ("port", port.as_str())];
                for family in [
                    "infiniband_port_state",
                    "infiniband_port_physical_state",
                    "infiniband_device_port_info",
                ] {
                    assert!(metrics.sample(family, &labels).is_some(), "{place}: {family}");
                }
            }
            assert_eq!(
                metrics.get("infiniband_device_up", &[("device", &device)]),
                Some(1.0),
                "{}",
                host.name
            );
        }
        assert_eq!(metrics.all("infiniband_port_state").count(), ports, "{}", host.name);
        let about = metrics.all("infiniband_device_info").count();
        assert_eq!(about, host.tree.devices().len(), "{}", host.name);
    }
}
