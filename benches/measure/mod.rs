//! Helpers of the benchmarks.

#[allow(dead_code, reason = "not of every benchmark")]
pub mod ratios;

use std::process::{Command, Stdio};

/// Pins this thread, and the processes and threads that it starts afterwards.
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

/// The median; of an even number the upper of the two.
#[allow(dead_code, reason = "not of every benchmark")]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The duration of each sweep, from the log: an HTTP request would disturb the measurement.
#[allow(dead_code, reason = "not of every benchmark")]
pub fn sweeps(log: &str) -> Vec<f64> {
    logged(log, "sweep finished", " took=")
}

/// The CPU time of each sweep, from the log: of its thread, without evaluation and rendering.
#[allow(dead_code, reason = "not of every benchmark")]
pub fn sweep_cpus(log: &str) -> Vec<f64> {
    logged(log, "all responses of a sweep handled", " cpu=")
}

fn logged(log: &str, message: &str, field: &str) -> Vec<f64> {
    let lines = log.lines().filter(|line| line.contains(message));
    lines.filter_map(|line| line.split_once(field)).map(|(_, value)| seconds(value)).collect()
}

/// Parses the Debug format of a duration: `1.25s`, `702.1ms`, `310µs`.
fn seconds(text: &str) -> f64 {
    let text = text.split_whitespace().next().unwrap_or_default();
    let units = [("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9), ("s", 1.0)];
    let (number, unit) = units
        .iter()
        .find_map(|(unit, worth)| Some((text.strip_suffix(unit)?, worth)))
        .unwrap_or_else(|| panic!("{text:?} is not a duration"));
    number.parse::<f64>().unwrap() * unit
}
