//! The stack on one machine.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::judges::{beside, list, none, program, refused, text, texts, verdict, yaml};
use test_rig::promtool::fed;
use test_rig::rules;

const FOLDER: &str = "deploy/compose";

fn read(name: &str) -> Value {
    yaml(&rules::path(FOLDER).join(name))
}

/// What a service mounts from this repository: the file or folder, and where.
fn mounts(service: &Value) -> Vec<(PathBuf, String)> {
    texts(service, "/volumes")
        .iter()
        .filter(|it| it.starts_with('.'))
        .map(|it| {
            let mut parts = it.split(':');
            let (from, to) = (parts.next().unwrap(), parts.next().unwrap());
            assert_eq!(parts.next(), Some("ro"), "{it}");
            (rules::path(FOLDER).join(from), to.to_owned())
        })
        .collect()
}

fn schema_says(file: &Path) -> (Option<i32>, String) {
    verdict(program("check-jsonschema").args(["--builtin-schema", "vendor.compose-spec"]).arg(file))
}

#[test]
fn they_are_compose_files() {
    for name in ["compose.yml", "compose.fabric.yml"] {
        let (code, said) = schema_says(&rules::path(FOLDER).join(name));
        assert_eq!(code, Some(0), "{name}: {said}");
    }
    let dir = tempfile::tempdir().unwrap();
    let wrong = dir.path().join("compose.yml");
    let text = rules::text(&rules::path(FOLDER).join("compose.yml"));
    std::fs::write(&wrong, text.replace("read_only:", "readonly:")).unwrap();
    assert_eq!(schema_says(&wrong).0, Some(1));
}

#[test]
fn each_service_is_pinned_held_and_watched() {
    let compose = read("compose.yml");
    let mut problems = Vec::new();
    for (name, service) in compose["services"].as_object().unwrap() {
        let mut must = |what: &str, holds: bool| {
            if !holds {
                problems.push(format!("{name}: {what}"));
            }
        };
        let tag = text(service, "/image").rsplit_once(':').map_or("", |(_, tag)| tag);
        must(
            "a version",
            tag.trim_start_matches('v').split('.').filter(|it| it.parse::<u32>().is_ok()).count()
                == 3,
        );
        must("no capabilities", service["cap_drop"] == json!(["ALL"]));
        must("no more than it has", service["security_opt"] == json!(["no-new-privileges:true"]));
        must("a check of its health", list(service, "/healthcheck/test").len() > 1);
        must("it comes back", service["restart"] == "unless-stopped");
        for port in texts(service, "/ports") {
            must(&port, port.starts_with("127.0.0.1:"));
        }
        for (from, _) in mounts(service) {
            must(&format!("{} is there", from.display()), from.exists());
        }
        for volume in texts(service, "/volumes").iter().filter(|it| !it.starts_with('.')) {
            let own = volume.split(':').next().unwrap();
            must(volume, compose["volumes"].as_object().unwrap().contains_key(own));
        }
        for other in texts(service, "/depends_on") {
            must(&other, compose["services"].get(&other).is_some());
        }
    }
    none(&problems);
    let build = &compose["services"]["fabric-exporter"]["build"];
    let context = rules::path(FOLDER).join(text(build, "/context"));
    assert!(context.join(text(build, "/dockerfile")).is_file());
}

#[test]
fn the_exporter_takes_its_command_lines() {
    for name in ["compose.yml", "compose.fabric.yml"] {
        let service = &read(name)["services"]["fabric-exporter"];
        assert_eq!(refused(&texts(service, "/command")), None, "{name}");
    }
    let service = &read("compose.yml")["services"]["fabric-exporter"];
    let health = texts(service, "/healthcheck/test");
    assert_eq!(health[..2], ["CMD", "/usr/bin/fabric-exporter"]);
    assert_eq!(refused(&health[2..]), None);
}

/// As they lie in the containers.
#[test]
fn prometheus_and_alertmanager_take_what_is_mounted() {
    let services = &read("compose.yml")["services"];
    let mounted = mounts(&services["prometheus"]);
    let names: Vec<(&str, PathBuf)> = mounted
        .iter()
        .map(|(from, to)| (to.strip_prefix("/etc/prometheus/").unwrap(), from.clone()))
        .collect();
    let dir = beside(&names);
    let config = dir.path().join("prometheus.yml");
    let (code, said) = fed("promtool", &["check", "config", config.to_str().unwrap()], "");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("cables.rules.yml"), "no rules: {said}");
    let mounted = mounts(&services["alertmanager"]);
    let (code, said) = fed("amtool", &["check-config", mounted[0].0.to_str().unwrap()], "");
    assert_eq!(code, Some(0), "{said}");
}

/// The port of a service in its own network, from what it publishes.
fn port(services: &Value, name: &str) -> String {
    let ports = texts(&services[name], "/ports");
    format!("{name}:{}", ports[0].rsplit_once(':').unwrap().1)
}

#[test]
fn who_asks_whom_is_as_they_are_called() {
    let services = &read("compose.yml")["services"];
    let prometheus = read("prometheus.yml");
    let target = |pointer: &str| text(&prometheus, pointer).to_owned();
    assert_eq!(target("/scrape_configs/0/job_name"), "fabric-exporter");
    assert_eq!(
        target("/scrape_configs/0/static_configs/0/targets/0"),
        port(services, "fabric-exporter")
    );
    let alertmanager = target("/alerting/alertmanagers/0/static_configs/0/targets/0");
    assert_eq!(alertmanager, port(services, "alertmanager"));
    let sources = read("datasource.yml");
    for (source, name) in list(&sources, "/datasources").iter().zip(["prometheus", "alertmanager"])
    {
        assert_eq!(text(source, "/type"), name);
        assert_eq!(text(source, "/url"), format!("http://{}", port(services, name)));
    }
    let interval = text(&sources, "/datasources/0/jsonData/timeInterval");
    assert_eq!(interval, target("/global/scrape_interval"));
}

#[test]
fn grafana_finds_the_dashboards() {
    let services = &read("compose.yml")["services"];
    let mounted = mounts(&services["grafana"]);
    let at = |end: &str| &mounted.iter().find(|(from, _)| from.ends_with(end)).unwrap().1;
    let provider = yaml(&rules::path("dashboards/provisioning/dashboards/fabric-exporter.yml"));
    assert_eq!(text(&provider, "/providers/0/options/path"), at("dashboards"));
    assert!(at("datasource.yml").starts_with("/etc/grafana/provisioning/datasources/"));
    let home = text(&services["grafana"], "/environment/GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH");
    let name = home.strip_prefix(at("dashboards")).unwrap().trim_start_matches('/');
    assert!(rules::path("dashboards").join(name).is_file(), "{name}");
}
