//! The alerts that the rules' unit tests check.

use std::collections::BTreeMap;

use serde::Deserialize;

use test_rig::rules::{AlertRule, file_name, files, yaml};

#[derive(Deserialize)]
struct TestFile {
    rule_files: Vec<String>,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    #[serde(default)]
    alert_rule_test: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    alertname: String,
    #[serde(default)]
    exp_alerts: Vec<Expected>,
}

#[derive(Deserialize)]
struct Expected {
    #[serde(default)]
    exp_labels: BTreeMap<String, String>,
}

/// A check of an alert at a time in a test.
pub struct Look {
    /// The loaded rule files.
    files: Vec<String>,
    alert: String,
    /// The views of the firing alerts; empty if none fires.
    firing: Vec<Option<String>>,
}

impl Look {
    fn is_at(&self, alert: &AlertRule) -> bool {
        self.alert == alert.name && self.files.contains(&alert.file)
    }

    pub fn fires(&self, alert: &AlertRule) -> bool {
        self.is_at(alert) && self.firing.contains(&alert.view)
    }

    pub fn is_silent(&self, alert: &AlertRule) -> bool {
        self.is_at(alert) && !self.firing.contains(&alert.view)
    }
}

pub fn looks() -> Vec<Look> {
    let mut looks = Vec::new();
    for path in files("alerts/tests", ".test.yml") {
        let file: TestFile = yaml(&path);
        let files: Vec<String> =
            file.rule_files.iter().map(|name| file_name(name.as_ref())).collect();
        for case in file.tests.into_iter().flat_map(|test| test.alert_rule_test) {
            let view = |expected: &Expected| expected.exp_labels.get("view").cloned();
            let firing = case.exp_alerts.iter().map(view).collect();
            looks.push(Look { files: files.clone(), alert: case.alertname, firing });
        }
    }
    looks
}
