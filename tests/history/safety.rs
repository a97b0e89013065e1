//! No history is lost, and only damaged files are set aside, whatever an operator adds to the file, whatever fails
//! while it is written, and whatever files are beside it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use fabric_history::file::dump::Existing;
use fabric_history::record::store::Store;
use fabric_history::settings::HistorySettings;
use fabric_history::{Reader, Recorder};
use fabric_observation::RecorderMetrics;
use ib_mad::Counter;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::damaged::set_aside;
use crate::herd::{self, Herd};
use crate::steady::{Steady, SteadyRecorder, check, settings};
use crate::{SWEEP, always, events, minutes, wall};
use test_rig::child;
use test_rig::program;

/// How long a verb may take that has nothing to wait for.
const LIMIT: Duration = Duration::from_secs(60);

/// A folder with a history of some sweeps, whose exporter has ended.
fn recorded(steady: &Arc<Steady>, sweeps: u64) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut steady_recorder = SteadyRecorder::new(steady, settings(&file));
    for _ in 0..sweeps {
        assert!(steady_recorder.record());
    }
    (folder, file)
}

pub fn operate(file: &Path, sql: &str) {
    let db = Connection::open(file).unwrap();
    db.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn number(file: &Path, sql: &str) -> i64 {
    Connection::open(file).unwrap().query_row(sql, [], |row| row.get(0)).unwrap()
}

/// What operators, and the programs that they run, add to a database.
const ADDED: &[&str] = &[
    "ANALYZE",
    "ANALYZE; PRAGMA optimize=0xfffe",
    "CREATE INDEX events_by_kind ON events (kind, at)",
    "CREATE VIEW flaps AS SELECT * FROM events WHERE kind = 'flap'",
    "CREATE TABLE tickets (id INTEGER PRIMARY KEY, event INTEGER, number TEXT NOT NULL)",
    // What Litestream makes in a database that it replicates.
    "CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
     CREATE TABLE _litestream_lock (id INTEGER);
     INSERT INTO _litestream_seq VALUES (1, 7)",
    "CREATE TRIGGER seen AFTER INSERT ON events BEGIN UPDATE fabrics SET name = name; END",
    "ALTER TABLE events ADD COLUMN ticket TEXT NOT NULL DEFAULT ''",
    "VACUUM",
];

#[test]
fn added_tables_and_indexes_are_not_damage() {
    let steady = Arc::new(Steady::new());
    for added in ADDED {
        let (folder, file) = recorded(&steady, 10);
        operate(&file, added);
        let mut steady_recorder = SteadyRecorder::new(&steady, settings(&file));
        assert_eq!(set_aside(folder.path()), 0, "set aside after: {added}");
        assert_eq!(steady_recorder.first, 11, "totals go on after: {added}");
        for _ in 0..5 {
            assert!(steady_recorder.record(), "recorded after: {added}");
        }
        drop(steady_recorder);
        assert_eq!(check(&steady, &file, 0, &[]), 15, "{added}");
    }
}

/// What an operator adds may also forbid what the exporter writes. That is an error, and no damage.
#[test]
fn refusing_trigger_costs_no_history() {
    let steady = Arc::new(Steady::new());
    let (folder, file) = recorded(&steady, 10);
    let before = number(&file, "SELECT count(*) FROM events");
    operate(
        &file,
        "CREATE TRIGGER audit BEFORE INSERT ON events
         BEGIN SELECT RAISE(ABORT, 'audited tables are closed'); END",
    );
    let mut steady_recorder = SteadyRecorder::new(&steady, settings(&file));
    for _ in 0..10 {
        assert!(!steady_recorder.record());
    }
    assert_eq!(steady_recorder.metrics.errors(), 10);
    assert_eq!(set_aside(folder.path()), 0);
    assert_eq!(number(&file, "SELECT count(*) FROM events"), before);
    operate(&file, "DROP TRIGGER audit");
    for _ in 0..5 {
        assert!(steady_recorder.record());
    }
    drop(steady_recorder);
    assert_eq!(set_aside(folder.path()), 0);
    // Increases of that time are in the next sweep, and pending events are written with it.
    let missed: Vec<u64> = (11..=20).collect();
    assert_eq!(check(&steady, &file, 0, &missed), 25);
    let links = events(&file).iter().filter(|event| event.kind.starts_with("link_")).count();
    assert!(links >= 20, "{links} events of links in 25 sweeps");
}

#[test]
fn file_of_another_version_is_refused_and_kept() {
    let steady = Arc::new(Steady::new());
    let older = "which no released fabric-exporter writes";
    let newer = "which this fabric-exporter does not support";
    for (version, says) in [(2, older), (-1, older), (5, newer), (20_000, newer)] {
        let (folder, file) = recorded(&steady, 3);
        operate(&file, &format!("PRAGMA user_version = {version}"));
        let before = std::fs::read(&file).unwrap();
        let error = Reader::open(&file).unwrap_err().to_string();
        assert!(error.contains(&format!("version {version}, {says}")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        let mut steady_recorder = SteadyRecorder::at(&steady, settings(&file), 4);
        assert!(!steady_recorder.record(), "{version}");
        drop(steady_recorder);
        assert_eq!(set_aside(folder.path()), 0, "{version}");
        assert!(std::fs::read(&file).unwrap() == before, "the file of version {version} changed");
        operate(&file, "PRAGMA user_version = 4");
        assert_eq!(check(&steady, &file, 0, &[]), 3);
    }
}

/// Makes a file one that SQLite calls no database.
fn damage(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    bytes[..16].fill(b'x');
    std::fs::write(file, bytes).unwrap();
}

#[test]
fn number_of_set_aside_files_is_limited() {
    let steady = Arc::new(Steady::new());
    let (folder, file) = recorded(&steady, 3);
    let notes = folder.path().join("history.db.damaged-notes.txt");
    std::fs::write(&notes, "what happened on Tuesday").unwrap();
    for time in 0..6 {
        damage(&file);
        let left = std::fs::read(&file).unwrap();
        let mut steady_recorder = SteadyRecorder::at(&steady, settings(&file), 1);
        let well = (0..3).filter(|_| steady_recorder.record()).count();
        drop(steady_recorder);
        // The operator's notes are counted by this test, too.
        let aside = set_aside(folder.path()) - 1;
        if time < 3 {
            assert_eq!((aside, well), (time + 1, 3));
        } else {
            assert_eq!((aside, well), (3, 0), "nothing more is set aside");
            assert_eq!(std::fs::read(&file).unwrap(), left, "the file stays as it is");
        }
    }
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "what happened on Tuesday");
    // An operator examined one, and removed it.
    let taken = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().path());
    let taken = taken.filter(|path| path.to_string_lossy().contains(".damaged-2")).min().unwrap();
    std::fs::remove_file(taken).unwrap();
    let mut steady_recorder = SteadyRecorder::at(&steady, settings(&file), 1);
    assert!(steady_recorder.record());
}

/// Nodes whose number is this or a multiple of it stay; others are there for a while.
const STAYS: [u64; 2] = [1_000_000, 2_000_000];

/// Virtual functions that are created and deleted again, four at a time.
fn passing(generation: u64) -> Vec<u64> {
    let some = (0..4).map(|function| 100 + generation * 4 + function);
    some.chain(STAYS).collect()
}

#[test]
fn unreferenced_nodes_are_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let kept = HistorySettings {
        traffic_retention: minutes(10),
        retention: minutes(10),
        least_free: 0,
        ..HistorySettings::new(file.clone())
    };
    let (mut herd, metrics) = (Herd::default(), Arc::new(RecorderMetrics::default()));
    let mut recorder = Recorder::new(kept.clone(), Arc::clone(&metrics));
    // Five hours, and other functions each five minutes.
    for sweep in 1..=1_200 {
        let seen = herd.sweep(&passing(sweep / 20), sweep, 1);
        recorder.record(&seen, wall(SWEEP * u32::try_from(sweep).unwrap()));
    }
    assert_eq!(metrics.errors(), 0);
    let rows = |table: &str| number(&file, &format!("SELECT count(*) FROM {table}"));
    // Those of the last ten minutes, and of the hour since it was last looked.
    let most = 2 + 4 * (70 / 5 + 3);
    for table in ["nodes", "ports", "names"] {
        assert!((6..=most).contains(&rows(table)), "{} {table} of 242", rows(table));
    }
    drop(recorder);
    // Numbers are given again, and no port gets the totals of another one.
    let mut recorder = Recorder::new(kept, Arc::default());
    let memory = recorder.totals(herd::NAME);
    for node in passing(60) {
        let told = memory.get(&herd::end(node)).and_then(|it| it.restored(Counter::SymbolErrors));
        assert_eq!(told, Some(herd::total(node, 1_200)), "node {node}");
    }
    for (port, told) in &memory {
        let node = port.guid.0;
        let told = told.restored(Counter::SymbolErrors).unwrap();
        assert!(told <= herd::total(node, 1_200), "node {node}: {told}");
    }
}

