//! A file of version 1 is read as it is, and becomes one of this version when it is recorded into.
//!
//! `tests/fixtures/history-1.db` was made by the last commit that wrote version 1 (cfe7313): 28 sweeps
//! of this story in virtual time, and then `PRAGMA page_size = 1024; VACUUM`, which is half the bytes.
//! It is not made anew: what it is for is that it was made by that program.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fabric_history::model::Window;
use fabric_history::settings::HistorySettings;
use fabric_history::source::Detail;
use fabric_history::{Reader, Recorder, Source};
use fabric_observation::RecorderStats;
use ib_fabric::topology::End;
use ib_mad::{Counter, Moment};

use crate::{SWEEP, always, events, minutes, wall};
use test_rig::Simulated;

const STORY: &str = "\
fabric: {fat-tree: {levels: 2, hosts: 8, radix: 8, down: 4, up: 2}}
timeline:
- bad-cable: {at: 1m, into: \"leaf-0-1[2]\", ratio: 1e-9}
- unplug: {at: 2m, link: \"leaf-0-0[1]\", for: 1m}
- move-cable: {at: 4m, from: \"leaf-0-1[3]\", to: \"leaf-0-1[7]\"}
";

/// What the port of the bad cable came to in it.
const SYMBOL_ERRORS: u64 = 137_890;
const XMIT_DATA: u64 = 4_049_994_814_188;

fn copied(folder: &Path) -> PathBuf {
    let file = folder.join("history.db");
    let made = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/history-1.db");
    std::fs::copy(made, &file).unwrap();
    file
}

fn sum(reader: &Reader, end: End, counter: Counter) -> u64 {
    let series = reader.series(&[end], Detail::All, always()).unwrap();
    let of = series.iter().filter(|of| of.counter == counter);
    of.flat_map(|of| &of.steps).map(|step| step.by).sum()
}

fn assert_told(file: &Path) {
    let reader = Reader::open(file).unwrap();
    let told = events(file);
    let count = |kind: &str| told.iter().filter(|event| event.kind == kind).count();
    assert_eq!((count("node_gone"), count("verdict"), count("port_moved")), (10, 4, 1));
    let port = reader.ports("leaf-0-1[2]").unwrap().remove(0).end();
    let sums = [Counter::SymbolErrors, Counter::XmitData].map(|of| sum(&reader, port, of));
    assert_eq!(sums, [SYMBOL_ERRORS, XMIT_DATA]);
    let window = Window { from: wall(Duration::ZERO), to: wall(minutes(7)) };
    let moved = reader.moved(window).unwrap();
    let of = moved.iter().find(|moved| moved.port.end() == port).unwrap();
    assert_eq!(of.peer.as_ref().unwrap().node, "host-5", "its link had events");
    assert_eq!(reader.cables(&[port], window).unwrap().len(), 1);
    let known = &reader.cover(window).unwrap().fabrics["default"];
    assert!(known.sweeps >= 23, "{known:?}");
    assert_eq!(reader.fabrics(wall(minutes(5))).unwrap(), [], "how it was nobody wrote down");
}

#[test]
fn a_file_of_version_1_is_told_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = copied(folder.path());
    let before = std::fs::read(&file).unwrap();
    assert_told(&file);
    assert_eq!(std::fs::read(&file).unwrap(), before, "whoever reads leaves it as it is");
}

#[test]
fn a_file_of_version_1_is_recorded_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = copied(folder.path());
    let settings = HistorySettings { least_free: 0, ..HistorySettings::new(file.clone()) };
    let account = Arc::new(RecorderStats::default());
    let mut recorder = Recorder::new(settings, Arc::clone(&account));
    assert_told(&file);
    let port = Reader::open(&file).unwrap().ports("leaf-0-1[2]").unwrap().remove(0).end();
    let memory = recorder.memory("default");
    // It had none before, and has counted on since the last whole totals were written.
    assert_eq!(memory[&port].total(Counter::SymbolErrors), Some(SYMBOL_ERRORS));
    let data = memory[&port].total(Counter::XmitData).unwrap();
    // Sweeps as of a judge that was given these totals, until the hour is digested with those of
    // version 1.
    let mut seen = {
        let simulated = Simulated::text(STORY);
        simulated.run_to(minutes(1));
        (*simulated.observation()).clone()
    };
    for sweep in 1..=300u64 {
        let snapshot = Arc::make_mut(seen.snapshot.as_mut().unwrap());
        snapshot.began = Moment::default() + minutes(8) + SWEEP * sweep as u32;
        snapshot.ended = snapshot.began;
        let fabric = Arc::clone(&snapshot.fabric);
        for (index, reading) in fabric.port_indexes().zip(&mut snapshot.readings) {
            let known = memory.get(&fabric.end(index));
            let (Some(known), Some(reading)) = (known, reading) else { continue };
            reading.at = snapshot.began;
            for counter in Counter::all() {
                if let Some(total) = known.total(counter) {
                    reading.set(counter, total + sweep);
                }
            }
        }
        let now = snapshot.anchor.wall_of(snapshot.ended);
        seen.stats.sweeps += 1;
        recorder.take(&seen, now);
    }
    assert_eq!((account.errors(), account.missed()), (0, 0));
    let db = rusqlite::Connection::open(&file).unwrap();
    let spans: i64 = db.query_row("SELECT count(*) FROM spans", [], |row| row.get(0)).unwrap();
    assert_eq!(spans, 1);
    let reader = Reader::open(&file).unwrap();
    let unit = Counter::XmitData.row().scale;
    assert_eq!(sum(&reader, port, Counter::SymbolErrors), SYMBOL_ERRORS + 300);
    assert_eq!(sum(&reader, port, Counter::XmitData), XMIT_DATA + 300 * unit);
    assert_eq!(recorder.memory("default")[&port].total(Counter::XmitData), Some(data + 300));
    assert!(events(&file).iter().any(|event| event.kind == "node_gone"));
    let then = reader.fabrics(wall(minutes(60))).unwrap();
    assert_eq!(then[0].cables.len(), seen.snapshot.unwrap().fabric.links().count());
    // And once more, from what this version wrote.
    drop(recorder);
    let settings = HistorySettings { least_free: 0, ..HistorySettings::new(file.clone()) };
    let mut recorder = Recorder::new(settings, Arc::default());
    assert_eq!(recorder.memory("default")[&port].total(Counter::XmitData), Some(data + 300));
}
