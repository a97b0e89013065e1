//! An unusual value of a device affects nothing else.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use crate::host_trees::{devices, read_once};
use test_rig::sysfs::{Content, Device, Tree};
use test_rig::{Exporter, Metrics, wait_until};

/// A healthy device next to the odd ones.
fn sound() -> Device {
    Device::mlx5_ndr("mlx5_9", 9)
}

/// Reads odd devices next to a healthy one, whose samples must be complete.
fn beside_a_sound_one(odd: impl IntoIterator<Item = Device>) -> Metrics {
    let alone = read_once(&Tree::new([sound()]));
    let together = read_once(&Tree::new(odd.into_iter().chain([sound()])));
    let of_sound = |metrics: &Metrics| {
        let mut samples = metrics.samples.clone();
        samples.retain(|sample| sample.has(&[("device", "mlx5_9")]));
        samples
    };
    assert!(of_sound(&alone).len() > 50);
    assert_eq!(of_sound(&alone), of_sound(&together));
    together
}

#[test]
fn unreadable_counter_is_omitted_and_counted() {
    let metrics = beside_a_sound_one([Device::bnxt_re("bnxt_re0"), Device::i40iw("i40iw0")]);
    let refused =
        |device| metrics.get("fabric_exporter_device_unreadable_files", &[("device", device)]);
    let bnxt = [("device", "bnxt_re0")];
    assert!(metrics.sample("infiniband_port_receive_bytes_total", &bnxt).is_none());
    assert!(metrics.sample("infiniband_port_transmit_bytes_total", &bnxt).is_some());
    assert_eq!(refused("bnxt_re0"), Some(1.0));
    assert!(
        metrics.sample("infiniband_port_receive_bytes_total", &[("device", "i40iw0")]).is_none()
    );
    assert_eq!(refused("i40iw0"), Some(16.0));
    assert_eq!(metrics.get("infiniband_port_state", &[("device", "i40iw0")]), Some(4.0));
    assert_eq!(refused("mlx5_9"), Some(0.0));
}

#[test]
fn invalid_values_are_omitted() {
    let odd = Device::mlx5_ndr("mlx5_0", 0)
        .file("ports/1/rate", "garbage")
        .file("ports/1/phys_state", "LinkUpside")
        .file("ports/1/lid", "none")
        .file("ports/1/counters/symbol_error", "many")
        .file("ports/1/counters/link_downed", "-1")
        .file("node_guid", "who knows")
        .file("fw_ver", "")
        .file("board_id", "\u{fffd}\"\\ x");
    let metrics = beside_a_sound_one([odd]);
    let of = [("device", "mlx5_0")];
    for family in [
        "infiniband_port_rate_bytes_per_second",
        "infiniband_port_width_lanes",
        "infiniband_port_physical_state",
        "infiniband_port_symbol_errors_total",
        "infiniband_port_link_downed_total",
    ] {
        assert!(metrics.sample(family, &of).is_none(), "{family}");
    }
    assert_eq!(metrics.get("infiniband_port_state", &of), Some(4.0));
    let info = metrics.sample("infiniband_device_info", &of).unwrap();
    assert!(info.labels.get("firmware").is_none_or(String::is_empty), "{info:?}");
    assert_eq!(info.labels["board"], "\u{fffd}\"\\ x");
    assert_eq!(info.labels["hca_type"], "MT4129");
}

#[test]
fn whitespace_around_values_is_ignored() {
    let text = |text: &str| Content::Text(text.to_owned());
    let odd = Device::mlx5_ndr("mlx5_0", 0)
        .has("ports/1/state", text("4: ACTIVE\n\n"))
        .has("ports/1/rate", text("400 Gb/sec (4X NDR)"))
        .has("ports/1/counters/symbol_error", text("17"))
        .has("ports/1/counters/link_downed", text(" 3 \n\n"))
        .has("fw_ver", text("28.39.1002\n\n"));
    let metrics = beside_a_sound_one([odd]);
    let of = [("device", "mlx5_0")];
    assert_eq!(metrics.get("infiniband_port_state", &of), Some(4.0));
    assert_eq!(metrics.get("infiniband_port_rate_bytes_per_second", &of), Some(5e10));
    assert_eq!(metrics.get_u64("infiniband_port_symbol_errors_total", &of), Some(17));
    assert_eq!(metrics.get_u64("infiniband_port_link_downed_total", &of), Some(3));
    let info = metrics.sample("infiniband_device_info", &of).unwrap();
    assert_eq!(info.labels["firmware"], "28.39.1002");
}

#[test]
fn states_without_a_name_use_their_number() {
    let odd = Device::mlx5_ndr("mlx5_0", 0)
        .file("ports/1/state", "6: UNKNOWN")
        .file("ports/1/phys_state", "0: <unknown>");
    let metrics = beside_a_sound_one([odd]);
    assert_eq!(metrics.get("infiniband_port_state", &[("device", "mlx5_0")]), Some(6.0));
    assert_eq!(metrics.get("infiniband_port_physical_state", &[("device", "mlx5_0")]), Some(0.0));
}

