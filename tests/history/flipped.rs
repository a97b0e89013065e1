//! Flipped bytes anywhere in a file or in its write-ahead log: the rest is read, or the file is set aside, or
//! the damage is counted; and recording continues.

use std::path::Path;
use std::sync::Arc;

use fabric_history::file::record_kind::RecordKind;
use fabric_history::model::Port;
use fabric_history::source::{EventFilter, SeriesDetail};
use fabric_history::{Reader, Recorder, Source};
use ib_sim::rng::Rng;

use crate::always;
use crate::damaged::set_aside;
use crate::frames::frames;
use crate::steady::{Steady, SteadyRecorder, settings};

/// How many copies of each kind are damaged.
const TIMES: u64 = 20;

const SWEEPS: u64 = 200;

/// What was found of damaged copies.
#[derive(Debug, Default)]
struct Found {
    whole: u32,
    less: u32,
    set_aside: u32,
    counted: u32,
    /// Files that SQLite finds no fault with, and that cannot be recorded in: a table's name was hit.
    refused: u32,
}

/// Runs all queries; returns the number of damaged frames, if it can be read.
fn read(file: &Path) -> Option<usize> {
    let reader = Reader::open(file).ok()?;
    let _ = reader.events(&EventFilter::all(always()));
    let ports = reader.ports("leaf-0-0").unwrap_or_default();
    let ports: Vec<_> = ports.iter().map(Port::end).collect();
    let _ = reader.series(&ports, SeriesDetail::All, always());
    let tiers = [
        RecordKind::ErrorDeltas,
        RecordKind::TrafficDeltas,
        RecordKind::FirstTotals,
        RecordKind::AllTotals,
        RecordKind::ErrorTotals,
    ];
    let torn = tiers.map(|tier| frames(file, tier).ok().map(|(_, torn, _)| torn));
    torn.into_iter().sum()
}

/// Makes a copy of a file with what belongs to it, damages it, and sees what becomes of it.
fn survives(
    steady: &Arc<Steady>,
    from: &Path,
    suffixes: &[&str],
    damage: impl FnOnce(&Path),
    found: &mut Found,
) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    for suffix in suffixes {
        let name = format!("history.db{suffix}");
        std::fs::copy(from.with_file_name(&name), folder.path().join(name)).unwrap();
    }
    damage(folder.path());
    let torn = read(&file);
    let mut steady_recorder = SteadyRecorder::at(steady, settings(&file), SWEEPS + 1);
    let memory = steady_recorder.recorder.totals(steady.fabric());
    let aside = set_aside(folder.path());
    if aside > 0 {
        assert!(memory.is_empty());
        found.set_aside += 1;
    } else {
        // What cannot be read is missed, and ports still show it; nothing is more than it was.
        let mut is_whole = true;
        steady.compare(&memory, SWEEPS, |counter, told, wanted| {
            assert!(told <= wanted, "{counter:?}: {told:?}, and not {wanted:?}");
            is_whole &= told == wanted;
        });
        *(match torn {
            Some(1..) => &mut found.counted,
            _ if is_whole => &mut found.whole,
            _ => &mut found.less,
        }) += 1;
    }
    let well = (0..25).filter(|_| steady_recorder.record()).count();
    // It may be found only now. The sweep at which it was is not written.
    if well < 23 {
        assert_eq!(set_aside(folder.path()), 0, "{well} sweeps of 25");
        found.refused += 1;
        return;
    }
    assert!(set_aside(folder.path()) <= 1);
    drop(steady_recorder);
    // What is damaged where only some questions lead may be found only now.
    let mut recorder = Recorder::new(settings(&file), Arc::default());
    let memory = recorder.totals(steady.fabric());
    // A port whose name is damaged may be another one by now.
    steady.compare(&memory, SWEEPS + 25, |counter, told, wanted| {
        assert!(told <= wanted, "{counter:?}: {told:?}, and not {wanted:?}");
    });
    assert!(set_aside(folder.path()) <= 1);
}

fn flip(file: &Path, first: u64, last: u64, chance: &mut Rng) -> (u64, u64) {
    let mut bytes = std::fs::read(file).unwrap();
    let last = last.min(bytes.len() as u64);
    let at = first + chance.below(last - first);
    let many = 1 + chance.below(16);
    for byte in bytes.iter_mut().skip(at as usize).take(many as usize) {
        *byte ^= 1 + chance.below(255) as u8;
    }
    std::fs::write(file, bytes).unwrap();
    (at, many)
}

/// A history that was ended, and one whose exporter was killed.
fn written(
    steady: &Arc<Steady>,
    folder: &Path,
) -> [(std::path::PathBuf, &'static [&'static str]); 2] {
    let (ended, killed) = (folder.join("ended"), folder.join("killed"));
    for folder in [&ended, &killed] {
        std::fs::create_dir(folder).unwrap();
    }
    let [ended, killed] = [ended, killed].map(|folder| folder.join("history.db"));
    let mut steady_recorder = SteadyRecorder::new(steady, settings(&ended));
    for _ in 0..SWEEPS {
        assert!(steady_recorder.record());
    }
    // The log beside it has much that is not in the file yet.
    for suffix in ["", "-wal", ".lock"] {
        let name = format!("history.db{suffix}");
        std::fs::copy(ended.with_file_name(&name), killed.with_file_name(&name)).unwrap();
    }
    drop(steady_recorder);
    assert!(!ended.with_file_name("history.db-wal").exists());
    [(ended, &["", ".lock"]), (killed, &["", "-wal", ".lock"])]
}

#[test]
fn flipped_bytes_are_found_or_harmless() {
    let seed = std::env::var("HISTORY_TEST_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("HISTORY_TEST_SEED={seed}");
    let mut chance = Rng::new(seed);
    let (steady, folder) = (Arc::new(Steady::new()), tempfile::tempdir().unwrap());
    let [ended, killed] = written(&steady, folder.path());
    let of = |file: &Path| std::fs::metadata(file).unwrap().len();
    let (length, log) = (of(&ended.0), of(&killed.0.with_file_name("history.db-wal")));
    println!("{length} bytes, and {log} in a log");
    let places = [
        ("header", &ended, "", 0, 100),
        ("schema", &ended, "", 100, 8192),
        ("middle", &ended, "", 8192, length - 16384),
        ("end", &ended, "", length - 16384, length),
        ("log", &killed, "-wal", 0, log),
        ("before the log", &killed, "", 0, length),
    ];
    for (place, (from, suffixes), which, first, last) in places {
        let mut found = Found::default();
        for _ in 0..TIMES {
            let damage = |folder: &Path| {
                let at = flip(&folder.join(format!("history.db{which}")), first, last, &mut chance);
                println!("{place}: {at:?}");
            };
            survives(&steady, from, suffixes, damage, &mut found);
        }
        println!("{place}: {found:?}");
        let most = if ["header", "schema"].contains(&place) { TIMES / 2 } else { 0 };
        assert!(u64::from(found.refused) <= most, "{place}: {found:?}");
    }
}
