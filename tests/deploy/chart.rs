//! The chart itself: values, names, rules, dashboards.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::judges::{list, none, settings, text, with_severities, yaml};
use crate::objects::{self, CHART, Job, NAMESPACE, kind, kind_and_name, name};
use test_rig::rules;

/// Kubernetes accepts a ConfigMap and a release (a Secret) of 1 MiB.
const LARGEST: u64 = 1 << 20;

#[test]
fn helm_lint_passes() {
    for (set, made) in objects::outcomes() {
        assert_eq!(made.error, None, "{set}");
        // 1 is advice: an icon is recommended.
        let lint: Vec<_> = made.lint.iter().filter(|it| it["severity"] != 1).collect();
        assert!(lint.is_empty(), "{set}: {lint:?}");
    }
}

/// In the repository rules and dashboards are symbolic links.
#[test]
fn packed_chart_is_complete() {
    for (set, made) in objects::outcomes() {
        assert!(made.packed_is_the_same, "{set}");
        assert!(made.packed < LARGEST / 4, "{} bytes", made.packed);
    }
}

#[test]
fn invalid_values_are_rejected() {
    let wrong = [
        (json!({"host": {"enabled": true}}), "host"),
        (json!({"hosts": {"enabled": "yes"}}), "/hosts/enabled"),
        (json!({"hosts": {"port": 70000}}), "/hosts/port"),
        (json!({"config": {"fabrik": {}}}), "fabrik"),
        (json!({"fabrics": [{"fabric": "compute"}]}), "name"),
        (json!({"fabrics": [{"name": "Rail_0"}]}), "/fabrics/0/name"),
        (json!({"fabrics": [{"name": "hosts"}]}), "/fabrics/0/name"),
        (json!({"fabrics": [{"name": "a", "device": {"mode": "hostPath"}}]}), "/mode"),
        (json!({"fabrics": [{"name": "a", "history": {"size": "2 GB"}}]}), "/size"),
        (json!({"fabricDefaults": {"files": {"config.yml": "x"}}}), "config.yml"),
        (json!({"image": {"digest": "latest"}}), "/image/digest"),
        (json!({"prometheusRule": {"compat": ["nobody"]}}), "/prometheusRule/compat"),
        (json!({"prometheusRule": {"maxSeverity": "page"}}), "/prometheusRule/maxSeverity"),
        (json!({"prometheusRule": {"severities": {"info": "{{ x }}"}}}), "/severities/info"),
        (json!({"prometheusRule": {"severities": {"page": "x"}}}), "page"),
        (json!({"serviceMonitor": {"interval": "15 seconds"}}), "/serviceMonitor/interval"),
        (json!({"webConfig": {"users": {}}}), "users"),
    ];
    let jobs: Vec<Job> = wrong.iter().map(|(values, _)| Job::new(values.clone())).collect();
    for (made, (values, word)) in objects::render(&jobs).iter().zip(&wrong) {
        let error = made.error.as_deref().unwrap_or_else(|| panic!("taken: {values}"));
        assert!(error.contains(word), "{values}: {error}");
    }
}

/// Each section of the values has the keys of its schema, and the other way round.
#[test]
fn schema_has_exactly_the_values() {
    let values = yaml(&rules::path(CHART).join("values.yaml"));
    let schema = yaml(&rules::path(CHART).join("values.schema.json"));
    let keys = |it: &Value| -> BTreeSet<String> {
        it.as_object().map(|it| it.keys().cloned().collect()).unwrap_or_default()
    };
    let mut known = keys(&schema["properties"]);
    known.remove("global"); // Helm's own, for a chart in which this one is
    assert_eq!(keys(&values), known);
    for (section, rule) in schema["properties"].as_object().unwrap() {
        // A free or Kubernetes-defined value is a mapping without keys of ours.
        if rule.get("properties").is_some() {
            assert_eq!(keys(&values[section]), keys(&rule["properties"]), "{section}");
        }
    }
    let mut fabric = keys(&schema["definitions"]["fabric"]["properties"]);
    for own in ["name", "fabric"] {
        fabric.remove(own);
    }
    assert_eq!(keys(&values["fabricDefaults"]), fabric);
}

