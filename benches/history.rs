//! The cost of recording, and of queries: 60,000 ports of a simulated fabric, swept every 15 s, compared
//! with the targets.
//!
//! Three ports in five have different traffic in each sweep, with waits and corrected errors, and one in a
//! hundred has symbol errors in each: random numbers, because simulated traffic compresses far too well.
//! 300 sweeps are recorded as in the exporter. For queries of a week the hour that was digested is then
//! copied 167 times, one hour earlier each: these are the rows of a week of such hours.
//!
//! CPU time is that of this thread. Memory is the peak of the recorder's heap; SQLite's cache of 2 MB and
//! zstd's memory for each frame are not included. Files are read
//! from the page cache, as they are on a host that has just written them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[path = "measure/long_history.rs"]
mod long_history;
mod measure;
use test_rig as rig;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use fabric_exporter::config::options::FabricOptions;
use fabric_history::incidents::Incidents;
use fabric_history::local_clock::LocalClock;
use fabric_history::model::{Port, Window};
use fabric_history::report::{Report, html};
use fabric_history::settings::HistorySettings;
use fabric_history::source::{EventFilter, SeriesDetail};
use fabric_history::{Reader, Recorder, Source};
use fabric_observation::{Observation, RecorderMetrics};
use ib_sim::scenario::{Overrides, Scenario};
use long_history::{Noise, go_on, lengthen};
use measure::{median, pin};
use peak_alloc::PeakAlloc;
use rig::Simulated;

/// Counts the bytes of the heap.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The tree of 10,000 hosts of the scale benchmark.
const STORY: &str = "\
fabric: {fat-tree: {levels: 3, hosts: 10000, radix: 40, down: 20, up: 20}}
way: {round-trip: 0s, per-hop: 0s, jitter: 0s}
";

const INTERVAL: Duration = Duration::from_secs(15);

/// Sweeps that are measured, after a first one, which has all totals: more than an hour.
const SWEEPS: usize = 300;

/// Sweeps before an hour is digested, from which the size of a sweep is computed.
const SIZED: std::ops::Range<usize> = 20..220;

/// Sweeps that are compared, every second one while another is recorded.
const TURNS: usize = 40;

/// Suspect cables in the report of the hour.
const SUSPECTS: usize = 20;

/// The hours of a week.
const HOURS: i64 = 168;

/// The CPU time of this thread, in seconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn took<T>(what: impl FnOnce() -> T) -> (T, f64) {
    let began = Instant::now();
    let value = what();
    (value, began.elapsed().as_secs_f64())
}

fn row(what: &str, measured: &str, wanted: &str) {
    println!("  {what:<58} {measured:>12}   {wanted}");
}

fn ms(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}

/// The result of a run of sweeps.
#[derive(Default)]
struct Costs {
    first: f64,
    /// Wall time and CPU time of each sweep, in seconds.
    wall: Vec<f64>,
    cpu: Vec<f64>,
    /// The file's size after each sweep.
    bytes: Vec<u64>,
    peak: usize,
}

fn record(settings: &HistorySettings, seen: &mut Observation) -> Costs {
    let mut costs = Costs::default();
    let account = Arc::new(RecorderMetrics::default());
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let mut recorder = Recorder::new(settings.clone(), Arc::clone(&account));
    let mut noise = Noise(1);
    for sweep in 0..=SWEEPS {
        if sweep > 0 {
            go_on(Arc::make_mut(seen.snapshot.as_mut().unwrap()), INTERVAL, &mut noise);
            seen.stats.sweeps += 1;
        }
        let snapshot = seen.snapshot.as_ref().unwrap();
        let now = snapshot.anchor.wall_of(snapshot.ended);
        let busy = cpu();
        let wall = took(|| recorder.record(seen, now)).1;
        if sweep == 0 {
            costs.first = wall;
            continue;
        }
        costs.cpu.push(cpu() - busy);
        costs.wall.push(wall);
        costs.bytes.push(account.get().bytes);
    }
    costs.peak = HEAP.peak_usage() - before;
    assert_eq!((account.errors(), account.get().missed), (0, 0));
    costs
}

/// Sets the verdict of some cables to bad, so that a report has something to plot.
fn suspect(file: &Path, at: SystemTime) {
    let db = rusqlite::Connection::open(file).unwrap();
    let micros = at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
    let updated = db.execute(
        "INSERT INTO events (at, fabric, kind, link, place, text, detail)
         SELECT ?1, 1, 'verdict_changed', id, 'a cable', 'from ok to bad', '{\"from\": \"ok\", \"to\": \"bad\"}'
         FROM links ORDER BY id LIMIT ?2",
        (i64::try_from(micros).unwrap(), i64::try_from(SUSPECTS).unwrap()),
    );
    assert_eq!(updated.unwrap(), SUSPECTS);
}

