//! node_exporter and our exporter on the same trees: each of its values has an equal.

use std::collections::BTreeSet;

use crate::host_trees::read_once;
use test_rig::sysfs::{Content, Device, Tree, hgx};
use test_rig::{Metrics, NodeExporter};

/// Its names after `node_infiniband_`, and ours after `infiniband_`. Both are per device and port, both have
/// data in bytes, and none differs by a factor.
const PAIRS: &[(&str, &str)] = &[
    ("state_id", "port_state"),
    ("physical_state_id", "port_physical_state"),
    ("rate_bytes_per_second", "port_rate_bytes_per_second"),
    ("link_downed_total", "port_link_downed_total"),
    ("link_error_recovery_total", "port_link_error_recoveries_total"),
    ("multicast_packets_received_total", "port_multicast_receive_packets_total"),
    ("multicast_packets_transmitted_total", "port_multicast_transmit_packets_total"),
    ("unicast_packets_received_total", "port_unicast_receive_packets_total"),
    ("unicast_packets_transmitted_total", "port_unicast_transmit_packets_total"),
    ("port_constraint_errors_received_total", "port_receive_constraint_errors_total"),
    ("port_constraint_errors_transmitted_total", "port_transmit_constraint_errors_total"),
    ("port_data_received_bytes_total", "port_receive_bytes_total"),
    ("port_data_transmitted_bytes_total", "port_transmit_bytes_total"),
    ("port_discards_transmitted_total", "port_transmit_discards_total"),
    ("port_errors_received_total", "port_receive_errors_total"),
    ("port_packets_received_total", "port_receive_packets_total"),
    ("port_packets_transmitted_total", "port_transmit_packets_total"),
    ("port_transmit_wait_total", "port_transmit_wait_ticks_total"),
    ("symbol_error_total", "port_symbol_errors_total"),
    ("vl15_dropped_total", "port_vl15_dropped_total"),
    ("local_link_integrity_errors_total", "port_local_link_integrity_errors_total"),
    ("excessive_buffer_overrun_errors_total", "port_excessive_buffer_overrun_errors_total"),
    ("port_receive_remote_physical_errors_total", "port_receive_remote_physical_errors_total"),
    ("port_receive_switch_relay_errors_total", "port_receive_switch_relay_errors_total"),
    // counters_ext of an old mlx4. We export them under the names that newer kernels have.
    ("legacy_data_received_bytes_total", "port_receive_bytes_total"),
    ("legacy_data_transmitted_bytes_total", "port_transmit_bytes_total"),
    ("legacy_multicast_packets_received_total", "port_multicast_receive_packets_total"),
    ("legacy_multicast_packets_transmitted_total", "port_multicast_transmit_packets_total"),
    ("legacy_packets_received_total", "port_receive_packets_total"),
    ("legacy_packets_transmitted_total", "port_transmit_packets_total"),
    ("legacy_unicast_packets_received_total", "port_unicast_receive_packets_total"),
    ("legacy_unicast_packets_transmitted_total", "port_unicast_transmit_packets_total"),
];

/// Where `legacy_…` exists, these are the narrow counters next to it, which we do not export: 32-bit data
/// counters are saturated after seconds.
const NARROW: &[(&str, &str)] = &[
    ("port_data_received_bytes_total", "legacy_data_received_bytes_total"),
    ("port_data_transmitted_bytes_total", "legacy_data_transmitted_bytes_total"),
    ("port_packets_received_total", "legacy_packets_received_total"),
    ("port_packets_transmitted_total", "legacy_packets_transmitted_total"),
];

/// Its labels of `node_infiniband_info`, and ours of `infiniband_device_info`.
const INFO: &[(&str, &str)] =
    &[("board_id", "board"), ("firmware_version", "firmware"), ("hca_type", "hca_type")];

/// The samples of node_exporter, or its log where it fails for all devices.
fn theirs(tree: &Tree) -> Result<Metrics, String> {
    let node_exporter = NodeExporter::start(tree);
    let metrics = node_exporter.metrics();
    let success = metrics.get("node_scrape_collector_success", &[("collector", "infiniband")]);
    if success == Some(1.0) { Ok(metrics) } else { Err(node_exporter.log()) }
}

