//! The clock of the exporter's host is set.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fabric_history::file::record_kind::RecordKind;
use fabric_history::model::{Port, Window};
use fabric_history::settings::HistorySettings;
use fabric_history::source::{EventFilter, SeriesDetail};
use fabric_history::{EventKind, Reader, Source};
use ib_mad::{Counter, Moment};

use crate::frames::frames;
use crate::steady::{BUSY, Steady, SteadyRecorder, settings};
use crate::{SWEEP, always, events, wall};

const DAY: Duration = Duration::from_secs(24 * 3600);
const YEARS: Duration = Duration::from_secs(5 * 365 * 24 * 3600);

/// Records sweeps by two clocks.
struct Clocks {
    steady_recorder: SteadyRecorder,
    wall: SystemTime,
}

impl Clocks {
    fn new(settings: HistorySettings) -> Self {
        let steady_recorder = SteadyRecorder::new(&Arc::new(Steady::new()), settings);
        Self { steady_recorder, wall: wall(Duration::ZERO) }
    }

    fn sweeps(&mut self, many: u32) {
        for _ in 0..many {
            let (number, steady_recorder) = (self.steady_recorder.next, &mut self.steady_recorder);
            let moment = Moment::default() + SWEEP * u32::try_from(number).unwrap();
            let seen =
                steady_recorder.steady.sweep_at(number, steady_recorder.first, moment, self.wall);
            steady_recorder.recorder.record(&seen, self.wall);
            steady_recorder.next += 1;
            self.wall += SWEEP;
        }
        assert_eq!(self.steady_recorder.metrics.errors(), 0);
    }

    /// As another exporter finds it.
    fn restart(&mut self, settings: HistorySettings) {
        let steady = Arc::clone(&self.steady_recorder.steady);
        let next = self.steady_recorder.next;
        let old = std::mem::replace(
            &mut self.steady_recorder,
            SteadyRecorder::new(&steady, settings.clone()),
        );
        drop(old);
        self.steady_recorder = SteadyRecorder::new(&steady, settings);
        assert_eq!(self.steady_recorder.next, next, "totals go on");
    }
}

fn busy(settings: &HistorySettings) -> usize {
    let (whole, torn, _) = frames(&settings.file, RecordKind::TrafficDeltas).unwrap();
    assert_eq!(torn, 0);
    whole
}

fn jumps(settings: &HistorySettings) -> Vec<(SystemTime, String)> {
    let list = events(&settings.file).into_iter();
    list.filter(|it| it.kind == EventKind::ClockJump.label()).map(|it| (it.at, it.text)).collect()
}

#[test]
fn sweeps_after_a_clock_set_back_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder.path().join("history.db"));
    let mut clocks = Clocks::new(settings.clone());
    clocks.sweeps(40);
    clocks.wall -= DAY;
    let back = clocks.wall;
    clocks.sweeps(40);
    assert_eq!(busy(&settings), 79, "all but the first, which says what totals were");
    assert_eq!(jumps(&settings), [(back, "clock set back by 1day".to_owned())]);
    // The time between is that of the second forty alone.
    let reader = Reader::open(&settings.file).unwrap();
    let window = Window { from: back, to: back + SWEEP * 40 };
    let links = reader.events(&EventFilter::all(window)).unwrap();
    assert_eq!(links.iter().filter(|it| it.kind.starts_with("link_")).count(), 40);
    let ports: Vec<_> = reader.ports("leaf-0-0[9]").unwrap().iter().map(Port::end).collect();
    let series = reader.series(&ports, SeriesDetail::Errors, window).unwrap();
    assert_eq!(series.iter().map(|of| of.steps.len()).sum::<usize>(), 40);
    drop(reader);
    clocks.restart(settings.clone());
    clocks.sweeps(3);
    assert_eq!((busy(&settings), jumps(&settings).len()), (82, 1));
}

#[test]
fn clock_years_ahead_for_a_while_drops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let usual = HistorySettings { least_free: 0, ..HistorySettings::new(file) };
    let mut clocks = Clocks::new(usual.clone());
    clocks.sweeps(300);
    clocks.wall += YEARS;
    // A little less than an hour.
    clocks.sweeps(230);
    clocks.wall -= YEARS;
    clocks.sweeps(300);
    // The first sweep of all, and none besides.
    assert_eq!(busy(&usual), 829);
    let told: Vec<String> = jumps(&usual).into_iter().map(|(_, text)| text).collect();
    assert_eq!(told.len(), 2);
    // In the order of their times.
    assert!(told[0].contains("back by 4years") && told[1].contains("forward by 4years"));
    // The same with an exporter that begins while the clock is wrong.
    clocks.wall += YEARS;
    clocks.restart(usual.clone());
    clocks.sweeps(230);
    clocks.wall -= YEARS;
    clocks.restart(usual.clone());
    clocks.sweeps(10);
    assert_eq!(busy(&usual), 829 + 240);
}