/// The fabric, swept without its registers: what they cost depends on when a device has its turn.
fn simulated() -> Simulated {
    let scenario = Scenario::parse("history", STORY).unwrap();
    let fabric =
        FabricOptions { details: Some(true), registers: Some(false), ..FabricOptions::default() };
    Simulated::with(scenario.resolve(&Overrides::default()).unwrap(), fabric)
}

/// Time from the start of a sweep until it is published, in turn without a recorder and with one that
/// records the previous sweep on another CPU.
fn beside(settings: &HistorySettings) -> [f64; 2] {
    let simulated = simulated();
    simulated.run_to(Duration::from_secs(5));
    let (send, taken) = std::sync::mpsc::channel::<Arc<Observation>>();
    let settings = settings.clone();
    let recording = std::thread::spawn(move || {
        pin(1);
        let mut recorder = Recorder::new(settings, Arc::default());
        for seen in taken {
            recorder.record(&seen, SystemTime::now());
        }
    });
    let mut times = [Vec::new(), Vec::new()];
    for turn in 0..TURNS {
        let with = turn % 2;
        if with == 1 {
            send.send(simulated.observation()).unwrap();
        }
        times[with].push(took(|| simulated.run_for(INTERVAL)).1);
    }
    drop(send);
    recording.join().unwrap();
    times.map(median)
}

/// The bytes of some rows.
fn bytes(file: &Path, of: &str) -> f64 {
    let db = rusqlite::Connection::open(file).unwrap();
    let sql = format!("SELECT coalesce(sum(length(data)), 0) FROM {of}");
    db.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap() as f64
}

fn main() {
    // `cargo test --benches` requests a list of tests; a benchmark has none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    pin(0);
    let folder = tempfile::tempdir().unwrap();
    let settings = HistorySettings::new(folder.path().join("history.db"));
    let file = settings.file.clone();
    let mut seen = {
        let simulated = simulated();
        simulated.run_to(Duration::from_secs(5));
        (*simulated.observation()).clone()
    };
    let ports = seen.snapshot.as_ref().unwrap().readings.iter().flatten().count();
    println!(
        "{ports} ports, {SWEEPS} sweeps, one every {} s of virtual time\n",
        INTERVAL.as_secs()
    );

    let costs = record(&settings, &mut seen);
    let snapshot = seen.snapshot.as_ref().unwrap();
    let end = snapshot.anchor.wall_of(snapshot.ended);
    let grown = costs.bytes[SIZED.end] - costs.bytes[SIZED.start];
    let a_sweep = grown as f64 / SIZED.len() as f64;
    let processor = costs.cpu.iter().sum::<f64>() / SWEEPS as f64;
    let slowest = costs.wall.iter().copied().fold(0.0, f64::max);
    let share = processor / INTERVAL.as_secs_f64() * 100.0;
    println!("recording");
    row("a sweep in the file", &format!("{:.2} MB", a_sweep / 1e6), "at most 1.5 MB");
    row("of one processor, with digesting", &format!("{share:.2}%"), "at most 1%");
    row("a sweep, of processor time", &ms(processor), "");
    row("a sweep, the middle one", &ms(median(costs.wall.clone())), "");
    row("a sweep with which an hour is digested", &ms(slowest), "");
    row("the first sweep of a new file", &ms(costs.first), "");
    let mib = costs.peak as f64 / f64::from(1 << 20);
    row("memory of the recorder", &format!("{mib:.0} MiB"), "at most 64 MiB");

    let other = HistorySettings::new(folder.path().join("beside.db"));
    let [without, with] = beside(&other);
    println!("\nsweeps of the monitor on a simulated fabric");
    row("without a recorder", &ms(without), "");
    row("while the previous one is recorded", &ms(with), "");
    row("ratio", &format!("{:.3}", with / without), "about 1");

    let month = 30.0 * 24.0;
    let rare = bytes(&file, "digests WHERE tier = 0");
    let thinned = bytes(&file, "digests WHERE tier = 1");
    let states = bytes(&file, "frames WHERE tier >= 4") / 2.0;
    let sweeps = 240.0 * 60.0;
    let rare_month = (rare + states + sweeps) * month;
    println!("\nbytes");
    row("errors of an hour, digested", &format!("{:.2} MB", rare / 1e6), "");
    row("traffic of an hour, thinned", &format!("{:.2} MB", thinned / 1e6), "");
    row("state of the whole fabric, once", &format!("{:.1} kB", states / 1e3), "");
    row("30 days of errors and events", &format!("{:.0} MB", rare_month / 1e6), "at most 1,074 MB");
    let room = settings.size as f64 - rare_month - 240.0 * a_sweep;
    row(
        "days of thinned traffic in addition, with one full hour",
        &format!("{:.1}", room / thinned / 24.0),
        "",
    );

    println!("\nstart after {SWEEPS} sweeps");
    let recorder = Recorder::new(settings.clone(), Arc::default());
    let (links, seconds) = took(|| recorder.link_errors("default", end).links.len());
    row(&format!("errors of {links} links"), &ms(seconds), "");
    drop(recorder);

    // With the times of day in another order than in the file.
    lengthen(&file, HOURS);
    suspect(&file, end - Duration::from_secs(1800));
    let size = std::fs::metadata(&file).unwrap().len();
    println!("\nqueries of a file with one week ({} MB)", size / 1_000_000);
    let reader = Reader::open(&file).unwrap();
    let before = |seconds: u64| Window { from: end - Duration::from_secs(seconds), to: end };
    link(&reader, before(7 * 24 * 3600), "a link over 7 days", "under 300 ms");
    link(&reader, before(3600), "a link over an hour, traffic of each sweep", "");
    report(&reader, before(3600));
    drop(reader);
    let (ports, seconds) = took(|| Recorder::new(settings, Arc::default()).totals("default").len());
    row(&format!("totals of {ports} ports at start"), &ms(seconds), "");
}

