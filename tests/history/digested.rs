//! Digests of an hour have the same content as its sweeps.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fabric_history::file::record_kind::RecordKind;
use fabric_history::model::{Series, Window};
use fabric_history::settings::HistorySettings;
use fabric_history::source::SeriesDetail;
use fabric_history::{Reader, Source};
use fabric_observation::Observation;
use ib_mad::{Counter, PortKey};

use crate::jumps::sent;
use crate::steady::{self, BUSY, Steady, SteadyRecorder, settings};
use crate::{RecordedSimulation, SWEEP, always, minutes, wall};

const STORY: &str = "\
fabric: {fat-tree: {levels: 2, hosts: 8, radix: 8, down: 4, up: 2}}
timeline:
- bad-cable: {at: 1m, into: \"leaf-0-1[2]\", ratio: 1e-9}
- bad-cable: {at: 70m, into: \"leaf-0-0[2]\", ratio: 1e-10}
- clear: {at: 80m, node: leaf-0-1}
";

/// Records, and keeps what was recorded.
fn simulation(
    file: &Path,
    settings: &HistorySettings,
    end: Duration,
) -> (RecordedSimulation, Vec<Arc<Observation>>) {
    let settings = HistorySettings { least_free: 0, file: file.into(), ..settings.clone() };
    let mut simulation = RecordedSimulation::with(STORY, settings);
    let mut seen = Vec::new();
    while simulation.at <= end {
        let at = simulation.at;
        simulation.run_to(at);
        seen.push(simulation.simulated.observation());
    }
    (simulation, seen)
}

fn ended(seen: &Observation) -> SystemTime {
    let snapshot = seen.snapshot.as_ref().unwrap();
    snapshot.anchor.wall_of(snapshot.ended)
}

/// All that was counted from one sweep to another.
fn between(before: &Observation, after: &Observation) -> Window {
    // Readings have milliseconds.
    Window { from: ended(before) + Duration::from_millis(1), to: ended(after) }
}

fn total(seen: &Observation, end: PortKey, counter: Counter) -> Option<u64> {
    let snapshot = seen.snapshot.as_ref().unwrap();
    snapshot.reading(snapshot.fabric.find(end)?)?.get(counter)
}

fn ends(seen: &Observation) -> Vec<PortKey> {
    let fabric = &seen.snapshot.as_ref().unwrap().fabric;
    fabric.port_indexes().map(|port| fabric.port_key(port)).collect()
}

fn sum(series: &[Series], end: PortKey, counter: Counter) -> u64 {
    let of = series.iter().filter(|of| of.port.end() == end && of.counter == counter);
    of.flat_map(|of| &of.steps).map(|step| step.by).sum()
}

/// Compares the sums of all counters with what was counted.
fn assert_sums(
    reader: &Reader,
    before: &Observation,
    after: &Observation,
    tiers: &[RecordKind],
) -> u64 {
    let (ends, window) = (ends(after), between(before, after));
    let series = reader.series(&ends, SeriesDetail::All, window).unwrap();
    let moved = reader.error_deltas(window).unwrap();
    let mut all = 0;
    for end in ends {
        for counter in Counter::all().filter(|counter| tiers.contains(&RecordKind::of(*counter))) {
            let totals = total(before, end, counter).zip(total(after, end, counter));
            let Some((from, to)) = totals else { continue };
            let grown = (to - from) * counter.row().scale;
            assert_eq!(sum(&series, end, counter), grown, "{end:?} {counter:?} in {window:?}");
            all += grown;
            if RecordKind::of(counter) == RecordKind::ErrorDeltas {
                let of = moved.iter().filter(|moved| moved.port.end() == end);
                let of = of.flat_map(|moved| &moved.sums).find(|sum| sum.counter == counter);
                assert_eq!(of.map_or(0, |sum| sum.by), grown, "{end:?} {counter:?}");
            }
        }
    }
    all
}

fn rows(file: &Path, of: &str) -> i64 {
    let db = rusqlite::Connection::open(file).unwrap();
    db.query_row(&format!("SELECT count(*) FROM {of}"), [], |row| row.get(0)).unwrap()
}

#[test]
fn digests_have_the_same_sums_as_sweeps() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let (_taped, seen) = simulation(&file, &HistorySettings::new(file.clone()), minutes(150));
    assert_eq!(rows(&file, "spans"), 2, "of two and a half hours");
    assert!(rows(&file, "digests WHERE tier = 0") >= 2);
    let reader = Reader::open(&file).unwrap();
    let mut all = 0;
    // Windows that begin and end in and between hours, digested or not: up to 3 h,
    // traffic is read by sweep.
    let mut windows =
        vec![(0, 600), (0, 1), (3, 239), (200, 280), (238, 242), (250, 470), (470, 599)];
    windows.extend((1..20).map(|nth| (nth * 7919 % 300, 300 + nth * 6133 % 300)));
    for (from, to) in windows {
        let to = to.min(seen.len() - 1);
        all += assert_sums(
            &reader,
            &seen[from],
            &seen[to],
            &[RecordKind::ErrorDeltas, RecordKind::TrafficDeltas],
        );
    }
    assert!(all > 0);
    let cover = reader.coverage(between(&seen[0], &seen[100])).unwrap();
    let known = &cover.fabrics["default"];
    assert_eq!((known.sweeps, &*known.gaps, cover.damaged), (100, &[][..], 0));
    assert!((known.interval - 15.0).abs() < 0.1, "{known:?}");
}

#[test]
fn hourly_traffic_replaces_dropped_sweeps_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let settings =
        HistorySettings { traffic_retention: minutes(10), ..HistorySettings::new(file.clone()) };
    let (_taped, seen) = simulation(&file, &settings, minutes(150));
    let reader = Reader::open(&file).unwrap();
    let last = seen.last().unwrap();
    let series = reader.series(&ends(last), SeriesDetail::All, always()).unwrap();
    let data = series.iter().filter(|of| of.counter == Counter::XmitData);
    let steps: Vec<_> = data.flat_map(|of| &of.steps).collect();
    let is_hour = |from: SystemTime, to: SystemTime| to.duration_since(from).unwrap() > minutes(5);
    assert!(steps.iter().any(|step| is_hour(step.from, step.to)), "none of an hour");
    assert!(steps.iter().any(|step| !is_hour(step.from, step.to)), "none of a sweep");
    for of in &series {
        for pair in of.steps.windows(2) {
            let overlap = pair[0].to.duration_since(pair[1].from).unwrap_or_default();
            assert!(overlap < Duration::from_secs(5), "twice: {:?} and {:?}", pair[0], pair[1]);
        }
    }
    let known = &reader.coverage(always()).unwrap().fabrics["default"];
    let from = known.traffic_from.unwrap();
    assert!(from > wall(minutes(125)) && from < wall(minutes(142)), "{from:?}");
    let full = seen.iter().position(|seen| ended(seen) > from + Duration::from_secs(5)).unwrap();
    assert_sums(&reader, &seen[full], last, &[RecordKind::ErrorDeltas, RecordKind::TrafficDeltas]);
    assert_sums(&reader, &seen[0], last, &[RecordKind::ErrorDeltas]);
}

