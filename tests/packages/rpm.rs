//! The RPM: made of the program that cargo built for the tests, and laid out in a folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{TREE, deb, program, tool};
use test_rig::require;

fn build(dir: &Path) -> PathBuf {
    let define = |name: &str, value: &str| format!("--define={name} {value}");
    let mut rpmbuild = Command::new(require("rpmbuild"));
    tool(rpmbuild.arg("-bb").args([
        define("_topdir", &dir.display().to_string()),
        define("tree", TREE),
        define("binary", &program().display().to_string()),
        define("release_version", "0.1.0"),
        // Nobody downloads this one.
        define("_binary_payload", "w0.gzdio"),
        format!("{TREE}/deploy/rpm/fabric-exporter.spec"),
    ]));
    let arch = std::fs::read_dir(dir.join("RPMS")).unwrap().next().unwrap().unwrap().path();
    std::fs::read_dir(arch).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn it_installs_what_the_debian_package_does() {
    let dir = tempfile::tempdir().unwrap();
    let package = build(dir.path());
    let root = dir.path().join("root");
    let mut rpm = Command::new(require("rpm"));
    // Debian's rpm knows of no other package, and its scripts would be run here.
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
    assert!(differing.is_empty(), "one has what the other has not: {differing:#?}");
}

/// Where the distributions differ: documents, zsh, udev, and man pages that one packs.
fn same_place(file: &str) -> String {
    let file = file.trim_end_matches(".gz");
    let file = if file.starts_with("lib/") { format!("usr/{file}") } else { file.to_owned() };
    file.replace("zsh/vendor-completions", "zsh/site-functions")
        .replace("doc/fabric-exporter/copyright", "doc/fabric-exporter/LICENSE")
}

#[test]
fn its_scripts_are_shell() {
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
