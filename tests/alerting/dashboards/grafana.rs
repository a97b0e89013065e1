//! The dashboards match the types that Grafana is built with.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use test_rig::{require, tools};

use crate::dashboards::{dashboards, list, text};

/// The errors that the types of a Grafana version find in dashboards, by their names.
fn complaints(
    grafana: u32,
    folder: &str,
    boards: &BTreeMap<String, Value>,
) -> BTreeMap<String, Vec<String>> {
    let workshop = tools::npm("tests/grafana");
    let folder = workshop.join(format!("{folder}-{grafana}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    let config = json!({"extends": format!("../tsconfig.{grafana}.json"), "include": ["*.ts"]});
    std::fs::write(folder.join("tsconfig.json"), config.to_string()).unwrap();
    for (name, board) in boards {
        let text = format!(
            "import type {{ Board }} from '../schema';\nexport const board: Board = {board:#};\n"
        );
        std::fs::write(folder.join(format!("{name}.ts")), text).unwrap();
    }
    let output = Command::new(require("node"))
        .arg(workshop.join("node_modules/typescript/bin/tsc"))
        .args(["--pretty", "false", "-p", "."])
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in said.lines().filter(|it| !it.starts_with(' ')) {
        let name = line.split_once(".ts(").map(|(name, _)| name.to_owned());
        let name = name.filter(|name| boards.contains_key(name));
        let name = name.unwrap_or_else(|| panic!("the compiler says of itself: {line}"));
        found.entry(name).or_default().push(line.to_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.success(), found.is_empty(), "{said}{stderr}");
    found
}

#[test]
fn dashboards_match_grafana_types() {
    for grafana in [10, 13] {
        let found = complaints(grafana, "ours", &dashboards());
        assert!(found.is_empty(), "Grafana {grafana}: {found:#?}");
    }
}

/// Each of these mistakes would make a panel look wrong or disappear.
#[test]
fn grafana_types_reject_mistakes() {
    let overview = dashboards().remove("overview").unwrap();
    let all = list(&overview, "panels");
    let place = |kind: &str| all.iter().position(|it| text(it, "type") == kind).unwrap();
    let (row, stat, table) = (place("row"), place("stat"), place("table"));
    let inside = list(&all[row], "panels");
    let series = inside.iter().position(|it| text(it, "type") == "timeseries").unwrap();
    let series = format!("{row}/panels/{series}");
    let breaks: [(&str, String, Value); 17] = [
        ("unknown-key", "/schemaVersions".into(), json!(38)),
        ("link-key", "/links/0/keeptime".into(), json!(true)),
        ("variable-hide", "/templating/list/0/hide".into(), json!(7)),
        ("row-key", format!("/panels/{row}/colapsed"), json!(true)),
        ("event-key", "/annotations/list/1/titleFormt".into(), json!("bad")),
        ("event-query", "/annotations/list/1/target/exp".into(), json!("up")),
        ("panel-type", format!("/panels/{stat}/type"), json!("singlestat")),
        ("stat-option", format!("/panels/{stat}/options/grafMode"), json!("area")),
        ("stat-value", format!("/panels/{stat}/options/graphMode"), json!("aera")),
        ("source", format!("/panels/{stat}/datasource/uid"), json!("prometheus")),
        ("query-key", format!("/panels/{stat}/targets/0/expression"), json!("up")),
        ("unit-key", format!("/panels/{stat}/fieldConfig/defaults/unti"), json!("s")),
        ("threshold", format!("/panels/{stat}/fieldConfig/defaults/thresholds/mode"), json!("abs")),
        (
            "draw-style",
            format!("/panels/{series}/fieldConfig/defaults/custom/drawStyle"),
            json!("lines"),
        ),
        (
            "override-id",
            format!("/panels/{table}/fieldConfig/overrides/0/properties/0/id"),
            json!("custom.widht"),
        ),
        (
            "override-value",
            format!("/panels/{table}/fieldConfig/overrides/0/properties/0"),
            json!({"id": "custom.width", "value": "80"}),
        ),
        ("transformation", format!("/panels/{table}/transformations/0/id"), json!("mergee")),
    ];
    let broken: BTreeMap<String, Value> = breaks
        .iter()
        .map(|(name, pointer, value)| {
            let mut board = overview.clone();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            match board.pointer_mut(parent).unwrap() {
                Value::Object(map) => drop(map.insert(key.to_owned(), value.clone())),
                Value::Array(items) => items[key.parse::<usize>().unwrap()] = value.clone(),
                other => panic!("{pointer}: {other}"),
            }
            ((*name).to_owned(), board)
        })
        .collect();
    for grafana in [10, 13] {
        let found = complaints(grafana, "broken", &broken);
        let missed: Vec<_> = broken.keys().filter(|it| !found.contains_key(*it)).collect();
        assert!(missed.is_empty(), "Grafana {grafana} takes {missed:?}");
    }
}