#[test]
fn exhausted_ids_are_an_error_and_not_damage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let (mut herd, metrics) = (Herd::default(), Arc::new(RecorderMetrics::default()));
    let mut recorder = Recorder::new(settings(&file), Arc::clone(&metrics));
    recorder.record(&herd.sweep(&STAYS, 1, 1), wall(SWEEP));
    drop(recorder);
    // The last id, of a present node.
    operate(
        &file,
        "INSERT INTO nodes (id, fabric, guid, kind) VALUES (4194303, 1, 77, 'ca');
         INSERT INTO presences (node, since) VALUES (4194303, 0)",
    );
    let mut recorder = Recorder::new(settings(&file), Arc::clone(&metrics));
    for sweep in 2..5 {
        recorder.record(&herd.sweep(&passing(0), sweep, 2), wall(SWEEP * sweep as u32));
    }
    assert_eq!(metrics.errors(), 3);
    assert_eq!(set_aside(folder.path()), 0);
    drop(recorder);
    assert_eq!(number(&file, "SELECT count(*) FROM sweeps"), 1, "and what was recorded is there");
}

/// A counter's number in a file that frames have no room for is not taken for another's.
#[test]
fn counter_id_beyond_63_is_an_error() {
    let steady = Arc::new(Steady::new());
    let (folder, file) = recorded(&steady, 10);
    let name = Counter::SymbolErrors.row().ibta;
    let usual = number(&file, &format!("SELECT id FROM counters WHERE name = '{name}'"));
    operate(&file, &format!("UPDATE counters SET id = 64 WHERE name = '{name}'"));
    let mut steady_recorder = SteadyRecorder::at(&steady, settings(&file), 11);
    for _ in 0..5 {
        assert!(!steady_recorder.record());
    }
    drop(steady_recorder);
    assert_eq!(set_aside(folder.path()), 0);
    operate(&file, &format!("UPDATE counters SET id = {usual} WHERE name = '{name}'"));
    assert_eq!(check(&steady, &file, 0, &[]), 10);
}

