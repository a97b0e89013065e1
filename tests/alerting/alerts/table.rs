//! The table in docs/verdicts-and-alerts.md, generated from the rules.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use test_rig::rules::{AlertRule, file_name, files, path, text};

const PAGE: &str = "docs/verdicts-and-alerts.md";
const BEGIN: &str = "<!-- made by tests/alerting/alerts: begin -->\n";
const END: &str = "<!-- made by tests/alerting/alerts: end -->\n";

/// The file with the runbook of an alert, below alerts/, and its section.
pub fn runbook(alert: &str) -> Option<(String, String)> {
    let heading = format!("\n## {alert}\n");
    files("alerts/runbooks", ".md").into_iter().find_map(|file| {
        let text = text(&file);
        let section = text.split_once(&heading)?.1.split("\n## ").next()?;
        Some((format!("runbooks/{}", file_name(&file)), section.to_owned()))
    })
}

/// The columns: the severities of an alert, and how the page calls them.
const COLUMNS: [(&[&str], &str); 4] = [
    (&["critical"], "critical"),
    // A template.
    (&["critical", "warning"], "critical between switches, else warning"),
    (&["warning"], "warning"),
    (&["info"], "info"),
];

/// A row for each file of runbooks, and in each cell the alerts of a severity.
fn made(alerts: &[AlertRule]) -> String {
    let mut rows: BTreeMap<String, [Vec<String>; 4]> = BTreeMap::new();
    for alert in alerts {
        let file = runbook(&alert.name).unwrap().0;
        let severities = alert.severities();
        let column = COLUMNS.iter().position(|(these, _)| severities[..] == **these);
        let column = column.unwrap_or_else(|| panic!("{}", alert.shown()));
        let (name, anchor) = (&alert.name, alert.name.to_lowercase());
        let view = if alert.view.is_some() { " hosts alone" } else { "" };
        let wait = alert.rule.wait.as_deref().map_or(String::new(), |wait| format!(" {wait}"));
        let shown = format!("[`{name}`](../alerts/{file}#{anchor}){view}{wait}");
        rows.entry(file).or_default()[column].push(shown);
    }
    let titles = COLUMNS.map(|(_, title)| title);
    let mut table = format!("| runbooks | {} |\n|{}\n", titles.join(" | "), "---|".repeat(5));
    for (file, mut cells) in rows {
        for cell in &mut cells {
            cell.sort();
        }
        let cells = cells.map(|cell| cell.join(", "));
        let title = file.trim_start_matches("runbooks/").trim_end_matches(".md");
        let _ = writeln!(table, "| [{title}](../alerts/{file}) | {} |", cells.join(" | "));
    }
    table
}

/// Panics unless the page has the table; `UPDATE_DOCS=1` writes it.
pub fn agrees(alerts: &[AlertRule]) {
    let made = made(alerts);
    let page = text(&path(PAGE));
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (there, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path(PAGE), [before, BEGIN, &made, END, after].concat()).unwrap();
    } else {
        assert!(there == made, "{PAGE} is out of date: make docs");
    }
}
