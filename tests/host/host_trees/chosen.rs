//! The selection of devices: an excluded device is not even opened.

use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

use rustix::fs::inotify;

use crate::host_trees::{devices, look_with};
use test_rig::sysfs::{Copies, Device, Tree, Vpd, connectx8, hgx, hgx_b200};
use test_rig::{Exporter, run_on_host_to_exit};

#[test]
fn devices_are_selected_by_name_and_exclusion_wins() {
    let tree = hgx();
    let told = |flags: &[&str]| devices(&look_with(&tree, flags), "infiniband_device_up");
    assert_eq!(told(&["--host.device-include=mlx5_[01]"]), ["mlx5_0", "mlx5_1"]);
    assert_eq!(told(&["--host.device-exclude=mlx5_[0-8]"]), ["mlx5_9", "mlx5_bond_0"]);
    assert_eq!(
        told(&["--host.device-include=mlx5_.*", "--host.device-exclude=mlx5_[0-8]|.*bond.*"]),
        ["mlx5_9"]
    );
    // A pattern matches the whole name.
    assert_eq!(told(&["--host.device-include=bond"]), [""; 0]);
}

#[test]
fn devices_are_selected_by_kind_and_function() {
    let told = |tree: &Tree, exclude: &str| {
        let flag = format!("--host.device-exclude={exclude}");
        devices(&look_with(tree, &[&flag]), "infiniband_device_up")
    };
    let b200 = hgx_b200(Vpd::Readable);
    assert_eq!(told(&b200, "kind:nvlink_bridge"), ["mlx5_4", "mlx5_5"]);
    assert_eq!(told(&b200, "pci:0000:0b:00.0|pci:0000:0b:00.1|mlx5_[45]"), ["mlx5_2", "mlx5_3"]);
    assert_eq!(told(&b200, "pci:15b3:1021"), [""; 0]);
    assert_eq!(told(&connectx8(Copies::Yes), "kind:smi"), ["mlx5_0"]);
}

#[test]
fn invalid_pattern_fails_at_start() {
    let tree = hgx();
    let output = run_on_host_to_exit(&tree, &["--host.device-exclude=mlx5_("]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("device-exclude"), "{}", output.stderr);
    let output = run_on_host_to_exit(&tree, &["--host.device-exclude=kind:nvlink"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let says = "--host.device-exclude: \"kind:nvlink\" is not one of kind:nvlink_bridge, kind:smi";
    assert!(output.stderr.contains(says), "{}", output.stderr);
}

/// All directories below one, and itself.
fn directories(of: &Path) -> Vec<PathBuf> {
    let mut all = vec![of.to_owned()];
    for entry in std::fs::read_dir(of).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            all.extend(directories(&entry.path()));
        }
    }
    all
}

#[test]
fn excluded_device_is_never_opened() {
    let tree = hgx();
    // inotify reports whatever is opened below these: a file by its folder.
    let watch = |device: &str| {
        let watcher =
            inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).unwrap();
        let place = tree.path().join("class/infiniband").join(device).canonicalize().unwrap();
        for directory in directories(&place) {
            inotify::add_watch(&watcher, &directory, inotify::WatchFlags::OPEN).unwrap();
        }
        watcher
    };
    let (left_out, looked_at) = (watch("mlx5_3"), watch("mlx5_0"));
    let mut exporter =
        Exporter::on_host(&tree, &["--host.device-exclude=mlx5_3", "--host.interval=1s"]);
    exporter.wait_ready();
    exporter.wait_reads(2);
    assert!(exporter.stop().success());
    let opened = |watcher| {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        inotify::Reader::new(watcher, &mut buffer).next().is_ok()
    };
    assert!(opened(looked_at), "the watch works");
    assert!(!opened(left_out), "mlx5_3 was opened");
}

/// The connection manager's folders below a port, and their metrics.
const CM: [(&str, &str); 4] = [
    ("cm_rx_duplicates", "infiniband_cm_receive_duplicates_total"),
    ("cm_rx_msgs", "infiniband_cm_receive_messages_total"),
    ("cm_tx_msgs", "infiniband_cm_transmit_messages_total"),
    ("cm_tx_retries", "infiniband_cm_transmit_retries_total"),
];

#[test]
fn cm_counters_are_read_on_request() {
    let messages =
        ["apr", "drep", "dreq", "lap", "mra", "rej", "rep", "req", "rtu", "sidr_rep", "sidr_req"];
    let counts = |device: Device, (directory, _): &(&str, &str)| {
        device.counts(&format!("ports/1/{directory}"), &messages)
    };
    let device = CM.iter().fold(Device::mlx5_ndr("mlx5_0", 0), counts);
    let tree = Tree::new([device]);
    for wanted in [false, true] {
        let metrics = look_with(&tree, &[&format!("--host.cm-counters={wanted}")]);
        for (directory, metric) in CM {
            let filed = tree.numbers("mlx5_0", &format!("ports/1/{directory}"));
            assert_eq!(filed.len(), messages.len());
            for (message, number) in filed {
                let labels = [("device", "mlx5_0"), ("port", "1"), ("message", message.as_str())];
                let expected = Some(number).filter(|_| wanted);
                assert_eq!(metrics.get_u64(metric, &labels), expected, "{metric} {message}");
            }
        }
    }
}
