//! The dashboards are valid for Grafana, use existing metrics, and query no more than they need.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod false_green;
mod grafana;
mod jobs;
mod layout;
mod profiles;
mod shown;
mod situations;
mod stored;

use test_rig as rig;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use rig::{Prometheus, promql, rules};
use serde_json::{Value, json};

const RUNBOOKS: &str =
    "https://github.com/fabric-exporter/fabric-exporter/tree/main/alerts/runbooks";
/// Grafana's own series, besides those of the exporter and the rules.
const PROMETHEUS_OWN: [&str; 4] =
    ["ALERTS", "up", "scrape_duration_seconds", "scrape_samples_scraped"];
/// The panel types of Grafana 10 in use.
const TYPES: [&str; 9] = [
    "bargauge",
    "gauge",
    "heatmap",
    "stat",
    "state-timeline",
    "status-history",
    "table",
    "text",
    "timeseries",
];
/// The unit ids of Grafana in use; any other word would be shown as it is, after each number.
const UNITS: [&str; 11] = [
    "Bps",
    "bytes",
    "celsius",
    "cps",
    "dBm",
    "dateTimeFromNow",
    "none",
    "percentunit",
    "s",
    "sci",
    "short",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The dashboards by file name.
fn dashboards() -> BTreeMap<String, Value> {
    let found: BTreeMap<String, Value> = std::fs::read_dir(root().join("dashboards"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let board: Value = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let pretty = format!("{board:#}\n");
            let differs = text.lines().zip(pretty.lines()).find(|(one, other)| one != other);
            assert!(
                text == pretty,
                "{}: not two spaces and keys in order: {differs:?}",
                path.display()
            );
            (path.file_stem().unwrap().to_string_lossy().into_owned(), board)
        })
        .collect();
    assert_eq!(found.len(), 7);
    found
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// All panels that show data, also those in collapsed rows.
fn panels(board: &Value) -> Vec<&Value> {
    let all = list(board, "panels").iter();
    all.flat_map(|panel| std::iter::once(panel).chain(list(panel, "panels")))
        .filter(|panel| text(panel, "type") != "row")
        .collect()
}

/// The collapsed rows with their titles and panels. The panels above them, which are visible at once, come first.
fn rows(board: &Value) -> Vec<(&str, Vec<&Value>)> {
    let all = list(board, "panels");
    let is_row = |panel: &&Value| text(panel, "type") == "row";
    let on_top = all.iter().filter(|it| !is_row(it)).collect();
    let collapsed = all.iter().filter(is_row).filter(|it| it["collapsed"] == true);
    let collapsed = collapsed.map(|it| (text(it, "title"), list(it, "panels").iter().collect()));
    std::iter::once(("*on top*", on_top)).chain(collapsed).collect()
}

fn variables(board: &Value) -> &[Value] {
    list(&board["templating"], "list")
}

/// An expression of a dashboard, and its location.
struct Query {
    place: String,
    /// With its variables.
    raw: String,
    /// Without variables: valid PromQL.
    expression: String,
    /// Whether it queries a time range, not only the present.
    range: bool,
}

/// Replaces each variable by a value.
fn substituted(raw: &str, value: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = raw;
    while let Some((before, after)) = rest.split_once('$') {
        let end = after
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(after.len());
        let (name, behind) = after.split_at(end);
        out.push_str(before);
        match name {
            "" => panic!("a dollar without a name: {raw}"),
            // A group of label_replace.
            name if name.chars().all(|it| it.is_ascii_digit()) => {
                out.push('$');
                out.push_str(name);
            }
            name => out.push_str(&value(name)),
        }
        rest = behind;
    }
    out + rest
}

/// Replaces each variable.
fn filled(raw: &str) -> String {
    substituted(raw, |name| match name {
        "__rate_interval" | "__interval" => "5m".into(),
        "__range" => "6h".into(),
        name => name.into(),
    })
}

fn queries(board: &Value) -> Vec<Query> {
    let mut found = Vec::new();
    let mut add = |place: String, raw: &str, range: bool| {
        found.push(Query { place, raw: raw.to_owned(), expression: filled(raw), range });
    };
    for panel in panels(board) {
        for target in list(panel, "targets") {
            let instant = target["instant"] == true;
            assert_eq!(target["range"], !instant, "{}", panel["title"]);
            add(text(panel, "title").to_owned(), text(target, "expr"), !instant);
        }
    }
    for variable in variables(board).iter().filter(|it| text(it, "type") == "query") {
        let name = format!("${}", text(variable, "name"));
        let query = text(&variable["query"], "query");
        let inner = query.strip_suffix(')').unwrap();
        let expression = inner.strip_prefix("query_result(").or_else(|| {
            inner.strip_prefix("label_values(").map(|it| it.rsplit_once(',').unwrap().0)
        });
        add(name.clone(), expression.unwrap_or_else(|| panic!("{name}: {query}")), false);
    }
    for annotation in list(&board["annotations"], "list") {
        let target = &annotation["target"];
        if target.get("expr").is_some() {
            add(format!("event {}", text(annotation, "name")), text(target, "expr"), true);
        }
    }
    found
}

#[test]
fn dashboard_names_and_ids_are_unique() {
    let boards = dashboards();
    let mut seen = BTreeSet::new();
    for (file, board) in &boards {
        let uid = text(board, "uid");
        let of_file = if file == "exporter" { "itself" } else { file };
        assert_eq!(uid, format!("fabric-exporter-{of_file}"));
        assert!(seen.insert(text(board, "title")), "{file}: {}", board["title"]);
        assert!(!text(board, "description").is_empty(), "{file}");
        assert!(board.get("id").is_none(), "{file}: an id is one Grafana's own");
        assert_eq!(board["schemaVersion"], 38, "{file}: Grafana 10.0's");

        let (mut ids, mut titles) = (BTreeSet::new(), BTreeSet::new());
        for row in list(board, "panels").iter().filter(|it| text(it, "type") == "row") {
            assert!(ids.insert(row["id"].as_u64().unwrap()), "{file}: {row}");
            assert!(!text(row, "title").is_empty(), "{file}: a row without a title");
        }
        for panel in panels(board) {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{file}: {}", panel["title"]);
            let title = text(panel, "title");
            assert!(!title.is_empty() && titles.insert(title), "{file}: {title}");
        }
    }
}

#[test]
fn panels_have_descriptions_and_units() {
    for (file, board) in dashboards() {
        for panel in panels(&board) {
            let at = format!("{file}: {}", panel["title"]);
            let kind = text(panel, "type");
            assert!(TYPES.contains(&kind), "{at}: {kind}");
            assert!(text(panel, "description").len() > 20, "{at} is not described");
            if kind == "text" {
                continue;
            }
            for it in list(panel, "targets").iter().chain([panel]) {
                assert_eq!(
                    it["datasource"],
                    json!({"type": "prometheus", "uid": "${datasource}"}),
                    "{at}"
                );
            }
            assert!(!list(panel, "targets").is_empty(), "{at} has no query");
            let refs: BTreeSet<_> =
                list(panel, "targets").iter().map(|it| text(it, "refId")).collect();
            assert_eq!(refs.len(), list(panel, "targets").len(), "{at}: {refs:?}");

            let overrides = list(&panel["fieldConfig"], "overrides");
            let property = |it: &Value, id: &str| {
                let found = list(it, "properties").iter().find(|it| text(it, "id") == id);
                found.map(|it| it["value"].clone())
            };
            let units = overrides.iter().filter_map(|it| property(it, "unit"));
            let units: Vec<Value> =
                units.chain([panel["fieldConfig"]["defaults"]["unit"].clone()]).collect();
            assert!(
                units.iter().all(|it| it.as_str().is_some_and(|it| UNITS.contains(&it))),
                "{at}: {units:?}"
            );
            if kind != "table" {
                continue;
            }
            // Each number column of a table has a unit, or is hidden.
            let many = list(panel, "targets").len() > 1;
            for target in list(panel, "targets") {
                let column = if many {
                    format!("Value #{}", text(target, "refId"))
                } else {
                    "Value".to_owned()
                };
                let steps = list(panel, "transformations").iter();
                let left_out = steps
                    .map(|it| &it["options"]["excludeByName"][&column])
                    .any(|it| it == &Value::Bool(true));
                let named = overrides.iter().any(|it| {
                    let of = text(&it["matcher"], "options");
                    (of == column || (of == "/^Value( #A)?$/" && column == "Value #A"))
                        && property(it, "unit").is_some()
                });
                assert!(named != left_out, "{at}: {column} has no unit");
            }
        }
    }
}

#[test]
fn dashboards_link_to_each_other_to_runbooks_and_to_pages() {
    let boards = dashboards();
    for (file, board) in &boards {
        let links = list(board, "links");
        for other in boards.values().filter(|it| it["uid"] != board["uid"]) {
            let url = format!("/d/{}", text(other, "uid"));
            let link = links.iter().find(|it| text(it, "url") == url);
            let link = link.unwrap_or_else(|| panic!("{file} does not lead to {url}"));
            assert!(link["keepTime"] == true && link["includeVars"] == true, "{file}: {link}");
        }
        assert!(links.iter().any(|it| text(it, "url") == RUNBOOKS), "{file}: no runbooks");
        let is_page = |it: &Value| text(it, "url").starts_with("${exporter}/");
        assert!(links.iter().any(is_page), "{file}: no way to the pages of the exporter");
        // Links in tables lead to our dashboards, and set variables that these have.
        let whole = board.to_string();
        for url in whole.split("\"url\":\"/d/").skip(1).map(|it| it.split('"').next().unwrap()) {
            let (uid, arguments) = url.split_once('?').unwrap_or((url, ""));
            let target = boards.values().find(|it| text(it, "uid") == uid);
            let target = target.unwrap_or_else(|| panic!("{file} leads to {uid}"));
            for name in arguments.split("&var-").skip(1).map(|it| it.split('=').next().unwrap()) {
                assert!(
                    variables(target).iter().any(|it| text(it, "name") == name),
                    "{file}: {uid} has no variable {name}"
                );
            }
        }
    }
}

#[test]
fn variables_are_defined_and_used() {
    for (file, board) in dashboards() {
        let names: Vec<&str> = variables(&board).iter().map(|it| text(it, "name")).collect();
        assert_eq!(names[..2], ["datasource", "fabric"], "{file}");
        assert_eq!(text(&variables(&board)[0], "query"), "prometheus", "{file}");
        let raw: String = queries(&board).iter().map(|it| it.raw.clone() + "\n").collect();
        let mut used: BTreeSet<&str> = raw
            .split('$')
            .skip(1)
            .map(|it| it.split(|it: char| !it.is_ascii_alphanumeric() && it != '_').next().unwrap())
            .filter(|it| !it.starts_with("__"))
            // Groups of label_replace.
            .filter(|it| !it.chars().all(|it| it.is_ascii_digit()))
            .collect();
        let links = list(&board, "links").iter().flat_map(|it| text(it, "url").split("${").skip(1));
        used.extend(links.filter_map(|it| it.split('}').next()));
        used.extend(["datasource", "node_a", "node_b"].iter().filter(|it| names.contains(it)));
        assert_eq!(used, names.iter().copied().collect(), "{file}: in use, and there");
    }
}

#[test]
fn queries_use_existing_metrics_and_labels() {
    let known: BTreeSet<String> = promql::exported()
        .into_iter()
        .chain(rules::recorded())
        .chain(PROMETHEUS_OWN.map(String::from))
        .collect();
    assert!(known.len() > 400);
    let rules: Vec<String> = rules::all().into_iter().map(|(_, it)| it.expr).collect();
    assert!(rules.iter().all(|it| promql::metrics(it).is_ok()));
    for (file, board) in dashboards() {
        for query in queries(&board) {
            let named = promql::metrics(&query.expression)
                .unwrap_or_else(|error| panic!("{file}: {}: {error}", query.place));
            assert!(!named.is_empty(), "{file}: {}: {}", query.place, query.raw);
            for metric in named {
                assert!(known.contains(&metric), "{file}: {}: no {metric}", query.place);
            }
        }
    }
}

/// Series of which a fabric has one for each port or link: 60,000 of them make no readable graph, and keep
/// Prometheus busy. Rules record the suspect links, congested ports and so on instead.
#[test]
fn no_query_selects_all_ports_or_links() {
    const ALL: [&str; 4] =
        ["infiniband_port_", "infiniband_link_", "infiniband_hw_", "infiniband_netdev_"];
    // Exposed only for ports with a role in a congestion, and for links that need a repair.
    const FEW: [&str; 2] = ["infiniband_port_congestion", "infiniband_link_repair"];
    for (file, board) in dashboards() {
        for query in queries(&board) {
            for selector in promql::selectors(&query.expression).unwrap() {
                let metric = selector.metric.as_str();
                let dense = ALL.iter().any(|it| metric.starts_with(it)) && !FEW.contains(&metric);
                if !dense {
                    continue;
                }
                let chosen = selector.matchers.iter().any(|(label, operator, value)| {
                    ["link", "guid", "instance", "peer_guid"].contains(&label.as_str())
                        && (operator == "=" || value == "guid")
                        // At most 24 switches.
                        || label == "guid" && value == "leaf"
                        // The links of hosts, counted once when the dashboard is loaded.
                        || label == "peer_node_type" && !query.range
                        // At most a hundred links that are not ok.
                        || label == "link" && value == "worst"
                        // The links of one node: a link's id contains the GUIDs of both
                        // ends. Written like this, Prometheus searches for a substring:
                        // 8 ms of CPU time among 50,000 links, and 74 ms with parentheses
                        // around it.
                        || label == "link" && operator == "=~" && value == ".*switch.*"
                        // A node that the user selected, for the list of its links.
                        || ["node", "peer_node"].contains(&label.as_str())
                            && value == "node"
                            && !query.range
                });
                assert!(chosen, "{file}: {}: {selector:?}", query.place);
            }
        }
    }
}

/// With the metrics of the profile `lean` alone, a panel that needs more has no data, and its description says why.
#[test]
fn descriptions_name_the_groups_that_are_not_lean() {
    let groups = promql::groups();
    // A recorded series has the name of its metric in the middle, without `_total`.
    let group = |name: &str| {
        let metric = name.split(':').nth(1).unwrap_or(name);
        groups.get(metric).or_else(|| groups.get(&format!("{metric}_total"))).cloned()
    };
    let mut wrong = Vec::new();
    for (file, board) in dashboards().into_iter().filter(|(file, _)| file != "host") {
        for panel in panels(&board) {
            let selectors = list(panel, "targets")
                .iter()
                .flat_map(|target| promql::selectors(&filled(text(target, "expr"))).unwrap());
            let needs: BTreeSet<String> = (selectors.filter_map(|it| group(&it.metric)))
                .filter(|group| !promql::is_lean(group))
                .collect();
            let description = text(panel, "description");
            let said = description.rsplit_once("the group").map_or("", |(_, said)| said);
            let said: BTreeSet<String> = (said.trim_start_matches('s').split([',', '.', ')', ' ']))
                .filter(|word| groups.values().any(|group| group == word))
                .map(str::to_owned)
                .collect();
            if said != needs {
                wrong.push(format!("{file}: {}: needs {needs:?}: {description}", panel["title"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn prometheus_accepts_each_query() {
    let mut groups = Vec::new();
    for (file, board) in dashboards() {
        let rules: Vec<Value> = (queries(&board).iter().enumerate())
            .map(|(at, query)| json!({"record": format!("query_{at}"), "expr": query.expression}))
            .collect();
        groups.push(json!({"name": file, "rules": rules}));
    }
    // JSON is valid YAML.
    let rules = json!({"groups": groups}).to_string();
    let mut file = tempfile::Builder::new().suffix(".yml").tempfile().unwrap();
    file.write_all(rules.as_bytes()).unwrap();
    let arguments = ["check", "rules", file.path().to_str().unwrap()];
    let (code, said) = rig::promtool::fed("promtool", &arguments, "");
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn provisioning_files_are_valid() {
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(root().join("dashboards/provisioning").join(name));
        serde_saphyr::from_str(&text.unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let boards = read("dashboards/fabric-exporter.yml");
    assert_eq!(boards["apiVersion"], 1);
    assert_eq!(boards["providers"][0]["type"], "file");
    assert!(boards["providers"][0]["options"]["path"].is_string());
    let sources = read("datasources/prometheus.yml");
    assert_eq!(sources["apiVersion"], 1);
    assert_eq!(sources["datasources"][0]["type"], "prometheus");
    assert!(sources["datasources"][0]["jsonData"]["timeInterval"].is_string());
}