#[test]
fn chart_versions_match_the_program() {
    let chart = yaml(&rules::path(CHART).join("Chart.yaml"));
    assert_eq!(text(&chart, "/appVersion"), env!("CARGO_PKG_VERSION"));
    let compose = yaml(&rules::path("deploy/compose/compose.yml"));
    let image = text(&compose, "/services/fabric-exporter/image");
    assert_eq!(image, format!("fabric-exporter:{}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn object_names_follow_kubernetes_and_helm() {
    let mut problems = Vec::new();
    for set in objects::outcomes().keys() {
        let mut seen = BTreeSet::new();
        for object in objects::of_set(set) {
            let shown = kind_and_name(&object);
            if !seen.insert(shown.clone()) {
                problems.push(format!("{set}: twice: {shown}"));
            }
            if text(&object, "/metadata/namespace") != NAMESPACE {
                problems.push(format!("{set}: not in the release's namespace: {shown}"));
            }
            for label in ["name", "instance", "version", "managed-by"] {
                if text(&object, &format!("/metadata/labels/app.kubernetes.io~1{label}")).is_empty()
                {
                    problems.push(format!("{set}: no label {label}: {shown}"));
                }
            }
        }
    }
    none(&problems);
}

/// The longest names that Helm and the schema accept.
#[test]
fn long_names_are_truncated() {
    let release = "a-release-with-a-name-of-fifty-three-letters-all-told";
    assert_eq!(release.len(), 53);
    let fabric = "a-fabric-of-23-letters-";
    let mut values = objects::sets().remove("all").unwrap();
    values["fabrics"][0]["name"] = json!(format!("{}x", &fabric[..22]));
    let jobs = [Job { release, ..Job::new(values) }];
    for object in objects::render(&jobs)[0].objects() {
        assert!(name(&object).len() <= 63, "{}: {}", kind_and_name(&object), name(&object).len());
    }
}

#[test]
fn rules_and_dashboards_match_the_repository() {
    let objects = objects::of_set("all");
    let mut rules_left: Vec<Value> =
        rules::files("alerts", ".rules.yml").iter().map(|it| yaml(it)).collect();
    rules_left.extend(rules::files("alerts/compat", ".rules.yml").iter().map(|it| yaml(it)));
    let mut boards_left: Vec<Value> =
        rules::files("dashboards", ".json").iter().map(|it| yaml(it)).collect();
    for object in &objects {
        if kind(object) == "PrometheusRule" {
            let place = rules_left.iter().position(|it| *it == object["spec"]);
            rules_left.remove(
                place.unwrap_or_else(|| panic!("rules of no component: {}", kind_and_name(object))),
            );
        }
        if object.pointer("/metadata/labels/grafana_dashboard").is_some() {
            let data = object["data"].as_object().unwrap();
            assert!((object.to_string().len() as u64) < LARGEST, "{}", kind_and_name(object));
            for board in data.values() {
                let board: Value = serde_json::from_str(board.as_str().unwrap()).unwrap();
                let place = boards_left.iter().position(|it| *it == board);
                boards_left.remove(place.unwrap_or_else(|| panic!("{}", kind_and_name(object))));
            }
        }
    }
    assert!(rules_left.is_empty() && boards_left.is_empty());
}

#[test]
fn severities_are_renamed_and_capped() {
    let names = json!({"critical": "warning", "warning": "ticket", "info": "note"});
    let cases = [
        (json!({"severities": names}), ["warning", "ticket", "note"]),
        (json!({"maxSeverity": "warning"}), ["warning", "warning", "info"]),
        (json!({"maxSeverity": "warning", "severities": names}), ["ticket", "ticket", "note"]),
        (json!({"maxSeverity": "info", "severities": names}), ["note", "note", "note"]),
    ];
    let jobs = cases.each_ref().map(|(values, _)| {
        let mut values = values.clone();
        values["enabled"] = json!(true);
        Job::new(json!({"prometheusRule": values}))
    });
    for (made, (values, names)) in objects::render(&jobs).iter().zip(&cases) {
        let objects = made.objects();
        let made: Vec<&Value> = (objects.iter().filter(|it| kind(it) == "PrometheusRule"))
            .map(|it| &it["spec"])
            .collect();
        let files = rules::files("alerts", ".rules.yml");
        assert_eq!(made.len(), files.len());
        for file in files {
            assert!(
                made.contains(&&with_severities(&file, *names)),
                "{values}: {}",
                file.display()
            );
        }
    }
}

/// Rules join the metrics of hosts and of the sweep by the label `fabric`.
#[test]
fn hosts_and_sweeper_use_the_same_fabric_name() {
    let values = json!({"fabrics": [{"name": "a", "fabric": "compute"}, {"name": "b", "fabric": "compute"}]});
    let made = objects::render(&[Job::new(values)]);
    let configs: Vec<Value> = made[0]
        .objects()
        .iter()
        .filter(|it| kind(it) == "ConfigMap")
        .map(|it| serde_saphyr::from_str(text(it, "/data/config.yml")).unwrap())
        .collect();
    assert_eq!(configs.len(), 3);
    for config in &configs {
        assert_eq!(text(config, "/fabric/name"), "compute", "{config}");
    }
    // With several fabrics the chart cannot know which HCA is in which, and says so.
    let values = json!({"fabrics": [{"name": "rail0"}, {"name": "rail1"}]});
    let made = objects::render(&[Job::new(values)]);
    let notes = &made[0].files["fabric-exporter/templates/NOTES.txt"];
    assert!(notes.contains("hosts.config.fabrics"), "{notes}");
}

#[test]
fn exporter_accepts_each_configuration() {
    let mut found = 0;
    for (set, object) in objects::all() {
        let config = text(&object, "/data/config.yml");
        if config.is_empty() {
            continue;
        }
        found += 1;
        let settings = settings(config);
        let hosts = name(&object).ends_with("-hosts");
        assert_eq!(settings.host.is_some(), hosts, "{set}: {config}");
        assert_eq!(settings.fabrics.is_empty(), hosts, "{set}: {config}");
        assert_eq!(settings.sysfs.to_str(), Some("/host/sys"));
    }
    assert_eq!(found, 8);
    let storage = of("all", "ConfigMap ib-fabric-exporter-storage");
    let names = text(&storage, "/data/node-name-map");
    assert_eq!(names, "0x0002c90200000001 \"leaf 3\"\n0x0002c90200000002 \"leaf 4\"\n");
}

pub fn of(set: &str, what: &str) -> Value {
    let found = objects::of_set(set).into_iter().find(|it| kind_and_name(it) == what);
    found.unwrap_or_else(|| panic!("no {what} in {set}"))
}

#[test]
fn network_policy_allows_scrapes_and_only_the_egress_that_is_set() {
    let policy = of("default", "NetworkPolicy ib-fabric-exporter");
    assert!(list(&policy, "/spec/egress").is_empty());
    let policy = of("all", "NetworkPolicy ib-fabric-exporter");
    assert_eq!(list(&policy, "/spec/policyTypes"), [json!("Ingress"), json!("Egress")]);
    let ports = [json!({"port": 53, "protocol": "UDP"}), json!({"port": 443, "protocol": "TCP"})];
    assert_eq!(list(&policy, "/spec/egress"), [json!({"ports": ports})]);
    let [rule] = list(&policy, "/spec/ingress") else { panic!("{policy}") };
    assert_eq!(rule["ports"], json!([{"port": "http", "protocol": "TCP"}]));
    assert_eq!(rule["from"].as_array().map(Vec::len), Some(1));
}
