//! What a person can read: whole titles and headers, labels as they are, and no text where there is no value. These
//! rules were found in pictures of the dashboards (`make pictures`).

use serde_json::Value;

use crate::dashboards::{dashboards, list, panels, text};

/// Width in pixels of a window in which dashboards are readable, of Grafana's margins, and of a letter: the average
/// of Inter at 14 px, rounded up.
const WINDOW: f64 = 1280.0;
const MARGIN: f64 = 16.0;
const LETTER: f64 = 7.5;
const COLUMNS: f64 = 24.0;
const GAP: f64 = 8.0;
/// What a panel has beside its title: padding, and the icon of its description.
const BESIDE_TITLE: f64 = 50.0;
/// What a column has beside its header: padding, and the icon of its filter.
const PADDING: f64 = 12.0;
const FILTER: f64 = 24.0;
/// The arrow of the column by which a table is sorted.
const ARROW: f64 = 20.0;

fn property<'a>(of: &'a Value, id: &str) -> Option<&'a Value> {
    list(of, "properties").iter().find(|it| text(it, "id") == id).map(|it| &it["value"])
}

/// The tables with their dashboards.
fn tables() -> Vec<(String, Value)> {
    let all: Vec<(String, Value)> = (dashboards().iter())
        .flat_map(|(file, board)| panels(board).into_iter().map(|it| (file.clone(), it.clone())))
        .filter(|(_, panel)| text(panel, "type") == "table")
        .collect();
    assert!(all.len() > 15);
    all
}

/// The names of the fields that have a column of their own, and their overrides.
fn columns(table: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let overrides = list(&table["fieldConfig"], "overrides").iter();
    overrides
        .filter(|it| property(it, "displayName").is_some())
        .map(|it| (text(&it["matcher"], "options"), it))
}

#[test]
fn titles_are_not_cut() {
    let cell = (WINDOW - 2.0 * MARGIN - (COLUMNS - 1.0) * GAP) / COLUMNS;
    for (file, board) in dashboards() {
        for panel in panels(&board) {
            let cells = panel["gridPos"]["w"].as_f64().unwrap();
            let room = cells * (cell + GAP) - GAP - BESIDE_TITLE;
            let title = text(panel, "title");
            assert!(title.chars().count() as f64 * LETTER <= room, "{file}: {title}: {room:.0} px");
        }
    }
}

#[test]
fn headers_are_not_cut() {
    for (file, table) in tables() {
        for (column, of) in columns(&table) {
            let header = property(of, "displayName").and_then(Value::as_str).unwrap();
            let Some(width) = property(of, "custom.width").and_then(Value::as_f64) else {
                continue;
            };
            let filter = if column.contains("Value") { 0.0 } else { FILTER };
            let is_sorted = list(&table["options"], "sortBy")
                .iter()
                .any(|sort| text(sort, "displayName") == header);
            let arrow = if is_sorted { ARROW } else { 0.0 };
            let needs = header.chars().count() as f64 * LETTER + PADDING + filter + arrow;
            assert!(width >= needs, "{file}: {}: {header}: {width} px", table["title"]);
        }
    }
}

/// A filter takes a third of a column of numbers.
#[test]
fn columns_of_numbers_have_no_filter() {
    for (file, table) in tables() {
        let is_filtered = table["fieldConfig"]["defaults"]["custom"]["filterable"] == true;
        let has_numbers = columns(&table).any(|(column, _)| column.contains("Value"));
        let is_off = list(&table["fieldConfig"], "overrides").iter().any(|it| {
            text(&it["matcher"], "options") == "/^Value/"
                && property(it, "custom.filterable") == Some(&Value::Bool(false))
        });
        assert!(!is_filtered || !has_numbers || is_off, "{file}: {}", table["title"]);
    }
}

/// With a unit of numbers Grafana takes the GUID 0x0002c90300000010 for a number, and shows 784 Tri.
#[test]
fn labels_are_shown_as_they_are() {
    for (file, table) in tables() {
        let unit = text(&table["fieldConfig"]["defaults"], "unit");
        assert_eq!(unit, "string", "{file}: {}", table["title"]);
    }
}

/// The text for an empty table is also that of each empty cell, unless an override says otherwise.
#[test]
fn cells_without_a_value_are_empty() {
    for (file, table) in tables() {
        let overrides = list(&table["fieldConfig"], "overrides");
        let is_empty = |it: &Value| {
            text(&it["matcher"], "options") == "/.*/"
                && property(it, "noValue").is_some_and(|it| it == "")
        };
        assert!(overrides.iter().any(is_empty), "{file}: {}", table["title"]);
        // Without a value, a cell has the color of the lowest threshold.
        for it in overrides {
            let cell = property(it, "custom.cellOptions").map_or("", |it| text(it, "type"));
            let lowest = property(it, "thresholds").map(|it| &it["steps"][0]["color"]);
            let is_colored = cell == "color-background" && lowest.is_none_or(|it| it == "green");
            // The first query makes the rows.
            let is_first = text(&it["matcher"], "options").contains("#A");
            let may_be_missing = list(&table, "targets").len() > 1 && !is_first;
            assert!(!(is_colored && may_be_missing), "{file}: {}: {it}", table["title"]);
        }
    }
}

/// Grafana ignores an order by a column that is not there.
#[test]
fn tables_are_sorted_by_their_columns() {
    for (file, table) in tables() {
        for by in list(&table["options"], "sortBy") {
            let name = &by["displayName"];
            let is_there = columns(&table).any(|(_, it)| property(it, "displayName") == Some(name));
            assert!(is_there, "{file}: {}: {name}", table["title"]);
        }
    }
}

/// Grafana takes an expression without slashes as the whole name.
#[test]
fn overrides_match_a_part_of_a_name() {
    for (file, board) in dashboards() {
        for panel in panels(&board) {
            for it in list(&panel["fieldConfig"], "overrides") {
                let matcher = &it["matcher"];
                let options = text(matcher, "options");
                let is_ok = text(matcher, "id") != "byRegexp" || options.starts_with('/');
                assert!(is_ok, "{file}: {}: {options}", panel["title"]);
            }
        }
    }
}
