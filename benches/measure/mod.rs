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
