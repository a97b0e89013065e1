//! An exporter that is killed at any time leaves an intact file.

use std::path::Path;
use std::time::{Duration, SystemTime};

use fabric_history::file::record_kind::RecordKind;
use fabric_history::model::Event;
use fabric_history::{Reader, Source};

use crate::frames::frames as readable;
use crate::{always, errors, events};
use test_rig::{Exporter, wait_until};

/// How often the program is killed. Raise it to search for rare failures.
const TIMES: u32 = 10;

fn demo(file: &Path, flags: &[&str]) -> Exporter {
    let file = format!("--history.file={}", file.display());
    let usual = ["--fabric.interval=1s", "--clock=100", "--hosts=40", &file];
    Exporter::demo_uncaptured(&[&usual, flags].concat())
}

#[test]
fn file_is_intact_after_kills() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let (mut before, mut starts) = (0, 0);
    for time in 0..TIMES {
        let mut exporter = demo(&file, &[]);
        exporter.wait_ready();
        // A hundred sweeps a second: a sweep that is exposed was written, or is being written.
        let frames = || exporter.metrics().get_u64("fabric_exporter_history_frames_total", &[]);
        let goal = u64::from(time % 7) * 3 + 2;
        let told = wait_until(Duration::from_secs(60), "sweeps to be recorded", || {
            frames().filter(|frames| *frames >= goal)
        });
        exporter.signal("KILL");
        drop(exporter);
        let (mut whole, mut torn) = (0, 0);
        for tier in [
            RecordKind::ErrorDeltas,
            RecordKind::TrafficDeltas,
            RecordKind::FirstTotals,
            RecordKind::AllTotals,
        ] {
            let (some, damaged, _) = readable(&file, tier).unwrap();
            (whole, torn) = (whole + some as u64, torn + damaged);
        }
        assert_eq!(torn, 0);
        // Whole totals take the place of what they are made from: some tens of frames at most.
        assert!(whole + 40 >= before + told, "{whole} frames, of {before} and {told}");
        before = whole;
        let list = events(&file);
        starts += 1;
        // The fabric and the host have one each.
        let is_start = |event: &&Event| event.kind == "exporter_start" && event.fabric == "default";
        let told = list.iter().filter(is_start).count();
        assert_eq!(told, starts, "each start is there, and none twice");
        assert!(list.iter().all(|event| event.at < SystemTime::now() + Duration::from_secs(7200)));
    }
    assert!(
        !folder
            .path()
            .read_dir()
            .unwrap()
            .any(|entry| { entry.unwrap().file_name().to_string_lossy().contains("damaged") })
    );
}

/// It is read while it is written.
#[test]
fn file_is_readable_during_writes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut exporter = demo(&file, &[]);
    exporter.wait_ready();
    let frames = || {
        Reader::open(&file).ok()?.coverage(always()).ok()?;
        let (whole, torn, _) = readable(&file, RecordKind::TrafficDeltas).ok()?;
        assert_eq!(torn, 0);
        Some(whole)
    };
    let first = wait_until(Duration::from_secs(60), "a sweep to be recorded", frames);
    wait_until(Duration::from_secs(60), "more sweeps to be recorded", || {
        frames().filter(|count| *count > first + 20)
    });
    assert_eq!(errors(&exporter.metrics(), None), 0, "{}", exporter.log());
    assert!(exporter.stop().success());
    assert_eq!(
        events(&file).last().map(|event| event.kind.clone()).as_deref(),
        Some("exporter_stop")
    );
}
