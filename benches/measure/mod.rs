//! What the benchmarks measure with.

use std::process::{Command, Stdio};

/// Pins this thread, and the children and threads that it starts from now on.
#[allow(dead_code, reason = "not of every benchmark")]
pub fn pin(cpu: usize) {
    let thread = std::fs::read_link("/proc/thread-self").unwrap();
    let id = thread.file_name().unwrap().to_owned();
    let pinned = Command::new("taskset")
        .args(["-pc", &cpu.to_string()])
        .arg(id)
        .stdout(Stdio::null())
        .status()
        .expect("taskset (package util-linux)");
    assert!(pinned.success());
}

/// The middle one; of an even number the upper of the two.
#[allow(dead_code, reason = "not of every benchmark")]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How long each sweep took, as the log tells: asking over HTTP would disturb what is measured.
#[allow(dead_code, reason = "not of every benchmark")]
pub fn sweeps(log: &str) -> Vec<f64> {
    let swept = log.lines().filter(|line| line.contains("message=swept"));
    swept.filter_map(|line| line.split_once(" took=")).map(|(_, took)| seconds(took)).collect()
}

/// Reads what Rust's Debug writes of a duration: `1.25s`, `702.1ms`, `310µs`.
fn seconds(text: &str) -> f64 {
    let text = text.split_whitespace().next().unwrap_or_default();
    let units = [("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9), ("s", 1.0)];
    let (number, unit) = units
        .iter()
        .find_map(|(unit, worth)| Some((text.strip_suffix(unit)?, worth)))
        .unwrap_or_else(|| panic!("{text:?} is no duration"));
    number.parse::<f64>().unwrap() * unit
}
