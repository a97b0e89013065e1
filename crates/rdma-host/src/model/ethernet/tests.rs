use std::collections::HashSet;

use super::*;

#[test]
fn every_row_of_the_file_parses() {
    let lines = TEXT.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    assert_eq!(TABLE.len(), lines.clone().skip(1).count());
    for line in lines.skip(1) {
        let columns: Vec<_> = line.split('\t').collect();
        assert!(["none", "priority", "lane", "class"].contains(&columns[1]), "{line}");
        assert!(["us", "1"].contains(&columns[2]), "{line}");
    }
}

/// A string's metric, with its number if it has one.
fn metric_of(driver: &str, string: &str) -> Option<(&'static str, Option<u8>)> {
    find(driver, string).map(|found| (TABLE[found.row].metric, found.index))
}

#[test]
fn names_are_unique_and_valid() {
    let mut metrics = HashSet::new();
    for EthernetRow { metric, help, .. } in TABLE.iter() {
        assert!(metrics.insert(metric), "{metric} twice");
        assert!(metric.starts_with(|first: char| first.is_ascii_lowercase()), "{metric}");
        assert!(
            metric.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')),
            "{metric}"
        );
        assert!(!metric.ends_with("_total") && !metric.contains("__"), "{metric}");
        assert!(help.ends_with('.') && !help.contains(['\n', '\\', '"']), "{metric}: {help}");
        assert!(help.starts_with(|first: char| first.is_uppercase()), "{metric}: {help}");
    }
}

#[test]
fn rows_with_index_have_number_in_strings() {
    for row in TABLE.iter() {
        let named = ["priority_", "lane_", "class_"].iter().any(|of| row.metric.starts_with(of));
        assert_eq!(row.index.is_some(), named, "{}", row.metric);
        if let Some(label) = row.index {
            assert!(row.metric.starts_with(label), "{}", row.metric);
        }
        assert!(!row.micros || row.metric.ends_with("_seconds"), "{}", row.metric);
        for (_, pattern) in &row.strings {
            let numbers = usize::from(row.index.is_some());
            assert_eq!(pattern.matches("{}").count(), numbers, "{pattern}");
        }
    }
}

#[test]
fn each_string_has_one_row_and_each_driver_one_string_a_row() {
    for (place, row) in TABLE.iter().enumerate() {
        let mut drivers = HashSet::new();
        for (driver, pattern) in &row.strings {
            assert!(drivers.insert(driver), "{driver} twice in {}", row.metric);
            let numbers = if row.index.is_none() { 0..1 } else { 0..8 };
            for number in numbers {
                let string = pattern.replace("{}", &number.to_string());
                let index = (row.index.is_some()).then_some(number);
                assert_eq!(find(driver, &string), Some(StatId { row: place, index }));
            }
        }
    }
}

#[test]
fn numbers_out_of_range_do_not_match() {
    for number in ["8", "9", "00", "01", "10", "-1", "+1", "999999", "", " 1", "1 ", "٣", "{}", "x"]
    {
        assert_eq!(metric_of("mlx5_core", &format!("rx_prio{number}_pause")), None, "{number}");
        assert_eq!(metric_of("mlx5_core", &format!("rx_err_lane_{number}_phy")), None, "{number}");
        assert_eq!(
            metric_of("bnxt_en", &format!("rx_discard_packets_cos{number}")),
            None,
            "{number}"
        );
    }
}

