//! The files below `alerts/`, as Prometheus reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A rule file.
#[derive(Deserialize)]
pub struct RuleFile {
    /// Its groups.
    pub groups: Vec<Group>,
}

/// A group of rules.
#[derive(Deserialize)]
pub struct Group {
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// A recording or alerting rule.
#[derive(Deserialize)]
pub struct Rule {
    /// The name that it records.
    pub record: Option<String>,
    /// The name of the alert.
    pub alert: Option<String>,
    /// The expression.
    pub expr: String,
    /// How long the expression has to be true before the alert fires.
    #[serde(rename = "for")]
    pub wait: Option<String>,
    /// The labels that it adds.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// The annotations of the alert.
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// An alerting rule, and its file.
pub struct AlertRule {
    /// The name of the file.
    pub file: String,
    /// The name of the alert.
    pub name: String,
    /// `host` for rules about hosts alone, else empty.
    pub view: Option<String>,
    /// The rule.
    pub rule: Rule,
}

impl AlertRule {
    /// Its name, view and file, for messages.
    pub fn shown(&self) -> String {
        let view = self.view.as_ref().map(|view| format!(" (view {view})")).unwrap_or_default();
        format!("{}{view} in {}", self.name, self.file)
    }

    /// The severities that it can have, the most severe first: a template names two.
    pub fn severities(&self) -> Vec<&'static str> {
        let label = self.rule.labels.get("severity").map_or("", String::as_str);
        let words: Vec<&str> = label.split(|it: char| !it.is_ascii_alphanumeric()).collect();
        ["critical", "warning", "info"].into_iter().filter(|it| words.contains(it)).collect()
    }

    /// An annotation; empty if it has none.
    pub fn annotation(&self, name: &str) -> &str {
        self.rule.annotations.get(name).map_or("", |text| text.trim())
    }
}

/// A file of the project.
pub fn path(name: &str) -> PathBuf {
    crate::paths::root().join(name)
}

/// The text of a file.
pub fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A YAML file as a value.
pub fn yaml<T: DeserializeOwned>(path: &Path) -> T {
    serde_saphyr::from_str(&text(path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of a folder whose names end with this, sorted by name.
pub fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path(folder)).unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(end));
    found.sort();
    assert!(!found.is_empty(), "nothing in {folder} ends with {end}");
    found
}

/// The last part of a path.
pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// The rules of a file, with its name.
pub fn of(path: &Path) -> Vec<(String, Rule)> {
    let name = file_name(path);
    let groups = yaml::<RuleFile>(path).groups;
    groups.into_iter().flat_map(|group| group.rules).map(|rule| (name.clone(), rule)).collect()
}

/// All rules with their files' names.
pub fn all() -> Vec<(String, Rule)> {
    files("alerts", ".rules.yml").iter().flat_map(|path| of(path)).collect()
}

/// The names that rules record.
pub fn recorded() -> BTreeSet<String> {
    all().into_iter().filter_map(|(_, rule)| rule.record).collect()
}

/// All alerting rules.
pub fn alerts() -> Vec<AlertRule> {
    all()
        .into_iter()
        .filter_map(|(file, rule)| {
            let name = rule.alert.clone()?;
            let view = rule.labels.get("view").cloned();
            Some(AlertRule { file, name, view, rule })
        })
        .collect()
}