/// Compares all samples of node_exporter for a tree; returns the metrics that there were.
fn compare(theirs: &Metrics, ours: &Metrics) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for sample in &theirs.samples {
        let Some(name) = sample.name.strip_prefix("node_infiniband_") else { continue };
        seen.insert(name.to_owned());
        let device = sample.labels["device"].as_str();
        if name == "info" {
            let info = ours.sample("infiniband_device_info", &[("device", device)]).unwrap();
            for (theirs, ours) in INFO {
                let exposed = info.labels.get(*ours).map_or("", String::as_str);
                assert_eq!(sample.labels[*theirs], exposed, "{device} {ours}");
            }
            assert_eq!(sample.labels.len(), INFO.len() + 1, "{sample:?}");
            continue;
        }
        let labels = [("device", device), ("port", sample.labels["port"].as_str())];
        let (_, pair) = PAIRS
            .iter()
            .find(|(theirs, _)| *theirs == name)
            .unwrap_or_else(|| panic!("{sample:?} has no pair"));
        let wide = NARROW
            .iter()
            .find(|(narrow, _)| *narrow == name)
            .and_then(|(_, wide)| theirs.sample(&format!("node_infiniband_{wide}"), &labels));
        let ours = ours
            .get(&format!("infiniband_{pair}"), &labels)
            .unwrap_or_else(|| panic!("{pair} of {labels:?} is not exposed"));
        // Its values are floating-point numbers; ours become that in Prometheus.
        let value = wide.unwrap_or(sample).f64();
        assert_eq!(value.to_bits(), ours.to_bits(), "{name} {labels:?}: {value} {ours}");
    }
    seen
}

#[test]
fn each_node_exporter_value_has_an_equal() {
    let trees = [
        hgx(),
        Tree::new([Device::mlx5_xdr("mlx5_0"), Device::mthca("mthca0"), Device::i40iw("i40iw0")]),
        Tree::new([Device::mlx4("mlx4_0"), Device::hfi1("hfi1_0")]),
        Tree::new([Device::mlx5_vf("mlx5_4", 1), Device::mlx5_vf("mlx5_5", 2)]),
    ];
    let mut seen = BTreeSet::new();
    for tree in &trees {
        let theirs = theirs(tree).unwrap();
        seen.append(&mut compare(&theirs, &read_once(tree)));
    }
    // Each row of the table was tested.
    let table: BTreeSet<String> =
        PAIRS.iter().map(|(theirs, _)| (*theirs).to_owned()).chain(["info".to_owned()]).collect();
    assert_eq!(seen, table);
}

/// Debian's 1.5 needs a `board_id` and `counters` of each device; where one is missing it assumes a host
/// without InfiniBand and exports no device, without a message in its log. (Later releases work without a
/// board, and know that devices called `irdma…` have no counters.) If a value cannot be parsed it
/// fails, and exports nothing either.
#[test]
fn broken_device_fails_node_exporter_but_not_us() {
    let mlx5 = || Device::mlx5_ndr("mlx5_0", 0);
    let missing = [
        // No board_id.
        Device::bnxt_re("bnxt_re0"),
        Device::efa("rdmap0s30"),
        Device::irdma("irdma0"),
        Device::irdma_gen3("rocep50s0"),
        Device::rxe("rxe0", "veth0"),
        Device::siw("siw0"),
        // A board_id and no counters.
        Device::irdma("irdma0").file("board_id", "a board"),
        // An empty one.
        Device::bare("mlx5_0").has("ports/1", Content::Refuses),
    ];
    let garbled = [
        mlx5().file("ports/1/rate", "garbage"),
        mlx5().file("ports/1/state", "ACTIVE"),
        mlx5().file("ports/1/counters/symbol_error", "many"),
    ];
    let all = missing.map(|odd| (odd, false)).into_iter().chain(garbled.map(|odd| (odd, true)));
    for (odd, says_so) in all {
        let tree = Tree::new([odd.clone(), Device::mlx5_ndr("mlx5_9", 9)]);
        let log = theirs(&tree).expect_err("node_exporter manages now");
        assert_eq!(log.contains("collector failed"), says_so, "{odd:?}: {log}");
        let ours = read_once(&tree);
        let sound = [("device", "mlx5_9")];
        assert_eq!(ours.get("infiniband_port_state", &sound), Some(4.0), "{odd:?}");
        assert!(ours.sample("infiniband_port_receive_bytes_total", &sound).is_some(), "{odd:?}");
    }
}
