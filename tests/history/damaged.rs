//! Damaged files, foreign files, and places where no file can be.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fabric_history::Reader;

use crate::{RecordedSimulation, errors, events, minutes};
use test_rig::Exporter;

const STORY: &str = "timeline: [unplug: {at: 1m, link: \"leaf-0-0[9]\", for: 1m}]";

/// A history of some minutes.
fn written(folder: &Path) -> PathBuf {
    let file = folder.join("history.db");
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(5));
    file
}

/// How many files were set aside.
pub fn set_aside(folder: &Path) -> usize {
    let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    let is_aside = |name: &String| {
        name.contains(".damaged-") && !name.ends_with("-wal") && !name.ends_with("-shm")
    };
    names.map(|name| name.to_string_lossy().into_owned()).filter(is_aside).count()
}

/// Records into a file, and returns the number of sweeps in it.
fn goes_on(file: &Path) -> usize {
    let mut simulation = RecordedSimulation::new(STORY, file);
    simulation.run_to(minutes(5));
    assert!(simulation.recorder.is_open());
    events(file).len()
}

#[test]
fn truncated_file_is_set_aside_and_replaced() {
    let whole = tempfile::tempdir().unwrap();
    let whole_file = written(whole.path());
    let bytes = std::fs::read(&whole_file).unwrap();
    let length = bytes.len();
    for part in [0, 50, 100, length / 3, length / 2, length - 1] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        std::fs::copy(whole.path().join("history.db.lock"), folder.path().join("history.db.lock"))
            .unwrap();
        std::fs::write(&file, &bytes[..part]).unwrap();
        assert!(goes_on(&file) > 2, "cut to {part}");
        let aside = set_aside(folder.path());
        println!("cut to {part} of {length}: {aside} set aside");
        // An empty file cannot be checked, and the last page may be unused.
        let wanted = if part == 0 {
            0..=0
        } else if part == length - 1 {
            0..=1
        } else {
            1..=1
        };
        assert!(wanted.contains(&aside), "cut to {part}");
    }
}

#[test]
fn foreign_file_is_left_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("passwd");
    std::fs::write(&file, "root:x:0:0:root:/root:/bin/bash\n").unwrap();
    let mut simulation = RecordedSimulation::new(STORY, &file);
    simulation.run_to(minutes(1));
    assert!(!simulation.recorder.is_open() && simulation.metrics.errors() > 0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "root:x:0:0:root:/root:/bin/bash\n");
    assert!(Reader::open(&file).is_err());
}

#[test]
fn read_only_folder_does_not_stop_the_exporter() {
    let folder = tempfile::tempdir().unwrap();
    let sealed = folder.path().join("not-there").join("history.db");
    let mut exporter = Exporter::demo_uncaptured(&[
        "--fabric.interval=1s",
        "--clock=100",
        &format!("--history.file={}", sealed.display()),
    ]);
    exporter.wait_ready();
    exporter.wait_sweeps(3);
    assert!(errors(&exporter.metrics(), Some("io")) > 0);
    assert_eq!(exporter.log().matches("history recording failed").count(), 1, "{}", exporter.log());
    // When it can be, it is.
    std::fs::create_dir(sealed.parent().unwrap()).unwrap();
    std::fs::set_permissions(sealed.parent().unwrap(), PermissionsExt::from_mode(0o700)).unwrap();
    test_rig::wait_until(std::time::Duration::from_secs(60), "the file to be there", || {
        Reader::open(&sealed).ok()
    });
}

#[test]
fn second_exporter_on_a_file_records_nothing_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = format!("--history.file={}", folder.path().join("history.db").display());
    let flags = ["--fabric.interval=1s", "--clock=100", &*file];
    let mut first = Exporter::demo_uncaptured(&flags);
    first.wait_ready();
    let mut second = Exporter::demo_uncaptured(&flags);
    second.wait_ready();
    second.wait_sweeps(3);
    let of = |exporter: &Exporter, name: &str| {
        exporter.metrics().get_u64(&format!("fabric_exporter_history_{name}_total"), &[]).unwrap()
    };
    assert!(second.log().contains("another exporter is recording"), "{}", second.log());
    assert_eq!((of(&second, "frames"), of(&second, "events")), (0, 0));
    assert!(errors(&second.metrics(), Some("taken")) > 0 && of(&second, "missed_sweeps") > 0);
    first.wait_sweeps(2);
    assert!(of(&first, "frames") > 0, "{}", first.log());
    assert_eq!(errors(&first.metrics(), None), 0, "{}", first.log());
}
