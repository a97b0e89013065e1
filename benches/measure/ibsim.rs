//! The fabric in ibsim that the exporter and infiniband-diags read in turn.

use std::process::Stdio;
use std::time::Instant;

use test_rig::{Ibsim, Seat, topology};

/// Reads all counters of all ports, as exporters that wrap it do.
pub const IBQUERYERRORS: [&str; 8] = [
    "--skip-sl",
    "--verbose",
    "--details",
    "--suppress-common",
    "--data",
    "--report-port",
    "--switch",
    "--ca",
];

/// Counts a wait on each port: ibqueryerrors reports only ports with errors.
pub fn count_waits(ibsim: &Ibsim, net: &str) {
    let waits: Vec<String> = topology::all_connected_ports(net)
        .iter()
        .map(|(node, port)| {
            format!("PerformanceSet \"{node}\"[{port}] PortCounters.PortXmitWait=1")
        })
        .collect();
    ibsim.console_many(&waits);
}

/// How long a program runs, in seconds.
pub fn timed(seat: &Seat, program: &str, args: &[&str]) -> f64 {
    let mut command = seat.command(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let status = command.status().unwrap();
    let took = began.elapsed().as_secs_f64();
    // The exit code of ibqueryerrors says that it found errors: every port has one.
    assert!(status.code().is_some(), "{program}: {status}");
    took
}
