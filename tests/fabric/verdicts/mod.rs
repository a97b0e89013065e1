//! The verdicts of a fabric's links after a fault: over simulated hours the faulty link is found, no healthy
//! link is called bad, and the time that it took is recorded.
//!
//! The exporter's own monitor watches each scenario in virtual time. `UPDATE_DOCS=1` writes the table of
//! docs/dev/measurements.md.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cases;
mod internal;
mod lengths;
mod modules;
mod nvlink;
mod planes;
mod remedies;
mod saturation;
mod table;
mod watch;

use std::sync::Mutex;

use watch::Outcome;

/// The results of this run, by the case's place in the list.
static OUTCOMES: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::new());

/// Runs all cases on as many threads as there are CPUs; then compares the table.
#[test]
fn faults_are_found_and_healthy_links_are_not_bad() {
    let cases = cases::all();
    let next = Mutex::new(0..cases.len());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let problems = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(index) = next.lock().unwrap().next() else { return };
                    let (outcome, wrong) = watch::watch(&cases[index]);
                    problems.lock().unwrap().extend(wrong);
                    OUTCOMES.lock().unwrap().push((index, outcome));
                }
            });
        }
    });
    let mut outcomes = OUTCOMES.lock().unwrap();
    outcomes.sort_by_key(|(index, _)| *index);
    let table = table::table(&cases, &outcomes);
    println!("{table}");
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    table::check(&table);
}
