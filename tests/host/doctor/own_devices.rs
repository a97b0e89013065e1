//! Hosts that report only their own devices, and those that sweep a fabric but cannot.

use std::process::Command;

use crate::doctor::patient::{LIMIT, Report, TestHost};
use crate::doctor::rights::as_nobody;
use test_rig::sysfs::{Device, Tree};
use test_rig::{child, program};

const OWN_DEVICES: &str = "--no-collector.fabric";

/// A RoCE adapter with an address that can be routed.
fn roce() -> Device {
    Device::irdma("irdma0")
        .file("ports/1/gids/0", "0000:0000:0000:0000:0000:ffff:0a00:0001")
        .file("ports/1/gid_attrs/types/0", "RoCE v2")
}

fn limited() -> Device {
    Device::mlx5_ndr("mlx5_0", 0).without("ports/1/pkeys").file("ports/1/pkeys/0", "0x7fff")
}

/// A healthy node needs neither MADs nor rights, whether ib_umad is loaded or not.
#[test]
fn node_that_sends_no_mads_needs_no_umad() {
    for has_umad in [false, true] {
        for devices in [vec![limited(), Device::mlx5_ndr("mlx5_1", 1)], vec![roce()]] {
            let patient = TestHost::with(devices);
            if has_umad {
                patient.tree.ports("mlx5_0").iter().for_each(|_| patient.close("umad0", 0o000));
            } else {
                patient.modules("mlx5_ib 1 0 - Live 0x0\nirdma 1 0 - Live 0x0\n");
                patient.without("class/infiniband_mad");
            }
            let found = as_nobody(&patient, &[OWN_DEVICES]);
            assert_eq!((found.troubles(), found.code), (vec![], 0), "{:#}", found.json);
            let text = found.json.to_string();
            for advice in ["udev", "modprobe ib_umad", "partitions.conf", "opensm", "M_Key"] {
                assert!(!text.contains(advice), "{advice}: {:#}", found.json);
            }
        }
    }
    // To sweep, the same host needs them.
    let patient = TestHost::with([limited()]);
    patient.close("umad0", 0o000);
    assert_eq!(as_nobody(&patient, &[]).code, 6);
}

#[test]
fn uverbs_is_needed_for_events_alone() {
    let patient = TestHost::with([Device::mlx5_ndr("mlx5_0", 0)]);
    patient.close("uverbs0", 0o000);
    assert_eq!(as_nobody(&patient, &[OWN_DEVICES]).code, 5);
    let found = as_nobody(&patient, &[OWN_DEVICES, "--host.events=false"]);
    assert_eq!((found.troubles(), found.code), (vec![], 0), "{:#}", found.json);
}

/// Its link cannot be used, but the exporter works.
#[test]
fn unused_links_are_warnings_for_own_devices() {
    let init = Device::mlx5_ndr("mlx5_0", 0).file("ports/1/state", "2: INIT").lid(1, 0, 0);
    let found = TestHost::with([init]).report(&[OWN_DEVICES]);
    let manager = found.one("subnet_manager", "mlx5_0 port 1");
    manager.says("warn", "no subnet manager has configured the port", "opensm");
    assert_eq!(found.code, 5);

    let down = Device::mlx5_ndr("mlx5_0", 0)
        .file("ports/1/state", "1: DOWN")
        .file("ports/1/phys_state", "2: Polling");
    let found = TestHost::with([down]).report(&[OWN_DEVICES]);
    found.one("ports", "mlx5_0 port 1").says("warn", "Polling: no signal", "cable");
    assert_eq!(found.code, 5);
}

/// `doctor` without `--offline`, which opens the port as `serve` does.
fn online(patient: &TestHost) -> Report {
    let mut command = Command::new(program());
    command.args(patient.arguments()).arg("--json");
    Report::of(&child::run("fabric-exporter", &mut command, patient.dir.path(), LIMIT))
}

#[test]
fn doctor_agrees_with_serve_on_a_host_with_only_roce() {
    for has_umad in [false, true] {
        let patient = TestHost::with([roce()]);
        if !has_umad {
            patient.without("class/infiniband_mad");
        }
        let mut serve = Command::new(program());
        serve.args(["serve", &patient.tree.flag(), "--web.listen-address=127.0.0.1:0"]);
        let serve = child::run("fabric-exporter", &mut serve, patient.dir.path(), LIMIT);
        assert_eq!(serve.status.code(), Some(3), "{}", serve.stderr);
        for found in [online(&patient), patient.report(&[])] {
            let fabric = found.one("subnet_manager", "fabric \"default\"");
            let says = "no InfiniBand port on this host (irdma0 port 1: Ethernet)";
            fabric.says("bad", says, "--no-collector.fabric");
            assert_eq!(found.troubles(), ["subnet_manager: fabric \"default\""]);
            assert_eq!(
                (found.code, &found.json["first"]["subject"]),
                (6, &"subnet_manager".into())
            );
        }
    }
    // Of a host with both, the named adapter counts.
    let both = || TestHost::with([roce(), Device::mlx5_ndr("mlx5_0", 0)]);
    assert_eq!(both().report(&[]).code, 0);
    let found = both().report(&["--fabric.hca=irdma0"]);
    let says = "no InfiniBand port";
    found.one("subnet_manager", "fabric \"default\"").says("bad", says, "--fabric.hca");
    // A device that is not read may be one.
    let found = both().report(&["--host.device-exclude=mlx5_0"]);
    found.one("subnet_manager", "fabric \"default\"").says("note", "--offline", "");
}

#[test]
fn advice_refers_only_to_errors_that_exist() {
    let says_above = |patient: &TestHost| {
        let found = patient.report(&[OWN_DEVICES]);
        found.one("ports", "devices").text("fix").contains("errors above")
    };
    let empty = || TestHost { tree: Tree::empty(), dir: tempfile::tempdir().unwrap() };
    // A container or a host without PCI, and a card that is reserved for a guest.
    let patient = empty();
    patient.without("bus");
    assert!(!says_above(&patient));
    let patient = empty();
    patient.tree.on_bus("0000:81:00.0", &crate::doctor::patient::CARD);
    assert!(says_above(&patient), "it has no driver");
    patient.tree.bind("0000:81:00.0", "vfio-pci");
    assert!(!says_above(&patient));
}
