//! Which alerts fire with the metrics of the profile `lean` alone, and which groups the others need: the rules' unit
//! tests run again with fewer input series.

use std::collections::{BTreeMap, BTreeSet};

use regex_lite::Regex;
use serde_json::{Value, json};
use test_rig::promql;
use test_rig::promtool::fed;
use test_rig::rules::{AlertRule, file_name, files, path, yaml};

/// The name of an alert, and its view.
type Id = (String, String);

fn id(name: &str, view: Option<&str>) -> Id {
    (name.to_owned(), view.unwrap_or_default().to_owned())
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// A file of unit tests, and the group of each exported metric.
struct Tests<'a> {
    file: Value,
    groups: &'a BTreeMap<String, String>,
}

impl Tests<'_> {
    /// The group of an input series; none if it is not the exporter's.
    fn group(&self, series: &Value) -> Option<&str> {
        let selector = text(series, "series");
        let (metric, labels) = selector.split_once('{').unwrap_or((selector, ""));
        let has_device = labels.starts_with("device=") || labels.contains(" device=");
        if has_device { Some("host") } else { self.groups.get(metric).map(String::as_str) }
    }

    /// The groups of all input series.
    fn all_groups(&self) -> BTreeSet<&str> {
        let series = list(&self.file, "tests").flat_map(|test| list(test, "input_series"));
        series.filter_map(|it| self.group(it)).collect()
    }

    /// Runs the tests with the series of some groups only. Returns the alerts that fired other than expected.
    /// Evidence in the annotations may be missing, so only the labels of the alerts are compared.
    fn wrong(&self, keep: impl Fn(&str) -> bool) -> BTreeSet<Id> {
        let mut file = self.file.clone();
        let folder = path("alerts/tests");
        for rules in file["rule_files"].as_array_mut().unwrap() {
            *rules = folder.join(rules.as_str().unwrap()).display().to_string().into();
        }
        for (test, made) in list(&self.file, "tests").zip(file["tests"].as_array_mut().unwrap()) {
            let kept = list(test, "input_series").filter(|it| self.group(it).is_none_or(&keep));
            let cases = list(test, "alert_rule_test").flat_map(cases);
            *made = json!({
                "interval": test["interval"],
                "input_series": kept.collect::<Vec<_>>(),
                "promql_expr_test": cases.collect::<Vec<_>>(),
            });
        }
        let mut made = tempfile::Builder::new().suffix(".yml").tempfile().unwrap();
        // JSON is valid YAML.
        serde_json::to_writer(made.as_file_mut(), &file).unwrap();
        let (code, said) = fed("promtool", &["test", "rules", made.path().to_str().unwrap()], "");
        let expression = Regex::new(r#"ALERTS\{alertname=\\"(\w+)\\",view=\\"(\w*)\\""#).unwrap();
        let wrong: BTreeSet<Id> =
            expression.captures_iter(&said).map(|it| id(&it[1], Some(&it[2]))).collect();
        assert!(code == Some(0) || !wrong.is_empty(), "{said}");
        wrong
    }
}

/// A case of an alert test as cases of expressions: for each view, the alerts that fire.
fn cases(case: &Value) -> impl Iterator<Item = Value> {
    ["", "host"].into_iter().map(|view| {
        let name = text(case, "alertname");
        let matchers = format!(r#"alertname="{name}",view="{view}",alertstate="firing""#);
        let firing = list(case, "exp_alerts").filter(|it| text(&it["exp_labels"], "view") == view);
        let samples = firing.map(|alert| {
            let labels = alert["exp_labels"].as_object().unwrap().iter();
            let labels: Vec<String> =
                labels.map(|(name, value)| format!("{name}={value}")).collect();
            let labels = labels.join(",");
            json!({
                "labels": format!(r#"ALERTS{{alertname="{name}",alertstate="firing",{labels}}}"#),
                "value": 1,
            })
        });
        json!({
            "expr": format!("ALERTS{{{matchers}}}"),
            "eval_time": case["eval_time"],
            "exp_samples": samples.collect::<Vec<_>>(),
        })
    })
}

/// The groups that alerts need besides those of `lean`: without one of them, the alert does not fire in its tests.
pub fn needs() -> BTreeMap<Id, BTreeSet<String>> {
    let groups = promql::groups();
    let mut needs: BTreeMap<Id, BTreeSet<String>> = BTreeMap::new();
    for path in files("alerts/tests", ".test.yml") {
        let tests = Tests { file: yaml(&path), groups: &groups };
        let others: Vec<&str> =
            tests.all_groups().into_iter().filter(|it| !promql::is_lean(it)).collect();
        let wrong = if others.is_empty() { BTreeSet::new() } else { tests.wrong(promql::is_lean) };
        if wrong.is_empty() {
            continue;
        }
        let mut found = BTreeSet::new();
        for other in others {
            for alert in tests.wrong(|group| group != other) {
                needs.entry(alert.clone()).or_default().insert(other.to_owned());
                found.insert(alert);
            }
        }
        assert_eq!(wrong, found, "{}: one of several groups is enough", file_name(&path));
    }
    needs
}

/// Alerts about packets that ports lose need their counters; all others need only `lean`.
pub fn assert_few(needs: &BTreeMap<Id, BTreeSet<String>>, alerts: &[AlertRule]) {
    for alert in alerts {
        let needs = needs.get(&id(&alert.name, alert.view.as_deref()));
        assert_eq!(
            needs.is_some(),
            alert.file == "ports.rules.yml",
            "{}: {needs:?}",
            alert.shown()
        );
    }
}

/// The groups that an alert needs, for a table.
pub fn cell(needs: &BTreeMap<Id, BTreeSet<String>>, alert: &AlertRule) -> String {
    let needs = needs.get(&id(&alert.name, alert.view.as_deref()));
    let needs: Vec<String> = needs.into_iter().flatten().map(|it| format!("`{it}`")).collect();
    needs.join(", ")
}
