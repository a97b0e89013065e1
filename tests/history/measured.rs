//! What recording costs on a large fabric: a measurement, printed, that nothing fails by.

use std::time::{Duration, Instant, SystemTime};

use fabric_exporter::history::{Reader, reader::Recorded};

use crate::{SWEEP, Taped, events, wall};

/// The tree of 10,000 hosts of the scale benchmark, under load, with troubles.
const STORY: &str = "\
fabric: {fat-tree: {levels: 3, hosts: 10000, radix: 40, down: 20, up: 20}}
traffic: {pattern: across, load: 60%}
way: {round-trip: 0s, per-hop: 0s, jitter: 0s}
timeline:
  - slow-receiver: {host: host-77, takes: 10%}
  - bad-cable: {into: \"leaf-0-1[30]\", ratio: 1e-9}
";

/// Sweeps that are measured, after a first one, which holds all totals.
const SWEEPS: u32 = 25;

#[test]
#[ignore = "a measurement: cargo test --release --test history -- --ignored --nocapture measured"]
fn what_recording_costs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut taped = Taped::new(STORY, &file);
    let bytes = || std::fs::metadata(&file).map_or(0, |data| data.len());
    taped.run_to(Duration::from_secs(5));
    let ports =
        taped.simulated.observation().snapshot.as_ref().unwrap().readings.iter().flatten().count();
    println!("{ports} ports; the first sweep: {:?}", taped.account.took());
    let mut took = Vec::new();
    // The first one fills the file's log, which is of no size yet.
    for sweep in 0..SWEEPS {
        let before = bytes();
        taped.run_to(Duration::from_secs(5) + SWEEP * (sweep + 1));
        took.push(taped.account.took());
        println!(
            "sweep {sweep}: {:?}, {} KiB more",
            taped.account.took(),
            (bytes() - before) >> 10
        );
    }
    took.sort();
    println!("median {:?}, most {:?}", took[took.len() / 2], took[took.len() - 1]);
    let whole = bytes();
    println!("{whole} bytes after {SWEEPS} sweeps, {} a sweep", whole / u64::from(SWEEPS));
    taped.recorder.end(SystemTime::now());
    let began = Instant::now();
    let list: Vec<Recorded> = events(&file);
    println!("{} events read in {:?}", list.len(), began.elapsed());
    let began = Instant::now();
    let reader = Reader::open(&file).unwrap();
    let port = reader.ports("leaf-0-1[30]").unwrap().remove(0);
    let tier = fabric_exporter::history::store::Tier::Busy;
    let (grown, _) =
        reader.grown(&[port.id], tier, wall(Duration::ZERO), SystemTime::now()).unwrap();
    println!("{} readings of a port's traffic in {:?}", grown.len(), began.elapsed());
    drop(taped.recorder);
    let began = Instant::now();
    let settings = fabric_exporter::config::HistorySettings::new(file.clone());
    let mut recorder = fabric_exporter::history::Recorder::new(settings, std::sync::Arc::default());
    println!("totals of {} ports read in {:?}", recorder.memory("default").len(), began.elapsed());
}
