//! All queries of the dashboards and the rules, sent to the Prometheus that watched all scenes, and the
//! scenes for which each returns series.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;

use test_rig::hurried::hurried;
use test_rig::{Prometheus, rules};

/// The speed of the scenes' clock, and its start.
pub type Clock = (u32, f64);

/// A query and its location.
pub struct Query {
    /// `overview: Worst cables` or `cables: InfinibandCableBad`.
    pub place: String,
    /// The text of the query.
    template: String,
    /// The values of its variables.
    variables: Vec<(String, String)>,
    clock: Clock,
}

impl Query {
    /// The query for the faster clock, once for each value that its variables offer.
    pub fn text(&self) -> String {
        self.by_its_clock(&substituted(&self.template, &self.variables))
    }

    /// A query for the clock of its subject: a host's clock has normal speed.
    fn by_its_clock(&self, text: &str) -> String {
        let (pace, began) = self.clock;
        let faster = hurried(text, pace, began);
        let faster = faster.trim();
        let about = |metric: &str| text.contains(metric);
        if about("fabric_exporter_host_read_timestamp") && !about("fabric_exporter_sweep_timestamp")
        {
            faster.replace(hurried("time()", pace, began).trim(), "time()")
        } else {
            faster.to_owned()
        }
    }

    /// The query for one fabric; `None` if it does not select by fabric.
    fn text_of(&self, fabric: &str) -> Option<String> {
        let mut variables = self.variables.clone();
        fabric.clone_into(&mut variables.iter_mut().find(|(name, _)| name == "fabric")?.1);
        let text = self.by_its_clock(&substituted(&self.template, &variables));
        (text != self.text()).then_some(text)
    }
}

/// The Prometheus, the time range, and the known targets.
pub struct Question<'a> {
    /// The Prometheus.
    pub prometheus: &'a Prometheus,
    /// Start, end (seconds since 1970), and step.
    pub time: (f64, f64, Duration),
    /// The scene of each target, by address.
    pub scenes: &'a BTreeMap<String, String>,
}

impl Question<'_> {
    /// The scenes for which a query returns series, by the labels of these; where the labels do not say, by a
    /// query for each fabric alone. `all` stands for queries that do not even select by fabric.
    pub fn scenes_of(&self, query: &Query) -> Result<BTreeSet<String>, String> {
        let (from, to, step) = self.time;
        let ask = |text: &str| self.prometheus.query_range(text, from, to, step);
        let mut found = BTreeSet::new();
        for series in ask(&query.text())? {
            let label = |name: &str| series["metric"][name].as_str().map(str::to_owned);
            let of_target = |address: String| self.scenes.get(&address).cloned();
            match label("fabric").or_else(|| of_target(label("instance")?)) {
                Some(scene) => _ = found.insert(scene),
                None => return self.scenes_one_by_one(query),
            }
        }
        Ok(found)
    }

    fn scenes_one_by_one(&self, query: &Query) -> Result<BTreeSet<String>, String> {
        let (from, to, step) = self.time;
        let mut found = BTreeSet::new();
        for scene in self.scenes.values() {
            let Some(text) = query.text_of(scene) else { return Ok(["all".to_owned()].into()) };
            if !self.prometheus.query_range(&text, from, to, step)?.is_empty() {
                found.insert(scene.clone());
            }
        }
        Ok(found)
    }

    /// The values that a variable of a dashboard offers, by Grafana's rules: `label_values()`, or
    /// `query_result()` with a regular expression for `label="(?<value>`.
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

/// The number of open brackets at the end of a text.
fn open(text: &str) -> usize {
    text.matches('(').count() - text.matches(')').count()
}

/// The expressions of all rules.
pub fn of_rules(clock: Clock) -> Vec<Query> {
    let query = |(file, rule): (String, rules::Rule)| {
        let name = rule.record.or(rule.alert).unwrap();
        let view = rule.labels.get("view").map_or(String::new(), |view| format!(" ({view})"));
        let file = file.trim_end_matches(".rules.yml");
        let place = format!("{file}: {name}{view}");
        Query { place, template: rule.expr, variables: Vec::new(), clock }
    };
    rules::all().into_iter().map(query).collect()
}

/// The queries of all dashboards, once for each value that their variables offer.
pub fn of_dashboards(question: &Question<'_>, clock: Clock) -> Vec<Query> {
    let files = rules::files("dashboards", ".json");
    let mut queries = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let board: Value = serde_json::from_str(&rules::text(&file)).unwrap();
        let length = question.time.1 - question.time.0;
        let mut known = vec![
            ("__rate_interval".to_owned(), "40s".to_owned()),
            ("__interval".to_owned(), "15s".to_owned()),
            ("__range".to_owned(), format!("{:.0}s", length * f64::from(clock.0))),
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
        for event in board["annotations"]["list"].as_array().unwrap().iter().skip(1) {
            let place = format!("{name}: event {}", event["name"].as_str().unwrap());
            let template = event["target"]["expr"].as_str().unwrap().to_owned();
            queries.push(Query { place, template, variables: known.clone(), clock });
        }
        let mut panels = Vec::new();
        collect_panels(&board, &mut panels);
        for panel in panels {
            for target in panel["targets"].as_array().into_iter().flatten() {
                let title = panel["title"].as_str().unwrap();
                let place = format!("{name}: {title} {}", target["refId"].as_str().unwrap());
                let template = target["expr"].as_str().unwrap().to_owned();
                queries.push(Query { place, template, variables: known.clone(), clock });
            }
        }
    }
    queries
}

/// All panels, also those in collapsed rows.
fn collect_panels<'a>(of: &'a Value, panels: &mut Vec<&'a Value>) {
    for panel in of["panels"].as_array().into_iter().flatten() {
        panels.push(panel);
        collect_panels(panel, panels);
    }
}

/// A query with its variables replaced; a variable with a single choice becomes any value.
fn substituted(query: &str, known: &[(String, String)]) -> String {
    let mut query = query.to_owned();
    for (name, value) in known {
        for written in [format!("${{{name}}}"), format!("${{{name}:regex}}"), format!("${name}")] {
            query = query.replace(&format!("=\"{written}\""), &format!("=~\"{value}\""));
            query = query.replace(&format!("\".*{written}.*\""), &format!("\".*({value}).*\""));
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
    query
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
