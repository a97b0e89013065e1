//! No panel is green without data: what every stat, bar and table shows while all is well, with one bad
//! link, with the exporters stopped, without the rules, while sweeps hang, while the exporter's own port is
//! down, while one of two fabrics is not swept, and while a switch is down that one of two exporters has
//! forgotten. The table is in panels.md beside this file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::dashboards::shown::{self, Shown};
use crate::dashboards::situations::{self, Served};
use crate::dashboards::{dashboards, list, panels, root, text};
use test_rig::{Exporter, Prometheus, promql, rules};

/// The tables of this test.
const PANELS: &str = "tests/alerting/dashboards/panels.md";

const SITUATIONS: [&str; 8] = [
    "all is well",
    "one bad cable",
    "exporters stopped",
    "one bad cable, no rules",
    "sweeps hang",
    "own port down",
    "one of two fabrics hangs",
    "switch down, one of two exporters restarted",
];
const WELL: usize = 0;
const BAD: usize = 1;
const STOPPED: usize = 2;
const NO_RULES: usize = 3;
const HANGS: usize = 4;
const CUT_OFF: usize = 5;
const HALF: usize = 6;
const PAIR: usize = 7;

/// Panels about one bad link, and what they show with and without rules.
const OF_THE_CABLE: [(&str, &str, &str); 3] = [
    ("overview", "Bad cables", "1 red"),
    ("cable", "Verdict", "bad red"),
    ("switch", "Cables not ok", "1 red"),
];
/// The same for panels that need rules.
const OF_THE_CABLE_BY_RULES: [(&str, &str, &str); 1] = [("overview", "Critical alerts", "1 red")];

/// What a switch that is down with its four hosts shows, though one of two exporters has never seen it.
const OF_THE_SWITCH: [(&str, &str, &str); 3] = [
    ("overview", "Switches down", "1 red"),
    ("overview", "Hosts down", "4 orange"),
    ("overview", "Unreachable nodes", "rows red"),
];

/// Panels about exporters and hosts, which do not depend on the fabric.
const NOT_OF_THE_FABRIC: [&str; 4] =
    ["Any exporter down", "Devices down", "Oldest host reads", "Slowest host reads"];

/// Panels whose number is near a limit: their color changes, and is not in the table.
const NEAR_A_LIMIT: [(&str, &str, usize); 1] = [
    // Of a few hundred MADs some are for the 5 missing nodes, and the limit is one percent.
    ("exporter", "MAD timeouts", PAIR),
];

/// Texts for panels that may have nothing to show, or nothing to know it from.
const EMPTY: &str = "none, if Data is green";

/// What a panel shows in each situation.
struct Row {
    dashboard: String,
    panel: String,
    cells: Vec<Vec<Shown>>,
}

impl Row {
    /// `0 green`, several of them separated by commas.
    fn cell(&self, situation: usize) -> String {
        let place = (self.dashboard.as_str(), self.panel.as_str(), situation);
        if NEAR_A_LIMIT.contains(&place) {
            return "…".into();
        }
        let words = self.cells[situation].iter().map(|it| match it.color.as_str() {
            _ if it.text == EMPTY => "empty".into(),
            "" | "text" => it.text.clone(),
            color if color.starts_with('#') => format!("{} grey", it.text),
            color => format!("{} {color}", it.text),
        });
        words.collect::<Vec<_>>().join(", ")
    }

    fn is_green(&self, situation: usize) -> bool {
        self.cells[situation].iter().any(Shown::is_green)
    }

    fn place(&self) -> String {
        format!("{}: {}", self.dashboard, self.panel)
    }
}

/// The panels whose colors are a judgement: no graphs.
fn judging(board: &Value) -> impl Iterator<Item = &Value> {
    panels(board)
        .into_iter()
        .filter(|it| ["stat", "gauge", "bargauge", "table"].contains(&text(it, "type")))
}

/// The variables of the dashboards: all fabrics and their exporters, and the link that goes bad.
pub fn variables(all: &[&Served], host: &Exporter) -> BTreeMap<&'static str, String> {
    let mut variables = all[0].cable();
    let instances: Vec<&str> = all.iter().map(|it| it.address()).collect();
    variables.extend([
        ("fabric", ".+".to_owned()),
        ("node", String::new()),
        ("host", host.address().to_owned()),
        ("instance", instances.join("|")),
        ("device", ".+".to_owned()),
        ("guid", ".+".to_owned()),
        ("leaf", ".+".to_owned()),
        ("__range", "6h".to_owned()),
        ("__rate_interval", "1m".to_owned()),
    ]);
    let node = situations::BAD_PORT.split('[').next().unwrap();
    let end = if variables["node_a"] == node { "guid_a" } else { "guid_b" };
    variables.insert("switch", variables[end].clone());
    variables.insert("worst", variables["link"].clone());
    variables
}

