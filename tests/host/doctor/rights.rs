//! Device files that this user may not open.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::doctor::patient::{Found, LIMIT, Patient};
use test_rig::child;
use test_rig::program;
use test_rig::sysfs::Device;

/// Nobody's, on Debian and elsewhere.
const NOBODY: u32 = 65534;

/// Runs it as a user who is not the owner of the host's files, if we may, else as ourselves.
fn as_nobody(patient: &Patient) -> Found {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    // Where everybody gets to: the build's own folder may be closed to others.
    let program = patient.path("fabric-exporter");
    if std::fs::hard_link(test_rig::program(), &program).is_err() {
        std::fs::copy(test_rig::program(), &program).unwrap();
    }
    for open in [patient.dir.path(), patient.tree.path().parent().unwrap()] {
        std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(&program);
    command.args(patient.arguments()).args(["--offline", "--json"]);
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    Found::of(&child::run("fabric-exporter", &mut command, patient.dir.path(), LIMIT))
}

fn patient() -> Patient {
    Patient::with([Device::mlx4("mlx4_0")])
}

#[test]
fn a_umad_that_only_root_may_open() {
    let patient = patient();
    // Whoever runs the tests: nobody but root, and not its owner.
    patient.close("umad0", 0o000);
    patient.close("uverbs0", 0o000);
    let found = as_nobody(&patient);
    let umad = found.one("permissions", patient.device("umad0").to_str().unwrap());
    umad.says("bad", "may not open it (", "90-fabric-exporter.rules");
    assert!(umad.text("found").ends_with("0000)"), "{umad:?}");
    assert!(
        umad.text("mend").contains(r#"KERNEL=="umad*", GROUP="rdma", MODE="0660""#),
        "{umad:?}"
    );
    let verbs = found.one("permissions", patient.device("uverbs0").to_str().unwrap());
    verbs.says("warn", "may not open it", "uverbs");
    found.one("permissions", patient.device("umad1").to_str().unwrap()).says("ok", "opens", "");
    assert_eq!(found.code, 6);
}

#[test]
fn a_device_file_that_is_missing_or_is_none() {
    let patient = patient();
    std::fs::remove_file(patient.device("umad0")).unwrap();
    patient.close("umad1", 0o600);
    let found = patient.found(&[]);
    let path = |name| patient.device(name).display().to_string();
    found.one("permissions", &path("umad0")).says("bad", "missing", "udevadm trigger");
    found.one("permissions", &path("umad1")).says("bad", "no character device", "rm ");
}

#[test]
fn without_rights_it_tells_as_much() {
    let patient = patient();
    let (by_us, by_nobody) = (patient.found(&[]), as_nobody(&patient));
    assert_eq!(by_us.json["findings"], by_nobody.json["findings"]);
}