/// What waits while nothing can be written is written when the exporter ends, if it can be then.
#[test]
fn shutdown_writes_pending_events() {
    let steady = Arc::new(Steady::new());
    let (_folder, file) = recorded(&steady, 4);
    let mut steady_recorder = SteadyRecorder::new(&steady, settings(&file));
    // Another program writes, for longer than is waited for.
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(!steady_recorder.record());
    other.execute_batch("END").unwrap();
    steady_recorder.recorder.finish(wall(SWEEP * 10));
    drop(steady_recorder);
    let told = events(&file);
    let of = |kind: &str| told.iter().filter(|event| event.kind == kind).count();
    assert_eq!((of("exporter_start"), of("exporter_stop")), (2, 1), "{told:?}");
}

/// At the end each fabric is written to a file that is as it is known: what fails of one fabric costs
/// the others nothing.
#[test]
fn failed_shutdown_of_one_fabric_costs_no_other() {
    let steady = Arc::new(Steady::new());
    let (folder, file) = recorded(&steady, 2);
    let mut steady_recorder = SteadyRecorder::new(&steady, settings(&file));
    let mut herd = Herd::default();
    for number in 3..6 {
        assert!(steady_recorder.record());
        steady_recorder
            .recorder
            .record(&herd.sweep(&STAYS, number, 3), wall(SWEEP * number as u32));
    }
    operate(
        &file,
        "CREATE TRIGGER audit BEFORE INSERT ON events
         WHEN new.fabric = (SELECT id FROM fabrics WHERE name = 'default')
         BEGIN SELECT RAISE(ABORT, 'audited tables are closed'); END",
    );
    steady_recorder.recorder.finish(wall(SWEEP * 7));
    assert_eq!(steady_recorder.metrics.errors(), 1);
    drop(steady_recorder);
    operate(&file, "DROP TRIGGER audit");
    assert_eq!(set_aside(folder.path()), 0);
    let told = events(&file);
    let stops: Vec<&str> = (told.iter().filter(|event| event.kind == "exporter_stop"))
        .map(|event| &*event.fabric)
        .collect();
    assert_eq!(stops, [herd::NAME]);
    assert_eq!(check(&steady, &file, 0, &[]), 5);
}

