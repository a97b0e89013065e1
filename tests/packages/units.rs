//! The units, as systemd reads them.

use std::path::Path;
use std::process::Command;

use crate::{TREE, tool};
use test_rig::require;

/// How exposed a service may be, of 10, by `systemd-analyze security`.
const MOST_EXPOSED: f64 = 2.0;

const SERVICES: [&str; 2] = ["fabric-exporter", "fabric-exporter-host"];

/// A unit's file in the tree.
fn file(unit: &str) -> String {
    format!("{TREE}/deploy/systemd/{unit}")
}

#[test]
fn services_are_shut_in() {
    for service in SERVICES {
        let mut analyze = Command::new(require("systemd-analyze"));
        analyze.args(["security", "--offline=true", "--no-pager"]);
        let told = tool(analyze.arg(file(&format!("{service}.service"))));
        let line = told.lines().find(|line| line.contains("Overall exposure level")).expect(&told);
        let (_, level) = line.rsplit_once(": ").expect(line);
        let level: f64 = level.split(' ').next().unwrap().parse().expect(line);
        println!("{service}.service: {level}");
        assert!(level < MOST_EXPOSED, "{told}");
    }
}

/// In a file system of their own, where the program is where the packages put it.
#[test]
fn systemd_finds_nothing_wrong_with_them() {
    let root = tempfile::tempdir().unwrap();
    let units = root.path().join("usr/lib/systemd/system");
    std::fs::create_dir_all(&units).unwrap();
    std::fs::create_dir_all(root.path().join("usr/bin")).unwrap();
    // Any program will do.
    std::fs::copy("/bin/true", root.path().join("usr/bin/fabric-exporter")).unwrap();
    // What they lean on, of systemd's own.
    let theirs = ["/usr/lib/systemd/system", "/lib/systemd/system"];
    let theirs =
        theirs.map(Path::new).into_iter().find(|dir| dir.is_dir()).expect("systemd's units");
    for entry in std::fs::read_dir(theirs).unwrap().flatten() {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), units.join(entry.file_name())).unwrap();
        }
    }
    for service in SERVICES {
        for kind in ["service", "socket"] {
            let unit = format!("{service}.{kind}");
            std::fs::copy(file(&unit), units.join(&unit)).unwrap();
        }
    }
    for service in SERVICES {
        let mut analyze = Command::new(require("systemd-analyze"));
        analyze.args(["verify", "--man=no", "--recursive-errors=one", "--root"]).arg(root.path());
        let (service, socket) = (format!("{service}.service"), format!("{service}.socket"));
        let told = tool(analyze.args([service, socket]));
        assert_eq!(told.trim(), "", "systemd-analyze verify has something to say");
    }
}
