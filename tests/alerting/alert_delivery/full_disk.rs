//! An exporter with a full disk for its history: the guest has a disk of any size.

use test_rig::guest::{Guest, GuestExporter};

/// The name of its fabric.
pub const FABRIC: &str = "full-disk";

/// A fabric that needs little CPU time of the guest.
const SCENARIO: &str = "fabric: {fat-tree: {hosts: 4, radix: 8, down: 4, up: 4}}";

/// An exporter that has to leave 256 MiB free on the disk of its history, which has 400 MiB.
pub fn start(pace: u32) -> GuestExporter {
    Guest::get().must(&format!(
        "mkdir -p /tmp/full && (mountpoint -q /tmp/full || mount -t tmpfs full /tmp/full)
        mount -o remount,size=400m /tmp/full
        rm -f /tmp/full/*; echo '{SCENARIO}' >/tmp/full/scenario.yml"
    ));
    GuestExporter::demo(&[
        "--scenario=/tmp/full/scenario.yml",
        "--history.file=/tmp/full/history.db",
        "--fabric.interval=15s",
        &format!("--fabric.name={FABRIC}"),
        &format!("--clock={pace}"),
    ])
}

/// Lets the disk be full: 64 MiB are left.
pub fn fill() {
    Guest::get().must("mount -o remount,size=64m /tmp/full");
}
