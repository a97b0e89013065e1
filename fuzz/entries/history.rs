//! A history file with damaged bytes: readers return an error or a result, and a recorder sets the file
//! aside or continues.

use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use fabric_history::diff::diff_links;
use fabric_history::export::{ExportFilter, openmetrics};
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Port, Window};
use fabric_history::report::{Report, html, markdown};
use fabric_history::settings::HistorySettings;
use fabric_history::source::{EventFilter, SeriesDetail};
use fabric_history::{Reader, Recorder, Source};
use fabric_observation::RecorderMetrics;
use ib_mad::Counter;

use super::fabric::watch;
use super::input::Input;

/// Recorded sweeps: enough for the digest of an hour.
const SWEEPS: u32 = 90;

/// The sweep interval.
const INTERVAL: Duration = Duration::from_secs(60);

/// A history file in which the counters of all ports increase in each sweep.
pub fn recorded() -> &'static [u8] {
    static RECORDED: OnceLock<Vec<u8>> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        let mut recorder = recorder(&file);
        let mut seen = (*watch(&[]).fabrics[0]).clone();
        let snapshot = seen.snapshot.as_ref().unwrap();
        let (began, readings) = (snapshot.began, snapshot.readings.clone());
        for sweep in 1..=SWEEPS {
            let snapshot = Arc::make_mut(seen.snapshot.as_mut().unwrap());
            snapshot.began = began + INTERVAL * sweep;
            snapshot.ended = snapshot.began;
            for (reading, first) in snapshot.readings.iter_mut().zip(&readings) {
                let (Some(reading), Some(first)) = (reading, first) else { continue };
                reading.at = snapshot.began;
                for counter in Counter::all() {
                    if let Some(total) = first.get(counter) {
                        reading.set(counter, total + u64::from(sweep));
                    }
                }
            }
            let now = snapshot.anchor.wall_of(snapshot.ended);
            seen.stats.sweeps += 1;
            recorder.record(&seen, now);
        }
        drop(recorder);
        let (sweeps, events) = Reader::open(&file).unwrap().counts().unwrap();
        assert!(sweeps == SWEEPS as usize && events > 0, "{sweeps} sweeps, {events} events");
        fs::read(&file).unwrap()
    })
}

fn recorder(file: &Path) -> Recorder {
    let settings = HistorySettings { least_free: 0, ..HistorySettings::new(file.into()) };
    Recorder::new(settings, Arc::<RecorderMetrics>::default())
}

fn record(file: &Path) {
    let mut recorder = recorder(file);
    let _ = recorder.totals("default");
    recorder.finish(SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_001_000));
}

/// The time range of the file, and some more.
fn always() -> Window {
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    Window { from: at(1_699_990_000), to: at(1_700_010_000) }
}

pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let flags = input.u8();
    let mut damaged = recorded().to_vec();
    while !input.is_empty() {
        let at = (usize::from(input.u8()) << 16 | usize::from(input.u16())) % damaged.len();
        let count = usize::from(input.u8() & 0x0f) + 1;
        let put = input.bytes(count);
        damaged[at..].iter_mut().zip(put).for_each(|(to, from)| *to = *from);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    fs::write(&file, &damaged).unwrap();
    if let Ok(reader) = Reader::open(&file) {
        ask(&reader);
        let _ = openmetrics(&reader, &ExportFilter::all(always()), &mut std::io::sink());
        if flags & 2 != 0 {
            let _ = reader.dump_unnamed(always(), 0);
        }
    }
    if flags & 4 != 0 {
        record(&file);
    }
}

/// Runs all queries of a source, and renders the results.
pub fn ask(source: &dyn Source) {
    let window = always();
    let _ = source.span();
    let events = source.events(&EventFilter::all(window)).unwrap_or_default();
    let ports = source.ports("leaf-0-0").unwrap_or_default();
    let ends: Vec<_> = ports.iter().map(Port::end).collect();
    let _ = source.events(&EventFilter { ports: ends.clone(), ..EventFilter::all(window) });
    let _ = (source.series(&ends, SeriesDetail::All, window), source.cables(&ends, window));
    let _ = (source.error_deltas(window), source.fabrics(window.to), source.coverage(window));
    for event in &events {
        // An unknown kind may come from a later version.
        let _ = serde_json::to_string(event).unwrap();
    }
    if let Ok(links) = diff_links(source, window) {
        for link in links {
            let _ = (link.label(), link.sum(), link.changes());
        }
    }
    let clock = LocalClock::now();
    if let Ok(report) = Report::compute(source, window, None, window.to, &|at| clock.format(at)) {
        let _ = (report.summary(), markdown::write(&report, &clock));
        let page = html::write(&report, &clock);
        assert!(!page.contains("<script>alert"), "text is escaped");
    }
}