fn link(reader: &Reader, window: Window, what: &str, wanted: &str) {
    let times = (0..5).map(|_| {
        let asked = || {
            let port = reader.ports("leaf-0-1[30]").unwrap().remove(0);
            let cables = reader.cables(&[port.end()], window).unwrap();
            let ends: Vec<_> = cables.iter().flat_map(|cable| &cable.ends).map(Port::end).collect();
            let all = EventFilter { ports: ends.clone(), ..EventFilter::all(window) };
            reader.events(&all).unwrap();
            let series = reader.series(&ends, SeriesDetail::All, window).unwrap();
            series.iter().map(|of| of.steps.len()).sum::<usize>()
        };
        took(asked)
    });
    let times: Vec<(usize, f64)> = times.collect();
    let steps = times[0].0;
    let seconds = median(times.into_iter().map(|(_, seconds)| seconds).collect());
    row(&format!("{what}: {steps} readings"), &ms(seconds), wanted);
}

fn report(reader: &Reader, window: Window) {
    let (events, events_took) = took(|| reader.events(&EventFilter::all(window)).unwrap());
    let (moved, moved_took) = took(|| reader.error_deltas(window).unwrap());
    let fabrics = |at: SystemTime| reader.fabrics(at).unwrap();
    let (then, then_took) = took(|| (fabrics(window.from), fabrics(window.to)));
    let (cover, cover_took) = took(|| reader.coverage(window).unwrap());
    let ends: Vec<_> = moved.iter().step_by(30).take(20).map(|moved| moved.port.end()).collect();
    let (series, series_took) = took(|| reader.series(&ends, SeriesDetail::All, window).unwrap());
    let all = events_took + moved_took + then_took + cover_took + series_took;
    let (page, whole) = took(|| {
        let tell = |at: SystemTime| humantime::format_rfc3339_seconds(at).to_string();
        let report = Report::compute(reader, window, None, window.to, &tell).unwrap();
        assert_eq!(report.findings.len() + report.more_findings, SUSPECTS);
        html::write(&report, &LocalClock::now())
    });
    let day = Window { from: window.to - Duration::from_secs(24 * 3600), ..window };
    // The page has the state of the fabric in memory.
    let after = fabrics(window.to);
    let (_, latest) = took(|| Incidents::latest(reader, day, &after, 10).unwrap());
    row("the latest incidents, for the overview", &ms(latest), "under 300 ms");
    let what = format!("report of one hour: {SUSPECTS} suspects, {} kB of HTML", page.len() / 1000);
    row(&what, &ms(whole), "under 3 s");
    row("  the sum of its queries", &ms(all), "");
    row(&format!("  {} events", events.len()), &ms(events_took), "");
    row(&format!("  errors of {} ports", moved.len()), &ms(moved_took), "");
    let cables: usize = then.1.iter().map(|then| then.cables.len()).sum();
    row(&format!("  state of the fabric before and after, {cables} cables"), &ms(then_took), "");
    let sweeps: usize = cover.fabrics.values().map(|known| known.sweeps).sum();
    row(&format!("  coverage of {sweeps} sweeps"), &ms(cover_took), "");
    let steps: usize = series.iter().map(|of| of.steps.len()).sum();
    row(&format!("  {} ports, {steps} readings", ends.len()), &ms(series_took), "");
}
