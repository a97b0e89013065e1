//! deploy/kubernetes, which is made from the chart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::judges::{none, text, texts, yaml};
use crate::objects::{self, Job};
use crate::schemas;
use test_rig::rules;

const FOLDER: &str = "deploy/kubernetes";
const HEAD: &str =
    "# Made from deploy/helm/fabric-exporter by `make docs`; what is changed here is lost.\n";

/// What is rendered for those without Helm.
fn values() -> Value {
    json!({
        "fabrics": [{"name": "fabric", "fabric": "default", "history": {"enabled": true, "keep": false}}],
        "demo": {"enabled": true},
        "serviceMonitor": {"enabled": true},
        "prometheusRule": {"enabled": true},
    })
}

/// Which file an object is for.
fn file(object: &Value) -> String {
    let component = text(object, "/metadata/labels/app.kubernetes.io~1component");
    match objects::kind(object) {
        "PrometheusRule" => "monitoring/rules.yml".into(),
        "ServiceMonitor" => "monitoring/monitors.yml".into(),
        _ if component.is_empty() => "base/common.yml".into(),
        _ => format!("{component}/{component}.yml"),
    }
}

/// The files with what is to be in them.
fn files() -> BTreeMap<String, String> {
    let job = Job { values: values(), release: "fabric-exporter", namespace: "fabric-exporter" };
    let made = objects::render(&[job]).remove(0);
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for (name, rendered) in made.manifests() {
        for one in format!("\n{rendered}").split("\n---\n").filter(|it| !it.trim().is_empty()) {
            let object: Value =
                serde_saphyr::from_str(one).unwrap_or_else(|error| panic!("{name}: {error}"));
            let file = files.entry(file(&object)).or_insert_with(|| HEAD.to_owned());
            file.push_str("---\n");
            // What Helm says of itself is not so here.
            let own = one.trim().lines().filter(|line| {
                !line.contains("helm.sh/chart:") && !line.contains("managed-by: Helm")
            });
            own.for_each(|line| {
                file.push_str(line.trim_end());
                file.push('\n');
            });
        }
    }
    files
}

#[test]
fn manifests_are_made_from_the_chart() {
    let files = files();
    assert_eq!(files.len(), 6);
    let mut problems = Vec::new();
    for (name, made) in files {
        let path = rules::path(FOLDER).join(&name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        if std::fs::read_to_string(&path).unwrap_or_default() != made {
            problems.push(format!("{FOLDER}/{name} is out of date: make docs"));
        }
    }
    none(&problems);
}

/// The objects of a folder, by its kustomization, with those of the folders that it names.
fn built(folder: &Path) -> Vec<Value> {
    let kustomization = yaml(&folder.join("kustomization.yaml"));
    assert_eq!(text(&kustomization, "/kind"), "Kustomization");
    let named = texts(&kustomization, "/resources");
    let mut found = Vec::new();
    for resource in &named {
        let path = folder.join(resource);
        if path.is_dir() {
            found.extend(built(&path));
        } else {
            let read: Vec<Value> = serde_saphyr::from_multiple(&rules::text(&path)).unwrap();
            found.extend(read.into_iter().filter(|it| !it.is_null()));
        }
    }
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = rules::file_name(&path);
        let is_one = path.extension().is_some_and(|it| it == "yml");
        assert!(!is_one || named.contains(&name), "{name} is in no kustomization");
    }
    found
}

#[test]
fn each_kustomization_is_whole() {
    let all = built(&rules::path(FOLDER));
    let names: BTreeSet<String> = all.iter().map(objects::shown).collect();
    assert_eq!(names.len(), all.len(), "twice: {names:?}");
    let wanted = [
        "DaemonSet fabric-exporter-hosts",
        "Deployment fabric-exporter-fabric",
        "Namespace fabric-exporter",
    ];
    for name in wanted {
        assert!(names.contains(name), "{names:?}");
    }
    let folders =
        ["base", "demo", "fabric", "hosts"].map(|it| built(&rules::path(FOLDER).join(it)));
    none(&schemas::kubernetes(&folders.concat()));
    let monitoring = built(&rules::path(FOLDER).join("monitoring"));
    assert!(monitoring.len() > 5 && monitoring.iter().all(objects::is_monitoring));
    for object in folders.concat().iter().chain(&monitoring) {
        let namespace = text(object, "/metadata/namespace");
        assert!(namespace == "fabric-exporter" || objects::kind(object) == "Namespace", "{object}");
        assert!(!object.to_string().contains("helm.sh"), "{}", objects::shown(object));
    }
}
