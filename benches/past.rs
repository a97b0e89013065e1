//! The cost of pages of the past: 5,000 hosts, and a history of 30 days.
//!
//! 300 sweeps are recorded as in the exporter; the hour that was digested is then copied 719 times, one hour earlier
//! each, and 40,000 events are added: a node that goes down and comes up, or a verdict that changes, every minute.
//! Requested over HTTP, as by a browser: the first page of a moment reads the file, those after it do not.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "measure/long_history.rs"]
mod long_history;
mod measure;
use test_rig as rig;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use fabric_exporter::config::options::FabricOptions;
use fabric_exporter::metrics::OwnMetrics;
use fabric_exporter::published::Published;
use fabric_exporter::server::WebApp;
use fabric_history::Recorder;
use fabric_history::settings::HistorySettings;
use fabric_observation::Observation;
use ib_sim::scenario::{Overrides, Scenario};
use long_history::{Noise, go_on, lengthen};
use measure::median;
use rig::Simulated;

const STORY: &str = "\
fabric: {fat-tree: {levels: 3, hosts: 5000, radix: 40, down: 20, up: 20}}
way: {round-trip: 0s, per-hop: 0s, jitter: 0s}
";
const INTERVAL: Duration = Duration::from_secs(15);
const SWEEPS: usize = 300;
const HOURS: i64 = 720;
const EVENTS: i64 = 40_000;
/// How often each page is requested, of another moment each time.
const TIMES: u64 = 7;

/// Records some more than an hour; returns the end.
fn record(settings: &HistorySettings, seen: &mut Observation) -> SystemTime {
    let mut recorder = Recorder::new(settings.clone(), Arc::default());
    let mut noise = Noise(1);
    for _ in 0..=SWEEPS {
        let snapshot = Arc::make_mut(seen.snapshot.as_mut().unwrap());
        go_on(snapshot, INTERVAL, &mut noise);
        seen.stats.sweeps += 1;
        let now = snapshot.anchor.wall_of(snapshot.ended);
        recorder.record(seen, now);
    }
    let snapshot = seen.snapshot.as_ref().unwrap();
    snapshot.anchor.wall_of(snapshot.ended)
}

/// Numbers the sweeps by their times, as if they had been recorded one after another.
fn put_in_order(file: &Path) {
    let db = rusqlite::Connection::open(file).unwrap();
    let renumber = "BEGIN;
        UPDATE sweeps SET id = began / 1000000 + 1000000000000;
        UPDATE spans SET last = began / 1000000 + 1000000000000;
        -- Otherwise the clock would have been set back when the recording began.
        UPDATE sweeps SET since = began - 15000000 WHERE since IS NULL;
        COMMIT";
    db.execute_batch(renumber).unwrap();
}

/// Adds the events of a month: nodes that go down and come up, and verdicts that change.
fn add_events(file: &Path, end: SystemTime) {
    let db = rusqlite::Connection::open(file).unwrap();
    let micros = end.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
    let (end, step) = (i64::try_from(micros).unwrap(), HOURS * 3_600_000_000 / EVENTS);
    let detail = "{\"from\":\"ok\",\"to\":\"bad\",\"reasons\":[{\"reason\":\"bit_errors\",\"verdict\":\"bad\",\
                  \"evidence\":\"symbol BER 5.0e-11 (limit 1e-14): 904 symbol errors in 45s\"}],\"repair\":\"reseat\"}";
    db.execute_batch("BEGIN").unwrap();
    for nth in 0..EVENTS {
        let at = end - nth * step;
        let (kind, node, link) = match nth % 4 {
            0 => ("node_up", Some(nth % 5_000 + 1), None),
            1 => ("node_down", Some(nth % 5_000 + 1), None),
            _ => ("verdict_changed", None, Some(nth % 9_000 + 1)),
        };
        let detail = link.map(|_| detail);
        db.execute(
            "INSERT INTO events (at, fabric, kind, node, link, place, text, detail)
             VALUES (?1, 1, ?2, ?3, ?4, 'a place', 'what happened there', ?5)",
            (at, kind, node, link, detail),
        )
        .unwrap();
    }
    // The exporter started before all of it.
    db.execute("DELETE FROM events WHERE kind = 'exporter_start'", []).unwrap();
    db.execute_batch("COMMIT").unwrap();
}

