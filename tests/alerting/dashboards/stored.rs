//! Panels with samples that Prometheus has stored: situations that last for days, or a host that hangs.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::dashboards::situations::{self, Sample};
use crate::dashboards::{dashboards, panels, shown, text, variables};
use test_rig::Prometheus;

/// What panels show for stored samples, as `1 red`.
pub struct Stored {
    prometheus: Prometheus,
    variables: BTreeMap<&'static str, String>,
}

impl Stored {
    pub fn new(samples: &[Sample]) -> Self {
        let all = [("fabric", ".+"), ("instance", ".+"), ("__range", "6h")];
        Stored {
            prometheus: situations::stored(samples),
            variables: all.map(|(name, value)| (name, value.to_owned())).into(),
        }
    }

    fn shows(&self, board: &str, title: &str) -> String {
        let boards = dashboards();
        let found = panels(&boards[board]).into_iter().find(|it| text(it, "title") == title);
        let panel = found.unwrap_or_else(|| panic!("{board} has no {title}"));
        let ask = shown::asking(&self.prometheus, situations::NOW, &self.variables);
        let seen = shown::panel(panel, &ask);
        let words: Vec<String> =
            seen.iter().map(|it| format!("{} {}", it.text, it.color)).collect();
        words.join(", ")
    }

    pub fn assert(&self, wanted: &[(&str, &str, &str)]) {
        let wrong: Vec<String> = (wanted.iter())
            .map(|&(board, title, wanted)| (board, title, wanted, self.shows(board, title)))
            .filter(|(_, _, wanted, shows)| wanted != shows)
            .map(|(board, title, wanted, shows)| format!("{board}: {title}: {shows}, not {wanted}"))
            .collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// A loaded exporter misses ports that the other one reads.
#[test]
fn worse_of_two_exporters_of_a_fabric_counts() {
    Stored::new(&situations::ONE_MISSES_PORTS).assert(&[
        ("overview", "Switches down", "1 red"),
        ("overview", "Hosts down", "4 orange"),
        ("exporter", "Ports failed", "3 orange"),
    ]);
}

/// Each end has one row, with what a technician orders and looks for.
#[test]
fn cable_has_its_part_and_serial_number_at_both_ends() {
    let prometheus = situations::stored(&situations::MODULES);
    let variables = [
        ("fabric", ".+"),
        ("guid_a", "0x1"),
        ("port_a", "9"),
        ("node_a", "leaf"),
        ("guid_b", "0x2"),
        ("port_b", "1"),
        ("node_b", "host"),
    ];
    let variables = variables.map(|(name, value)| (name, value.to_owned())).into();
    let boards = dashboards();
    let panels = panels(&boards["cable"]);
    let panel = panels.iter().find(|it| text(it, "title") == "Cable or modules").unwrap();
    let ask = shown::asking(&prometheus, situations::NOW, &variables);
    let rows = ask(text(&panel["targets"][0], "expr"));
    let keys = ["end", "part_number", "serial_number", "vendor"];
    let row = |row: &Value| keys.map(|key| text(&row["metric"], key).to_owned());
    let mut rows: Vec<_> = rows.iter().map(row).collect();
    rows.sort();
    let expected = [["host port 1", "P", "S", "V"], ["leaf port 9", "P", "S", "V"]];
    assert_eq!(rows, expected);
}

#[test]
fn device_stays_down_when_its_host_hangs() {
    Stored::new(&situations::HOST_HANGS_AND_ITS_DEVICE_IS_DOWN).assert(&[
        ("exporter", "Devices down", "1 red"),
        ("exporter", "Oldest host reads", "… green, … red"),
    ]);
}

#[test]
fn devices_of_a_hanging_host_are_not_up() {
    Stored::new(&situations::HOST_HANGS).assert(&[
        ("exporter", "Devices down", "No data text"),
        ("exporter", "Slowest host reads", "… green"),
    ]);
}

/// With a read every 5 minutes the age is 200 seconds most of the time.
#[test]
fn host_read_is_old_by_the_interval_of_its_host() {
    Stored::new(&situations::HOST_LOOKS_SELDOM).assert(&[
        ("exporter", "Oldest host reads", "… green"),
        ("exporter", "Devices down", "0 green"),
    ]);
}

#[test]
fn removed_target_is_down_for_a_day() {
    Stored::new(&situations::TARGETS_VANISH).assert(&[
        ("exporter", "Any exporter down", "2 red"),
        ("exporter", "Data", "exporter down red"),
        ("overview", "Data", "exporter down red"),
        ("exporter", "Ports failed", "No data text"),
    ]);
}

#[test]
fn exporter_down_for_days_leaves_nothing_green() {
    let stored = Stored::new(&situations::DOWN_FOR_DAYS);
    stored.assert(&[
        ("overview", "Data", "exporter down red"),
        ("overview", "Bad cables", "No data #7b8087"),
        ("overview", "Switches down", "No data #7b8087"),
        ("overview", "Subnet managers", "not known text"),
        ("cable", "Data", "exporter down red"),
        ("congestion", "Data", "exporter down red"),
        ("congestion", "Roots", "No data text"),
        ("exporter", "Any exporter down", "1 red"),
        ("exporter", "Data", "exporter down red"),
        ("exporter", "Ports failed", "No data text"),
        ("exporter", "Nodes failed", "No data text"),
        ("exporter", "Discovery gaps", "No data text"),
    ]);
    // `all` includes it, whatever the time range of the dashboard is.
    let boards = dashboards();
    let variable =
        variables(&boards["exporter"]).iter().find(|it| text(it, "name") == "instance").unwrap();
    let query = text(&variable["query"], "query").strip_prefix("query_result(").unwrap();
    let ask = shown::asking(&stored.prometheus, situations::NOW, &stored.variables);
    let instances: Vec<String> = (ask(query.strip_suffix(')').unwrap()).iter())
        .map(|it| text(&it["metric"], "instance").to_owned())
        .collect();
    assert_eq!(instances.len(), 2, "{instances:?}");
    assert!(instances.contains(&"a".to_owned()), "{instances:?}");
}
