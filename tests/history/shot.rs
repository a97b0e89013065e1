//! Two hundred recorders are killed at random times: while they create their file, open it, write to it and close
//! it. A file contains no less than what its recorder had done, no more than what it was about to do, and nothing
//! twice.
//!
//! The recorder is this test binary itself, which runs one ignored test. It writes to a file what it is about to do
//! and what it has done.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fabric_history::Reader;
use ib_sim::rng::Rng;

use crate::steady::{Steady, SteadyRecorder, check, settings};
use crate::{events, wall};
use test_rig::child::{self, Running};
use test_rig::wait_until;

/// How often in each of two lanes: this many altogether is twice as many.
const TIMES: u64 = 100;

/// The latest moment, after the first file is opened.
const LATEST: u64 = 200_000;

/// Environment variables with the folder and the mode of the recorder.
pub const FOLDER: &str = "HISTORY_TEST_FOLDER";
pub const WAY: &str = "HISTORY_TEST_WAY";

/// The mode of a recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// One file, sweep after sweep.
    On,
    /// One file, which it opens and closes again and again.
    Again,
    /// File after file, each new.
    Fresh,
}

const WAYS: [Way; 3] = [Way::On, Way::Again, Way::Fresh];

fn file(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("history-{number}.db"))
}

/// The arguments by which this test binary becomes a recorder.
pub const RECORD: &[&str] = &["shot::recorder_process", "--exact", "--ignored", "--nocapture"];

#[test]
#[ignore = "run by the tests that kill it"]
fn recorder_process() {
    let (Some(folder), Ok(way)) = (std::env::var_os(FOLDER), std::env::var(WAY)) else { return };
    let way = WAYS.into_iter().find(|it| format!("{it:?}") == way).unwrap();
    let (folder, steady) = (PathBuf::from(folder), Arc::new(Steady::new()));
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut number = 0;
    loop {
        println!("\nrecorder: opens {number}");
        let mut steady_recorder = SteadyRecorder::new(&steady, settings(&file(&folder, number)));
        println!("\nrecorder: first {}", steady_recorder.next);
        while way == Way::On || steady_recorder.next < steady_recorder.first + 3 {
            println!("\nrecorder: about {}", steady_recorder.next);
            let well = steady_recorder.record();
            println!(
                "\nrecorder: {} {}",
                if well { "done" } else { "failed" },
                steady_recorder.next - 1
            );
        }
        steady_recorder.recorder.finish(SystemTime::now());
        number += u64::from(way == Way::Fresh);
    }
}

/// What a recorder has reported.
#[derive(Debug, Default)]
struct Said {
    /// The file that it opened last.
    file: u64,
    /// Times that it opened that and got so far as to record.
    starts: u64,
    first: u64,
    about: u64,
    done: u64,
}

impl Said {
    fn read(log: &Path) -> Option<Said> {
        let mut said = None;
        for line in child::read_lossy(log).lines() {
            let Some(line) = line.strip_prefix("recorder: ") else { continue };
            // A report that was cut off does not count.
            let Some((word, number)) = line.split_once(' ') else { continue };
            let Ok(number) = number.parse() else { continue };
            let said = said.get_or_insert_with(Said::default);
            match word {
                "opens" if number == said.file => {}
                "opens" => *said = Said { file: number, ..Said::default() },
                "first" => said.first = number,
                "about" => {
                    said.starts += u64::from(number == said.first);
                    said.about = number;
                }
                "done" => said.done = number,
                _ => panic!("it {line}"),
            }
        }
        said
    }
}

/// Lets a recorder run until a random time, kills it, and returns what it reported.
fn shot(folder: &Path, way: Way, chance: &mut Rng) -> Said {
    let log = folder.join("said");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(RECORD)
        .env(FOLDER, folder)
        .env(WAY, format!("{way:?}"))
        .stdin(Stdio::null())
        .stdout(child::create(&log))
        .stderr(child::create(&folder.join("stderr")));
    let mut running = Running::spawn("a recorder", &mut command);
    wait_until(Duration::from_secs(60), "a recorder to begin", || Said::read(&log));
    // This is no wait for anything: it is the random moment itself.
    std::thread::sleep(Duration::from_micros(chance.below(LATEST)));
    let ended = running.try_wait();
    running.kill();
    assert_eq!(ended, None, "{}", child::read_lossy(&folder.join("stderr")));
    Said::read(&log).unwrap()
}

