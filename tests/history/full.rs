//! A disk of a guest that is full to the last page. (The exporter itself stops writing long before a disk is
//! full.)

use std::process::Command;
use std::time::Duration;

use crate::errors;
use crate::shot::{FOLDER, RECORD, WAY};
use crate::steady::{Steady, check};
use test_rig::guest::{Guest, GuestExporter};
use test_rig::{child, require, wait_until};

/// How long the guest, which is slow, may take for something.
const LIMIT: Duration = Duration::from_secs(120);

#[test]
fn recording_resumes_when_a_full_disk_has_room() {
    let (guest, folder) = (Guest::get(), tempfile::tempdir().unwrap());
    // Debug information makes nine tenths of it.
    let mut strip = Command::new(require("strip"));
    strip.arg("-o").arg(guest.share().join("recorder")).arg(std::env::current_exe().unwrap());
    assert!(child::run("strip", &mut strip, folder.path(), LIMIT).status.success());
    let pid = guest.must(&format!(
        "set -e; mkdir /tmp/full /tmp/recorder; mount -t tmpfs -o size=6m tmpfs /tmp/full
        cp /share/recorder /bin/recorder; cd /tmp/recorder
        {FOLDER}=/tmp/full {WAY}=On /bin/recorder {} >said 2>errors & echo $!",
        RECORD.join(" ")
    ));
    let said = |word: &str| -> Vec<u64> {
        let word = format!("recorder: {word} ");
        let said = guest.must("cat /tmp/recorder/said");
        said.lines().filter_map(|line| line.strip_prefix(&word)?.parse().ok()).collect()
    };
    let wait = |what: &str, word: &str, is_so: &dyn Fn(&[u64]) -> bool| {
        wait_until(LIMIT, what, || Some(said(word)).filter(|said| is_so(said)))
    };
    wait("sweeps to be recorded", "done", &|done| done.len() > 3);
    // Something else takes all there is.
    guest.sh("cat /dev/zero >/tmp/full/ballast");
    let failed = wait("sweeps to fail", "failed", &|failed| failed.len() > 20);
    let errors = guest.must("cat /tmp/recorder/errors");
    assert!(errors.contains("is full"), "{errors}");
    guest.must("rm /tmp/full/ballast");
    let last = *failed.last().unwrap();
    wait("sweeps to be recorded again", "done", &|done| {
        done.iter().filter(|number| **number > last).count() > 10
    });
    guest.must(&format!("kill -9 {}; cp /tmp/full/history-0.db* /share/", pid.trim()));
    let (failed, done) = (said("failed"), said("done"));
    let errors = guest.must("cat /tmp/recorder/errors; rm -r /tmp/recorder; umount -l /tmp/full");
    let lines = |text: &str| errors.lines().filter(|line| line.contains(text)).count();
    println!("{} sweeps done, {} failed:\n{errors}", done.len(), failed.len());
    assert!((1..=3).contains(&lines("history recording failed")), "{errors}");
    assert_eq!(lines("history recording resumed"), 1, "{errors}");
    assert_eq!(lines("damaged"), 0, "{errors}");
    let file = guest.share().join("history-0.db");
    let found = check(&Steady::new(), &file, 0, &failed);
    let done = *done.last().unwrap();
    assert!((done..=done + 1).contains(&found), "{found} of {done}");
}

/// The whole program, on a disk that is read-only until it is remounted.
#[test]
fn exporter_serves_on_a_read_only_disk_and_resumes() {
    let guest = Guest::get();
    // Larger than the reserved space; none of it is ever used.
    guest.must(&format!(
        "mkdir /tmp/sealed && mount -t tmpfs -o ro,size=1g sealed /tmp/sealed
        echo '{}' >/tmp/sealed.yml",
        "fabric: {fat-tree: {hosts: 4, radix: 8, down: 4, up: 4}}"
    ));
    let mut exporter = GuestExporter::demo(&[
        "--scenario=/tmp/sealed.yml",
        "--history.file=/tmp/sealed/history.db",
        "--clock=10",
    ]);
    let number = |name: &str| {
        exporter.metrics().get_u64(&format!("fabric_exporter_history_{name}"), &[]).unwrap_or(0)
    };
    wait_until(LIMIT, "errors to be counted", || {
        Some(errors(&exporter.metrics(), Some("io"))).filter(|count| *count > 3)
    });
    assert_eq!(number("frames_total"), 0);
    guest.must("mount -o remount,rw /tmp/sealed");
    wait_until(LIMIT, "sweeps to be recorded", || Some(number("frames_total")).filter(|n| *n > 3));
    let log = exporter.log();
    assert_eq!(log.matches("Read-only file system").count(), 1, "{log}");
    assert_eq!(log.matches("history recording resumed").count(), 1, "{log}");
    exporter.stop();
    guest.must("umount -l /tmp/sealed");
}