fn main() {
    // `cargo test --benches` requests a list of tests; a benchmark has none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let settings = HistorySettings::new(folder.path().join("history.db"));
    let scenario = Scenario::parse("past", STORY).unwrap();
    let fabric =
        FabricOptions { details: Some(true), registers: Some(false), ..FabricOptions::default() };
    let simulated = Simulated::with(scenario.resolve(&Overrides::default()).unwrap(), fabric);
    simulated.run_to(Duration::from_secs(5));
    let mut seen = (*simulated.observation()).clone();
    drop(simulated);
    let end = record(&settings, &mut seen);
    lengthen(&settings.file, HOURS);
    put_in_order(&settings.file);
    add_events(&settings.file, end);
    let fabric = &seen.snapshot.as_ref().unwrap().fabric;
    let (nodes, links) = (fabric.nodes.len(), fabric.whole_links().count());
    let size = std::fs::metadata(&settings.file).unwrap().len() / 1_000_000;
    println!("{nodes} nodes, {links} links, {HOURS} hours, {EVENTS} events, {size} MB");

    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let published = Published::first(vec![Arc::new(seen)].into());
    let (_sender, latest) = tokio::sync::watch::channel(Arc::new(published));
    let own = OwnMetrics::new(Path::new("/proc"));
    let web = WebApp::new(latest, own, "/metrics", Some(settings.file.clone()));
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let server = listener.local_addr().unwrap();
    runtime.spawn(async move { axum::serve(listener, web.router()).await });
    let agent = ureq::Agent::new_with_defaults();
    let ask = |page: &str| {
        let began = Instant::now();
        let mut answer = agent.get(format!("http://{server}{page}")).call().unwrap();
        let bytes = answer.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap().len();
        (began.elapsed().as_secs_f64() * 1e3, bytes)
    };
    for (age, hours) in
        [("an hour ago", 1u64), ("a day ago", 24), ("15 days ago", 360), ("29 days ago", 700)]
    {
        println!("\n{age:<44} {:>9} {:>9} {:>9} {:>10}", "first", "worst", "again", "bytes");
        for page in [
            "/",
            "/links",
            "/switches",
            "/hosts",
            "/topology",
            "/traffic",
            "/events",
            "/search?q=host-1",
            "/api/v1/links?limit=100",
            "/changes?diff=30d",
        ] {
            let (mut first, mut again, mut bytes) = (Vec::new(), Vec::new(), 0);
            for nth in 0..TIMES {
                let at = end - Duration::from_secs(hours * 3600 + nth * 37 + 60);
                let joint = if page.contains('?') { '&' } else { '?' };
                let at = humantime::format_rfc3339_millis(at);
                let from = humantime::format_rfc3339_millis(
                    end - Duration::from_secs((hours + 12) * 3600),
                );
                let page = page.replace("30d", &from.to_string());
                let address = format!("{page}{joint}at={at}");
                // Another page has not read the moment before.
                let (took, size) = ask(&address);
                first.push(took);
                bytes = size;
                again.push(ask(&address).0);
                // Three moments are kept: these push it out.
                for other in 1..=4 {
                    let at = end - Duration::from_secs(hours * 3600 + nth * 37 + other * 300 + 600);
                    ask(&format!("/host?at={}", humantime::format_rfc3339_millis(at)));
                }
            }
            let worst = first.iter().copied().fold(0.0, f64::max);
            let (first, again) = (median(first), median(again));
            println!("{page:<44} {first:>6.0} ms {worst:>6.0} ms {again:>6.0} ms {bytes:>10}");
        }
    }
}
