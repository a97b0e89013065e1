//! The systemd units.

use std::path::Path;
use std::process::Command;

use crate::{TREE, tool};
use test_rig::require;

/// The highest exposure of a service, of 10, by `systemd-analyze security`.
const MOST_EXPOSED: f64 = 2.0;

const SERVICES: [&str; 2] = ["fabric-exporter", "fabric-exporter-host"];

/// The unit's file in the tree.
fn file(unit: &str) -> String {
    format!("{TREE}/deploy/systemd/{unit}")
}

#[test]
fn units_are_sandboxed() {
    for service in SERVICES {
        let mut analyze = Command::new(require("systemd-analyze"));
        analyze.args(["security", "--offline=true", "--no-pager"]);
        let output = tool(analyze.arg(file(&format!("{service}.service"))));
        let line =
            output.lines().find(|line| line.contains("Overall exposure level")).expect(&output);
        let (_, level) = line.rsplit_once(": ").expect(line);
        let level: f64 = level.split(' ').next().unwrap().parse().expect(line);
        println!("{service}.service: {level}");
        assert!(level < MOST_EXPOSED, "{output}");
    }
}

/// In a root folder of their own, with the program at its installed path.
#[test]
fn systemd_analyze_verify_passes() {
    let root = tempfile::tempdir().unwrap();
    let units = root.path().join("usr/lib/systemd/system");
    std::fs::create_dir_all(&units).unwrap();
    std::fs::create_dir_all(root.path().join("usr/bin")).unwrap();
    // Any program will do.
    std::fs::copy("/bin/true", root.path().join("usr/bin/fabric-exporter")).unwrap();
    // The units of systemd that they depend on.
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
        let output = tool(analyze.args([service, socket]));
        assert_eq!(output.trim(), "", "systemd-analyze verify reports problems");
    }
}
