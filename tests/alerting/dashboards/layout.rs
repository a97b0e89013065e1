//! Where panels are, and what a dashboard shows when it opens.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::dashboards::{dashboards, list, panels, rows, text};

#[test]
fn panels_do_not_overlap() {
    for (file, board) in dashboards() {
        for (row, panels) in rows(&board) {
            let mut taken: BTreeMap<(u64, u64), &Value> = BTreeMap::new();
            for panel in panels {
                let [x, y, w, h] =
                    ["x", "y", "w", "h"].map(|it| panel["gridPos"][it].as_u64().unwrap());
                assert!(w > 0 && h > 0 && x + w <= 24, "{file}: {}", panel["title"]);
                for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                    if let Some(other) = taken.insert(cell, &panel["title"]) {
                        panic!("{file}: {row}: {} lies upon {other}", panel["title"]);
                    }
                }
            }
        }
        // From one panel or row to the next nothing is left free, and rows have the full width.
        let mut next = 0;
        for panel in list(&board, "panels") {
            let of = |key: &str| panel["gridPos"][key].as_u64().unwrap();
            let is_row = text(panel, "type") == "row";
            assert!(if is_row { of("y") == next } else { of("y") <= next }, "{file}: {panel}");
            assert!(!is_row || (of("w"), of("h")) == (24, 1), "{file}: {}", panel["title"]);
            for inside in list(panel, "panels") {
                assert!(inside["gridPos"]["y"].as_u64().unwrap() > of("y"), "{file}: {inside}");
            }
            next = next.max(of("y") + of("h"));
        }
    }
}

/// A dashboard opens with a few numbers and what they are about. All else is a click away, and costs no query before.
#[test]
fn dashboards_open_with_few_numbers_and_collapsed_rows() {
    for (file, board) in dashboards() {
        let stats: Vec<&str> = (panels(&board).into_iter())
            .filter(|it| text(it, "type") == "stat")
            .map(|it| text(it, "title"))
            .collect();
        assert!(stats.len() <= 8, "{file}: {} stats: {stats:?}", stats.len());
        let all = list(&board, "panels");
        let is_row = |panel: &&Value| text(panel, "type") == "row";
        // The cable has a row on top, for its name.
        let first = usize::from(file == "cable");
        assert!(first == 0 || all[0]["collapsed"] == false, "{file}");
        let shown = all.iter().skip(first).take_while(|it| !is_row(it)).count();
        let rows = &all[first + shown..];
        assert!(rows.len() >= 3, "{file}: {} rows", rows.len());
        for row in rows {
            assert!(row["collapsed"] == true && is_row(&row), "{file}: {}", row["title"]);
            assert!(!list(row, "panels").is_empty(), "{file}: {} is empty", row["title"]);
        }
        assert!((5..=12).contains(&shown), "{file}: {shown} panels on top");
        // Numbers, tables and maps fit one screen, or nearly.
        assert!(rows[0]["gridPos"]["y"].as_u64() <= Some(27), "{file}: {}", rows[0]);
    }
}

/// Heat maps have a row for each of a few switches or ports, and few enough columns to be visible.
#[test]
fn heat_maps_have_few_rows_and_columns() {
    let mut maps = BTreeSet::new();
    for (file, board) in dashboards() {
        for panel in panels(&board).into_iter().filter(|it| text(it, "type") == "status-history") {
            let title = text(panel, "title");
            assert!(panel["maxDataPoints"].as_u64() <= Some(120), "{file}: {title}");
            let query = text(&panel["targets"][0], "expr");
            let few = ["topk(", "guid=~\"$leaf\"", "guid=\"$switch\""];
            assert!(few.iter().any(|it| query.contains(it)), "{file}: {title}: {query}");
            maps.insert((file.clone(), title.to_owned()));
        }
    }
    for title in ["Cables not ok by leaf switch", "Traffic by leaf switch", "Errors by leaf switch"]
    {
        assert!(maps.contains(&("overview".to_owned(), title.to_owned())), "{maps:?}");
    }
}

/// Events mark the graphs. An event is a positive value, at the time of a sample or at the time that the value is.
#[test]
fn dashboards_mark_events() {
    for (file, board) in dashboards() {
        let events = &list(&board["annotations"], "list")[1..];
        assert!(!events.is_empty(), "{file}");
        for event in events {
            let at = format!("{file}: {}", event["name"]);
            let expr = text(&event["target"], "expr");
            assert!(!text(event, "name").is_empty() && event["hide"] == false, "{at}");
            assert!(!text(event, "titleFormat").is_empty(), "{at}");
            let is_time = expr.contains("timestamp_seconds") || expr.contains("start_time_seconds");
            assert_eq!(event["useValueForTime"], is_time, "{at}");
            assert_eq!(expr.contains("* 1000"), is_time, "{at}: Grafana counts milliseconds");
            // Otherwise an event would be missed, or there again at each step.
            let steps = ["$__rate_interval", "offset $__interval"];
            assert!(is_time || steps.iter().any(|it| expr.contains(it)), "{at}: {expr}");
            // The labels of the title are those of the result.
            for name in text(event, "titleFormat").split("{{").skip(1) {
                let name = name.split("}}").next().unwrap();
                assert!(
                    !name.is_empty() && name.chars().all(|it| it.is_ascii_lowercase() || it == '_'),
                    "{at}"
                );
            }
        }
    }
}
