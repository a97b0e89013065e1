//! promtool, Prometheus' checker of exposition formats and rules.

use std::io::Write;
use std::process::{Command, Stdio};

use super::{Exporter, require};

/// The Accept header of the newer format.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0";

/// Runs a program with a text on its standard input; returns its exit code and all its output.
pub fn fed(program: &str, args: &[&str], text: &str) -> (Option<i32>, String) {
    let mut child = Command::new(require(program))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

/// What `promtool check metrics` prints about a text, with its exit code: nothing and 0 for a text without
/// mistakes and without lint warnings.
pub fn complaints(text: &str) -> (Option<i32>, String) {
    fed("promtool", &["check", "metrics"], text)
}

/// Panics unless promtool accepts a scrape in both formats.
pub fn assert_accepts(exporter: &Exporter) {
    let text = exporter.get("/metrics", &[]).text().to_owned();
    assert_eq!(complaints(&text), (Some(0), String::new()), "0.0.4");

    // promtool's linter knows only 0.0.4, where a counter's family has the name of its samples.
    // So it gets the samples of the other format with their families renamed, ...
    let response = exporter.get("/metrics", &[("Accept", OPEN_METRICS)]);
    assert!(response.header("content-type").unwrap().starts_with(OPEN_METRICS));
    let open = response.text();
    assert!(open.ends_with("# EOF\n"));
    let counters: Vec<&str> = open
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let linted: String = open
        .lines()
        .map(|line| {
            let mut words: Vec<&str> = line.splitn(4, ' ').collect();
            let named = words
                .get(2)
                .filter(|name| line.starts_with("# ") && counters.contains(name))
                .map(|name| format!("{name}_total"));
            if let Some(name) = &named {
                words[2] = name;
            }
            words.join(" ") + "\n"
        })
        .collect();
    assert_eq!(complaints(&linted), (Some(0), String::new()), "OpenMetrics");

    // ... and its OpenMetrics parser, which needs a timestamp on each sample, the text as it is.
    let directory = tempfile::tempdir().unwrap();
    let timed: String = open
        .lines()
        .map(|line| {
            if line.starts_with('#') { format!("{line}\n") } else { format!("{line} 1700000000\n") }
        })
        .collect();
    let file = directory.path().join("open.txt");
    std::fs::write(&file, timed).unwrap();
    let blocks = directory.path().join("blocks");
    let args = [
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        file.to_str().unwrap(),
        blocks.to_str().unwrap(),
    ];
    let (code, said) = fed("promtool", &args, "");
    assert_eq!(code, Some(0), "{said}");
}
