//! Which devices are looked at: what is left out is not even opened.

use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};

use rustix::fs::inotify;

use crate::rig::sysfs::hgx;
use crate::rig::{Exporter, run_on_host_to_exit};
use crate::{devices, look_with};

#[test]
fn by_name_and_exclusion_wins() {
    let tree = hgx();
    let told = |flags: &[&str]| devices(&look_with(&tree, flags), "infiniband_device_up");
    assert_eq!(told(&["--host.device-include=mlx5_[01]"]), ["mlx5_0", "mlx5_1"]);
    assert_eq!(told(&["--host.device-exclude=mlx5_[0-8]"]), ["mlx5_9", "mlx5_bond_0"]);
    assert_eq!(
        told(&["--host.device-include=mlx5_.*", "--host.device-exclude=mlx5_[0-8]|.*bond.*"]),
        ["mlx5_9"]
    );
    // A pattern is of the whole name.
    assert_eq!(told(&["--host.device-include=bond"]), [""; 0]);
}

#[test]
fn a_pattern_that_is_none_is_said_at_once() {
    let tree = hgx();
    let output = run_on_host_to_exit(&tree, &["--host.device-exclude=mlx5_("]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stderr.contains("device-exclude"), "{}", output.stderr);
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
fn a_device_that_is_left_out_is_never_opened() {
    let tree = hgx();
    // Whatever is opened below these is reported to us: a file by its directory.
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
