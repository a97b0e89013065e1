//! Every query of the dashboards and of the rules, asked of the Prometheus that watched all scenes: in
//! which of them it has something to say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::rig::Prometheus;
use crate::rig::hurried::hurried;

/// A query, and where it stands.
pub struct Query {
    /// `overview: Worst cables` or `cables.rules.yml: InfinibandCableBad`.
    pub place: String,
    /// The query, by the faster clock.
    pub text: String,
}

/// What is asked, by whom, and over which time.
pub struct Question<'a> {
    /// Who answers.
    pub prometheus: &'a Prometheus,
    /// From when, to when, in seconds since 1970, and how far apart points are.
    pub time: (f64, f64, Duration),
    /// The scene of each target's address.
    pub scenes: &'a BTreeMap<String, String>,
}

impl Question<'_> {
    /// The scenes that a query has series of; `all` for a series that tells of several at once.
    pub fn scenes_of(&self, query: &str) -> Result<BTreeSet<String>, String> {
        let (from, to, step) = self.time;
        let series = self.prometheus.query_range(query, from, to, step)?;
        let scene = |one: &Value| {
            let label = |name: &str| one["metric"][name].as_str().map(str::to_owned);
            let of_target = |address: String| self.scenes.get(&address).cloned();
            // What is not known about a port is no less of an answer.
            label("fabric")
                .or_else(|| of_target(label("instance")?))
                .unwrap_or_else(|| "all".into())
        };
        Ok(series.iter().map(scene).collect())
    }

    /// The values that a variable of a dashboard offers, as Grafana asks for them: `label_values()`, or
    /// `query_result()` of which a regular expression takes `label="(?<value>`.
    fn values(&self, definition: &str, regex: &str) -> Result<Vec<String>, String> {
        let definition = definition.trim().trim_end_matches(')');
        let (from, to, step) = self.time;
        if let Some(query) = definition.strip_prefix("query_result(") {
            let before = regex.split_once("=\"(?<value>").map(|(before, _)| before);
            let label = before.and_then(|it| it.rsplit(|it: char| !it.is_alphabetic()).next());
            let label = label.unwrap_or_else(|| panic!("no value in {regex}"));
            let closed = format!("{query}{}", &")".repeat(open(query)));
            let series = self.prometheus.query_range(&closed, from, to, step)?;
            let values = series.iter().map(|it| it["metric"][label].as_str().unwrap().to_owned());
            return Ok(values.collect::<BTreeSet<_>>().into_iter().collect());
        }
        let inside = definition.strip_prefix("label_values(");
        let inside = inside.unwrap_or_else(|| panic!("no label_values(): {definition}"));
        let (selector, label) = inside.rsplit_once(',').unwrap_or(("", inside));
        let (from, to) = (from.to_string(), to.to_string());
        let mut parts = vec![("start", from.as_str()), ("end", to.as_str())];
        if !selector.is_empty() {
            parts.push(("match[]", selector.trim()));
        }
        let values = self.prometheus.ask(&format!("label/{}/values", label.trim()), &parts);
        Ok(values.as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect())
    }
}

/// How many brackets are open at the end of a text.
fn open(text: &str) -> usize {
    text.matches('(').count() - text.matches(')').count()
}

/// A file of rules, as far as it is of interest here.
#[derive(Deserialize)]
struct Rules {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    record: Option<String>,
    alert: Option<String>,
    expr: String,
    labels: Option<BTreeMap<String, String>>,
}

/// The expressions of a file of rules.
pub fn of_rules(file: &Path, pace: u32, began: f64) -> Vec<Query> {
    let text = hurried(&std::fs::read_to_string(file).unwrap(), pace, began);
    let read: Rules = serde_saphyr::from_str(&text).unwrap();
    let file = file.file_name().unwrap().to_string_lossy().into_owned();
    let rules = read.groups.into_iter().flat_map(|group| group.rules);
    rules
        .map(|rule| {
            let name = rule.record.or(rule.alert).unwrap();
            let view = rule.labels.and_then(|labels| labels.get("view").cloned());
            let view = view.map_or(String::new(), |view| format!(" ({view})"));
            let file = file.trim_end_matches(".rules.yml");
            Query { place: format!("{file}: {name}{view}"), text: rule.expr.trim().to_owned() }
        })
        .collect()
}

/// The queries of all dashboards, with every value that their variables offer.
pub fn of_dashboards(question: &Question<'_>, pace: u32, began: f64) -> Vec<Query> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboards");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    assert!(files.len() >= 6, "{files:?}");
    let mut queries = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let board: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let length = question.time.1 - question.time.0;
        let mut known = vec![
            ("__rate_interval".to_owned(), "40s".to_owned()),
            ("__interval".to_owned(), "15s".to_owned()),
            ("__range".to_owned(), format!("{:.0}s", length * f64::from(pace))),
        ];
        for variable in board["templating"]["list"].as_array().unwrap() {
            if variable["type"] != "query" {
                continue;
            }
            let definition = variable["query"]["query"].as_str().or(variable["query"].as_str());
            let definition = substituted(definition.unwrap(), &known);
            let regex = variable["regex"].as_str().unwrap_or_default();
            let values = question.values(&definition, regex).unwrap();
            let shown = variable["name"].as_str().unwrap().to_owned();
            assert!(!values.is_empty(), "{name}: ${shown} offers nothing: {definition}");
            known.push((shown, values.iter().map(|it| escaped(it)).collect::<Vec<_>>().join("|")));
        }
        let mut panels = Vec::new();
        collect_panels(&board, &mut panels);
        for panel in panels {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let text = target["expr"].as_str().unwrap();
                queries.push(Query {
                    place: format!(
                        "{name}: {} {}",
                        panel["title"].as_str().unwrap(),
                        target["refId"].as_str().unwrap_or("")
                    ),
                    text: hurried(&substituted(text, &known), pace, began).trim().to_owned(),
                });
            }
        }
    }
    queries
}

/// Panels, those of collapsed rows, too.
fn collect_panels<'a>(of: &'a Value, panels: &mut Vec<&'a Value>) {
    for panel in of["panels"].as_array().into_iter().flatten() {
        panels.push(panel);
        collect_panels(panel, panels);
    }
}

/// A query with variables in place; where one value is chosen, any of them.
fn substituted(query: &str, known: &[(String, String)]) -> String {
    let mut query = query.to_owned();
    for (name, value) in known {
        for written in [format!("${{{name}}}"), format!("${{{name}:regex}}"), format!("${name}")] {
            query = query.replace(&format!("=\"{written}\""), &format!("=~\"{value}\""));
            // Not the beginning of a longer name.
            let mut rest = std::mem::take(&mut query);
            while let Some(at) = rest.find(&written) {
                let after = rest[at + written.len()..].chars().next();
                let is_whole = written.ends_with('}')
                    || !after.is_some_and(|next| next.is_alphanumeric() || next == '_');
                query += &rest[..at];
                query += if is_whole { value } else { &written };
                rest = rest[at + written.len()..].to_owned();
            }
            query += &rest;
        }
    }
    // What was `=~"$x"` and became `=~~` through the first replacement is what it was.
    query.replace("=~~", "=~")
}

fn escaped(value: &str) -> String {
    let mut out = String::new();
    for letter in value.chars() {
        if r"\.+*?()|[]{}^$".contains(letter) {
            out += r"\\";
        }
        out.push(letter);
    }
    out
}