#[test]
fn states_without_a_number_use_their_name() {
    let odd = Device::mlx5_ndr("mlx5_0", 0)
        .file("ports/1/state", "DOWN")
        .file("ports/1/phys_state", "Disabled");
    let metrics = beside_a_sound_one([odd]);
    assert_eq!(metrics.get("infiniband_port_state", &[("device", "mlx5_0")]), Some(1.0));
    assert_eq!(metrics.get("infiniband_port_physical_state", &[("device", "mlx5_0")]), Some(3.0));
}

#[test]
fn rate_without_width_is_exported() {
    let metrics =
        beside_a_sound_one([Device::mlx5_ndr("mlx5_0", 0).file("ports/1/rate", "400 Gb/sec")]);
    let of = [("device", "mlx5_0")];
    assert_eq!(metrics.get("infiniband_port_rate_bytes_per_second", &of), Some(5e10));
    assert!(metrics.sample("infiniband_port_width_lanes", &of).is_none());
    let info = metrics.sample("infiniband_device_port_info", &of).unwrap();
    assert!(!info.labels.contains_key("width") && !info.labels.contains_key("speed"), "{info:?}");
}

#[test]
fn missing_guid_gives_no_label() {
    let metrics = beside_a_sound_one([
        Device::mlx5_ndr("mlx5_0", 0).without("node_guid").without("sys_image_guid"),
        // This device was given no GUID, and the kernel says so.
        Device::mlx5_ndr("mlx5_1", 1).guid(0),
    ]);
    let of = |device| metrics.sample("infiniband_device_info", &[("device", device)]).unwrap();
    let labels = &of("mlx5_0").labels;
    assert!(!labels.contains_key("guid") && !labels.contains_key("system_guid"), "{labels:?}");
    assert_eq!(of("mlx5_1").labels["guid"], "0x0000000000000000");
    let without = metrics.samples.iter().filter(|sample| sample.has(&[("device", "mlx5_0")]));
    let with_guid: Vec<_> = without.filter(|sample| sample.labels.contains_key("guid")).collect();
    assert!(with_guid.is_empty(), "{with_guid:?}");
}

