//! Device files that this user may not open.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::doctor::patient::{LIMIT, Report, TestHost};
use test_rig::child;
use test_rig::sysfs::Device;

/// The user id of nobody, on Debian and elsewhere.
const NOBODY: u32 = 65534;

/// Runs it as a user who does not own the host's files if possible, else as the current user.
pub fn as_nobody(patient: &TestHost, flags: &[&str]) -> Report {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    // A path that every user can reach: the build folder may be private.
    let program = patient.path("fabric-exporter");
    if !program.exists() && std::fs::hard_link(test_rig::program(), &program).is_err() {
        std::fs::copy(test_rig::program(), &program).unwrap();
    }
    for open in [patient.dir.path(), patient.tree.path().parent().unwrap()] {
        std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new(&program);
    command.args(patient.arguments()).args(["--offline", "--json"]).args(flags);
    if is_root {
        command.uid(NOBODY).gid(NOBODY);
    }
    Report::of(&child::run("fabric-exporter", &mut command, patient.dir.path(), LIMIT))
}

fn patient() -> TestHost {
    TestHost::with([Device::mlx4("mlx4_0")])
}

#[test]
fn umad_that_only_root_may_open_is_a_finding() {
    let patient = patient();
    // Whoever runs the tests must be neither root nor the owner.
    patient.close("umad0", 0o000);
    patient.close("uverbs0", 0o000);
    let found = as_nobody(&patient, &[]);
    let umad = found.one("permissions", patient.device("umad0").to_str().unwrap());
    umad.says("bad", "permission denied for user ", "90-fabric-exporter.rules");
    assert!(umad.text("found").ends_with("0000)"), "{umad:?}");
    assert!(umad.text("fix").contains(r#"KERNEL=="umad*", GROUP="rdma", MODE="0660""#), "{umad:?}");
    let verbs = found.one("permissions", patient.device("uverbs0").to_str().unwrap());
    verbs.says("warn", "permission denied", "uverbs");
    found.one("permissions", patient.device("umad1").to_str().unwrap()).says(
        "ok",
        "can be opened",
        "",
    );
    assert_eq!(found.code, 6);
}

#[test]
fn missing_or_invalid_device_file_is_a_finding() {
    let patient = patient();
    std::fs::remove_file(patient.device("umad0")).unwrap();
    patient.close("umad1", 0o600);
    let found = patient.report(&[]);
    let path = |name| patient.device(name).display().to_string();
    found.one("permissions", &path("umad0")).says("bad", "missing", "udevadm trigger");
    found.one("permissions", &path("umad1")).says("bad", "not a character device", "rm ");
}

#[test]
fn findings_are_the_same_without_rights() {
    let patient = patient();
    let (by_us, by_nobody) = (patient.report(&[]), as_nobody(&patient, &[]));
    assert_eq!(by_us.json["findings"], by_nobody.json["findings"]);
}
