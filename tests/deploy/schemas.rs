//! What Kubernetes and the Prometheus operator take.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::judges::{none, script, text, verdict, yaml};
use crate::objects::{self, CHART, shown};
use test_rig::{require, rules, tools};

/// What is wrong with objects of Kubernetes' own, in the oldest release that the chart is for, and the
/// newest that is known.
pub fn kubernetes(objects: &[Value]) -> Vec<String> {
    let chart = yaml(&rules::path(CHART).join("Chart.yaml"));
    let oldest = text(&chart, "/kubeVersion").trim_start_matches(">=").trim_end_matches(".0-0");
    let asked = json!({"versions": [oldest, "latest"], "objects": objects});
    let said = tools::answer(&mut script("kubernetes.py"), &asked.to_string());
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn workshop() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| tools::npm("tests/deploy"))
}

/// What is wrong with objects of the Prometheus operator: values by its schemas, keys by its types.
fn operator(name: &str, objects: &[Value]) -> Vec<String> {
    let workshop = workshop();
    let mut judge = Command::new(require("node"));
    let said =
        tools::answer(judge.arg("operator.mjs").current_dir(workshop), &json!(objects).to_string());
    let mut problems: Vec<String> = serde_json::from_str(&said).unwrap();
    // An array in one piece would be of a type so large that the compiler gives up.
    let mut text = "import type { Monitoring } from './operator.js';\n".to_owned();
    for (n, it) in objects.iter().enumerate() {
        writeln!(text, "export const object{n}: Monitoring = {it:#};").unwrap();
    }
    let file = format!("objects-{name}.ts");
    std::fs::write(workshop.join(&file), text).unwrap();
    let config = json!({"extends": "./tsconfig.json", "files": [file]});
    let project = format!("tsconfig-{name}.json");
    std::fs::write(workshop.join(&project), config.to_string()).unwrap();
    let mut compiler = Command::new(require("node"));
    compiler.arg("node_modules/typescript/bin/tsc").args(["--pretty", "false", "-p", &project]);
    let (code, said) = verdict(compiler.current_dir(workshop));
    problems.extend(said.lines().map(str::to_owned));
    assert_eq!(code == Some(0), said.is_empty(), "{said}");
    problems
}

#[test]
fn kubernetes_takes_each_object() {
    let (_, objects): (Vec<_>, Vec<_>) =
        objects::all().into_iter().filter(|(_, it)| !objects::is_monitoring(it)).unzip();
    assert!(objects.len() > 30, "{}", objects.len());
    none(&kubernetes(&objects));
}

#[test]
fn the_prometheus_operator_takes_each_object() {
    let (_, objects): (Vec<_>, Vec<_>) =
        objects::all().into_iter().filter(|(_, it)| objects::is_monitoring(it)).unzip();
    assert!(objects.len() > 10, "{}", objects.len());
    none(&operator("ours", &objects));
}

/// An object of a set, with another value somewhere, or with a key more.
fn broken(what: &str, pointer: &str, value: Value) -> Value {
    let mut object = objects::of_set("all").into_iter().find(|it| shown(it) == what).unwrap();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    match object.pointer_mut(parent).unwrap() {
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        place => place[key] = value,
    }
    object
}

/// The judges do see what is wrong.
#[test]
fn what_is_wrong_is_found() {
    let pod = "/spec/template/spec/containers/0";
    let hosts = "DaemonSet ib-fabric-exporter-hosts";
    let wrong = [
        broken(hosts, &format!("{pod}/securityContext/readOnlyRootFileSystem"), json!(true)),
        broken(hosts, &format!("{pod}/livenessProbe/periodSeconds"), json!("30s")),
        broken("NetworkPolicy ib-fabric-exporter", "/spec/egres", json!([])),
    ];
    // Each in two releases.
    assert_eq!(kubernetes(&wrong).len(), 6, "{:?}", kubernetes(&wrong));
    let monitor = "ServiceMonitor ib-fabric-exporter-hosts";
    for (name, pointer, value) in [
        ("key", "/spec/jobLable", json!("app")),
        ("pattern", "/spec/endpoints/0", json!({"interval": "15 seconds"})),
    ] {
        let problems = operator(name, &[broken(monitor, pointer, value)]);
        assert_eq!(problems.len(), 1, "{problems:?}");
    }
}
