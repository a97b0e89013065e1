//! Short runs: the result depends on the seed alone, and planted faults are found.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use ib_health::{LimitTable, LinkEvaluator, Reason, Verdict};
use ib_sim::rng::Rng;
use ib_trials::action::Action;
use ib_trials::cell::Cell;
use ib_trials::devices::GENERATIONS;
use ib_trials::report::Report;
use ib_trials::run::{RunError, Settings, run};
use ib_trials::score::Tally;
use ib_trials::trials::KINDS;
use ib_trials::world::World;

fn settings() -> Settings {
    Settings {
        seed: 7,
        cables: 72,
        days: 1.0,
        interval: 60,
        trials: 8,
        trial_intervals: vec![60],
        confidence: "high".into(),
        limit_factor: 1.0,
    }
}

/// The result without the time that it took.
fn result(settings: &Settings, threads: usize, path: &Path) -> Tally {
    let tally = run(settings, threads, path, |_, _| {}).unwrap();
    Tally { seconds: 0.0, ..tally }
}

#[test]
fn result_depends_neither_on_threads_nor_on_interruptions() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    let expected = result(&settings(), 1, &one);
    assert!(result(&settings(), 2, &two) == expected);
    // Interrupted while a line was written.
    let text = fs::read_to_string(&one).unwrap();
    fs::write(&two, &text[..text.len() * 2 / 3]).unwrap();
    assert!(result(&settings(), 2, &two) == expected);
    assert_eq!(fs::read_to_string(&two).unwrap().lines().count(), text.lines().count());
    // Another seed has another file.
    let other = Settings { seed: 8, ..settings() };
    assert!(matches!(run(&other, 1, &two, |_, _| {}), Err(RunError::OtherSettings { .. })));
    assert_ne!(result(&other, 2, &folder.path().join("other")).others, expected.others);
}

#[test]
fn every_kind_of_fault_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings { cables: 0, trials: 24, ..settings() };
    let tally = result(&settings, 2, &folder.path().join("results"));
    for (kind, (_, name, is_bad)) in KINDS.iter().enumerate() {
        let trials: Vec<_> = tally.trials.iter().filter(|trial| trial.kind == kind).collect();
        assert!(!trials.is_empty(), "{name}");
        // Near the limit it may take more than the day that is simulated.
        let is_near = matches!(*name, "BER 0.5x" | "BER 1x" | "BER 1.5x");
        let found =
            trials.iter().filter(|trial| if *is_bad { trial.bad } else { trial.watch }.is_some());
        assert!(is_near || found.count() == trials.len(), "{name}: {trials:#?}");
    }
    let report = Report {
        settings: &settings,
        tally: &tally,
        date: "2026-01-01".into(),
        command: "make trust".into(),
        defects: vec![("none".into(), tally.clone())],
        variants: vec![(settings.clone(), tally.clone())],
    };
    let page = report.page();
    for part in ["## Targets", "## Detection", "| BER 10x | 60 s | `bad` |", "Deliberate defects"] {
        assert!(
            page.contains(part),
            "{part}:
{page}"
        );
    }
}

/// `scripts/trust-defects` applies them to a copy.
#[test]
fn defects_fit_the_evaluator() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut defects = 0;
    for entry in fs::read_dir(crate_root.join("defects")).unwrap() {
        let patch = fs::read_to_string(entry.unwrap().path()).unwrap();
        let file = patch.lines().find_map(|line| line.strip_prefix("--- a/")).unwrap();
        let source = fs::read_to_string(crate_root.join("../..").join(file)).unwrap();
        let hunk = patch.lines().skip_while(|line| !line.starts_with("@@")).skip(1);
        let before = hunk.filter(|line| !line.starts_with('+')).filter_map(|line| line.get(1..));
        let before: Vec<&str> = before.collect();
        assert!(source.contains(&before.join("\n")), "{file} has changed:\n{patch}");
        defects += 1;
    }
    assert!(defects >= 3);
}

/// A link that is down for three seconds once a day, and one that does it four times in one night.
#[test]
fn link_that_flaps_each_day_is_found_on_the_third() {
    const HOUR: f64 = 3600.0;
    let mut rng = Rng::keyed(7, &[3]);
    let cell = Cell::new(&mut rng, Some(GENERATIONS[0]), false);
    let mut world = World::new(cell, rng, 60.0);
    let (daily, nightly) = (12, 20);
    let hours = [8.0, 31.0, 56.0].map(|hour| (daily, hour));
    for (cable, hour) in hours.into_iter().chain([22.0, 23.5, 25.0, 27.0].map(|it| (nightly, it))) {
        let down = Action::LinkDown { cable, seconds: 3.0, counted: [true; 2] };
        world.at(hour * HOUR, down);
    }
    let mut evaluator = LinkEvaluator::new(LimitTable::default());
    let mut found: Vec<(usize, Option<Verdict>, f64)> = Vec::new();
    let mut now = 0.0;
    while now < 58.0 * HOUR {
        now += 60.0;
        world.advance(now);
        let snapshot = world.sweep(now);
        let (_, assessment) = evaluator.evaluate(snapshot);
        for link in &assessment.links {
            let (cable, _) = world.cell.ports[usize::from(link.link.low)].cable.unwrap();
            let weight = link.reasons.weight(Reason::RepeatedFlaps);
            if weight.is_some() && found.iter().all(|(known, ..)| *known != cable) {
                found.push((cable, weight, now));
            }
        }
    }
    let [(cable, weight, at)] = found[..] else { panic!("{found:?}") };
    assert_eq!((cable, weight), (daily, Some(Verdict::Watch)));
    assert!((56.0 * HOUR..56.1 * HOUR).contains(&at), "{at}");
}
