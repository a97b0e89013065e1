//! What a real kernel tells of RDMA devices, and what the exporter makes of it.
//!
//! The first of these tests hold the rig to the field: they say what the devices of the others are.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod confined;
mod doctor;
mod host;
mod umad;

use test_rig as rig;

use std::time::Duration;

use rig::guest::{self, Guest, GuestExporter};
use rig::wait_until;

#[test]
fn counters_stick_at_the_widths_of_their_fields() {
    let hca = Guest::get().testhca("widths", 2, false);
    for (name, most) in [
        ("symbol_error", "65535"),
        ("link_downed", "255"),
        ("link_error_recovery", "255"),
        ("excessive_buffer_overrun_errors", "15"),
        ("local_link_integrity_errors", "15"),
        ("port_xmit_wait", "4294967295"),
        ("port_rcv_data", "18446744073709551615"),
    ] {
        let file = format!("counters/{name}");
        assert_eq!(hca.read(1, &file).text, "0", "{name} at first");
        hca.counter(1, name, 7);
        assert_eq!(hca.read(1, &file).text, "7", "{name}");
        hca.counter(1, name, u64::MAX);
        assert_eq!(hca.read(1, &file).text, most, "{name} at its end");
        assert_eq!(hca.read(2, &file).text, "0", "{name} of the other port");
    }
}

#[test]
fn a_pma_that_fails_makes_the_counters_unreadable_and_nothing_else() {
    let hca = Guest::get().testhca("pmafail", 1, false);
    hca.set(1, "pmafail", 1);
    let output = hca.read(1, "counters/symbol_error");
    assert_ne!(output.status, 0);
    assert!(output.text.contains("Invalid argument"), "{output:?}");
    assert_eq!(hca.read(1, "state").text, "4: ACTIVE");
    assert_eq!(hca.read(1, "hw_counters/out_of_sequence").text, "0");
    hca.set(1, "pmafail", 0);
    assert_eq!(hca.read(1, "counters/symbol_error").text, "0");

    hca.set(1, "hwfail", 5); // EIO
    let output = hca.read(1, "hw_counters/out_of_sequence");
    assert!(output.text.contains("Input/output error"), "{output:?}");
}

#[test]
fn a_port_tells_what_it_is_told() {
    let hca = Guest::get().testhca("port", 1, false);
    assert_eq!(hca.read(1, "rate").text, "200 Gb/sec (4X HDR)");
    assert_eq!(hca.read(1, "link_layer").text, "InfiniBand");
    hca.set(1, "width", 16); // 2X
    hca.set(1, "speed", 128); // NDR
    assert_eq!(hca.read(1, "rate").text, "200 Gb/sec (2X NDR)");
    hca.set(1, "state", 1);
    hca.set(1, "phys", 2);
    assert_eq!(hca.read(1, "state").text, "1: DOWN");
    assert_eq!(hca.read(1, "phys_state").text, "2: Polling");
    hca.set(1, "lid", 0x2a);
    hca.set(1, "sm_lid", 0x10);
    assert_eq!(hca.read(1, "lid").text, "0x2a");
    assert_eq!(hca.read(1, "sm_lid").text, "0x10");
    hca.hw(1, "out_of_sequence", 1 << 40);
    assert_eq!(hca.read(1, "hw_counters/out_of_sequence").text, (1u64 << 40).to_string());
}

#[test]
fn a_roce_port_has_an_interface_with_the_statistics_of_its_driver() {
    let guest = Guest::get();
    let hca = guest.testhca("roce", 1, true);
    let netdev = hca.netdev(1);
    assert_eq!(hca.read(1, "link_layer").text, "Ethernet");
    assert_eq!(hca.read(1, "gid_attrs/ndevs/0").text, netdev);
    assert_eq!(guest.must("ls /sys/class/infiniband/roce/device/net").trim(), netdev);
    assert!(guest.must(&format!("ethtool -i {netdev}")).contains("driver: mlx5_core\n"));
    hca.ethtool(1, "rx_prio3_pause", 5);
    let statistics = guest.must(&format!("ethtool -S {netdev}"));
    assert!(statistics.contains(" rx_prio3_pause: 5\n"), "{statistics}");
    hca.set(1, "state", 1);
    assert_eq!(guest.must(&format!("cat /sys/class/net/{netdev}/carrier")).trim(), "0");
}

#[test]
fn an_infiniband_port_has_an_interface_like_ipoib() {
    let guest = Guest::get();
    let hca = guest.testhca("ipoib", 2, false);
    let netdev = hca.netdev(2);
    let told = guest.must(&format!(
        "cd /sys/class/net/{netdev}; ip link set {netdev} mtu 2044
        echo connected >mode; echo $(cat type mode dev_port mtu operstate)"
    ));
    assert_eq!(told.trim(), "32 connected 1 2044 up");
}

#[test]
fn devices_come_and_go() {
    let guest = Guest::get();
    let list = || guest.must("ls /sys/class/infiniband /sys/class/net");
    let hca = guest.testhca("guest", 4, true);
    assert!(list().contains("guestnet4"));
    hca.remove();
    assert!(!list().contains("guest"));

    let soft = guest.rxe("soft");
    assert_eq!(soft.read("state").text, "4: ACTIVE");
    assert_eq!(soft.read("gid_attrs/ndevs/0").text, soft.netdev());
    drop(soft);
    assert!(!list().contains("soft"));
}

/// The events are those of the kernel's ib_uverbs, read by libibverbs and the provider of rxe.
#[test]
fn a_program_is_told_events_and_the_removal_of_what_it_holds_open() {
    let guest = Guest::get();
    let hca = guest.testhca("events", 1, false);
    // To the console, for it keeps to itself what it prints to a file.
    guest.must("ibv_asyncwatch -d events >/dev/ttyS0 2>&1 &");
    let wait = |line: &str| {
        wait_until(Duration::from_secs(30), line, || guest.console().contains(line).then_some(()));
    };
    wait("events: async event FD");
    hca.event(10, 1);
    wait("IBV_EVENT_PORT_ERR (10), port 1");
    hca.remove();
    wait("IBV_EVENT_DEVICE_FATAL (8), port 0");
    guest.must("kill $(pidof ibv_asyncwatch)");
}

#[test]
fn what_the_rig_cannot_do_it_says() {
    let guest = Guest::get();
    let output = guest.sh("testhca nobody port 1 state 4");
    assert_ne!(output.status, 0);
    assert!(output.text.contains("No such device"), "{output:?}");
    assert_eq!(guest.sh("echo said; exit 42").status, 42);
}

#[test]
fn the_exporter_runs_in_the_guest() {
    let output = guest::run_to_exit(&["serve"]);
    assert_eq!(output.status, 3, "{output:?}");
    assert_eq!(output.text.lines().count(), 1, "{output:?}");
}

#[test]
fn an_exporter_in_the_guest_is_asked_from_outside() {
    let mut exporter = GuestExporter::demo(&[]);
    let metrics = exporter.metrics();
    assert!(metrics.types.contains_key("fabric_exporter_build_info"), "{:?}", metrics.types);
    assert_eq!(exporter.stop(), 0, "{}", exporter.log());
}
