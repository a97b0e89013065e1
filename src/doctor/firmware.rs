//! Compares the firmware of devices of one type.
//!
//! Only of this host: SMPs return the hardware revision of a node, and no firmware version.

use std::collections::BTreeMap;

use super::finding::{Finding, Subject, grouped};
use super::host::Host;

const SUBJECT: Subject = Subject::Firmware;

pub fn check(host: &Host) -> Vec<Finding> {
    // By type and board: the same type on a board of another vendor has its own firmware.
    let mut kinds: BTreeMap<(&str, &str), BTreeMap<&str, Vec<&str>>> = BTreeMap::new();
    for device in &host.devices {
        let about = &*device.about;
        // Soft RoCE has none.
        if about.hca_type.is_empty() || about.firmware.is_empty() {
            continue;
        }
        let versions = kinds.entry((&about.hca_type, &about.board)).or_default();
        versions.entry(&about.firmware).or_default().push(&device.name);
    }
    if kinds.is_empty() {
        return vec![Finding::ok(SUBJECT, "devices", "none with firmware of its own")];
    }
    kinds.iter().map(|((kind, board), versions)| check_kind(kind, board, versions)).collect()
}

fn check_kind(kind: &str, board: &str, versions: &BTreeMap<&str, Vec<&str>>) -> Finding {
    let what = if board.is_empty() { kind.to_owned() } else { format!("{kind} {board}") };
    let list = grouped(versions);
    if versions.len() < 2 {
        return Finding::ok(SUBJECT, what, list);
    }
    let mend = if kind.starts_with("MT") {
        "mlxfwmanager --online -u, or flint -d <device> -i <image> burn; then a reset"
    } else {
        "the maker's tool for firmware; then a reset"
    };
    Finding::warn(SUBJECT, what, format!("differs: {list}"))
        .wanted("one version on devices that are alike: they fail, and are mended, alike")
        .mend(mend)
}
