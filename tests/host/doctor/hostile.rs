//! Whatever stands in the files: it ends, and says what it saw.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::doctor::patient::Patient;
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

/// What every file of sysfs and procfs is replaced by.
type Spoil = fn(&Path);

#[test]
fn files_with_nonsense_in_them_and_files_that_are_none() {
    let spoils: [(&str, Spoil); 6] = [
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
    for (name, spoil) in spoils {
        let patient = Patient::with(devices());
        let mut spoiled = files(patient.tree.path());
        spoiled.extend(files(&patient.path("proc")));
        assert!(spoiled.len() > 100);
        for path in &spoiled {
            spoil(path);
        }
        let output = patient.run(&[]);
        // A state of "4: " and then nonsense is Active all the same.
        assert!(matches!(output.status.code(), Some(0 | 3 | 5 | 6)), "{name}: {output:?}");
        assert_eq!(output.stderr, "", "{name}");
        assert!(!output.stdout.contains(['\x1b', '\u{202e}']), "{name}: {}", output.stdout);
        let last = output.stdout.lines().last().unwrap_or_default();
        assert!(last.contains("; first: ") || last == "all is well", "{name}: {last}");
    }
}

#[test]
fn pipes_hold_nobody_up() {
    let patient = Patient::with(devices());
    for path in files(patient.tree.path()) {
        let pipe = rustix::fs::FileType::Fifo;
        std::fs::remove_file(&path).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &path, pipe, mode, 0).unwrap();
    }
    let output = patient.run(&[]);
    assert!(matches!(output.status.code(), Some(3 | 5 | 6)), "{output:?}");
    assert!(!output.stdout.contains("could not be looked at"), "{}", output.stdout);
}

#[test]
fn a_pipe_in_place_of_a_site_file_is_a_finding_and_holds_nobody_up() {
    let patient = Patient::with(devices());
    let pipe = patient.path("names");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let found = patient.found(&[&format!("--fabric.node-name-map={}", pipe.display())]);
    let says = "it is a pipe, and has to be a regular file";
    found.one("configuration", "--fabric.node-name-map").says("bad", says, "edit it");
    assert_eq!(found.code, 6);
    // What comes before it and after it is told.
    assert!(!found.of_subject("firmware").is_empty() && !found.of_subject("listener").is_empty());
}

#[test]
fn a_reader_who_has_enough_is_no_error() {
    let patient = Patient::with(devices());
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