/// Checks a file after a kill: `before` is the last sweep that was in it then.
fn survives(steady: &Steady, file: &Path, before: u64, said: &Said) -> u64 {
    let (least, most) = (said.done.max(before), said.about.max(before));
    assert!(most <= least + 1, "{said:?}");
    // A reader finds the same before the exporter is started again.
    if least > 0 {
        Reader::open(file).unwrap();
    }
    let found = check(steady, file, before, &[]);
    assert!((least..=most).contains(&found), "{found} after {before}: {said:?}");
    found
}

fn whole(folder: &Path) {
    let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
    for name in names {
        assert!(!name.to_string_lossy().contains("damaged"), "{}", name.display());
    }
}

fn lane(seed: u64) -> (u64, [u64; 3], u64) {
    let folder = tempfile::tempdir().unwrap();
    let steady = Steady::new();
    let mut chance = Rng::new(seed);
    let (mut last, mut starts, mut unsaid, mut torn_off, mut ways) = (0, 0, 0, 0, [0; 3]);
    for _ in 0..TIMES {
        let way = WAYS[chance.below(3) as usize];
        ways[way as usize] += 1;
        if way == Way::Fresh {
            let fresh = tempfile::tempdir_in(folder.path()).unwrap();
            let said = shot(fresh.path(), way, &mut chance);
            let last = survives(&steady, &file(fresh.path(), said.file), 0, &said);
            torn_off += u64::from(said.about > said.done && last == said.done);
            if let Some(before) = said.file.checked_sub(1) {
                assert_eq!(check(&steady, &file(fresh.path(), before), 0, &[]), 3);
            }
            whole(fresh.path());
        } else {
            let said = shot(folder.path(), way, &mut chance);
            let file = file(folder.path(), 0);
            last = survives(&steady, &file, last, &said);
            torn_off += u64::from(said.about > said.done && last == said.done);
            starts += said.starts;
            // The first sweep of a start that was cut short may be missing; then its start is recorded later.
            unsaid += u64::from(said.about == said.first && said.done < said.first);
            let told = events(&file);
            let told = told.iter().filter(|event| event.kind == "exporter_start").count() as u64;
            assert!((starts - unsaid..=starts).contains(&told), "{told} of {starts} starts");
            whole(folder.path());
        }
    }
    assert_eq!(check(&steady, &file(folder.path(), 0), 0, &[]), last);
    (last, ways, torn_off)
}

/// Kills some recorders of one file, beside which an operator does something before each: the file is whole
/// after each, and is never set aside.
pub fn kills_beside(seed: u64, times: u64, beside: &mut dyn FnMut(&Path)) {
    let (folder, steady) = (tempfile::tempdir().unwrap(), Steady::new());
    let (mut chance, mut last) = (Rng::new(seed), 0);
    for _ in 0..times {
        beside(folder.path());
        let way = [Way::On, Way::Again][chance.below(2) as usize];
        let said = shot(folder.path(), way, &mut chance);
        last = survives(&steady, &file(folder.path(), 0), last, &said);
        whole(folder.path());
    }
}

#[test]
fn file_is_intact_after_two_hundred_kills() {
    let now = wall(Duration::ZERO).elapsed().unwrap().as_micros();
    let seed = std::env::var("HISTORY_TEST_SEED").map_or(now as u64, |seed| seed.parse().unwrap());
    println!("HISTORY_TEST_SEED={seed}");
    std::thread::scope(|scope| {
        let lanes = [seed, seed.wrapping_add(1)].map(|seed| scope.spawn(move || lane(seed)));
        for lane in lanes {
            let (last, ways, torn_off) = lane.join().unwrap();
            println!("{last} sweeps, kills by way {ways:?}, {torn_off} sweeps cut off");
        }
    });
}