/// Frames of a copy keep their numbers, and none gets the number of another fabric's.
#[test]
fn copy_of_two_fabrics_has_both() {
    let steady = Arc::new(Steady::new());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut steady_recorder = SteadyRecorder::new(&steady, settings(&file));
    let mut herd = Herd::default();
    for number in 1..6 {
        assert!(steady_recorder.record());
        steady_recorder
            .recorder
            .record(&herd.sweep(&STAYS, number, 1), wall(SWEEP * number as u32));
    }
    drop(steady_recorder);
    let copy = folder.path().join("copy.db");
    Reader::open(&file).unwrap().dump(always(), &copy, Existing::Keep, 0).unwrap();
    assert_eq!(check(&steady, &copy, 0, &[]), 5);
    let mut recorder = Recorder::new(settings(&copy), Arc::default());
    let memory = recorder.totals(herd::NAME);
    for node in STAYS {
        let told = memory[&herd::end(node)].restored(Counter::SymbolErrors);
        assert_eq!(told, Some(herd::total(node, 5)));
    }
}

/// A sweep is dropped with all of its rows or not at all.
#[test]
fn reader_never_sees_half_a_dropped_sweep() {
    let steady = Arc::new(Steady::new());
    let (_folder, file) = recorded(&steady, 300);
    let rows = || {
        [
            "SELECT count(*) FROM sweeps",
            "SELECT count(*) FROM spans",
            "SELECT count(*) FROM digests WHERE tier = 0",
            "SELECT count(*) FROM frames WHERE tier IN (0, 2, 4, 5, 6, 7)",
        ]
        .map(|sql| number(&file, sql))
    };
    let before = rows();
    assert!(before[1] > 0, "an hour is digested");
    // Rows of the last table cannot be deleted: what was deleted before must not be visible.
    operate(
        &file,
        "CREATE TRIGGER closed BEFORE DELETE ON sweeps BEGIN SELECT RAISE(ABORT, 'closed'); END",
    );
    let store = Store::open(&file).unwrap();
    let short = HistorySettings { retention: minutes(1), ..settings(&file) };
    let now = wall(SWEEP * 300);
    store.prune(&short, Some(now)).unwrap_err();
    assert_eq!(rows(), before);
    drop(store);
    operate(&file, "DROP TRIGGER closed");
    let store = Store::open(&file).unwrap();
    for _ in 0..3 {
        store.prune(&short, Some(now)).unwrap();
    }
    assert!(rows()[0] < 30 && rows()[1] == 0 && rows()[2] == 0, "{:?}", rows());
}

/// The locks of this process on a file, as the kernel has them.
fn locks(file: &Path) -> usize {
    use std::os::unix::fs::MetadataExt;
    let inode = format!(":{}", std::fs::metadata(file).unwrap().ino());
    let own = std::process::id().to_string();
    let all = std::fs::read_to_string("/proc/locks").unwrap();
    let is_ours = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[1] == "POSIX" && words[4] == own && words[5].ends_with(&inode)
    };
    all.lines().filter(is_ours).count()
}

/// A page reads the file while the recorder reopens it after an error. Without the reader's lock
/// another program could delete the write-ahead log in use. (The recorder's thread may hold another one for a moment.)
#[test]
fn reopened_file_stays_locked_for_readers() {
    let steady = Arc::new(Steady::new());
    let (folder, file) = recorded(&steady, 3);
    let mut steady_recorder = SteadyRecorder::new(&steady, settings(&file));
    assert!(steady_recorder.record());
    let reader = Connection::open(&file).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM sweeps").unwrap();
    assert_ne!(locks(&file), 0);
    operate(
        &file,
        "CREATE TRIGGER audit BEFORE INSERT ON sweeps BEGIN SELECT RAISE(ABORT, 'closed'); END",
    );
    for _ in 0..3 {
        assert!(!steady_recorder.record());
        assert_ne!(locks(&file), 0);
    }
    operate(&file, "DROP TRIGGER audit");
    assert!(steady_recorder.record());
    assert_ne!(locks(&file), 0);
    drop((steady_recorder, reader));
    assert_eq!(set_aside(folder.path()), 0);
    assert_eq!(check(&steady, &file, 0, &[5, 6, 7]), 8);
}

