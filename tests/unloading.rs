//! The exporter does not prevent the removal of a kernel module, as by a driver upgrade while it runs; and
//! where the kernel prevents it, how to proceed.
//!
//! Modules are shared by the whole guest, so these tests have a guest of their own.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use test_rig as rig;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rig::guest::{Guest, GuestExporter};
use rig::metrics::Metrics;
use rig::wait_until;

/// How long an expected change may take.
const LIMIT: Duration = Duration::from_secs(240);

/// A removal takes the guest milliseconds; one that waits for an open file would never end.
const REMOVAL_LIMIT: u32 = 10;

/// Waits until the metrics fulfill a condition.
fn wait(exporter: &GuestExporter, what: &str, found: impl Fn(&Metrics) -> bool) {
    wait_until(LIMIT, what, || found(&exporter.metrics()).then_some(()));
}

fn wait_heard(exporter: &GuestExporter, heard: u64) {
    wait(exporter, "the subscription to device events", |now| {
        now.get_u64("fabric_exporter_device_events_subscribed", &[]) == Some(heard)
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

/// A device of testhca, the exporter that reads it, and the counters that it has open.
struct Kept {
    exporter: GuestExporter,
    /// The name that it has now.
    name: &'static str,
    /// Of each counter.
    value: u64,
    /// What was counted before the device was made again: totals continue.
    before: u64,
}

impl Kept {
    fn start(name: &'static str) -> Self {
        let device = format!("{name}|renamed");
        Kept { exporter: start(&device, &[]), name, value: 0, before: 0 }
    }

    /// How many files of counters the exporter has open.
    fn open(&self) -> usize {
        let count =
            format!("ls -l /proc/{}/fd 2>/dev/null | grep -c counters/", self.exporter.pid());
        Guest::get().sh(&count).text.trim().parse().unwrap()
    }

    /// Changes counters, and waits until the exporter has read what a file that is opened for it has, from files that
    /// are open all the time.
    fn agrees(&mut self) {
        let guest = Guest::get();
        wait_until(LIMIT, "counters to stay open", || (self.open() > 20).then_some(()));
        let port = format!("/sys/class/infiniband/{}/ports/1", self.name);
        for _ in 0..3 {
            self.value += 1 << 33;
            guest.must(&format!(
                "testhca {name} port 1 hw out_of_sequence {value}
                testhca {name} port 1 counter port_rcv_packets {value}",
                name = "unload",
                value = self.value,
            ));
            let fresh = |file: &str| guest.must(&format!("cat {port}/{file}")).trim().parse().ok();
            let hw: Option<u64> = fresh("hw_counters/out_of_sequence");
            let received: Option<u64> = fresh("counters/port_rcv_packets");
            assert_eq!((hw, received), (Some(self.value), Some(self.value)));
            let (device, total) = ([("device", self.name)], Some(self.before + self.value));
            wait(&self.exporter, "the value of a fresh file", |now| {
                now.get_u64("infiniband_hw_out_of_sequence_total", &device) == hw
                    && now.get_u64("infiniband_port_receive_packets_total", &device) == total
            });
            assert!(self.open() > 20);
        }
    }

    /// Makes the device again, after it was removed.
    fn make_again(&mut self) {
        Guest::get().must("testhca add unload ports 1");
        self.before += std::mem::take(&mut self.value);
    }

    /// Waits until the device is gone, with all that was open of it.
    fn is_gone(&self) {
        wait_gone(&self.exporter);
        assert_eq!(self.open(), 0);
    }
}

/// Files of counters stay open. They hold no driver, and give what a file that is opened for the read gives, whatever
/// happens to the device meanwhile.
#[test]
fn open_counters_hold_nothing_and_agree_with_fresh_ones() {
    let _alone = alone();
    let guest = Guest::get();
    let hca = guest.testhca("unload", 1, false);
    let mut kept = Kept::start("unload");
    kept.agrees();

    guest.must("rdma dev set unload name renamed");
    kept.name = "renamed";
    kept.agrees();
    guest.must("rdma dev set renamed name unload");
    kept.name = "unload";
    kept.agrees();

    // As a container takes it, and gives it back.
    guest.must(
        "set -e; rdma system set netns exclusive; ip netns attach first $$; ip netns add other
        rdma dev set unload netns other",
    );
    kept.is_gone();
    guest.must(
        "set -e; ip netns exec other rdma dev set unload netns first
        ip netns del first; ip netns del other
        left=100; until rdma system set netns shared; do
            left=$((left - 1)); [ $left -gt 0 ]; sleep 0.1
        done",
    );
    kept.agrees();

    let timeout = format!("timeout {REMOVAL_LIMIT}");
    guest.must(&format!("{timeout} sh -c 'echo del unload >/sys/module/testhca/parameters/ctl'"));
    kept.is_gone();
    kept.make_again();
    kept.agrees();

    unload("testhca");
    kept.is_gone();
    load("testhca");
    kept.make_again();
    kept.agrees();
    drop((kept.exporter, hca));
}

/// Tests that unload modules run one at a time: they share the modules, and rdma_rxe, when unloaded, removes
/// all devices of its driver id, which include testhca's (`ib_unregister_driver`).
fn alone() -> MutexGuard<'static, ()> {
    static MODULES: Mutex<()> = Mutex::new(());
    MODULES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// mlx5_ib and most other drivers: ib_uverbs takes their devices away from the processes that hold them open
/// (`disassociate_ucontext`), so the removal does not wait.
#[test]
fn driver_with_disassociation_unloads_at_once() {
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

/// A driver without disassociation is pinned by the kernel while a process holds a uverbs node of it open:
/// `ib_uverbs_open` takes a reference to its module (`module_dependent`,
/// drivers/infiniband/core/uverbs_main.c). `delete_module` fails because of that reference before it calls
/// the driver, and no uevent announces the attempt, so no process could close the node in time. The way out is
/// to remove the devices first, which is announced.
#[test]
fn driver_without_disassociation_unloads_after_its_devices() {
    let _alone = alone();
    let guest = Guest::get();
    let rxe = guest.rxe("pinned");
    let exporter = start("pinned", &[]);
    wait_heard(&exporter, 1);
    let refused = guest.sh(&format!("timeout {REMOVAL_LIMIT} rmmod rdma_rxe"));
    assert_ne!(refused.status, 0, "{refused:?}");
    // EWOULDBLOCK is the kernel's error for a module in use.
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

/// Without libibverbs only files of sysfs are open, which do not hold a module.
#[test]
fn no_driver_is_held_without_events() {
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
