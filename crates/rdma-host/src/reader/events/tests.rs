//! The listener on this host, whatever it has, and on trees that are not of this host.

use std::sync::mpsc::channel;
use std::time::Instant;

use super::*;

fn start_and_stop(sysfs: &Path) -> Duration {
    let listener = Listener::start(sysfs, |_| true, Clock::start(), |_| true).unwrap();
    let began = Instant::now();
    drop(listener);
    began.elapsed()
}

#[test]
fn listener_starts_and_stops_without_devices() {
    let empty = tempfile::tempdir().unwrap();
    for sysfs in [Path::new("/sys"), Path::new("/nowhere"), empty.path()] {
        let took = start_and_stop(sysfs);
        assert!(took < SHUTDOWN_TIMEOUT, "{took:?}");
    }
}

#[test]
fn devices_outside_sysfs_are_not_opened() {
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("class/infiniband/mlx5_0")).unwrap();
    let verbs = tree.path().join("class/infiniband_verbs/uverbs0");
    std::fs::create_dir_all(&verbs).unwrap();
    std::fs::write(verbs.join("ibdev"), "mlx5_0\n").unwrap();
    assert!(!exists(tree.path(), "mlx5_0"));

    let (sender, asked) = channel();
    let wanted = move |device: &str| sender.send(device.to_owned()).is_ok();
    drop(Listener::start(tree.path(), wanted, Clock::start(), |_| true).unwrap());
    assert!(asked.recv().is_err(), "the thread has ended and asked for no device");
}
