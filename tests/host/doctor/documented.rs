//! docs/operate.md describes the output, and has an example of it.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::doctor::patient::{LIMIT, TestHost};
use test_rig::child;
use test_rig::program;
use test_rig::sysfs::Device;

fn page() -> String {
    std::fs::read_to_string(path()).unwrap()
}

fn path() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/operate.md")
}

/// Two HCAs: one has no cable and half of its lanes; their firmware differs.
fn patient() -> TestHost {
    let well = Device::mlx5_ndr("mlx5_0", 0);
    let ill = Device::mlx5_ndr("mlx5_1", 1)
        .file("fw_ver", "28.36.1010")
        .file("ports/1/state", "1: DOWN")
        .file("ports/1/phys_state", "2: Polling")
        .lid(1, 0, 0);
    let patient = TestHost::with([well, ill]);
    patient.tree.put("devices/pci0000:00/0000:11:00.0/current_link_width", "8\n");
    patient
}

/// The output without findings that are ok, and without subjects that have no others.
fn without_ok(printed: &str) -> String {
    let subjects = printed.split("\n\n").filter_map(|subject| {
        let lines: Vec<&str> = subject.lines().filter(|line| !line.starts_with("  ok  ")).collect();
        (lines.len() > 1 || !subject.contains("\n  ok  ")).then(|| lines.join("\n"))
    });
    subjects.collect::<Vec<_>>().join("\n\n") + "\n"
}

#[test]
fn the_example_matches_the_output() {
    let patient = patient();
    // As long as the real name, so that no column moves when it is replaced.
    std::os::unix::fs::symlink("dev", patient.path("devs")).unwrap();
    let mut command = std::process::Command::new("/bin/sh");
    // The limit of locked memory depends on the session.
    command
        .args(["-c", "ulimit -l 8192 2>/dev/null; exec \"$0\" \"$@\"", program()])
        .args(patient.arguments().iter().filter(|flag| !flag.starts_with("--path.dev=")))
        .args(["--path.dev=devs", "--offline"])
        .current_dir(patient.dir.path());
    let output = child::run("doctor", &mut command, patient.dir.path(), LIMIT);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let printed = output.stdout.replace("devs/infiniband", "/dev/infiniband");
    let printed = printed.replace("127.0.0.1:0  ", "127.0.0.1:10315  ");
    let printed = without_ok(&printed);
    let [begin, end] = ["```text\n", "```"];
    let page = page();
    let (before, rest) = page.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let made = format!("{before}{begin}{printed}{end}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path(), &made).unwrap();
        return;
    }
    assert!(page == made, "docs/operate.md is out of date: make docs. It prints:\n{printed}");
}

#[test]
fn json_fields_and_values_are_documented() {
    let page = page();
    let (_, doctor) = page.split_once("\n## Doctor\n").unwrap();
    let doctor = doctor.split("\n## ").next().unwrap();
    let found = patient().report(&[]);
    let keys = |value: &Value| -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
    let top = ["exit_code", "findings", "first", "has_rdma", "version", "worst"];
    assert_eq!(keys(&found.json), set(&top));
    let fields = ["expected", "fix", "found", "level", "subject", "what"];
    for finding in found.json["findings"].as_array().unwrap() {
        assert_eq!(keys(finding), set(&fields));
    }
    assert_eq!(keys(&found.json["first"]), set(&fields));
    let mut words = set(&top);
    words.extend(set(&fields));
    words.extend(set(&["ok", "note", "warn", "bad"]));
    for finding in found.json["findings"].as_array().unwrap() {
        words.insert(finding["subject"].as_str().unwrap().to_owned());
    }
    assert!(words.len() > 20);
    for word in words {
        assert!(doctor.contains(&format!("`{word}`")), "{word} is not in docs/operate.md");
    }
}