#[test]
fn unknown_strings_do_not_match() {
    for string in [
        "",
        "{}",
        "rx_prio{}_pause",
        "rx_prio_pause",
        "rx_prio",
        "_pause",
        "rx_prio3_pausé",
        "RX_PRIO3_PAUSE",
        "rx_prio3_pause\0",
        " rx_prio3_pause",
        "rx_prio3_pause_",
        "\u{1f980}",
        "rx_global_pause",
        "rx_packets",
        "rx_bytes",
        "tx_packets",
        "rx0_packets",
        "rx0_ecn_mark",
        "rx_xsk0_ecn_mark",
        "tx0_bytes",
        "ch0_events",
    ] {
        assert_eq!(metric_of("mlx5_core", string), None, "{string:?}");
    }
    for (driver, string) in [
        ("bnxt_en", "[0]: rx_ucast_packets"),
        ("bnxt_en", "[0]: rx_bytes"),
        ("bnxt_en", "rx_bytes_cos0"),
        ("ice", "rx_queue_0_bytes"),
        ("ice", "rx_bytes"),
        ("i40e", "rx-0.bytes"),
        ("i40e", "veb.tc_0_rx_bytes"),
        ("qede", "0: rcv_pkts"),
        ("hns3", "rxq0_packets"),
        ("mlx4_en", "rx0_bytes"),
        ("mlx4_en", "rx_bytes"),
        ("mlx4_en", "rx_pause_duration_prio_3"),
        ("hns3", "mac_rx_pfc_pri3_xoff_time"),
        ("mana", "rx_0_packets"),
    ] {
        assert_eq!(metric_of(driver, string), None, "{driver} {string}");
    }
    assert_eq!(metric_of("mlx5_core", &"rx_prio3_pause".repeat(10_000)), None);
}

#[test]
fn strings_of_other_drivers_do_not_match() {
    for driver in ["", "mlx5", "mlx5e_rep", "e1000e", "bnxt", "virtio_net", "mlx5_core ", "ena"] {
        assert_eq!(metric_of(driver, "rx_prio3_pause"), None, "{driver}");
        assert_eq!(metric_of(driver, "rx_pfc_frames"), None, "{driver}");
    }
    assert_eq!(metric_of("bnxt_en", "rx_prio3_pause"), None);
}

#[test]
fn strings_of_mlx5_match() {
    for (string, metric, index) in [
        ("rx_prio0_pause", "priority_receive_pause_frames", Some(0)),
        ("rx_prio7_pause", "priority_receive_pause_frames", Some(7)),
        ("tx_prio3_pause", "priority_transmit_pause_frames", Some(3)),
        ("rx_prio3_pause_duration", "priority_receive_pause_seconds", Some(3)),
        ("tx_prio3_pause_duration", "priority_transmit_pause_seconds", Some(3)),
        ("rx_prio3_pause_transition", "priority_receive_pause_transitions", Some(3)),
        ("rx_prio3_bytes", "priority_receive_bytes", Some(3)),
        ("rx_prio3_packets", "priority_receive_packets", Some(3)),
        ("tx_prio3_bytes", "priority_transmit_bytes", Some(3)),
        ("tx_prio3_packets", "priority_transmit_packets", Some(3)),
        ("rx_prio3_discards", "priority_receive_discards", Some(3)),
        ("rx_prio3_buf_discard", "priority_receive_buffer_discards", Some(3)),
        ("rx_prio3_cong_discard", "priority_receive_congestion_discards", Some(3)),
        ("rx_prio3_marked", "priority_receive_ecn_marked_packets", Some(3)),
        ("rx_pause_ctrl_phy", "receive_pause_frames", None),
        ("tx_pause_ctrl_phy", "transmit_pause_frames", None),
        ("rx_global_pause_duration", "receive_pause_seconds", None),
        ("tx_global_pause_duration", "transmit_pause_seconds", None),
        ("rx_global_pause_transition", "receive_pause_transitions", None),
        ("tx_pause_storm_error_events", "transmit_pause_storm_errors", None),
        ("link_down_events_phy", "link_down_events", None),
        ("rx_corrected_bits_phy", "fec_corrected_bit_errors", None),
        ("rx_err_lane_0_phy", "lane_errors", Some(0)),
        ("rx_err_lane_3_phy", "lane_errors", Some(3)),
        ("rx_pcs_symbol_err_phy", "symbol_errors", None),
        ("rx_symbol_err_phy", "symbol_error_packets", None),
        ("rx_crc_errors_phy", "crc_errors", None),
        ("rx_bytes_phy", "receive_bytes", None),
        ("tx_bytes_phy", "transmit_bytes", None),
        ("rx_packets_phy", "receive_packets", None),
        ("rx_vport_rdma_unicast_bytes", "rdma_receive_bytes", None),
        ("tx_vport_rdma_unicast_packets", "rdma_transmit_packets", None),
        ("rx_discards_phy", "receive_discards", None),
        ("tx_discards_phy", "transmit_discards", None),
        ("tx_errors_phy", "transmit_errors", None),
        ("rx_out_of_buffer", "receive_out_of_buffer", None),
        ("rx_steer_missed_packets", "receive_steering_discards", None),
        ("rx_buffer_passed_thres_phy", "buffer_over_threshold_events", None),
        ("rx_ecn_mark", "receive_ecn_marked_packets", None),
        ("outbound_pci_stalled_wr_events", "pci_stalled_write_seconds", None),
        ("module_unplug", "module_unplug_events", None),
    ] {
        assert_eq!(metric_of("mlx5_core", string), Some((metric, index)), "{string}");
    }
    let pause = find("mlx5_core", "rx_prio3_pause_duration").unwrap();
    assert!(TABLE[pause.row].micros, "mlx5 counts pauses in microseconds");
    let stalls = find("mlx5_core", "outbound_pci_stalled_rd_events").unwrap();
    assert!(!TABLE[stalls.row].micros, "and these in seconds");
}

