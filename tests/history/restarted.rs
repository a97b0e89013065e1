//! Totals and bit errors continue after a restart of the exporter.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use fabric_history::Recorder;
use fabric_history::settings::HistorySettings;
use ib_health::bit_errors::BerWindow;
use ib_health::flap_limits::FlapDayLimit;
use ib_health::recorded::{RecordedErrors, RecordedFlaps};
use ib_health::totals::TotalsSeed;
use ib_health::{LinkAssessment, Reason, Verdict};
use ib_mad::Counter;
use ib_mad::rate::{Speed, Width};
use test_rig::{Exporter, Ibsim, OpenSm, Simulated, topology};

use super::{RecordedSimulation, SWEEP, events, minutes, wall};

fn start(ibsim: &Ibsim, file: &Path) -> Exporter {
    let file = format!("--history.file={}", file.display());
    let mut exporter = Exporter::start(ibsim, &["--fabric.interval=1s", &file]);
    exporter.wait_ready();
    exporter
}

fn set(ibsim: &Ibsim, node: &str, errors: u64) {
    ibsim.console_many(&[format!(
        "PerformanceSet \"{node}\"[1] PortCounters.SymbolErrorCounter={errors}"
    )]);
}

#[test]
fn totals_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let text = topology::fat_tree_2(8, 10, 4, 3);
    let ibsim = Ibsim::start(&text);
    let _opensm = OpenSm::start(&ibsim);
    let (node, _) = topology::all_connected_ports(&text)
        .into_iter()
        .find(|(node, port)| node.contains("host") && *port == 1)
        .unwrap();
    let symbol_errors = |exporter: &Exporter| {
        let metrics = exporter.metrics();
        let mut infos = metrics.all("infiniband_port_info").map(|(labels, _)| labels);
        let info = infos.find(|labels| labels["node"] == node && labels["port"] == "1").unwrap();
        let port = [("guid", &*info["guid"]), ("port", "1")];
        metrics.get_u64("infiniband_port_symbol_errors_total", &port)
    };
    set(&ibsim, &node, 100);
    let mut first = start(&ibsim, &file);
    assert_eq!(symbol_errors(&first), Some(100));
    // A tool clears it, and it continues from there.
    set(&ibsim, &node, 40);
    first.wait_sweeps(2);
    assert_eq!(symbol_errors(&first), Some(140));
    assert!(first.stop().success());
    // It counts while no exporter runs.
    set(&ibsim, &node, 47);
    let mut second = start(&ibsim, &file);
    assert_eq!(symbol_errors(&second), Some(147));
    second.signal("KILL");
    drop(second);
    // It is cleared while no exporter runs, and the exporter before was killed.
    set(&ibsim, &node, 5);
    let mut third = start(&ibsim, &file);
    assert_eq!(symbol_errors(&third), Some(152));
    third.wait_sweeps(2);
    assert_eq!(symbol_errors(&third), Some(152));
    assert!(third.stop().success());
    // Without a history, or with another, totals begin with what counters show.
    let mut fourth = start(&ibsim, &folder.path().join("another.db"));
    assert_eq!(symbol_errors(&fourth), Some(5));
    assert!(fourth.stop().success());
}

/// The verdict of each link, by its ports, and the time in which errors of both ends were counted.
type Known = BTreeMap<[String; 2], (Verdict, Duration)>;

fn known(simulated: &Simulated) -> Known {
    let observation = simulated.observation();
    let fabric = &observation.snapshot.as_ref().unwrap().fabric;
    let of_link = |found: &LinkAssessment| {
        let ports = found.link.ports();
        let counted = ports.map(|port| {
            let errors = &observation.assessment.ports[port].bit_errors;
            errors.windows[BerWindow::Long as usize].span()
        });
        let name = |port| format!("{}[{}]", fabric.node_of(port).name, fabric.port(port).number);
        (ports.map(name), (found.verdict, counted.into_iter().min().unwrap()))
    };
    observation.assessment.links.iter().map(of_link).collect()
}