/// What all panels show when nothing changes any more, with the exporters up or down.
fn panels_shown(
    prometheus: &Prometheus,
    up: bool,
    variables: &BTreeMap<&'static str, String>,
) -> Vec<Vec<Shown>> {
    let at = situations::settle(prometheus, up);
    let ask = shown::asking(prometheus, at, variables);
    let boards = dashboards();
    let all = boards.values().flat_map(judging);
    all.map(|panel| shown::panel(panel, &ask)).collect()
}

/// What all panels show in all situations.
fn rows() -> Vec<Row> {
    let mut host = situations::host();
    let fabrics = [
        &situations::HEALTHY,
        &situations::BAD_CABLE,
        &situations::HANGS,
        &situations::CUT_OFF,
        &situations::REMEMBERS,
        &situations::RESTARTED,
    ];
    let [mut well, bad, hangs, cut_off, remembers, restarted] = std::thread::scope(|scope| {
        let started = fabrics.map(|fabric| scope.spawn(|| Served::start(fabric)));
        started.map(|it| it.join().unwrap())
    });
    let plans = [
        (WELL, vec![&well], true),
        (BAD, vec![&bad], true),
        (NO_RULES, vec![&bad], false),
        (HANGS, vec![&hangs], true),
        (CUT_OFF, vec![&cut_off], true),
        (HALF, vec![&well, &hangs], true),
        (PAIR, vec![&remembers, &restarted], true),
    ];
    let mut seen: BTreeMap<usize, Vec<Vec<Shown>>> = BTreeMap::new();
    let mut watching = None;
    std::thread::scope(|scope| {
        let looked = plans.map(|(situation, served, with_rules)| {
            let host = &host;
            scope.spawn(move || {
                let prometheus = situations::prometheus(&served, host, with_rules);
                let variables = variables(&served, host);
                (situation, panels_shown(&prometheus, true, &variables), prometheus, variables)
            })
        });
        for it in looked {
            let (situation, shown, prometheus, variables) = it.join().unwrap();
            seen.insert(situation, shown);
            if situation == WELL {
                watching = Some((prometheus, variables));
            }
        }
    });
    let (prometheus, variables) = watching.unwrap();
    well.stop();
    host.stop();
    seen.insert(STOPPED, panels_shown(&prometheus, false, &variables));

    let boards = dashboards();
    let all = boards.iter().flat_map(|(file, board)| judging(board).map(move |it| (file, it)));
    all.enumerate()
        .map(|(at, (file, panel))| Row {
            dashboard: file.clone(),
            panel: text(panel, "title").into(),
            cells: seen.values().map(|shown| shown[at].clone()).collect(),
        })
        .collect()
}

/// The table of situations in panels.md.
fn table(rows: &[Row]) -> String {
    let mut table = format!("| dashboard | panel | {} |\n", SITUATIONS.join(" | "));
    let _ = writeln!(table, "|{}", "---|".repeat(2 + SITUATIONS.len()));
    for row in rows {
        let cells: Vec<String> = (0..SITUATIONS.len()).map(|it| row.cell(it)).collect();
        let _ = writeln!(table, "| {} | {} | {} |", row.dashboard, row.panel, cells.join(" | "));
    }
    table
}

/// The panels in each row of the dashboards that query recorded series or alerts.
fn needs() -> String {
    let recorded = rules::recorded();
    // Data shows whether there are any.
    let needs_rules = |panel: &Value| {
        text(panel, "title") != "Data"
            && list(panel, "targets").iter().any(|target| {
                let asked =
                    promql::metrics(&crate::dashboards::filled(text(target, "expr"))).unwrap();
                asked.iter().any(|it| it == "ALERTS" || recorded.contains(it))
            })
    };
    let mut table = "| dashboard | row | panels that need rules |\n|---|---|---|\n".to_owned();
    for (file, board) in dashboards() {
        for (row, here) in crate::dashboards::rows(&board) {
            let names: Vec<&str> =
                here.iter().filter(|it| needs_rules(it)).map(|it| text(it, "title")).collect();
            let which = match names.len() {
                0 => "none".to_owned(),
                many if many == here.len() => "all".to_owned(),
                _ => names.join(", "),
            };
            let _ = writeln!(table, "| {file} | {row} | {which} |");
        }
    }
    table
}

/// Writes a table into panels.md, or compares it with the one there.
fn assert_table(name: &str, table: &str) {
    let path = root().join(PANELS);
    let page = std::fs::read_to_string(&path).unwrap();
    let [begin, end] = [format!("<!-- {name} -->\n"), format!("<!-- /{name} -->\n")];
    let (before, rest) = page.split_once(&begin).unwrap();
    let (was, after) = rest.split_once(&end).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{begin}{table}{end}{after}")).unwrap();
        return;
    }
    let differ: Vec<_> = was.lines().zip(table.lines()).filter(|(was, is)| was != is).collect();
    assert!(was == table, "{PANELS} is out of date: make docs\n{differ:#?}");
}

