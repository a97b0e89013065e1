//! What becomes of a fabric's links when something happens to one of them: over simulated hours, the
//! faulty one is found, no healthy one is called bad, and how long it took is written down.
//!
//! The exporter's own monitor watches each story in virtual time. `UPDATE_DOCS=1` writes the table
//! of docs/verdicts.md anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cases;
mod internal;
mod lengths;
mod remedies;
mod saturation;
mod table;
mod watch;

use test_rig as rig;

use std::sync::Mutex;

use watch::Outcome;

/// The outcomes of this run, by the case's place in the list.
static OUTCOMES: Mutex<Vec<(usize, Outcome)>> = Mutex::new(Vec::new());

/// All cases, on as many threads as there are processors; then the table that they make.
#[test]
fn each_fault_is_found_and_no_healthy_link_is_called_bad() {
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
