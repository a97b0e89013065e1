//! The comparison of alerts with what is expected, by promtool.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex_lite::Regex;
use test_rig::{require, rules};

use super::expected::KEY;
use super::host::Minute;
use super::schedule::Planned;

/// An alert that was not expected, or that was missing.
#[derive(Debug)]
pub struct Wrong {
    pub is_missing: bool,
    /// Its labels.
    pub labels: String,
    /// The first minute.
    pub from: Minute,
    pub minutes: Minute,
}

/// The rules that compare, after all others: what fires and may not, and what must and does not. The value is the time.
fn comparing() -> String {
    format!(
        "groups:
- name: week
  rules:
  - record: week:alerts:firing
    expr: group by ({KEY}) (ALERTS{{alertstate=\"firing\"}})
  - record: week:alerts:unexpected
    expr: week:alerts:firing * 0 + time() unless on ({KEY}) week_expected
  - record: week:alerts:missing
    expr: (week_expected == 2) * 0 + time() unless on ({KEY}) week:alerts:firing
"
    )
}

/// The names of the groups in these files.
fn groups(files: &[PathBuf]) -> Vec<String> {
    let texts = files.iter().map(|file| rules::text(file));
    let names = texts.flat_map(|text| {
        let lines = text.lines().filter_map(|line| line.trim().strip_prefix("- name: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    });
    names.collect()
}

/// Evaluates rules each minute for so long, and returns what differs from the expected alerts.
pub fn compare(
    folder: &Path,
    files: &[PathBuf],
    order: usize,
    minutes: Minute,
    series: &[(String, String)],
) -> Vec<Wrong> {
    let comparing_rules = folder.join("week.rules.yml");
    fs::write(&comparing_rules, comparing()).unwrap();
    // A group may be evaluated before or after one whose records it reads.
    let mut groups = groups(files);
    let first = order % groups.len();
    groups.rotate_left(first);
    groups.push("week".to_owned());
    let mut text = "rule_files:\n".to_owned();
    for file in files.iter().chain([&comparing_rules]) {
        writeln!(text, "- {}", file.display()).unwrap();
    }
    writeln!(text, "evaluation_interval: 1m\ngroup_eval_order: [{}]", groups.join(", ")).unwrap();
    text += "tests:\n- interval: 1m\n  input_series:\n";
    for (name, values) in series {
        writeln!(text, "  - series: '{name}'\n    values: '{}'", values.trim_end()).unwrap();
    }
    text += "  promql_expr_test:\n";
    for function in ["min_over_time", "count_over_time"] {
        for what in ["unexpected", "missing"] {
            let expression = format!("{function}(week:alerts:{what}[{}m])", minutes + 1);
            writeln!(text, "  - {{expr: '{expression}', eval_time: {minutes}m, exp_samples: []}}")
                .unwrap();
        }
    }
    let file = folder.join("week.test.yml");
    fs::write(&file, text).unwrap();
    // Memory for a sixth less time.
    let mut command = Command::new(require("promtool"));
    let output = command.args(["test", "rules"]).arg(&file).env("GOGC", "400").output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    let wrong = parse(&said);
    assert_eq!(output.status.success(), wrong.is_empty(), "{said}");
    wrong
}

/// Reads what promtool says about expressions with a result.
fn parse(said: &str) -> Vec<Wrong> {
    let sample = Regex::new(r"\{([^}]*)\} ([0-9.E+-]+)").unwrap();
    let mut found: BTreeMap<(bool, String), [f64; 2]> = BTreeMap::new();
    let mut current = (false, 0);
    for line in said.lines() {
        if line.contains("expr: ") {
            current = (line.contains(":missing"), usize::from(line.contains("count_over_time")));
        } else if !line.contains("exp: ") {
            for sample in sample.captures_iter(line) {
                let values = found.entry((current.0, sample[1].to_owned())).or_default();
                values[current.1] = sample[2].parse().unwrap();
            }
        }
    }
    let wrong = found.into_iter().map(|((is_missing, labels), [time, count])| {
        #[expect(clippy::cast_sign_loss, reason = "times and counts are not negative")]
        let [from, minutes] = [time / 60.0, count].map(|it| it as Minute);
        Wrong { is_missing, labels, from, minutes }
    });
    wrong.collect()
}

impl Wrong {
    /// What was wrong, and what happened on the hosts at that time.
    pub fn report(&self, planned: &[Planned], names: &[String]) -> String {
        let what = if self.is_missing { "missing" } else { "unexpected" };
        let mut text = format!(
            "{what} for {} minutes from {} on: {}",
            self.minutes,
            shown(self.from),
            self.labels
        );
        for it in planned {
            let is_host = it.hosts.iter().any(|host| self.labels.contains(&names[*host]));
            let is_near = it.minutes.start <= self.from + 30 && self.from <= it.minutes.end + 60;
            // Alerts about links have no instance.
            if is_near && (is_host || !self.labels.contains("instance=")) {
                let hosts: Vec<&str> = it.hosts.iter().map(|host| &*names[*host]).collect();
                let from = shown(it.minutes.start);
                write!(text, "\n    {from} {}: {}", hosts.join(", "), it.name).unwrap();
            }
        }
        text
    }
}

/// A minute as day and time of day.
fn shown(minute: Minute) -> String {
    format!("{}d {:02}:{:02} ({minute}m)", minute / 1440, minute / 60 % 24, minute % 60)
}
