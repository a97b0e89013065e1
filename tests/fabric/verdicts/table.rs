//! The table in docs/dev/measurements.md.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use crate::verdicts::cases::Case;
use crate::verdicts::watch::Outcome;

const BEGIN: &str = "<!-- made by tests/fabric/verdicts: begin -->\n";
const END: &str = "<!-- made by tests/fabric/verdicts: end -->\n";

fn after(found: Option<Duration>) -> String {
    match found.map(|found| found.as_secs()) {
        None => String::new(),
        Some(seconds @ ..120) => format!("{seconds} s"),
        Some(seconds) => format!("{} min", seconds.div_ceil(60)),
    }
}

/// A row for each fault, and the cases in which no link may be bad.
pub fn table(cases: &[Case], outcomes: &[(usize, Outcome)]) -> String {
    let mut table = String::from("| fault | verdict | after |\n|---|---|---|\n");
    let mut harmless = Vec::new();
    for (index, outcome) in outcomes {
        let case = &cases[*index];
        let Some(wanted) = case.wanted.first() else {
            harmless.push(case.name.as_str());
            continue;
        };
        let reason = wanted.reason.map_or("", |reason| reason.label());
        let verdict = format!("{} {reason}", wanted.verdict.label());
        let after = after(outcome.found_after);
        // Writing to a string does not fail.
        let _ = writeln!(table, "| {} | {} | {after} |", case.name, verdict.trim_end());
    }
    let minutes: u64 = outcomes.iter().map(|(index, _)| cases[*index].minutes).sum();
    let false_alarms: usize = outcomes.iter().map(|(_, outcome)| outcome.false_alarms).sum();
    let links = outcomes.iter().map(|(_, outcome)| outcome.links);
    let (least, most) = (links.clone().min().unwrap_or(0), links.max().unwrap_or(0));
    let _ = writeln!(
        table,
        "\nNo link was `bad` in these cases: {}.\n\n{} cases with {least} to {most} links, {} h of simulated time: \
         {false_alarms} false alarms.",
        harmless.join("; "),
        outcomes.len(),
        minutes as f64 / 60.0,
    );
    table
}

/// Panics unless the page has this table.
pub fn check(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/dev/measurements.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (old, rest) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, [before, BEGIN, table, END, rest].concat()).unwrap();
    } else {
        assert!(old == table, "docs/dev/measurements.md is out of date: make docs\n{table}");
    }
}
