//! The files below `alerts/`, as Prometheus reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A file of rules.
#[derive(Deserialize)]
pub struct RuleFile {
    pub groups: Vec<Group>,
}

#[derive(Deserialize)]
pub struct Group {
    pub rules: Vec<Rule>,
}

#[derive(Deserialize)]
pub struct Rule {
    pub record: Option<String>,
    pub alert: Option<String>,
    pub expr: String,
    #[serde(rename = "for")]
    pub wait: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
}

/// A rule that alerts, and which file it is in.
pub struct Alert {
    pub file: String,
    pub name: String,
    /// `host` where hosts alone are asked, else nothing.
    pub view: Option<String>,
    pub rule: Rule,
}

impl Alert {
    pub fn shown(&self) -> String {
        let view = self.view.as_ref().map(|view| format!(" (view {view})")).unwrap_or_default();
        format!("{}{view} in {}", self.name, self.file)
    }

    pub fn annotation(&self, name: &str) -> &str {
        self.rule.annotations.get(name).map_or("", |text| text.trim())
    }
}

/// A file of the project.
pub fn path(name: &str) -> PathBuf {
    crate::paths::root().join(name)
}

pub fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub fn yaml<T: DeserializeOwned>(path: &Path) -> T {
    serde_saphyr::from_str(&text(path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The files of a folder whose names end so, in the order of their names.
pub fn files(folder: &str, end: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path(folder)).unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(end));
    found.sort();
    assert!(!found.is_empty(), "nothing in {folder} ends with {end}");
    found
}

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

/// The metrics that rules record.
pub fn recorded() -> BTreeSet<String> {
    all().into_iter().filter_map(|(_, rule)| rule.record).collect()
}

pub fn alerts() -> Vec<Alert> {
    all()
        .into_iter()
        .filter_map(|(file, rule)| {
            let name = rule.alert.clone()?;
            let view = rule.labels.get("view").cloned();
            Some(Alert { file, name, view, rule })
        })
        .collect()
}
