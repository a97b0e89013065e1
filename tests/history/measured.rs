//! What recording costs on a large fabric: a measurement, printed, that nothing fails by.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use fabric_exporter::config::HistorySettings;
use fabric_exporter::fabric::counter::Kind;
use fabric_exporter::fabric::{Counter, Moment, Snapshot};
use fabric_exporter::history::source::Detail;
use fabric_exporter::history::{Reader, Recorder, Source};
use fabric_exporter::monitor::Recording;

use crate::rig::Simulated;
use crate::{SWEEP, always, events};

/// The tree of 10,000 hosts of the scale benchmark.
const STORY: &str = "\
fabric: {fat-tree: {levels: 3, hosts: 10000, radix: 40, down: 20, up: 20}}
way: {round-trip: 0s, per-hop: 0s, jitter: 0s}
";

/// Sweeps that are measured, after a first one, which holds all totals.
const SWEEPS: u32 = 40;

/// Numbers without a pattern (a linear congruential generator, Knuth's): real traffic has none, and
/// simulated traffic packs far too well.
struct Noise(u64);

impl Noise {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 16) % most
    }
}

/// Lets another interval go by: each port carries something else, one in a hundred has errors.
fn go_on(snapshot: &mut Snapshot, noise: &mut Noise) {
    snapshot.began = snapshot.began + SWEEP;
    snapshot.ended = snapshot.ended + SWEEP;
    for reading in snapshot.readings.iter_mut().flatten() {
        reading.at = Moment(reading.at.0 + 15_000_000_000 + noise.below(100_000_000));
        for counter in Counter::all() {
            let Some(total) = reading.get(counter) else { continue };
            let more = match (counter.row().kind, counter) {
                // Up to 50 GB/s for 15 s, in words of four bytes, and packets of some KB.
                (Kind::Traffic, Counter::XmitData | Counter::RcvData) => {
                    noise.below(187_500_000_000)
                }
                (Kind::Traffic, Counter::MulticastXmitPkts | Counter::MulticastRcvPkts) => {
                    noise.below(100)
                }
                (Kind::Traffic, _) => noise.below(200_000_000),
                (_, Counter::XmitWait | Counter::FecCorrectedBlocks) => noise.below(1 << 20),
                (Kind::Error, Counter::SymbolErrors) if noise.below(100) == 0 => noise.below(50),
                _ => 0,
            };
            reading.set(counter, total + more);
        }
    }
}

#[test]
#[ignore = "a measurement: cargo test --release --test history -- --ignored --nocapture measured"]
fn what_recording_costs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let account = Arc::new(Recording::default());
    let settings = HistorySettings::new(file.clone());
    let mut recorder = Recorder::new(settings.clone(), Arc::clone(&account));
    let simulated = Simulated::text(STORY);
    simulated.run_to(Duration::from_secs(5));
    let mut seen = (*simulated.observation()).clone();
    let ports = seen.snapshot.as_ref().unwrap().readings.iter().flatten().count();
    recorder.take(&seen, SystemTime::now());
    println!("{ports} ports; the first sweep: {:?}, {} KiB", account.took(), account.bytes() >> 10);
    let (mut took, mut noise) = (Vec::new(), Noise(1));
    for _ in 0..SWEEPS {
        go_on(seen.snapshot.as_mut().unwrap(), &mut noise);
        seen.tally.sweeps += 1;
        recorder.take(&seen, SystemTime::now());
        took.push(account.took());
    }
    took.sort();
    println!("a sweep: median {:?}, most {:?}", took[took.len() / 2], took[took.len() - 1]);
    recorder.end(SystemTime::now());
    drop(recorder);
    let bytes = std::fs::metadata(&file).unwrap().len();
    println!("{} KiB after {SWEEPS} sweeps: {} a sweep", bytes >> 10, bytes / u64::from(SWEEPS));
    let began = Instant::now();
    println!("{} events read in {:?}", events(&file).len(), began.elapsed());
    let began = Instant::now();
    let reader = Reader::open(&file).unwrap();
    let port = reader.ports("leaf-0-1[30]").unwrap().remove(0);
    let series = reader.series(&[port.end()], Detail::All, always()).unwrap();
    println!(
        "{} readings of a port's traffic in {:?}",
        series.iter().map(|of| of.steps.len()).sum::<usize>(),
        began.elapsed()
    );
    let began = Instant::now();
    let mut recorder = Recorder::new(settings, Arc::default());
    println!("totals of {} ports read in {:?}", recorder.memory("default").len(), began.elapsed());
}