#[test]
fn unknown_is_never_green() {
    let rows = rows();
    let find = |dashboard: &str, panel: &str| {
        let found = rows.iter().find(|it| it.dashboard == dashboard && it.panel == panel);
        found.unwrap_or_else(|| panic!("{dashboard} has no {panel}"))
    };
    let mut wrong = Vec::new();
    for row in &rows {
        for (situation, what) in SITUATIONS.iter().enumerate().skip(1) {
            let green = row.is_green(situation);
            let may_be = match situation {
                STOPPED => false,
                // A panel that is green without rules is green with them.
                NO_RULES => row.cell(situation) == row.cell(BAD),
                HANGS | CUT_OFF => !of_the_fabric(row),
                // A finding in one fabric is true; that there is none in both fabrics is not known.
                HALF if row.dashboard == "exporter" => !of_the_fabric(row),
                HALF => !of_all_fabrics(row) || row.cells[HALF].iter().all(|it| it.text != "0"),
                _ => true,
            };
            if green && !may_be {
                wrong.push(format!("{what}: {}: {}", row.place(), row.cell(situation)));
            }
        }
    }
    for (dashboard, panel, shows) in OF_THE_CABLE.into_iter().chain(OF_THE_CABLE_BY_RULES) {
        let row = find(dashboard, panel);
        if row.cell(BAD) != shows {
            wrong.push(format!("one bad cable: {}: {}", row.place(), row.cell(BAD)));
        }
    }
    for (dashboard, panel, shows) in OF_THE_CABLE {
        let row = find(dashboard, panel);
        if row.cell(NO_RULES) != shows {
            wrong.push(format!("no rules: {}: {}", row.place(), row.cell(NO_RULES)));
        }
    }
    for (dashboard, panel, shows) in OF_THE_SWITCH {
        let row = find(dashboard, panel);
        if row.cell(PAIR) != shows {
            wrong.push(format!("switch down: {}: {}", row.place(), row.cell(PAIR)));
        }
    }
    for (dashboard, panel, _) in OF_THE_CABLE_BY_RULES {
        let row = find(dashboard, panel);
        if row.is_green(NO_RULES) {
            wrong.push(format!("no rules: {}: {}", row.place(), row.cell(NO_RULES)));
        }
    }
    assert!(wrong.is_empty(), "{} panels are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_table("situations", &table(&rows));
}

#[test]
fn table_says_what_needs_rules() {
    assert_table("needs", &needs());
}

/// Whether a panel shows results of sweeps.
fn of_the_fabric(row: &Row) -> bool {
    match row.dashboard.as_str() {
        "host" => false,
        _ => !NOT_OF_THE_FABRIC.contains(&row.panel.as_str()),
    }
}

/// Whether a panel shows results of sweeps of all fabrics together.
fn of_all_fabrics(row: &Row) -> bool {
    of_the_fabric(row) && ["overview", "congestion"].contains(&row.dashboard.as_str())
}

/// The first number of each dashboard shows whether there is data that the others depend on, and all count the same
/// rules.
#[test]
fn first_number_shows_exporters_sweeps_and_rules() {
    let files = rules::files("alerts", ".rules.yml");
    for path in &files {
        let name = rules::file_name(path).trim_end_matches(".rules.yml").to_owned();
        let told = rules::of(path).into_iter().any(|(_, rule)| {
            rule.record.as_deref() == Some("fabric_exporter:rules:loaded")
                && rule.labels == [("file".to_owned(), name.clone())].into()
        });
        assert!(told, "{name} does not record that it is loaded");
    }
    for (file, board) in dashboards() {
        let data = panels(&board)[0];
        assert_eq!(text(data, "title"), "Data", "{file}");
        let query = text(&data["targets"][0], "expr");
        let swept = if file == "host" { "host_read_timestamp" } else { "infiniband_fabric_links" };
        for part in ["up", swept, "fabric_exporter:rules:loaded"] {
            assert!(query.contains(part), "{file}: {part}: {query}");
        }
        let steps = list(&data["fieldConfig"]["defaults"]["thresholds"], "steps");
        let green: Vec<_> = steps.iter().filter(|it| text(it, "color") == "green").collect();
        assert!(green.len() == 1 && green[0]["value"] == files.len(), "{file}: {steps:?}");
        for panel in panels(&board) {
            for target in list(panel, "targets") {
                let asked =
                    text(target, "expr").split("(fabric_exporter:rules:loaded)) == ").nth(1);
                let number = asked.map(|it| it.split(' ').next().unwrap().to_owned());
                let wanted = files.len().to_string();
                assert!(number.is_none_or(|it| it == wanted), "{file}: {}", panel["title"]);
            }
        }
    }
}

/// Texts for missing data that would claim that all is well.
#[test]
fn missing_data_is_not_healthy() {
    const MAY_BE: [&str; 3] = ["No data", "not known", EMPTY];
    for (file, board) in dashboards() {
        for panel in panels(&board) {
            let said = panel["fieldConfig"]["defaults"]["noValue"].as_str();
            let at = format!("{file}: {}", panel["title"]);
            assert!(said.is_none_or(|it| MAY_BE.contains(&it)), "{at}: {said:?}");
            assert!(
                list(panel, "targets").iter().all(|it| !text(it, "expr").contains("vector(0)")),
                "{at}"
            );
        }
    }
}
