//! Retention in a file with several fabrics, or without counters.

use std::path::Path;

use fabric_history::record::store::Store;
use fabric_history::settings::HistorySettings;
use fabric_observation::Observation;
use ib_mad::Moment;

use crate::steady::{Steady, SteadyRecorder, settings};
use crate::{SWEEP, minutes, wall};

fn number(file: &Path, sql: &str) -> i64 {
    let db = rusqlite::Connection::open(file).unwrap();
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn changed(file: &Path, sql: &str) -> usize {
    rusqlite::Connection::open(file).unwrap().execute(sql, []).unwrap()
}

/// A sweep in which no counters were read.
fn without_counters(steady: &Steady, number: u64) -> Observation {
    let mut seen = steady.sweep(number, 1);
    let snapshot = std::sync::Arc::make_mut(seen.snapshot.as_mut().unwrap());
    for reading in &mut snapshot.readings {
        *reading = None;
    }
    seen
}

/// Totals need some of the latest sweeps; of a fabric without any they need nothing.
#[test]
fn old_sweeps_without_counters_are_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let settings = HistorySettings { retention: minutes(60), ..settings(&file) };
    let mut steady_recorder = SteadyRecorder::new(&std::sync::Arc::new(Steady::new()), settings);
    for number in 1..=1_000 {
        let seen = without_counters(&steady_recorder.steady, number);
        steady_recorder.recorder.record(&seen, wall(SWEEP * u32::try_from(number).unwrap()));
    }
    assert_eq!(steady_recorder.metrics.errors(), 0);
    let sweeps = number(&file, "SELECT count(*) FROM sweeps");
    assert!((240..260).contains(&sweeps), "{sweeps} in an hour");
    let hours = number(&file, "SELECT count(*) FROM frames WHERE tier = 5");
    assert!((1..=2).contains(&hours), "{hours}");
}

/// Each fabric has sweeps of its own, and what its cables were goes with those.
#[test]
fn budget_of_one_fabric_costs_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let steady = Steady::new();
    let usual = settings(&file);
    let mut steady_recorder =
        SteadyRecorder::at(&std::sync::Arc::new(Steady::new()), usual.clone(), 1);
    for number in 1..=600 {
        let at = SWEEP * u32::try_from(number).unwrap();
        steady_recorder.recorder.record(&steady.sweep(number, 1), wall(at));
        if number.is_multiple_of(20) {
            let mut slow = steady.sweep_at(number / 20, 1, Moment::default() + at, wall(at));
            slow.fabric = "slow".into();
            steady_recorder.recorder.record(&slow, wall(at));
        }
    }
    assert_eq!(steady_recorder.metrics.errors(), 0);
    drop(steady_recorder);
    // A cable that was there until the three hundredth sweep; and no traffic, which goes first.
    changed(
        &file,
        "UPDATE cables SET until = (SELECT began FROM sweeps WHERE fabric = 1 ORDER BY id LIMIT 1 OFFSET 299)
         WHERE id = 1",
    );
    changed(&file, "DELETE FROM frames WHERE tier = 1");
    changed(&file, "DELETE FROM digests WHERE tier = 1");
    let pages = number(&file, "PRAGMA page_count") - number(&file, "PRAGMA freelist_count");
    let size = pages.unsigned_abs() * number(&file, "PRAGMA page_size").unsigned_abs() - 1;
    let store = Store::open(&file).unwrap();
    store.prune(&HistorySettings { size, ..usual }, None).unwrap();
    let left = number(&file, "SELECT count(*) FROM sweeps WHERE fabric = 1");
    assert_eq!(left, 600 - 256, "the oldest went, and no more");
    assert!(number(&file, "SELECT count(*) FROM sweeps WHERE fabric = 2") < 20);
    assert_eq!(number(&file, "SELECT count(*) FROM cables WHERE until IS NOT NULL"), 1);
}