/// The result of a kill between two renames, or of an operator who moves the file without its log.
#[test]
fn log_without_its_file_is_set_aside() {
    let steady = Arc::new(Steady::new());
    let (folder, file) = recorded(&steady, 3);
    let log = folder.path().join("history.db-wal");
    for empty in [false, true] {
        std::fs::remove_file(&file).unwrap();
        if empty {
            std::fs::write(&file, "").unwrap();
        }
        let sweeps = format!("sweeps that nothing else has, {empty}");
        std::fs::write(&log, &sweeps).unwrap();
        let mut steady_recorder = SteadyRecorder::at(&steady, settings(&file), 1);
        assert!(steady_recorder.record());
        assert_eq!(steady_recorder.metrics.get().set_aside, Some(1 + u64::from(empty)));
        let kept = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().path());
        let mut kept = kept.filter(|path| path.to_string_lossy().contains(".damaged-"));
        assert!(kept.any(|path| std::fs::read_to_string(path).unwrap() == sweeps));
    }
}

fn said(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    let output = child::run("fabric-exporter", command.args(arguments), folder, LIMIT);
    (output.status.code(), output.stderr)
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn irregular_file_is_an_error_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    fifo(&place("fifo"));
    std::fs::create_dir(place("folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place("socket")).unwrap();
    let null = PathBuf::from("/dev/null");
    for (path, what) in [
        (place("fifo"), "is a FIFO"),
        (place("folder"), "is a directory"),
        (place("socket"), "is a socket"),
        (null, "is a device"),
    ] {
        let file = format!("--history.file={}", path.display());
        let flags = ["serve", "--no-collector.fabric", "--web.listen-address=127.0.0.1:0", &file];
        let (code, told) = said(folder.path(), &flags);
        assert_eq!(code, Some(2), "{told}");
        let line = format!("{}: {what}", path.display());
        assert!(told.contains(&line), "{told}");
        assert!(told.contains("regular file"), "what to do: {told}");
        let path = path.to_str().unwrap();
        let (code, told) = said(folder.path(), &["history", "--file", path, "events"]);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains(&line) && told.lines().count() == 1, "{told}");
    }
}

#[test]
fn irregular_lock_is_an_error_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let lock = |name: &str| folder.path().join(format!("{name}.db.lock"));
    fifo(&lock("fifo"));
    std::fs::create_dir(lock("folder")).unwrap();
    for (name, what) in [("fifo", "is a FIFO"), ("folder", "is a directory")] {
        let file = format!("--history.file={}", folder.path().join(format!("{name}.db")).display());
        let flags = ["serve", "--no-collector.fabric", "--web.listen-address=127.0.0.1:0", &file];
        let (code, said) = said(folder.path(), &flags);
        assert_eq!(code, Some(2), "{said}");
        let line = format!("{}: {what}", lock(name).display());
        assert!(said.contains(&line) && said.contains("remove it"), "{said}");
    }
}

#[test]
fn file_of_another_program_is_refused() {
    let steady = Arc::new(Steady::new());
    let (folder, file) = recorded(&steady, 3);
    std::fs::write(folder.path().join("notes.txt"), "What happened on Tuesday.\n".repeat(500))
        .unwrap();
    operate(&folder.path().join("other.db"), "CREATE TABLE counters (id, name); VACUUM");
    std::fs::copy(&file, folder.path().join("header.db")).unwrap();
    damage(&folder.path().join("header.db"));
    let mut noise = vec![0xfe; 16_384];
    noise[..16].copy_from_slice(b"SQLite format 3\0");
    std::fs::write(folder.path().join("noise.db"), noise).unwrap();
    for name in ["notes.txt", "other.db", "header.db", "noise.db"] {
        let path = folder.path().join(name);
        let (code, told) =
            said(folder.path(), &["history", "--file", path.to_str().unwrap(), "events"]);
        assert_eq!(code, Some(1), "{told}");
        let line = format!("{}: is not a history file of fabric-exporter", path.display());
        assert!(told.contains(&line) && told.lines().count() == 1, "{name}: {told}");
        assert!(Reader::open(&path).is_err());
    }
}