/// Runs a fabric for 20 minutes, and its exporter again from minute 21 on, with what it recorded or without; returns
/// what is known of all links after 21 minutes without a restart, and after the first sweep after the restart.
fn restarted(with_history: bool) -> [Known; 2] {
    // A link at NDR is observed for 10 minutes.
    let story = "
timeline:
- bad-cable: {at: 30s, into: \"leaf-0-1[9]\", ratio: 1e-12}
- flap: {at: 18m, link: \"leaf-0-2[3]\", down: [3s]}";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(story, &file);
    simulation.run_to(minutes(20));
    let RecordedSimulation { mut simulated, mut recorder, .. } = simulation;
    recorder.finish(wall(minutes(20)));
    drop(recorder);
    simulated.run_to(minutes(21));
    let uninterrupted = known(&simulated);
    let mut recorder = Recorder::new(HistorySettings::new(file), Arc::default());
    let fabric = simulated.observation().fabric.clone();
    simulated.restart(|monitor| {
        if with_history {
            let errors = recorder.link_errors(&fabric, wall(minutes(21)));
            monitor.restore(recorder.totals(&fabric), errors, RecordedFlaps::new());
        }
    });
    simulated.run_for(Duration::from_secs(5));
    [uninterrupted, known(&simulated)]
}

#[test]
fn links_need_no_observation_after_a_restart_with_history() {
    let [uninterrupted, known] = restarted(true);
    assert_eq!(uninterrupted.len(), known.len());
    for (link, &(verdict, counted)) in &known {
        let (expected, before) = uninterrupted[link];
        let [low, high] = link.each_ref().map(|port| &**port);
        match (low, high) {
            ("leaf-0-1[9]", _) => assert_eq!(verdict, Verdict::Bad),
            // It trained three minutes ago.
            ("leaf-0-2[3]", _) => {
                assert_eq!(verdict, Verdict::Unknown);
                assert!(counted < minutes(3), "{counted:?}");
                continue;
            }
            _ => assert_eq!(verdict, Verdict::Ok, "{low} {high}"),
        }
        assert_eq!(verdict, expected, "{low} {high}");
        assert!(counted >= minutes(19), "{low} {high}: {counted:?}");
        assert!(counted.abs_diff(before) <= 2 * SWEEP, "{low} {high}: {counted:?}, {before:?}");
    }
}

#[test]
fn links_are_observed_again_after_a_restart_without_history() {
    let [uninterrupted, known] = restarted(false);
    assert!(uninterrupted.values().any(|(verdict, _)| *verdict == Verdict::Bad));
    for (link, (verdict, counted)) in known {
        assert_eq!((verdict, counted), (Verdict::Unknown, Duration::ZERO), "{link:?}");
    }
}

#[test]
fn recorded_errors_are_those_since_a_link_changed() {
    let story = "
timeline:
- bad-cable: {at: 30s, into: \"leaf-0-1[9]\", ratio: 1e-12}
- flap: {at: 2430s, link: \"leaf-0-2[3]\", down: [3s]}
- clear: {at: 3030s, port: \"leaf-0-0[9]\"}
- set: {at: 30s, port: \"leaf-0-0[9]\", counters: {SymbolErrorCounter: 3}}";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(story, &file);
    // More than an hour: its first readings are digested.
    simulation.run_to(minutes(100));
    let observation = simulation.simulated.observation();
    let snapshot = observation.snapshot.as_ref().unwrap();
    let fabric = &snapshot.fabric;
    let recorded = simulation.recorder.link_errors(&observation.fabric, wall(minutes(100)));
    assert_eq!(recorded.links.len(), fabric.links().count());
    assert_eq!(recorded.sweeps.len(), 400);
    for link in fabric.links() {
        let id = fabric.link_id(link.low).unwrap();
        let known = &recorded.links[&id];
        assert_eq!(known.rate, (Width::X4, Speed::Ndr));
        let since = known.since.duration_since(recorded.sweeps[0]).unwrap().as_secs() / 60;
        let names = id.ends().map(|end| {
            let port = fabric.find(end).unwrap();
            format!("{}[{}]", fabric.node_of(port).name, end.number)
        });
        let counted = known.ends.each_ref().map(|end| end.iter().map(|(_, by)| by).sum::<u64>());
        match names.each_ref().map(|name| &**name) {
            ["leaf-0-1[9]", _] => {
                let port = snapshot.fabric.find(id.ends()[0]).unwrap();
                let total = snapshot.reading(port).unwrap().get(Counter::SymbolErrors).unwrap();
                assert!(total > 100, "{total}");
                assert_eq!((since, counted), (0, [total, 0]));
            }
            // Its second end reports the link down later.
            ["leaf-0-2[3]", _] => assert!((40..=42).contains(&since) && counted == [0, 0]),
            ["leaf-0-0[9]", _] => assert_eq!((since, counted), (50, [0, 0])),
            _ => assert_eq!((since, counted), (0, [0, 0]), "{names:?}"),
        }
    }
    // An exporter that is started hours later uses none of them, and one with the clock set back the sweeps before.
    let later = simulation.recorder.link_errors(&observation.fabric, wall(minutes(400)));
    assert!(later.sweeps.is_empty() && later.links.is_empty());
    let earlier = simulation.recorder.link_errors(&observation.fabric, wall(minutes(30)));
    assert_eq!(earlier.sweeps.len(), 121);
    assert!(simulation.recorder.link_errors("another", wall(minutes(100))).links.is_empty());
}

/// Runs a fabric with a flap whose events are recorded for the two days before as well, changes them, and restarts its
/// exporter with them; returns the links with recorded flaps, and those that flapped on three days.
fn flapping(change: &str) -> [Vec<String>; 2] {
    let story = "
timeline:
- flap: {at: 2m, link: \"leaf-0-2[3]\", down: [3s]}";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut simulation = RecordedSimulation::new(story, &file);
    simulation.run_to(minutes(5));
    let RecordedSimulation { mut simulated, mut recorder, .. } = simulation;
    recorder.finish(wall(minutes(5)));
    drop(recorder);
    let columns = "fabric, kind, node, port, link, place, text, detail";
    let db = rusqlite::Connection::open(&file).unwrap();
    for days in [1, 2] {
        let at = format!("at - {days} * 86400 * 1000000");
        let copy = format!(
            "INSERT INTO events (at, {columns}) SELECT {at}, {columns} FROM events
             WHERE kind = 'flap' AND at > {}",
            wall(minutes(1)).duration_since(UNIX_EPOCH).unwrap().as_micros(),
        );
        assert_eq!(db.execute(&copy, []).unwrap(), 1);
    }
    db.execute_batch(change).unwrap();
    drop(db);
    let recorder = Recorder::new(HistorySettings::new(file), Arc::default());
    let fabric = simulated.observation().fabric.clone();
    let within = FlapDayLimit::default().within;
    let flaps = recorder.flaps(&fabric, wall(minutes(5)), within);
    let with_flaps = flaps.keys().map(ToString::to_string).collect();
    assert!(recorder.flaps("another", wall(minutes(5)), within).is_empty());
    let (totals, errors) = (TotalsSeed::new(), RecordedErrors::default());
    simulated.restart(|monitor| monitor.restore(totals, errors, flaps));
    simulated.run_for(Duration::from_secs(5));
    let observation = simulated.observation();
    let fabric = &observation.snapshot.as_ref().unwrap().fabric;
    let links = observation.assessment.links.iter();
    let found = links.filter(|found| found.reasons.weight(Reason::RepeatedFlaps).is_some());
    let degraded = found.map(|found| {
        assert_eq!(found.verdict, Verdict::Watch);
        fabric.link_id(found.link.low).unwrap().to_string()
    });
    [with_flaps, degraded.collect()]
}

#[test]
fn days_with_flaps_survive_a_restart() {
    let [recorded, degraded] = flapping("");
    assert_eq!((recorded.len(), &degraded), (1, &recorded));
    // Two days are not enough.
    let [recorded, degraded] =
        flapping("DELETE FROM events WHERE at = (SELECT min(at) FROM events)");
    assert_eq!((recorded.len(), degraded.len()), (1, 0));
    // Those that a node caused, and those of an earlier version, which did not record the cause, do not count.
    for cause in ["json_set(detail, '$.cause', 'node')", "json_remove(detail, '$.cause')", "NULL"] {
        let change = format!("UPDATE events SET detail = {cause} WHERE kind = 'flap'");
        assert_eq!(flapping(&change), [const { Vec::<String>::new() }; 2], "{cause}");
    }
    // The cable was changed since then.
    let changed = "INSERT INTO events (at, fabric, kind, node, port, place, text)
        SELECT max(at) + 1000000, events.fabric, 'cable_changed', ports.node, ports.id, '', ''
        FROM events JOIN links ON links.id = events.link JOIN ports ON ports.id = links.high
        WHERE events.kind = 'flap'";
    assert_eq!(flapping(changed), [const { Vec::<String>::new() }; 2]);
}

#[test]
fn cable_that_moved_during_a_restart_is_recognized() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let story = "timeline:\n- move-cable: {at: 20m, from: \"leaf-0-1[2]\", to: \"leaf-0-1[5]\"}";
    let mut simulation = RecordedSimulation::new(story, &file);
    simulation.run_to(minutes(15));
    let RecordedSimulation { simulated, mut recorder, .. } = simulation;
    recorder.finish(wall(minutes(15)));
    drop(recorder);
    simulated.run_to(minutes(25));
    let mut simulation = RecordedSimulation::of(simulated, &file);
    simulation.at = minutes(25);
    simulation.run_to(minutes(40));
    // The ports have exchanged their cables.
    let changed = events(&file).into_iter().filter(|event| event.kind == "cable_changed");
    let places: Vec<_> = changed
        .map(|event| {
            let (_, seen) = event.text.split_once(", seen at ").unwrap();
            (event.place.clone(), seen.split_once(" until ").unwrap().0.to_owned())
        })
        .collect();
    let ports = ["leaf-0-1 port 2", "leaf-0-1 port 5"].map(str::to_owned);
    let [low, high] = ports;
    assert_eq!(places, [(low.clone(), high.clone()), (high, low)]);
}
