//! What is kept for how long, and how large the file becomes.

use fabric_history::settings::HistorySettings;
use std::sync::Arc;

use fabric_history::file::tier::Tier;
use fabric_history::{Reader, Recorder};

use crate::{Taped, events, minutes, wall};

const STORY: &str = "timeline: [bad-cable: {at: 1m, into: \"leaf-0-1[9]\", ratio: 1e-9}, \
                     unplug: {at: 2m, link: \"leaf-0-0[9]\", for: 1m}]";

#[test]
fn what_is_old_is_dropped_each_after_its_own_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let settings = HistorySettings {
        traffic_for: minutes(10),
        rare_for: minutes(30),
        least_free: 0,
        ..HistorySettings::new(file.clone())
    };
    let mut taped = Taped::with(STORY, settings);
    // An exporter that has just begun does not trust its clock for an hour.
    taped.run_to(minutes(50));
    let (busy, _, _) = Reader::open(&file).unwrap().frames(Tier::Busy).unwrap();
    assert!(busy > 190, "{busy} sweeps of fifty minutes");
    // What is too old by then goes a few sweeps at a time.
    taped.run_to(minutes(75));
    let reader = Reader::open(&file).unwrap();
    let (busy, torn, last) = reader.frames(Tier::Busy).unwrap();
    assert_eq!(torn, 0);
    assert!(last.unwrap() > wall(minutes(74)));
    assert!((40..=61).contains(&busy), "{busy} sweeps of ten minutes");
    let (rare, _, _) = reader.frames(Tier::Rare).unwrap();
    assert!((60..=121).contains(&rare), "{rare} sweeps of half an hour");
    assert!(events(&file).iter().all(|event| event.at > wall(minutes(44))));
}

#[test]
fn the_file_stays_within_its_budget_and_traffic_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let size = 200 << 10;
    let settings = HistorySettings { size, least_free: 0, ..HistorySettings::new(file.clone()) };
    let mut taped = Taped::with(STORY, settings);
    let mut largest = 0;
    for minute in 1..=120 {
        taped.run_to(minutes(minute));
        largest = largest.max(std::fs::metadata(&file).unwrap().len());
    }
    // What one sweep adds is dropped after it.
    assert!(largest <= size + (64 << 10), "{largest}");
    let reader = Reader::open(&file).unwrap();
    let (busy, rare) = (reader.frames(Tier::Busy).unwrap(), reader.frames(Tier::Rare).unwrap());
    assert!(busy.0 < rare.0 && busy.0 > 0, "{busy:?} {rare:?}");
    assert!(events(&file).iter().any(|event| event.kind == "link_down"));
    assert_eq!(taped.account.errors(), 0);
}

#[test]
fn a_full_disk_is_left_alone_until_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let settings = HistorySettings { least_free: u64::MAX, ..HistorySettings::new(file.clone()) };
    let mut taped = Taped::with(STORY, settings);
    taped.run_to(minutes(4));
    assert!(taped.account.errors() > 10 && taped.account.frames() == 0);
    assert!(taped.account.free().is_some_and(|free| free > 0));
    assert_eq!(taped.account.floor(), u64::MAX);
    assert!(events(&file).is_empty());
    let Taped { simulated, recorder, account, at } = taped;
    drop(recorder);
    let settings = HistorySettings { least_free: 0, ..HistorySettings::new(file.clone()) };
    let recorder = Recorder::new(settings, Arc::clone(&account));
    let mut taped = Taped { simulated, recorder, account, at };
    taped.run_to(minutes(5));
    assert!(!events(&file).is_empty());
}