#[test]
fn strings_of_other_known_drivers_match() {
    for (driver, string, metric, index) in [
        ("bnxt_en", "rx_pfc_ena_frames_pri5", "priority_receive_pause_frames", Some(5)),
        ("bnxt_en", "pfc_pri0_rx_duration_us", "priority_receive_pause_seconds", Some(0)),
        ("bnxt_en", "pfc_pri7_tx_transitions", "priority_transmit_pause_transitions", Some(7)),
        ("bnxt_en", "rx_discard_packets_cos4", "class_receive_discards", Some(4)),
        ("bnxt_en", "rx_bytes_pri3", "priority_receive_bytes", Some(3)),
        ("bnxt_en", "rx_bytes", "receive_bytes", None),
        ("bnxt_en", "rx_fec_uncorrectable_blocks", "fec_uncorrectable_blocks", None),
        ("bnxt_en", "rx_corrected_bits", "fec_corrected_bit_errors", None),
        ("bnxt_en", "link_down_events", "link_down_events", None),
        ("bnxt_en", "rx_fcs_err_frames", "crc_errors", None),
        ("ice", "rx_priority_3_xoff.nic", "priority_receive_xoff_frames", Some(3)),
        ("ice", "tx_priority_0_xon.nic", "priority_transmit_xon_frames", Some(0)),
        ("ice", "link_xoff_rx.nic", "receive_xoff_frames", None),
        ("ice", "rx_crc_errors.nic", "crc_errors", None),
        ("ice", "rx_dropped.nic", "receive_discards", None),
        ("ice", "tx_bytes.nic", "transmit_bytes", None),
        ("ice", "mac_remote_faults.nic", "remote_faults", None),
        ("i40e", "port.rx_priority_3_xoff_rx", "priority_receive_xoff_frames", Some(3)),
        ("i40e", "port.rx_priority_3_xon_2_xoff", "priority_receive_pause_transitions", Some(3)),
        ("mlx4_en", "rx_pause_prio_3", "priority_receive_pause_frames", Some(3)),
        ("mlx4_core", "tx_pause_transition_prio_3", "priority_transmit_pause_transitions", Some(3)),
        ("mlx4_en", "rx_prio_3_bytes", "priority_receive_bytes", Some(3)),
        ("qede", "no_buff_discards", "receive_out_of_buffer", None),
        ("hns3", "mac_rx_pfc_pri3_pkt_num", "priority_receive_pause_frames", Some(3)),
        ("hns3", "mac_rx_fcs_err_pkt_num", "crc_errors", None),
        ("mana", "hc_tc3_rx_pause_phy", "class_receive_pause_frames", Some(3)),
    ] {
        assert_eq!(metric_of(driver, string), Some((metric, index)), "{driver} {string}");
    }
}
