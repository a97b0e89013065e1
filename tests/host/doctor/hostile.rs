//! With any content of the files `doctor` ends, and reports what it saw.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::doctor::patient::TestHost;
use test_rig::program;
use test_rig::sysfs::Device;

/// All plain files below a directory.
fn files(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
    found
}

fn devices() -> [Device; 3] {
    [Device::mlx4("mlx4_0"), Device::mlx5_ndr("mlx5_0", 0), Device::irdma("irdma0")]
}

/// The contents that replace every file of sysfs and procfs.
type Corrupt = fn(&Path);

#[test]
fn nonsense_files_are_findings() {
    let variants: [(&str, Corrupt); 6] = [
        ("empty", |path| std::fs::write(path, "").unwrap()),
        ("bytes", |path| std::fs::write(path, [0xff, 0, b':', b'9', b'\n']).unwrap()),
        ("large", |path| std::fs::write(path, "0x9".repeat(3000)).unwrap()),
        ("numbers", |path| std::fs::write(path, "18446744073709551616\n").unwrap()),
        ("escapes", |path| std::fs::write(path, "4: \u{1b}[2J\u{202e}\n").unwrap()),
        ("directories", |path| {
            std::fs::remove_file(path).unwrap();
            std::fs::create_dir(path).unwrap();
        }),
    ];
    for (name, corrupt) in variants {
        let patient = TestHost::with(devices());
        let mut files_to_corrupt = files(patient.tree.path());
        files_to_corrupt.extend(files(&patient.path("proc")));
        assert!(files_to_corrupt.len() > 100);
        for path in &files_to_corrupt {
            corrupt(path);
        }
        let output = patient.run(&[]);
        // A state of "4: " followed by nonsense is still Active.
        assert!(matches!(output.status.code(), Some(0 | 3 | 5 | 6)), "{name}: {output:?}");
        assert_eq!(output.stderr, "", "{name}");
        assert!(!output.stdout.contains(['\x1b', '\u{202e}']), "{name}: {}", output.stdout);
        let last = output.stdout.lines().last().unwrap_or_default();
        assert!(last.contains("; fix first: ") || last == "no problems found", "{name}: {last}");
    }
}

#[test]
fn pipes_do_not_block() {
    let patient = TestHost::with(devices());
    for path in files(patient.tree.path()) {
        let pipe = rustix::fs::FileType::Fifo;
        std::fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, pipe, mode, 0).unwrap();
    }
    let output = patient.run(&[]);
    assert!(matches!(output.status.code(), Some(3 | 5 | 6)), "{output:?}");
    assert!(!output.stdout.contains("the check timed out"), "{}", output.stdout);
}

#[test]
fn pipe_as_site_file_is_a_finding_and_does_not_block() {
    let patient = TestHost::with(devices());
    let pipe = patient.path("names");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let found = patient.report(&[&format!("--fabric.node-name-map={}", pipe.display())]);
    let says = "a pipe";
    found.one("configuration", "--fabric.node-name-map").says("bad", says, "edit it");
    assert_eq!(found.code, 6);
    // The checks before and after it are reported.
    assert!(!found.of_subject("firmware").is_empty() && !found.of_subject("listener").is_empty());
}

#[test]
fn closed_stdout_is_no_error() {
    let patient = TestHost::with(devices());
    for format in [&[][..], &["--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = Command::new(program())
            .args(patient.arguments())
            .arg("--offline")
            .args(format)
            .stdout(writer)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output =
        Command::new(program()).args(patient.arguments()).arg("--offline").stdout(full).output();
    assert_eq!(output.unwrap().status.code(), Some(1), "a full disk is one");
}