#[test]
fn long_window_from_hours_has_the_same_sums() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let (_taped, seen) = simulation(&file, &HistorySettings::new(file.clone()), minutes(200));
    let reader = Reader::open(&file).unwrap();
    let last = seen.last().unwrap();
    assert_sums(&reader, &seen[0], last, &[RecordKind::ErrorDeltas, RecordKind::TrafficDeltas]);
    let window = between(&seen[0], last);
    let series = reader.series(&ends(last), SeriesDetail::All, window).unwrap();
    let most = series.iter().map(|of| of.steps.len()).max().unwrap();
    assert!(most > 100, "errors are recorded per reading");
    let data = series.iter().filter(|of| of.counter == Counter::XmitData);
    let most = data.map(|of| of.steps.len()).max().unwrap();
    assert!((3..=100).contains(&most), "three hours, and what came after: {most}");
}

/// While the sweeps of an hour are kept, a window that cuts the hour is answered from them.
#[test]
fn long_window_excludes_earlier_traffic() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let (_taped, seen) = simulation(&file, &HistorySettings::new(file.clone()), minutes(250));
    let reader = Reader::open(&file).unwrap();
    let last = seen.last().unwrap();
    for from in [100, 200, 238, 239, 240, 241, 260] {
        assert!(between(&seen[from], last).length() > minutes(180));
        assert_sums(
            &reader,
            &seen[from],
            last,
            &[RecordKind::ErrorDeltas, RecordKind::TrafficDeltas],
        );
    }
}

/// A sum is of no later time than its hour, though a port was read late in a sweep that took long.
#[test]
fn slow_sweep_counts_up_to_the_end_of_its_hour() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder.path().join("history.db"));
    let mut steady_recorder = SteadyRecorder::at(&Arc::new(Steady::new()), settings.clone(), 1);
    for number in 1..=300 {
        let mut seen = steady_recorder.steady.sweep(number, 1);
        let snapshot = Arc::make_mut(seen.snapshot.as_mut().unwrap());
        let late = if number == 5 { Duration::from_secs(10) } else { Duration::ZERO };
        snapshot.ended = snapshot.ended + late;
        for reading in snapshot.readings.iter_mut().flatten() {
            reading.at = reading.at + late;
            for counter in [Counter::XmitData, Counter::RcvData] {
                reading.set(counter, steady::total(counter, number.min(5)));
            }
        }
        steady_recorder.recorder.record(&seen, wall(SWEEP * u32::try_from(number).unwrap()));
    }
    assert_eq!(steady_recorder.metrics.errors(), 0);
    let db = rusqlite::Connection::open(&settings.file).unwrap();
    db.execute("DELETE FROM frames WHERE tier = 1", []).unwrap();
    let ended: i64 = db.query_row("SELECT ended FROM spans", [], |row| row.get(0)).unwrap();
    let window = Window {
        from: SystemTime::UNIX_EPOCH,
        to: SystemTime::UNIX_EPOCH + Duration::from_micros(ended.unsigned_abs()),
    };
    assert_eq!(sent(&settings, window), 4 * BUSY);
}

#[test]
fn budget_drops_kinds_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let size = 320 << 10;
    let settings = HistorySettings { size, ..HistorySettings::new(file.clone()) };
    let (simulation, seen) = simulation(&file, &settings, minutes(240));
    drop(simulation);
    let bytes = std::fs::metadata(&file).unwrap().len();
    assert!(bytes < size + (64 << 10), "{bytes}");
    // Of the oldest hours traffic is known by the hour, and errors by the sweep.
    let busy = rows(&file, "frames WHERE tier = 1");
    assert!((1..600).contains(&busy), "{busy} of {}", seen.len());
    assert_eq!(rows(&file, "spans"), 3);
    assert_eq!(rows(&file, "digests WHERE tier = 1"), 3);
    let reader = Reader::open(&file).unwrap();
    assert_sums(&reader, &seen[0], seen.last().unwrap(), &[RecordKind::ErrorDeltas]);
}
