//! A made-up host for `doctor`.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use test_rig::child::{self, Output};
use test_rig::program;
use test_rig::sysfs::{Device, Tree};

pub const LIMIT: Duration = Duration::from_secs(60);

/// A host: its sysfs, procfs and device files.
pub struct TestHost {
    pub tree: Tree,
    pub dir: TempDir,
}

/// The files of a PCI function in a slot with full width and speed.
pub const CARD: [(&str, &str); 7] = [
    ("class", "0x020700"),
    ("vendor", "0x15b3"),
    ("device", "0x1021"),
    ("current_link_width", "16"),
    ("max_link_width", "16"),
    ("current_link_speed", "32.0 GT/s PCIe"),
    ("max_link_speed", "32.0 GT/s PCIe"),
];

const MODULES: &str = "\
mlx5_ib 450560 0 - Live 0x0000000000000000
mlx4_ib 245760 0 - Live 0x0000000000000000
ib_umad 40960 0 - Live 0x0000000000000000
ib_uverbs 188416 1 mlx5_ib, Live 0x0000000000000000
ib_ipoib 135168 0 - Live 0x0000000000000000
rdma_cm 139264 1 rdma_ucm, Live 0x0000000000000000
";

impl TestHost {
    /// A host with these devices and no problem: each PCI function has a card of its own, each port a umad and an issm
    /// device, each device a uverbs node.
    pub fn with(devices: impl IntoIterator<Item = Device>) -> Self {
        let (tree, dir) = (Tree::new(devices), tempfile::tempdir().unwrap());
        let patient = TestHost { tree, dir };
        for folder in ["proc", "dev/infiniband"] {
            std::fs::create_dir_all(patient.path(folder)).unwrap();
        }
        patient.modules(MODULES);
        let mut umads = 0;
        for (number, device) in patient.tree.devices().iter().enumerate() {
            let class = format!("class/infiniband_verbs/uverbs{number}");
            patient.tree.put(&format!("{class}/ibdev"), device);
            patient.has_device(&format!("uverbs{number}"));
            for port in patient.tree.ports(device) {
                let umad = format!("class/infiniband_mad/umad{umads}");
                patient.tree.put(&format!("{umad}/ibdev"), device);
                patient.tree.put(&format!("{umad}/port"), &port);
                patient.has_device(&format!("umad{umads}"));
                let issm = umad.replace("umad", "issm");
                patient.tree.put(&format!("{issm}/ibdev"), device);
                patient.tree.put(&format!("{issm}/port"), &port);
                umads += 1;
            }
        }
        for address in names(&patient.tree.path().join("devices/pci0000:00")) {
            patient.tree.on_bus(&address, &CARD);
        }
        patient
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The content of `/proc/modules`.
    pub fn modules(&self, text: &str) {
        std::fs::write(self.path("proc/modules"), text).unwrap();
    }

    pub fn device(&self, name: &str) -> PathBuf {
        self.path("dev/infiniband").join(name)
    }

    /// A character device that every user may open.
    fn has_device(&self, name: &str) {
        symlink("/dev/null", self.device(name)).unwrap();
    }

    /// Replaces a device file by one that only its owner may open.
    pub fn close(&self, name: &str, mode: u32) {
        let path = self.device(name);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Removes a file from sysfs.
    pub fn without(&self, path: &str) -> &Self {
        let path = self.tree.path().join(path);
        let removed = match path.symlink_metadata().unwrap() {
            about if about.is_dir() => std::fs::remove_dir_all(&path),
            _ => std::fs::remove_file(&path),
        };
        removed.unwrap();
        self
    }

    /// The arguments with which `doctor` examines this host and nothing else of the machine.
    pub fn arguments(&self) -> Vec<String> {
        vec![
            "doctor".to_owned(),
            self.tree.flag(),
            format!("--path.procfs={}", self.path("proc").display()),
            format!("--path.dev={}", self.path("dev").display()),
            "--web.listen-address=127.0.0.1:0".to_owned(),
        ]
    }

    /// Runs `doctor` with more flags, without any request on the wire.
    pub fn run(&self, flags: &[&str]) -> Output {
        let mut command = Command::new(program());
        command.args(self.arguments()).arg("--offline").args(flags);
        child::run("fabric-exporter", &mut command, self.dir.path(), LIMIT)
    }

    /// The findings.
    pub fn report(&self, flags: &[&str]) -> Report {
        Report::of(&self.run(&[&["--json"], flags].concat()))
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// The output of `--json`, and the exit code.
#[derive(Debug)]
pub struct Report {
    pub json: Value,
    pub code: i32,
}

impl Report {
    pub fn of(output: &Output) -> Self {
        let json = serde_json::from_str(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let found = Report { json, code: output.status.code().unwrap() };
        assert_eq!(found.json["exit_code"], found.code);
        found
    }

    /// The only finding about a thing.
    pub fn one(&self, subject: &str, what: &str) -> JsonFinding<'_> {
        let all: Vec<_> =
            self.of_subject(subject).into_iter().filter(|it| it.text("what") == what).collect();
        assert_eq!(all.len(), 1, "{subject} {what}: {:#}", self.json);
        all[0]
    }

    pub fn of_subject(&self, subject: &str) -> Vec<JsonFinding<'_>> {
        let findings = self.json["findings"].as_array().unwrap().iter().map(JsonFinding);
        findings.filter(|finding| finding.text("subject") == subject).collect()
    }

    /// The findings above the level of a note, as `subject: what`.
    pub fn troubles(&self) -> Vec<String> {
        let findings = self.json["findings"].as_array().unwrap().iter().map(JsonFinding);
        let bad = findings.filter(|it| ["warn", "bad"].contains(&it.text("level")));
        bad.map(|it| format!("{}: {}", it.text("subject"), it.text("what"))).collect()
    }
}

#[derive(Clone, Copy, Debug)]
pub struct JsonFinding<'a>(&'a Value);

impl<'a> JsonFinding<'a> {
    /// A field; empty where it is null.
    pub fn text(self, field: &str) -> &'a str {
        self.0[field].as_str().unwrap_or_default()
    }

    /// Checks its level, its finding and its fix.
    #[track_caller]
    pub fn says(self, level: &str, found: &str, fix: &str) {
        assert_eq!(self.text("level"), level, "{self:#?}");
        assert!(self.text("found").contains(found), "{found}: {self:#?}");
        assert!(self.text("fix").contains(fix), "{fix}: {self:#?}");
    }
}
