//! The Ansible role. No host is set up: Ansible and its linter read the role, and its templates are rendered.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::judges::{program, settings, verdict, with_severities, yaml};
use test_rig::rules;

const FOLDER: &str = "deploy/ansible";

/// An Ansible program with all its files in a folder of its own.
fn ansible(name: &str, home: &Path) -> Command {
    let mut command = program(name);
    command.env("ANSIBLE_HOME", home).env("HOME", home).env("ANSIBLE_NOCOLOR", "1");
    // Not a configuration that it would find by itself.
    command.env("ANSIBLE_PYTHON_INTERPRETER", program("python").get_program());
    // Without a locale Python assumes ASCII, which Ansible refuses.
    command.env("LC_ALL", "C.UTF-8").current_dir(rules::path(FOLDER));
    command
}

/// Ansible itself also has to accept the playbook.
#[test]
fn ansible_lint_passes() {
    let home = tempfile::tempdir().unwrap();
    let mut lint = ansible("ansible-lint", home.path());
    lint.args(["--offline", "--profile", "production", "--project-dir", ".", "--nocolor"]);
    lint.args(["site.yml", "roles/fabric_exporter"]);
    let (code, said) = verdict(&mut lint);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Passed: 0 failure(s), 0 warning(s)"), "{said}");
}

#[test]
fn files_used_by_the_role_exist() {
    let mut taken = Vec::new();
    for entry in std::fs::read_dir(rules::path(FOLDER).join("roles/fabric_exporter/tasks")).unwrap()
    {
        let tasks = yaml(&entry.unwrap().path());
        for task in tasks.as_array().unwrap() {
            let src = task["ansible.builtin.copy"]["src"].as_str().unwrap_or_default();
            let Some(path) = src.strip_prefix("{{ fabric_exporter_repository }}/") else {
                continue;
            };
            let items = task["loop"].as_array().cloned().unwrap_or_else(|| vec![json!("")]);
            taken.extend(
                items.iter().map(|item| path.replace("{{ item }}", item.as_str().unwrap())),
            );
        }
    }
    taken.sort();
    assert_eq!(
        taken,
        [
            "deploy/systemd/fabric-exporter-host.service",
            "deploy/systemd/fabric-exporter.service",
            "deploy/sysusers/fabric-exporter.conf",
            "deploy/udev/90-fabric-exporter.rules",
        ]
    );
    for path in taken {
        assert!(rules::path(&path).is_file(), "{path}");
    }
}

/// Renders templates of the role in one run, with variables besides its defaults.
fn filled<const N: usize>(cases: &[(&str, Value); N]) -> [String; N] {
    let home = tempfile::tempdir().unwrap();
    let role = rules::path(FOLDER).join("roles/fabric_exporter");
    let to = |n: usize| home.path().join(format!("filled-{n}"));
    let tasks: Vec<Value> = cases
        .iter()
        .enumerate()
        .map(|(n, (template, variables))| {
            let from = role.join("templates").join(template);
            json!({"ansible.builtin.template": {"src": from, "dest": to(n)}, "vars": variables})
        })
        .collect();
    let defaults = yaml(&role.join("defaults/main.yml"));
    let play = json!([{
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": false,
        "vars": defaults,
        "tasks": tasks,
    }]);
    let playbook = home.path().join("playbook.yml");
    std::fs::write(&playbook, play.to_string()).unwrap();
    let mut run = ansible("ansible-playbook", home.path());
    let (code, said) = verdict(run.args(["--inventory", "localhost,"]).arg(playbook));
    assert_eq!(code, Some(0), "{said}");
    std::array::from_fn(|n| rules::text(&to(n)))
}

#[test]
fn exporter_accepts_the_role_output() {
    let sweeps = json!({
        "fabric_exporter_sweeps": true,
        "fabric_exporter_fabric": "compute",
        "fabric_exporter_config":
            {"fabric": {"interval": "30s"}, "web": {"listen-address": [":10316"]}},
    });
    let rails = json!({"fabric_exporter_config":
        {"fabrics": [{"name": "a", "hca": "mlx5_0"}, {"name": "b", "hca": "mlx5_1"}]}});
    let users = json!({"fabric_exporter_web_config":
        {"basic_auth_users": {"prometheus": "$2y$10$abcdefghijklmnopqrstuv"}}});
    let [host, sweeps, rails, flags, flags_with_users, web] = filled(&[
        ("config.yml.j2", json!({})),
        ("config.yml.j2", sweeps),
        ("config.yml.j2", rails),
        ("default.j2", json!({"fabric_exporter_args": ["--log.level=debug"]})),
        ("default.j2", users.clone()),
        ("web-config.yml.j2", users.clone()),
    ]);

    let host = settings(&host);
    // The unit says by a flag that no fabric is swept.
    assert!(host.host.is_some() && host.history.is_none());
    let sweeps = settings(&sweeps);
    let names: Vec<&str> = sweeps.fabrics.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["compute"]);
    assert_eq!(sweeps.fabrics[0].interval.as_secs(), 30);
    assert!(sweeps.history.is_some());
    assert_eq!(sweeps.listen[0][0].port(), 10316);
    settings(&rails);

    assert_eq!(flags.lines().last(), Some("ARGS=\"--log.level=debug\""));
    let both = "ARGS=\"--web.config.file=/etc/fabric-exporter/web-config.yml\"";
    assert_eq!(flags_with_users.lines().last(), Some(both));
    let web: Value = serde_saphyr::from_str(&web).unwrap();
    assert_eq!(web, users["fabric_exporter_web_config"]);
}

#[test]
fn severities_are_renamed_and_capped() {
    let file = rules::path("alerts/cables.rules.yml");
    let names = json!({"critical": "warning", "warning": "ticket", "info": "note"});
    let [usual, renamed, capped, both] = filled(&[
        ("alerts.rules.yml.j2", json!({"item": file})),
        ("alerts.rules.yml.j2", json!({"item": file, "fabric_exporter_alerts_severities": names})),
        (
            "alerts.rules.yml.j2",
            json!({"item": file, "fabric_exporter_alerts_max_severity": "warning"}),
        ),
        (
            "alerts.rules.yml.j2",
            json!({
                "item": file,
                "fabric_exporter_alerts_max_severity": "info",
                "fabric_exporter_alerts_severities": names,
            }),
        ),
    ]);
    for (made, names) in [
        (usual, ["critical", "warning", "info"]),
        (renamed, ["warning", "ticket", "note"]),
        (capped, ["warning", "warning", "info"]),
        (both, ["note", "note", "note"]),
    ] {
        let made: Value = serde_saphyr::from_str(&made).unwrap();
        assert_eq!(made, with_severities(&file, names), "{names:?}");
    }
}

#[test]
fn role_variables_are_declared() {
    let role = rules::path(FOLDER).join("roles/fabric_exporter");
    let defaults = yaml(&role.join("defaults/main.yml"));
    let word = regex_lite::Regex::new(r"\bfabric_exporter_[a-z_]+\b").unwrap();
    let registered = ["fabric_exporter_health"];
    let files: Vec<PathBuf> =
        ["site.yml", "inventory.yml", "README.md"].map(|it| rules::path(FOLDER).join(it)).into();
    for file in files.into_iter().chain(
        ["tasks", "handlers", "templates"]
            .into_iter()
            .flat_map(|it| rules::files(&format!("{FOLDER}/roles/fabric_exporter/{it}"), "")),
    ) {
        for found in word.find_iter(&rules::text(&file)) {
            let name = found.as_str();
            let known = defaults.get(name).is_some() || registered.contains(&name);
            assert!(known, "{}: {name}", file.display());
        }
    }
}
