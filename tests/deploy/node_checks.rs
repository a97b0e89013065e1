//! The scripts for node checkers drain a node only if it is bad, and never what someone else drained.
//!
//! The program and `scontrol` are replaced by scripts that answer as in each case, and record what they are called with.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

fn script(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/bash\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A node on which `check-node` ends with a code, and Slurm has the node in a state.
struct Node {
    folder: TempDir,
}

impl Node {
    fn new(code: u8, state: &str) -> Node {
        let folder = tempfile::tempdir().unwrap();
        let line = ["FINE gpu17: 8 of 8 ports Active", "BAD gpu17: cable bad", "UNKNOWN gpu17: x"]
            [usize::from(code)];
        let text =
            format!("echo \"$*\" >> {}/asked; echo '{line}'; exit {code}", folder.path().display());
        script(folder.path(), "fabric-exporter", &text);
        let text = format!(
            "case $1 in -o) echo 'NodeName=gpu17 Arch=x86_64 State={state}';; \
             *) echo \"$*\" >> {}/updates;; esac",
            folder.path().display()
        );
        script(folder.path(), "scontrol", &text);
        Node { folder }
    }

    fn run(&self, command: &mut Command) -> Output {
        let path = format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap());
        command
            .env("PATH", path)
            .env("SLURMD_NODENAME", "gpu17")
            .env("FABRIC_EXPORTER_SETTINGS", "/nonexistent")
            .env("FABRIC_EXPORTER_URL", "http://exporter-host:10315")
            .output()
            .unwrap()
    }

    fn script(&self, name: &str, variables: &[(&str, &str)]) -> Output {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/node-checks").join(name);
        self.run(Command::new(path).envs(variables.iter().copied()))
    }

    fn recorded(&self, what: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(what)).unwrap_or_default()
    }
}

#[test]
fn slurm_drains_only_bad_nodes_and_resumes_only_its_own() {
    let resume = &[("FABRIC_EXPORTER_RESUME", "yes")][..];
    let ours = "IDLE+DRAIN ThreadsPerCore=1 Reason=fabric: BAD gpu17 [root@2026-11-28T05:10:00]";
    let theirs = "IDLE+DRAIN ThreadsPerCore=1 Reason=disk [admin@2026-11-28T05:10:00]";
    let drain = "update NodeName=gpu17 State=DRAIN Reason=fabric: BAD gpu17: cable bad\n";
    let table = [
        (1, "IDLE ThreadsPerCore=1", &[][..], drain),
        (1, "ALLOCATED ThreadsPerCore=1", &[][..], drain),
        (1, ours, &[][..], ""),
        (1, theirs, &[][..], ""),
        (2, "IDLE ThreadsPerCore=1", resume, ""),
        (2, ours, resume, ""),
        (0, "IDLE ThreadsPerCore=1", resume, ""),
        (0, ours, &[][..], ""),
        (0, ours, resume, "update NodeName=gpu17 State=RESUME\n"),
        (0, theirs, resume, ""),
    ];
    for (code, state, variables, update) in table {
        let node = Node::new(code, state);
        let output = node.script("slurm-health-check", variables);
        assert_eq!(node.recorded("updates"), update, "{code} {state}");
        assert_eq!(output.status.code(), Some(i32::from(code)));
        assert_eq!(node.recorded("asked"), "check-node --url http://exporter-host:10315\n");
        assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
    }
}

#[test]
fn prolog_fails_only_on_bad_nodes() {
    for (code, expected) in [(0, 0), (1, 1), (2, 0)] {
        let node = Node::new(code, "IDLE");
        let options = [("FABRIC_EXPORTER_OPTIONS", "--expect-ports 8")];
        let output = node.script("slurm-prolog", &options);
        assert_eq!(output.status.code(), Some(expected), "{code}");
        let asked = "check-node --expect-ports 8 --url http://exporter-host:10315\n";
        assert_eq!(node.recorded("asked"), asked);
    }
}

/// NHC sources its scripts, and ends a check with `die CODE TEXT`.
#[test]
fn nhc_marks_only_bad_nodes_offline() {
    let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/node-checks/fabric.nhc");
    for (code, expected, says) in
        [(0, 0, ""), (1, 1, "died 1 check_fabric:  BAD"), (2, 0, "logged")]
    {
        let node = Node::new(code, "IDLE");
        let text = format!(
            "die() {{ echo \"died $*\"; exit $1; }}; log() {{ echo \"logged $*\"; }}; . {}; \
             check_fabric http://exporter-host:10315 --expect-ports 8",
            check.display()
        );
        let output = node.run(Command::new("bash").args(["-c", &text]));
        assert_eq!(output.status.code(), Some(expected), "{code}");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(said.starts_with(says) && said.is_empty() == says.is_empty(), "{said}");
        let asked = "check-node --url http://exporter-host:10315 --expect-ports 8\n";
        assert_eq!(node.recorded("asked"), asked);
    }
}

/// The rules of node-problem-detector (docs/custom_plugin_monitor.md) and of gpud's plugins.
#[test]
fn files_of_other_checkers_call_the_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/node-checks");
    let text = std::fs::read_to_string(folder.join("node-problem-detector.json")).unwrap();
    let npd: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(npd["plugin"], "custom");
    assert_eq!(npd["pluginConfig"]["max_output_length"], 80);
    let (rule, condition) = (&npd["rules"][0], &npd["conditions"][0]);
    assert_eq!((&rule["type"], &rule["condition"]), (&"permanent".into(), &condition["type"]));
    assert_ne!(rule["reason"], condition["reason"]);
    assert_eq!(rule["args"][0], "check-node");

    // What gpud runs passes with each code but that of a bad node.
    let text = std::fs::read_to_string(folder.join("gpud-plugin.yaml")).unwrap();
    let script: Vec<&str> = (text.lines())
        .skip_while(|line| !line.contains("script: |"))
        .skip(1)
        .take_while(|line| line.starts_with("            "))
        .collect();
    assert_eq!(script.len(), 2, "{text}");
    for (code, expected) in [(0, 0), (1, 1), (2, 0)] {
        let node = Node::new(code, "IDLE");
        let output = node.run(Command::new("bash").args(["-c", &script.join("\n")]));
        assert_eq!(output.status.code(), Some(expected), "{code}");
    }
}
