//! The exporter does not keep a kernel module from being removed, as an upgrade of the drivers does
//! while it runs; and where the kernel itself keeps it, how to go about it.
//!
//! Modules are the guest's, one for all, so these tests have a guest that no others run in.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rig::guest::{Guest, GuestExporter};
use rig::metrics::Metrics;
use rig::wait_until;

/// How long something that is to be seen may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A removal takes the guest milliseconds; whoever is waited for, it would take for ever.
const REMOVAL_LIMIT: u32 = 10;

/// Waits until the metrics are such.
fn wait(exporter: &GuestExporter, what: &str, found: impl Fn(&Metrics) -> bool) {
    wait_until(LIMIT, what, || found(&exporter.metrics()).then_some(()));
}

fn wait_heard(exporter: &GuestExporter, heard: u64) {
    wait(exporter, "whether the device is heard", |now| {
        now.get_u64("infiniband_device_events_heard", &[]) == Some(heard)
    });
}

fn wait_gone(exporter: &GuestExporter) {
    wait(exporter, "the device to go", |now| now.get("infiniband_device_up", &[]) == Some(0.0));
}

fn start(device: &str, flags: &[&str]) -> GuestExporter {
    let include = format!("--host.device-include={device}");
    let all = ["--no-collector.fabric", "--host.interval=1s", &include];
    let exporter = GuestExporter::start(&[&all, flags].concat());
    wait(&exporter, "the device to be seen", |now| {
        now.get("infiniband_device_up", &[]) == Some(1.0)
    });
    exporter
}

fn load(module: &str) {
    Guest::get().must(&format!("insmod /lib/modules/$(uname -r)/{module}.ko"));
}

fn unload(module: &str) {
    Guest::get().must(&format!("timeout {REMOVAL_LIMIT} rmmod {module}"));
}

/// Modules are one for all tests that take them away; and rdma_rxe, as it goes, removes all devices
/// of its driver id, which are testhca's as well (`ib_unregister_driver`).
fn alone() -> MutexGuard<'static, ()> {
    static MODULES: Mutex<()> = Mutex::new(());
    MODULES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// mlx5_ib and most others are such: ib_uverbs takes their devices from who holds them open
/// (`disassociate_ucontext`), so the removal waits for nobody.
#[test]
fn a_driver_that_can_take_its_devices_back_is_removed_at_once() {
    let _alone = alone();
    let guest = Guest::get();
    let hca = guest.testhca("unload", 1, false);
    let exporter = start("unload", &[]);
    for removals in 1..=2 {
        wait_heard(&exporter, 1);
        unload("testhca");
        wait(&exporter, "the removal to be counted", |now| {
            let fatal = [("event", "device_fatal")];
            now.get_u64("infiniband_port_events_total", &fatal) == Some(removals)
        });
        wait_gone(&exporter);
        load("testhca");
        guest.must("testhca add unload ports 1");
    }
    wait_heard(&exporter, 1);
    drop((exporter, hca));
}

/// A driver that cannot take its devices back is pinned by the kernel for as long as anybody holds a
/// uverbs node of it: `ib_uverbs_open` takes a reference to its module (`module_dependent`,
/// drivers/infiniband/core/uverbs_main.c). `delete_module` refuses for that reference before it asks
/// the driver anything, and no uevent tells of the attempt, so that nobody could let go in time. The
/// way out is to remove the devices first, which is told of.
#[test]
fn a_driver_that_cannot_is_removed_once_its_devices_are() {
    let _alone = alone();
    let guest = Guest::get();
    let rxe = guest.rxe("pinned");
    let exporter = start("pinned", &[]);
    wait_heard(&exporter, 1);
    let refused = guest.sh(&format!("timeout {REMOVAL_LIMIT} rmmod rdma_rxe"));
    assert_ne!(refused.status, 0, "{refused:?}");
    // EWOULDBLOCK is what the kernel says of a module in use.
    assert!(refused.text.contains("Resource temporarily unavailable"), "{refused:?}");
    assert_eq!(guest.must("cat /sys/module/rdma_rxe/refcnt").trim(), "1", "the exporter's alone");

    guest.must(&format!("timeout {REMOVAL_LIMIT} rdma link del pinned"));
    unload("rdma_rxe");
    wait_gone(&exporter);

    load("rdma_rxe");
    guest.must(&format!("rdma link add pinned type rxe netdev {}", rxe.netdev()));
    wait_heard(&exporter, 1);
    drop((exporter, rxe));
}

/// Without libibverbs nothing is held open but files of sysfs, which keep no module.
#[test]
fn without_events_no_driver_is_kept() {
    let _alone = alone();
    let guest = Guest::get();
    let rxe = guest.rxe("unpinned");
    let exporter = start("unpinned", &["--host.events=false"]);
    wait(&exporter, "its port to be read", |now| {
        now.get_u64("infiniband_port_state", &[]) == Some(4)
    });
    unload("rdma_rxe");
    wait_gone(&exporter);
    load("rdma_rxe");
    guest.must(&format!("rdma link add unpinned type rxe netdev {}", rxe.netdev()));
    wait(&exporter, "the device to be seen again", |now| {
        now.get_u64("infiniband_port_state", &[]) == Some(4)
    });
    drop((exporter, rxe));
}
