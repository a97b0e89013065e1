//! The table in docs/verdicts-and-alerts.md, generated from the rules.

use std::fmt::Write as _;

use test_rig::rules::{AlertRule, path, text};

const PAGE: &str = "docs/verdicts-and-alerts.md";
const BEGIN: &str = "<!-- made by tests/alerting/alerts: begin -->\n";
const END: &str = "<!-- made by tests/alerting/alerts: end -->\n";

/// A summary without its templates: `{{ $labels.node }}` becomes *node*, and of text that depends on a label
/// the first variant is used.
fn in_words(template: &str) -> String {
    let mut words = String::new();
    let mut is_told = true;
    let mut rest = template;
    while let Some((before, action)) = rest.split_once("{{") {
        let (action, after) = action.split_once("}}").unwrap();
        if is_told {
            words.push_str(before);
        }
        match action.trim().split(' ').next().unwrap() {
            "if" | "end" => is_told = true,
            "else" => is_told = false,
            name if is_told => {
                let name = name.strip_prefix("$labels.").unwrap_or_else(|| panic!("{template}"));
                let _ = write!(words, "*{}*", name.replace('_', " "));
            }
            _ => {}
        }
        rest = after;
    }
    words + rest
}

fn made(alerts: &[AlertRule]) -> String {
    let mut table = "| alert | severity | when | for |\n|---|---|---|---|\n".to_owned();
    // Paging alerts come first.
    let mut alerts: Vec<&AlertRule> = alerts.iter().collect();
    alerts.sort_by_key(|alert| {
        let rank = |alert: &AlertRule| alert.rule.labels["severity"] != "page";
        (rank(alert), alert.annotation("runbook_url"), alert.view.is_some())
    });
    for alert in alerts {
        let view = if alert.view.is_some() { " (hosts alone)" } else { "" };
        let severity = &alert.rule.labels["severity"];
        let when = in_words(alert.annotation("summary"));
        let wait = alert.rule.wait.as_deref().unwrap_or("");
        let runbook = alert.annotation("runbook_url").split_once("/alerts/").unwrap().1;
        let name = &alert.name;
        let _ = writeln!(
            table,
            "| [`{name}`](../alerts/{runbook}){view} | {severity} | {when} | {wait} |"
        );
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