/// A time that stays is trusted, and old data is dropped: a little with each sweep, so that an operator can notice.
#[test]
fn trusted_time_drops_old_data_gradually() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let usual = HistorySettings { least_free: 0, ..HistorySettings::new(file) };
    let mut clocks = Clocks::new(usual.clone());
    clocks.sweeps(300);
    clocks.wall += YEARS;
    clocks.sweeps(240);
    assert_eq!(busy(&usual), 539, "an hour is not over");
    clocks.sweeps(1);
    let mut before = busy(&usual);
    for _ in 0..18 {
        clocks.sweeps(1);
        let now = busy(&usual);
        assert!(now < before && before - now < 20, "{before} and then {now}");
        before = now;
    }
    clocks.sweeps(10);
    let of_now = clocks.steady_recorder.next - 301;
    assert_eq!(busy(&usual) as u64, of_now);
    assert!(events(&usual.file).iter().all(|it| it.at > wall(YEARS)));
}

/// By size, what was written first is dropped first: sweeps with times in the future do not outlive others.
#[test]
fn sweeps_of_a_wrong_clock_are_dropped_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let size = 200 << 10;
    let settings = HistorySettings { size, ..settings(&folder.path().join("history.db")) };
    let mut clocks = Clocks::new(settings.clone());
    clocks.wall += YEARS;
    clocks.sweeps(40);
    clocks.wall -= YEARS;
    clocks.sweeps(1500);
    let (whole, _, last) = frames(&settings.file, RecordKind::TrafficDeltas).unwrap();
    assert!(whole > 10, "{whole}");
    assert!(last.unwrap() < wall(YEARS), "traffic of the future is kept, and that of today is not");
}

/// What one port sent in a window, in the counter's own unit.
pub fn sent(settings: &HistorySettings, window: Window) -> u64 {
    let reader = Reader::open(&settings.file).unwrap();
    let ports: Vec<_> = reader.ports("leaf-0-0[9]").unwrap().iter().map(Port::end).collect();
    let series = reader.series(&ports, SeriesDetail::All, window).unwrap();
    let sent = series.iter().filter(|of| of.counter == Counter::XmitData);
    let sent: u64 = sent.flat_map(|of| &of.steps).map(|step| step.by).sum();
    sent / Counter::XmitData.row().scale
}

/// Sweeps that bear times of an hour that was digested before are not taken for part of it.
#[test]
fn traffic_after_a_clock_set_back_into_a_digested_hour() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder.path().join("history.db"));
    let mut clocks = Clocks::new(settings.clone());
    clocks.sweeps(300);
    clocks.wall -= Duration::from_secs(65 * 60 + 7);
    clocks.sweeps(100);
    assert_eq!(sent(&settings, always()), 399 * BUSY);
}

/// A sweep with an older time says nothing about the sweeps of an hour.
#[test]
fn hourly_traffic_with_older_times_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder.path().join("history.db"));
    let mut clocks = Clocks::new(settings.clone());
    clocks.sweeps(300);
    let end = clocks.wall;
    clocks.wall -= DAY;
    clocks.sweeps(40);
    // What there is no room for.
    let db = rusqlite::Connection::open(&settings.file).unwrap();
    let first =
        "DELETE FROM frames WHERE tier = 1 AND id < (SELECT max(id) FROM frames WHERE tier = 1
        AND began <= (SELECT began FROM spans ORDER BY id LIMIT 1))";
    assert!(db.execute(first, []).unwrap() > 200);
    drop(db);
    let window = Window { from: wall(Duration::ZERO), to: end };
    assert_eq!(sent(&settings, window), 299 * BUSY);
}

/// The preceding sweep is the one that was written before, whatever the times are.
#[test]
fn after_a_restart_the_last_written_sweep_precedes() {
    let folder = tempfile::tempdir().unwrap();
    let settings = settings(&folder.path().join("history.db"));
    let mut clocks = Clocks::new(settings.clone());
    clocks.wall += YEARS;
    clocks.sweeps(10);
    clocks.wall -= YEARS;
    clocks.sweeps(10);
    clocks.restart(settings.clone());
    clocks.sweeps(10);
    let db = rusqlite::Connection::open(&settings.file).unwrap();
    let alone = "SELECT count(*) FROM sweeps WHERE since IS NULL";
    let alone: i64 = db.query_row(alone, [], |row| row.get(0)).unwrap();
    assert_eq!(alone, 2, "the first of all, and the first after the clock was set back");
}
