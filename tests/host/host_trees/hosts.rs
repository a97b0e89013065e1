//! The complete samples of each kind of host.

use crate::host_trees::{devices, read_once};
use test_rig::Metrics;
use test_rig::sysfs::{Device, Tree, hgx};

/// The other labels of the only sample of a family with these labels, without those that all samples have.
fn labels(metrics: &Metrics, family: &str, of: &[(&str, &str)]) -> Vec<(String, String)> {
    let sample = metrics.sample(family, of).unwrap_or_else(|| panic!("no {family} of {of:?}"));
    assert_eq!(sample.raw, "1", "{family}");
    let common = ["fabric", "device", "port"];
    let others = sample.labels.iter().filter(|(name, _)| !common.contains(&name.as_str()));
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn host_with_eight_ndr_hcas() {
    let metrics = read_once(&hgx());
    let eight = ["mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3", "mlx5_6", "mlx5_7", "mlx5_8", "mlx5_9"];
    for (index, device) in eight.into_iter().enumerate() {
        let of = [("device", device), ("port", "1")];
        assert_eq!(metrics.get("infiniband_port_state", &of), Some(4.0));
        assert_eq!(metrics.get("infiniband_port_physical_state", &of), Some(5.0));
        // 400 Gb/s.
        assert_eq!(metrics.get("infiniband_port_rate_bytes_per_second", &of), Some(5e10));
        assert_eq!(metrics.get("infiniband_port_width_lanes", &of), Some(4.0));
        let guid = format!("0xa088c2030040000{index}");
        assert_eq!(
            labels(&metrics, "infiniband_device_port_info", &of),
            pairs(&[
                ("guid", &guid),
                ("kind", "physical"),
                ("lid", &(0x100 + index).to_string()),
                ("link_layer", "InfiniBand"),
                ("sm_lid", "1"),
                ("speed", "NDR"),
                ("width", "4x"),
            ])
        );
        assert_eq!(
            labels(&metrics, "infiniband_device_info", &[("device", device)]),
            pairs(&[
                ("board", "MT_0000000838"),
                ("driver", "mlx5_core"),
                ("firmware", "28.39.1002"),
                ("guid", &guid),
                ("hardware", "0"),
                ("hca_type", "MT4129"),
                ("kind", "physical"),
                ("node", &format!("node-1 {device}")),
                ("node_type", "ca"),
                ("system_guid", &guid),
            ])
        );
        // Each has the interface of its own function.
        let ib = format!("ib{index}");
        assert_eq!(
            labels(&metrics, "infiniband_netdev_info", &of),
            pairs(&[
                ("guid", &guid),
                ("ipoib_mode", "datagram"),
                ("netdev", &ib),
                ("operstate", "up"),
            ])
        );
        let of_netdev = [("device", device), ("netdev", ib.as_str())];
        assert_eq!(metrics.get("infiniband_netdev_up", &of_netdev), Some(1.0));
        assert_eq!(metrics.get("infiniband_netdev_mtu_bytes", &of_netdev), Some(2044.0));
        assert_eq!(metrics.get("infiniband_netdev_carrier_changes_total", &of_netdev), Some(2.0));
        assert_eq!(metrics.get("infiniband_netdev_ipoib_datagram", &of_netdev), Some(1.0));
    }
    // The ninth is a bond, with the interfaces that have the cables.
    let of = [("device", "mlx5_bond_0")];
    assert_eq!(
        labels(&metrics, "infiniband_device_port_info", &of),
        pairs(&[
            ("guid", "0x0c42a10300b70008"),
            ("kind", "physical"),
            ("link_layer", "Ethernet"),
            ("speed", "HDR"),
            ("width", "2x"),
        ])
    );
    let netdevs: Vec<&str> = metrics
        .samples
        .iter()
        .filter(|sample| sample.name == "infiniband_netdev_up" && sample.has(&of))
        .map(|sample| sample.labels["netdev"].as_str())
        .collect();
    assert_eq!(netdevs, ["bond0", "ens1f0np0", "ens1f1np1"]);
    assert!(metrics.sample("infiniband_netdev_ipoib_datagram", &of).is_none());
    assert_eq!(devices(&metrics, "infiniband_device_up").len(), 9);
    assert!(
        metrics.all("fabric_exporter_device_unreadable_files").all(|(_, refused)| refused == 0.0)
    );
}

#[test]
fn xdr_is_200_gigabits_per_lane() {
    let metrics = read_once(&Tree::new([Device::mlx5_xdr("mlx5_0")]));
    assert_eq!(metrics.get("infiniband_port_rate_bytes_per_second", &[]), Some(1e11));
    let info = labels(&metrics, "infiniband_device_port_info", &[]);
    assert!(info.contains(&("speed".to_owned(), "XDR".to_owned())), "{info:?}");
}

#[test]
fn wider_counters_of_old_mlx4_win() {
    let tree = Tree::new([Device::mlx4("mlx4_0")]);
    let metrics = read_once(&tree);
    for (port, index) in [("1", 21), ("2", 22)] {
        let of = [("device", "mlx4_0"), ("port", port)];
        let wide = tree.numbers("mlx4_0", &format!("ports/{port}/counters_ext"));
        // port_xmit_data is saturated at 4294967295 since the first seconds after boot.
        assert_eq!(
            metrics.get_u64("infiniband_port_transmit_bytes_total", &of),
            Some(wide["port_xmit_data_64"] * 4)
        );
        assert_eq!(
            metrics.get_u64("infiniband_port_unicast_receive_packets_total", &of),
            Some(wide["port_unicast_rcv_packets"])
        );
        // There is no wider one: exported as it is.
        assert_eq!(
            metrics.get_u64("infiniband_port_transmit_wait_ticks_total", &of),
            Some(4_294_967_295)
        );
        // Both ports are on one function; an interface belongs to the port that it names.
        let netdev = labels(&metrics, "infiniband_netdev_info", &of);
        assert!(netdev.contains(&("netdev".to_owned(), format!("ib{index}"))), "{netdev:?}");
        assert!(netdev.contains(&("ipoib_mode".to_owned(), "connected".to_owned())), "{netdev:?}");
        assert_eq!(metrics.get("infiniband_netdev_ipoib_datagram", &of), Some(0.0));
        assert_eq!(metrics.get("infiniband_netdev_mtu_bytes", &of), Some(65520.0));
    }
    assert_eq!(metrics.get("infiniband_port_rate_bytes_per_second", &[("port", "1")]), Some(7e9));
    let second = labels(&metrics, "infiniband_device_port_info", &[("port", "2")]);
    assert!(second.contains(&("speed".to_owned(), "FDR10".to_owned())), "{second:?}");
}

#[test]
fn old_kernel_without_link_layer_and_hw_counters() {
    let metrics = read_once(&Tree::new([Device::mthca("mthca0")]));
    assert_eq!(metrics.get("infiniband_port_state", &[("port", "1")]), Some(4.0));
    // A port that is down is exported as well.
    assert_eq!(metrics.get("infiniband_port_state", &[("port", "2")]), Some(1.0));
    assert_eq!(metrics.get("infiniband_port_physical_state", &[("port", "2")]), Some(2.0));
    assert_eq!(
        labels(&metrics, "infiniband_device_port_info", &[("port", "1")]),
        pairs(&[
            ("guid", "0x0002c90200201234"),
            ("kind", "physical"),
            ("lid", "33"),
            ("sm_lid", "1"),
            ("speed", "DDR"),
            ("width", "4x"),
        ])
    );
    assert!(!metrics.samples.iter().any(|sample| sample.name.starts_with("infiniband_hw_")));
}

#[test]
fn hfi1_counters_keep_their_names_and_device_ones_have_no_port() {
    let tree = Tree::new([Device::hfi1("hfi1_0")]);
    let metrics = read_once(&tree);
    let of_port = tree.numbers("hfi1_0", "ports/1/hw_counters");
    let of_device = tree.numbers("hfi1_0", "hw_counters");
    let number = |name: &str, labels: &[(&str, &str)]| {
        let sample = metrics.sample(&format!("infiniband_hw_{name}_total"), labels)?;
        Some((sample.u64(), sample.labels.get("port").map(String::as_str)))
    };
    assert_eq!(number("sw_link_up", &[]), Some((of_port["SwLinkUp,32"], Some("1"))));
    // Counted in words of 4 bytes.
    assert_eq!(number("tx_data_bytes", &[]), Some((of_port["TxWords"] * 4, Some("1"))));
    // A counter per lane has no metric of its own.
    let lane = [("counter", "RxPktVL0")];
    assert_eq!(number("unlisted", &lane), Some((of_port["RxPktVL0"], Some("1"))));
    assert_eq!(number("rcv_overflow", &[]), Some((of_device["RcvOverflow"], None)));
    let engine = [("counter", "SDMAIdInt1,32")];
    assert_eq!(number("unlisted", &engine), Some((of_device["SDMAIdInt1,32"], None)));
    // A LID beyond InfiniBand's 16 bits is omitted here; that of the subnet manager is valid.
    let info = labels(&metrics, "infiniband_device_port_info", &[]);
    assert!(!info.iter().any(|(name, _)| name == "lid"), "{info:?}");
    assert!(info.contains(&("sm_lid".to_owned(), "1".to_owned())), "{info:?}");
}

#[test]
fn device_without_counters_is_exported() {
    let metrics = read_once(&Tree::new([Device::irdma("irdma0"), Device::siw("siw0")]));
    assert!(metrics.sample("infiniband_port_receive_bytes_total", &[]).is_none());
    assert!(metrics.sample("infiniband_port_symbol_errors_total", &[]).is_none());
    assert_eq!(devices(&metrics, "infiniband_port_state"), ["irdma0", "siw0"]);
    assert_eq!(metrics.get("infiniband_netdev_mtu_bytes", &[("netdev", "ens3f0")]), Some(9000.0));
    assert_eq!(
        labels(&metrics, "infiniband_device_info", &[("device", "siw0")]),
        pairs(&[
            ("guid", "0x020000fffe000001"),
            ("kind", "software"),
            ("node", "Software iWARP stack"),
            ("node_type", "rnic"),
            ("system_guid", "0x020000fffe000001"),
        ])
    );
}

#[test]
fn driver_specific_names_map_to_one_metric() {
    let tree = Tree::new([
        Device::mlx5_bond("mlx5_bond_0", 0),
        Device::irdma("irdma0"),
        Device::irdma_gen3("rocep50s0"),
        Device::efa("rdmap0s30"),
    ]);
    let metrics = read_once(&tree);
    for (device, file, metric) in [
        ("mlx5_bond_0", "ports/1/hw_counters/np_cnp_sent", "np_cnp_sent"),
        ("irdma0", "ports/1/hw_counters/cnpSent", "np_cnp_sent"),
        ("rocep50s0", "ports/1/hw_counters/cnpSent", "np_cnp_sent"),
        ("mlx5_bond_0", "ports/1/hw_counters/rp_cnp_handled", "rp_cnp_handled"),
        ("irdma0", "ports/1/hw_counters/cnpHandled", "rp_cnp_handled"),
        ("mlx5_bond_0", "ports/1/hw_counters/out_of_sequence", "out_of_sequence"),
        ("rocep50s0", "ports/1/hw_counters/Rcvd Out of order packets", "rcvd_out_of_order_packets"),
        ("rdmap0s30", "ports/1/hw_counters/rdma_read_bytes", "rdma_read_bytes"),
        ("rdmap0s30", "hw_counters/keep_alive_rcvd", "keep_alive_rcvd"),
    ] {
        let (directory, name) = file.rsplit_once('/').unwrap();
        let sample =
            metrics.sample(&format!("infiniband_hw_{metric}_total"), &[("device", device)]);
        let sample = sample.unwrap_or_else(|| panic!("no {metric} of {device}"));
        assert_eq!(sample.u64(), tree.numbers(device, directory)[name], "{device} {file}");
        assert_eq!(sample.labels.contains_key("port"), file.starts_with("ports/"), "{sample:?}");
    }
}

#[test]
fn virtual_functions_without_guid_are_distinct() {
    let tree = Tree::new([Device::mlx5_vf("mlx5_4", 1), Device::mlx5_vf("mlx5_5", 2)]);
    let metrics = read_once(&tree);
    for device in ["mlx5_4", "mlx5_5"] {
        let number = tree.numbers(device, "ports/1/counters")["port_rcv_packets"];
        assert_eq!(
            metrics.get_u64("infiniband_port_receive_packets_total", &[("device", device)]),
            Some(number)
        );
        let sample = metrics.sample("infiniband_device_up", &[("device", device)]).unwrap();
        assert_eq!(sample.labels["guid"], "0x0000000000000000");
    }
}
