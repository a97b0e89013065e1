//! The RPM, built from the test build of the program and unpacked into a directory.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{MANUALS, TREE, deb, program, tool};
use test_rig::require;

fn build(dir: &Path) -> PathBuf {
    let define = |name: &str, value: &str| format!("--define={name} {value}");
    let mut rpmbuild = Command::new(require("rpmbuild"));
    tool(rpmbuild.arg("-bb").args([
        define("_topdir", &dir.display().to_string()),
        define("tree", TREE),
        define("binary", &program().display().to_string()),
        define("manuals", &MANUALS.display().to_string()),
        define("release_version", "0.1.0"),
        // No compression: this package is only tested.
        define("_binary_payload", "w0.gzdio"),
        format!("{TREE}/deploy/rpm/fabric-exporter.spec"),
    ]));
    let arch = std::fs::read_dir(dir.join("RPMS")).unwrap().next().unwrap().unwrap().path();
    std::fs::read_dir(arch).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn rpm_installs_the_same_files_as_deb() {
    let dir = tempfile::tempdir().unwrap();
    let package = build(dir.path());
    let root = dir.path().join("root");
    let mut rpm = Command::new(require("rpm"));
    // Debian's rpm has no other packages in its database, and would run the scripts on this host.
    rpm.args(["--nodeps", "--noscripts", "-i", "--root"]).arg(&root).arg(&package);
    tool(&mut rpm);
    let mut find = Command::new(require("find"));
    let found = tool(find.arg(&root).args([
        "-not",
        "-type",
        "d",
        "-path",
        "*fabric-exporter*",
        "-printf",
        "%P\\n",
    ]));
    let files: BTreeSet<String> =
        found.lines().filter(|file| !file.starts_with("var/lib/rpm/")).map(same_place).collect();
    let theirs: BTreeSet<String> =
        deb::contents().into_iter().map(|file| same_place(&file)).collect();
    let differing: Vec<_> = files.symmetric_difference(&theirs).collect();
    assert!(differing.is_empty(), "the packages have different files: {differing:#?}");
}

/// Differences between the distributions: documents, zsh, udev, and compressed man pages.
fn same_place(file: &str) -> String {
    let file = file.trim_end_matches(".gz");
    let file = if file.starts_with("lib/") { format!("usr/{file}") } else { file.to_owned() };
    file.replace("zsh/vendor-completions", "zsh/site-functions")
        .replace("doc/fabric-exporter/copyright", "doc/fabric-exporter/LICENSE")
}

#[test]
fn rpm_scripts_are_valid_shell() {
    let dir = tempfile::tempdir().unwrap();
    let package = build(dir.path());
    for (script, does) in [
        ("POSTIN", "systemd-sysusers fabric-exporter.conf"),
        ("PREUN", "disable --now"),
        ("POSTUN", "try-restart"),
    ] {
        let mut rpm = Command::new(require("rpm"));
        let text = tool(rpm.arg("-qp").arg(format!("--queryformat=%{{{script}}}")).arg(&package));
        assert!(text.contains(does), "{script}: {text}");
        let file = dir.path().join(script);
        std::fs::write(&file, text).unwrap();
        tool(Command::new("/bin/sh").arg("-n").arg(&file));
    }
}
