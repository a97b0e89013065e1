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

/// One row for each case.
pub fn table(cases: &[Case], outcomes: &[(usize, Outcome)]) -> String {
    let mut table = String::from(
        "| fault | simulated time | verdict | after | false alarms | links |\n|---|---|---|---|---|---|\n",
    );
    for (index, outcome) in outcomes {
        let case = &cases[*index];
        let wanted = case.wanted.first().map_or_else(
            || "none bad".into(),
            |wanted| {
                let reason = wanted.reason.map_or("", |reason| reason.label());
                format!("{} {reason}", wanted.verdict.label()).trim_end().to_owned()
            },
        );
        let hours = case.minutes as f64 / 60.0;
        // Writing to a string does not fail.
        let _ = writeln!(
            table,
            "| {} | {hours} h | {wanted} | {} | {} | {} |",
            case.name,
            after(outcome.found_after),
            outcome.false_alarms,
            outcome.links,
        );
    }
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
