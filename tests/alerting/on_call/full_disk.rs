//! An exporter whose history has no room: in the guest there is a disk that can be made small.

use test_rig::guest::{Guest, GuestExporter};

/// What its fabric is called.
pub const FABRIC: &str = "full-disk";

/// A fabric that leaves the guest's processor alone.
const SCENARIO: &str = "fabric: {fat-tree: {hosts: 4, radix: 8, down: 4, up: 4}}";

/// An exporter that has 64 MB for its history, of which 256 MiB are to be left alone.
pub fn start(pace: u32) -> GuestExporter {
    Guest::get().must(&format!(
        "mkdir -p /tmp/full && (mountpoint -q /tmp/full || mount -t tmpfs -o size=64m full /tmp/full)
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
