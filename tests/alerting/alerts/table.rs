//! The table in docs/verdicts-and-alerts.md, generated from the rules.

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

/// A summary without its templates: `{{ $labels.node }}` becomes *node*, and of text that depends on a label or on a
/// query the first variant is used.
fn in_words(template: &str) -> String {
    let mut words = String::new();
    // By depth of the blocks.
    let mut told = vec![true];
    let mut rest = template;
    while let Some((before, action)) = rest.split_once("{{") {
        let (action, after) = action.split_once("}}").unwrap();
        let is_told = told.iter().all(|told| *told);
        if is_told {
            words.push_str(before);
        }
        match action.trim().split(' ').next().unwrap() {
            "if" | "with" => told.push(true),
            "else" => *told.last_mut().unwrap() = false,
            "end" => drop(told.pop()),
            name if is_told => {
                let of_query =
                    || action.trim().strip_prefix(". | first | label \"")?.strip_suffix('"');
                let name = name.strip_prefix("$labels.").or_else(of_query);
                let name = name.unwrap_or_else(|| panic!("{template}"));
                let _ = write!(words, "*{}*", name.replace('_', " "));
            }
            _ => {}
        }
        rest = after;
    }
    words + rest
}

fn made(alerts: &[AlertRule], needs: impl Fn(&AlertRule) -> String) -> String {
    let mut table =
        "| alert | severity | when | for | needs group |\n|---|---|---|---|---|\n".to_owned();
    // The most severe alerts come first.
    let mut alerts: Vec<(&AlertRule, String)> =
        alerts.iter().map(|alert| (alert, runbook(&alert.name).unwrap().0)).collect();
    alerts.sort_by_key(|(alert, file)| {
        let rank = ["critical", "warning", "info"];
        let rank = rank.iter().position(|it| alert.severities()[0] == *it);
        (rank, file.clone(), alert.name.clone(), alert.view.is_some())
    });
    for (alert, file) in alerts {
        let view = if alert.view.is_some() { " (hosts alone)" } else { "" };
        // A template: critical between two switches.
        let severity = match alert.severities()[..] {
            ["critical", "warning"] => "critical between switches, else warning",
            [one] => one,
            _ => panic!("{}", alert.shown()),
        };
        let when = in_words(alert.annotation("summary"));
        let wait = alert.rule.wait.as_deref().unwrap_or("");
        let name = &alert.name;
        let anchor = name.to_lowercase();
        let _ = writeln!(
            table,
            "| [`{name}`](../alerts/{file}#{anchor}){view} | {severity} | {when} | {wait} | {} |",
            needs(alert)
        );
    }
    table
}

/// Panics unless the page has the table, with the groups that each alert needs; `UPDATE_DOCS=1` writes it.
pub fn agrees(alerts: &[AlertRule], needs: impl Fn(&AlertRule) -> String) {
    let made = made(alerts, needs);
    let page = text(&path(PAGE));
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (there, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path(PAGE), [before, BEGIN, &made, END, after].concat()).unwrap();
    } else {
        assert!(there == made, "{PAGE} is out of date: make docs");
    }
}