#[test]
fn device_without_ports_is_exported() {
    let bare = Device::bare("mlx5_0")
        .guid(7)
        .file("board_id", "MT_0000000838")
        .file("node_desc", "node-17 HCA-1")
        .file("fw_ver", "28.39.1002");
    let tree = Tree::new([bare, sound()]);
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_ready();
    let metrics = exporter.wait_reads(2);
    let of = [("device", "mlx5_0")];
    assert_eq!(metrics.get("infiniband_device_up", &of), Some(0.0), "its ports cannot be read");
    let info = metrics.sample("infiniband_device_info", &of).expect("its info");
    assert_eq!(info.labels.get("board").map(String::as_str), Some("MT_0000000838"), "{info:?}");
    assert_eq!(info.labels.get("node").map(String::as_str), Some("node-17 HCA-1"), "{info:?}");
    assert_eq!(info.labels.get("firmware").map(String::as_str), Some("28.39.1002"), "{info:?}");
    let warned = |log: &str| log.lines().filter(|line| line.contains("mlx5_0/ports")).count();
    assert_eq!(warned(&exporter.log()), 1, "{}", exporter.log());
    // Its driver creates them later.
    tree.put("devices/virtual/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    let metrics = exporter.wait_reads(2);
    assert_eq!(metrics.get("infiniband_device_up", &of), Some(1.0));
    assert_eq!(metrics.get("infiniband_port_state", &of), Some(4.0));
    assert!(exporter.stop().success());
}

#[test]
fn non_utf8_names_are_logged_once() {
    let tree = Tree::new([sound()]);
    let class = tree.path().join("class/infiniband");
    std::fs::create_dir(class.join(OsStr::from_bytes(b"mlx5_\xff"))).unwrap();
    let counters = class.join("mlx5_9/ports/1/counters");
    std::fs::write(counters.join(OsStr::from_bytes(b"caf\xe9")), "7\n").unwrap();
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s"]);
    exporter.wait_ready();
    let metrics = exporter.wait_reads(2);
    assert_eq!(devices(&metrics, "infiniband_device_up"), ["mlx5_9"]);
    for name in ["class/infiniband/mlx5_\\xff", "ports/1/counters/caf\\xe9"] {
        // The log format may escape the backslash again.
        let log = exporter.log().replace("\\\\", "\\");
        assert_eq!(log.matches(name).count(), 1, "{name}: {log}");
    }
    assert!(exporter.stop().success());
}

#[test]
fn u64_values_are_exact_and_larger_ones_omitted() {
    let odd = Device::mlx5_ndr("mlx5_0", 0)
        .file("ports/1/counters/port_rcv_packets", "18446744073709551615")
        .file("ports/1/counters/port_xmit_packets", "18446744073709551616")
        // Words of 4 bytes: the highest count whose bytes fit in 64 bits.
        .file("ports/1/counters/port_rcv_data", "4611686018427387903")
        // One more: the value saturates at the highest number.
        .file("ports/1/counters/port_xmit_data", "4611686018427387904")
        .file("ports/1/hw_counters/TxWords", "18446744073709551615")
        // Saturated fields of 16 and 8 bits.
        .file("ports/1/counters/symbol_error", "65535")
        .file("ports/1/counters/link_downed", "255")
        .file("ports/1/hw_counters/out_of_sequence", "18446744073709551615");
    let metrics = beside_a_sound_one([odd]);
    for (family, number) in [
        ("infiniband_port_receive_packets_total", Some("18446744073709551615")),
        ("infiniband_port_transmit_packets_total", None),
        ("infiniband_port_receive_bytes_total", Some("18446744073709551612")),
        ("infiniband_port_transmit_bytes_total", Some("18446744073709551615")),
        ("infiniband_hw_tx_data_bytes_total", Some("18446744073709551615")),
        ("infiniband_port_symbol_errors_total", Some("65535")),
        ("infiniband_port_link_downed_total", Some("255")),
        ("infiniband_hw_out_of_sequence_total", Some("18446744073709551615")),
    ] {
        let sample = metrics.sample(family, &[("device", "mlx5_0")]);
        assert_eq!(sample.map(|sample| sample.raw.as_str()), number, "{family}");
    }
}

#[test]
fn entries_that_are_no_devices_are_skipped() {
    let tree = Tree::new([sound()]);
    // A broken link, a link to itself, an empty device, one with an empty port, one with ports that have no
    // number, a file.
    tree.link("class/infiniband/mlx5_1", "../../devices/gone/infiniband/mlx5_1");
    tree.link("class/infiniband/mlx5_2", "mlx5_2");
    tree.add(&Device::bare("mlx5_3").has("ports", Content::Refuses));
    tree.add(&Device::bare("mlx5_4").has("ports/1", Content::Refuses));
    tree.add(
        &Device::bare("mlx5_5")
            .has("ports/one", Content::Refuses)
            .has("ports/300", Content::Refuses),
    );
    tree.put("class/infiniband/abi_version", "1\n");
    std::fs::create_dir(tree.path().join("class/infiniband/mlx5_6")).unwrap();
    let metrics = read_once(&tree);
    for family in [
        "infiniband_port_state",
        "infiniband_device_port_info",
        "infiniband_port_symbol_errors_total",
    ] {
        assert_eq!(devices(&metrics, family), ["mlx5_9"], "{family}");
    }
    // A device that cannot be opened is reported as such; one without ports only has less.
    let ups: Vec<_> = (metrics.all("infiniband_device_up"))
        .map(|(labels, up)| (labels["device"].as_str(), up))
        .collect();
    let [one, none] = [1.0, 0.0];
    assert_eq!(
        ups,
        [
            ("mlx5_1", none),
            ("mlx5_2", none),
            ("mlx5_3", one),
            ("mlx5_4", one),
            ("mlx5_5", one),
            ("mlx5_6", none),
            ("mlx5_9", one),
        ]
    );
}

#[test]
fn pipe_in_place_of_a_file_does_not_block() {
    let odd = Device::mlx5_ndr("mlx5_0", 0)
        .has("ports/1/counters/symbol_error", Content::Pipe)
        .has("ports/1/state", Content::Pipe)
        .has("fw_ver", Content::Pipe);
    let metrics = beside_a_sound_one([odd]);
    assert!(metrics.sample("infiniband_port_state", &[("device", "mlx5_0")]).is_none());
    assert!(metrics.sample("infiniband_port_link_downed_total", &[("device", "mlx5_0")]).is_some());
}

#[test]
fn unreadable_file_is_retried_later() {
    let file = "ports/1/counters/symbol_error";
    let tree = Tree::new([sound().file(file, "N/A (no PMA)")]);
    let mut exporter = Exporter::on_host(&tree, &["--host.interval=1s", "--host.error-backoff=3s"]);
    exporter.wait_ready();
    let refused = |metrics: &Metrics| {
        metrics.get("fabric_exporter_device_unreadable_files", &[]) == Some(1.0)
    };
    assert!(refused(&exporter.metrics()));
    tree.set("mlx5_9", file, "12\n");
    let family = "infiniband_port_symbol_errors_total";
    let metrics = wait_until(Duration::from_secs(60), "the counter to be exposed", || {
        let metrics = exporter.metrics();
        assert!(refused(&metrics) != metrics.sample(family, &[]).is_some(), "one or the other");
        metrics.sample(family, &[]).is_some().then_some(metrics)
    });
    assert_eq!(metrics.get_u64(family, &[]), Some(12));
    assert!(exporter.stop().success());
}

#[test]
fn host_without_devices_is_ready() {
    for tree in [Tree::empty(), Tree::new([Device::mlx5_xdr("mlx5_0")])] {
        // The second one loses its classes, as without any RDMA module.
        if !tree.devices().is_empty() {
            std::fs::remove_dir_all(tree.path().join("class")).unwrap();
        }
        let metrics = read_once(&tree);
        assert_eq!(metrics.all("infiniband_device_up").count(), 0);
        assert_eq!(metrics.all("infiniband_port_state").count(), 0);
    }
}
