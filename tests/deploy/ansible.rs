//! The Ansible role. No host is set up here: it is read by Ansible and its linter, and its templates
//! are filled in.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::judges::{program, refused, settings, verdict, yaml};
use crate::rig::rules;

const FOLDER: &str = "deploy/ansible";

/// Ansible's program, with all that it keeps in a folder of its own.
fn ansible(name: &str, home: &Path) -> Command {
    let mut command = program(name);
    command.env("ANSIBLE_HOME", home).env("HOME", home).env("ANSIBLE_NOCOLOR", "1");
    // Not one that it would find by itself.
    command.env("ANSIBLE_PYTHON_INTERPRETER", program("python").get_program());
    // Where neither is set Python takes text for ASCII, which Ansible refuses.
    command.env("LC_ALL", "C.UTF-8").current_dir(rules::path(FOLDER));
    command
}

#[test]
fn ansible_reads_the_playbook() {
    let home = tempfile::tempdir().unwrap();
    let (code, said) =
        verdict(ansible("ansible-playbook", home.path()).args(["--syntax-check", "site.yml"]));
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn its_linter_has_nothing_against_it() {
    let home = tempfile::tempdir().unwrap();
    let mut lint = ansible("ansible-lint", home.path());
    lint.args(["--offline", "--profile", "production", "--project-dir", ".", "--nocolor"]);
    lint.args(["site.yml", "roles/fabric_exporter"]);
    let (code, said) = verdict(&mut lint);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Passed: 0 failure(s), 0 warning(s)"), "{said}");
}

/// What a template of the role becomes with these variables.
fn filled(template: &str, variables: &Value) -> String {
    let home = tempfile::tempdir().unwrap();
    let to = home.path().join("filled");
    let role = rules::path(FOLDER).join("roles/fabric_exporter");
    let from = role.join("templates").join(template);
    let mut all = yaml(&role.join("defaults/main.yml"));
    all.as_object_mut().unwrap().extend(variables.as_object().unwrap().clone());
    let mut run = ansible("ansible", home.path());
    run.args([
        "localhost",
        "--inventory",
        "localhost,",
        "--connection",
        "local",
        "--module-name",
        "template",
    ]);
    run.args(["--args", &format!("src={} dest={}", from.display(), to.display())]);
    let (code, said) = verdict(run.args(["--extra-vars", &all.to_string()]));
    assert_eq!(code, Some(0), "{said}");
    rules::text(&to)
}

#[test]
fn the_exporter_takes_the_configuration() {
    let host = settings(&filled("config.yml.j2", &json!({})));
    assert!(host.fabrics.is_empty() && host.host.is_some() && host.history.is_none());
    let variables = json!({
        "fabric_exporter_sweeps": true,
        "fabric_exporter_fabric": "compute",
        "fabric_exporter_config": {"fabric": {"interval": "30s"}, "web": {"listen-address": [":10316"]}},
    });
    let sweeps = settings(&filled("config.yml.j2", &variables));
    let names: Vec<&str> = sweeps.fabrics.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["compute"]);
    assert_eq!(sweeps.fabrics[0].interval.as_secs(), 30);
    assert!(sweeps.history.is_some());
    assert_eq!(sweeps.listen[0].port(), 10316);
    let rails = json!({"fabric_exporter_config": {"fabrics": [{"name": "a", "hca": "mlx5_0"}, {"name": "b", "hca": "mlx5_1"}]}});
    settings(&filled("config.yml.j2", &rails));
}

#[test]
fn the_unit_starts_the_exporter_with_it() {
    let text = filled("drop-in.conf.j2", &json!({}));
    let commands: Vec<&str> = text.lines().filter_map(|it| it.strip_prefix("ExecStart=")).collect();
    // The empty one takes back the unit's own.
    let ["", command] = commands[..] else { panic!("{text}") };
    let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    assert_eq!(words[0], "/usr/bin/fabric-exporter");
    assert_eq!(refused(&words[1..]), None);
    let users =
        json!({"fabric_exporter_web_config": {"basic_auth_users": {"prometheus": "$2y$10$x"}}});
    let flag = "--web.config.file=/etc/fabric-exporter/web-config.yml";
    assert!(filled("drop-in.conf.j2", &users).trim_end().ends_with(flag));
    let web: Value = serde_saphyr::from_str(&filled("web-config.yml.j2", &users)).unwrap();
    assert_eq!(web, users["fabric_exporter_web_config"]);
}

/// What the role takes from this repository, and the playbook from the role.
#[test]
fn variables_are_the_role_s() {
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
