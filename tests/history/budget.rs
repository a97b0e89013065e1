//! Retention times, and the size of the file.

use fabric_history::settings::HistorySettings;
use std::sync::Arc;

use fabric_history::Recorder;
use fabric_history::file::record_kind::RecordKind;

use crate::frames::frames;
use crate::{RecordedSimulation, events, minutes, wall};

const STORY: &str = "timeline: [bad-cable: {at: 1m, into: \"leaf-0-1[9]\", ratio: 1e-9}, \
                     unplug: {at: 2m, link: \"leaf-0-0[9]\", for: 1m}]";

#[test]
fn each_kind_is_dropped_after_its_retention() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let settings = HistorySettings {
        traffic_retention: minutes(10),
        retention: minutes(30),
        least_free: 0,
        ..HistorySettings::new(file.clone())
    };
    let mut simulation = RecordedSimulation::with(STORY, settings);
    // An exporter that has just begun does not trust its clock for an hour.
    simulation.run_to(minutes(50));
    let (busy, _, _) = frames(&file, RecordKind::TrafficDeltas).unwrap();
    assert!(busy > 190, "{busy} sweeps of fifty minutes");
    // What is too old by then goes a few sweeps at a time.
    simulation.run_to(minutes(75));
    let (busy, torn, last) = frames(&file, RecordKind::TrafficDeltas).unwrap();
    assert_eq!(torn, 0);
    assert!(last.unwrap() > wall(minutes(74)));
    assert!((40..=61).contains(&busy), "{busy} sweeps of ten minutes");
    let (rare, _, _) = frames(&file, RecordKind::ErrorDeltas).unwrap();
    assert!((60..=121).contains(&rare), "{rare} sweeps of half an hour");
    assert!(events(&file).iter().all(|event| event.at > wall(minutes(44))));
}

#[test]
fn file_stays_within_budget_and_traffic_goes_first() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let size = 200 << 10;
    let settings = HistorySettings { size, least_free: 0, ..HistorySettings::new(file.clone()) };
    let mut simulation = RecordedSimulation::with(STORY, settings);
    let mut largest = 0;
    for minute in 1..=120 {
        simulation.run_to(minutes(minute));
        largest = largest.max(std::fs::metadata(&file).unwrap().len());
    }
    // What one sweep adds is dropped after it.
    assert!(largest <= size + (64 << 10), "{largest}");
    let (busy, rare) = (
        frames(&file, RecordKind::TrafficDeltas).unwrap(),
        frames(&file, RecordKind::ErrorDeltas).unwrap(),
    );
    assert!(busy.0 < rare.0 && busy.0 > 0, "{busy:?} {rare:?}");
    assert!(events(&file).iter().any(|event| event.kind == "link_down"));
    assert_eq!(simulation.metrics.errors(), 0);
}

#[test]
fn nothing_is_written_to_a_nearly_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let settings = HistorySettings { least_free: u64::MAX, ..HistorySettings::new(file.clone()) };
    let mut simulation = RecordedSimulation::with(STORY, settings);
    simulation.run_to(minutes(4));
    assert!(simulation.metrics.errors() > 10 && simulation.metrics.get().frames == 0);
    assert!(simulation.metrics.get().free.is_some_and(|free| free > 0));
    assert_eq!(simulation.metrics.get().floor, u64::MAX);
    assert!(events(&file).is_empty());
    let RecordedSimulation { simulated, recorder, metrics, at } = simulation;
    drop(recorder);
    let settings = HistorySettings { least_free: 0, ..HistorySettings::new(file.clone()) };
    let recorder = Recorder::new(settings, Arc::clone(&metrics));
    let mut simulation = RecordedSimulation { simulated, recorder, metrics, at };
    simulation.run_to(minutes(5));
    assert!(!events(&file).is_empty());
}
