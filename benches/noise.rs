//! A day of a site of 6,003 nodes and 15,735 links with the imperfections of real ones and two bad cables: how many
//! findings the program tells a person. ibdiagnet's report of a real site of this size has 111,874 warnings.
//!
//! The monitor sweeps the simulated fabric in virtual time, so nothing depends on the speed of the machine.
//! `-- small`: the site of `tests/fabric/noise.rs`, a tenth of it for some hours. `-- seed N`: another day.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

use std::time::Instant;

use test_rig::site::{self, MOST_FINDINGS, Size};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    // `cargo test --benches` requests a list of tests; a benchmark has none.
    if args.iter().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    let size = if args.iter().any(|arg| arg == "small") { Size::SMALL } else { Size::REAL };
    let seed =
        args.iter().position(|arg| arg == "seed").map_or(1, |at| args[at + 1].parse().unwrap());
    let began = Instant::now();
    let watched = site::watch(size, seed);
    println!("{watched}");
    println!("  in {:.0} s of real time", began.elapsed().as_secs_f64());
    let wrong = watched.wrong();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("  {} findings, target: at most {MOST_FINDINGS}", watched.findings.all().len());
}
