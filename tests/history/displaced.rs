//! What another program does to the file that is being recorded to: deletes, renames, replaces or truncates it. The
//! next sweep is in a new file, with an event, and what can be kept is kept.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fabric_history::Reader;
use fabric_observation::RecorderErrorKind;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tempfile::TempDir;

use crate::damaged::set_aside;
use crate::safety::operate;
use crate::steady::{Steady, SteadyRecorder, settings};
use crate::{errors, events};
use test_rig::{Exporter, wait_until};

/// How many sweeps are recorded before.
const SWEEPS: usize = 5;

/// A history of some sweeps whose recorder still runs.
fn recording() -> (TempDir, PathBuf, SteadyRecorder) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut recorder = SteadyRecorder::new(&Arc::new(Steady::new()), settings(&file));
    for _ in 0..SWEEPS {
        assert!(recorder.record());
    }
    (folder, file, recorder)
}

/// Records the next sweeps, and checks that the first has begun a new file; returns how many sweeps that has.
fn goes_on(recorder: &mut SteadyRecorder, file: &Path, how: &str) -> usize {
    let frames = recorder.metrics.get().frames;
    recorder.record();
    let counted = |recorder: &SteadyRecorder| {
        recorder.metrics.get().errors[RecorderErrorKind::Displaced as usize]
    };
    assert_eq!(counted(recorder), 1, "{how}");
    assert!(recorder.metrics.get().frames > frames, "{how}: the sweep is recorded");
    for _ in 0..3 {
        assert!(recorder.record(), "{how}");
    }
    assert_eq!(counted(recorder), 1, "{how}: once");
    let events = events(file);
    let found: Vec<_> = events.iter().filter(|it| it.kind == "history_displaced").collect();
    assert_eq!(found.len(), 1, "{how}: {events:?}");
    assert!(found[0].text.contains(how) && found[0].text.contains("history.db"), "{found:?}");
    Reader::open(file).unwrap().counts().unwrap().0
}

#[test]
fn deleted_history_is_begun_anew_with_the_next_sweep() {
    let (folder, file, mut recorder) = recording();
    for suffix in ["", "-wal", "-shm"] {
        std::fs::remove_file(folder.path().join(format!("history.db{suffix}"))).unwrap();
    }
    assert_eq!(goes_on(&mut recorder, &file, "was deleted or renamed"), 4);
    assert_eq!(set_aside(folder.path()), 0);
}

#[test]
fn renamed_history_has_all_that_was_recorded_before() {
    let (folder, file, mut recorder) = recording();
    let moved = folder.path().join("moved.db");
    std::fs::rename(&file, &moved).unwrap();
    assert_eq!(goes_on(&mut recorder, &file, "was deleted or renamed"), 4);
    assert_eq!(Reader::open(&moved).unwrap().counts().unwrap().0, SWEEPS);
    assert_eq!(set_aside(folder.path()), 0);
}

/// The log of the file before must not be applied to the one that has replaced it.
#[test]
fn replaced_history_is_continued_without_the_log_of_the_one_before() {
    let (folder, file, mut recorder) = recording();
    let (_other_folder, other, other_recorder) = recording();
    drop(other_recorder);
    let beside = folder.path().join("new.db");
    std::fs::copy(&other, &beside).unwrap();
    std::fs::rename(&beside, &file).unwrap();
    assert_eq!(goes_on(&mut recorder, &file, "was replaced"), SWEEPS + 4);
    let db = rusqlite::Connection::open(&file).unwrap();
    let sound: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

#[test]
fn truncated_history_is_set_aside_with_the_next_sweep() {
    for part in [0, 3] {
        let (folder, file, mut recorder) = recording();
        operate(&file, "PRAGMA wal_checkpoint(TRUNCATE)");
        // The recorder knows this length.
        assert!(recorder.record());
        let length = file.metadata().unwrap().len();
        File::options().write(true).open(&file).unwrap().set_len(length * part / 4).unwrap();
        assert_eq!(goes_on(&mut recorder, &file, "was truncated"), 4);
        let kept = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name());
        let kept = kept.filter(|name| name.to_string_lossy().contains(".damaged-")).count();
        assert_ne!(kept, 0, "what is left, or the log, is set aside");
    }
}

#[test]
fn vacuumed_history_is_not_truncated() {
    let (folder, file, mut recorder) = recording();
    let large =
        "CREATE TABLE large AS SELECT zeroblob(4000000) AS zeros; PRAGMA wal_checkpoint(TRUNCATE)";
    operate(&file, large);
    assert!(recorder.record());
    let before = file.metadata().unwrap().len();
    operate(&file, "DROP TABLE large; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)");
    assert!(file.metadata().unwrap().len() < before - 1_000_000);
    for _ in 0..3 {
        assert!(recorder.record());
    }
    assert_eq!(recorder.metrics.errors(), 0);
    assert_eq!(set_aside(folder.path()), 0);
    assert_eq!(Reader::open(&file).unwrap().counts().unwrap().0, SWEEPS + 4);
}

/// `ulimit -f`: without a handler SIGXFSZ ends a program.
#[test]
fn limit_of_the_file_size_is_like_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("--history.file={}", folder.path().join("history.db").display());
    let mut exporter =
        Exporter::demo_uncaptured(&["--fabric.interval=1s", "--clock=20", "--hosts=4", &file]);
    exporter.wait_ready();
    let pid = Pid::from_raw(i32::try_from(exporter.pid()).unwrap());
    let limit = |bytes| {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(pid, Resource::Fsize, limit).unwrap();
    };
    let frames = |exporter: &Exporter| {
        exporter.metrics().get_u64("fabric_exporter_history_frames_total", &[]).unwrap_or(0)
    };
    let wait = Duration::from_secs(60);
    wait_until(wait, "sweeps to be recorded", || Some(frames(&exporter)).filter(|n| *n > 2));
    // Less than the file has already; the log has less.
    limit(Some(48 << 10));
    wait_until(wait, "errors to be counted", || {
        Some(errors(&exporter.metrics(), None)).filter(|count| *count > 2)
    });
    let before = frames(&exporter);
    limit(None);
    wait_until(wait, "sweeps to be recorded again", || {
        Some(frames(&exporter)).filter(|frames| *frames > before + 2)
    });
    assert_eq!(set_aside(folder.path()), 0);
    assert_eq!(exporter.stop().code(), Some(0), "{}", exporter.log());
}
