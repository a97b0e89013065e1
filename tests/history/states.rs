//! What the fabric was like at a moment: its nodes, its cables, and how they were.

use std::time::Duration;

use fabric_history::model::{Cable, Node, Then, Window};
use fabric_history::{Reader, Source};
use ib_health::Verdict;

use crate::{SWEEP, Taped, minutes, wall};

const STORY: &str = "timeline:\n\
    - reboot: {at: 5m, node: host-13, down: 90s}\n\
    - unplug: {at: 15m, link: \"leaf-0-0[9]\", for: 5m}\n\
    - degrade: {at: 25m, link: \"leaf-0-0[10]\", width: 1x}\n\
    - move-cable: {at: 35m, from: \"leaf-0-1[2]\", to: \"leaf-0-1[5]\"}";

fn then(reader: &Reader, at: Duration) -> Then {
    let mut fabrics = reader.fabrics(wall(at)).unwrap();
    assert_eq!(fabrics.len(), 1);
    let then = fabrics.remove(0);
    assert!(then.at <= wall(at) && then.at > wall(at) - 2 * SWEEP, "{:?}", then.at);
    then
}

fn node<'a>(then: &'a Then, name: &str) -> &'a Node {
    then.nodes.iter().find(|node| node.name == name).unwrap()
}

fn cables<'a>(then: &'a Then, name: &str, port: u8) -> Vec<&'a Cable> {
    let is_end = |cable: &&Cable| cable.ends.iter().any(|end| end.node == name && end.port == port);
    then.cables.iter().filter(is_end).collect()
}

#[test]
fn the_fabric_is_told_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut taped = Taped::new(STORY, &file);
    taped.run_to(minutes(75));
    let seen = taped.simulated.observation();
    let reader = Reader::open(&file).unwrap();
    assert_eq!(reader.fabrics(wall(Duration::ZERO) - SWEEP).unwrap(), [], "before the first sweep");

    let quiet = then(&reader, minutes(4));
    let fabric = &seen.snapshot.as_ref().unwrap().fabric;
    assert_eq!(quiet.nodes.len(), fabric.nodes.len());
    assert_eq!(quiet.cables.len(), fabric.links().count());
    assert!(quiet.nodes.iter().all(|node| node.up));
    assert!(quiet.nodes.is_sorted_by_key(|node| node.guid));
    for cable in &quiet.cables {
        assert_eq!((cable.up, cable.rate.as_deref()), (Some(true), Some("4x NDR")), "{cable:?}");
    }
    assert_eq!(node(&quiet, "leaf-0-0").kind, "switch");
    assert_eq!(node(&quiet, "host-13").kind, "ca");

    let reboot = then(&reader, minutes(6));
    assert!(!node(&reboot, "host-13").up && node(&reboot, "host-12").up);
    let lost = cables(&reboot, "host-13", 1)[0];
    assert_ne!(lost.up, Some(true), "{lost:?}");
    let after = then(&reader, minutes(12));
    assert!(node(&after, "host-13").up);
    assert_eq!(cables(&after, "host-13", 1)[0].up, Some(true));

    let unplugged = then(&reader, minutes(17));
    let cable = cables(&unplugged, "leaf-0-0", 9)[0];
    assert_eq!((cable.up, &cable.rate), (Some(false), &None), "{cable:?}");
    assert!(cable.verdict >= Verdict::Watch, "{cable:?}");
    assert_eq!(cables(&then(&reader, minutes(22)), "leaf-0-0", 9)[0].up, Some(true));

    let narrow = then(&reader, minutes(30));
    assert_eq!(cables(&narrow, "leaf-0-0", 10)[0].rate.as_deref(), Some("1x NDR"));

    // After more than an hour there is a second whole account, in which that still stands.
    let late = then(&reader, minutes(72));
    assert_eq!(cables(&late, "leaf-0-0", 10)[0].rate.as_deref(), Some("1x NDR"));
    assert_eq!(late.nodes.len(), fabric.nodes.len());
}

#[test]
fn a_cable_that_was_moved_is_told_with_both_of_its_spans() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut taped = Taped::new(STORY, &file);
    taped.run_to(minutes(45));
    let reader = Reader::open(&file).unwrap();
    let host = cables(&then(&reader, minutes(34)), "leaf-0-1", 2)[0].ends.clone();
    let host = host.into_iter().find(|end| end.node != "leaf-0-1").unwrap();
    let leads_to = |at: u64| {
        let then = then(&reader, minutes(at));
        let cables = cables(&then, &host.node, 1);
        assert_eq!(cables.len(), 1, "{cables:?}");
        cables[0].ends.iter().find(|end| end.node == "leaf-0-1").unwrap().port
    };
    assert_eq!((leads_to(34), leads_to(40)), (2, 5));
    let told = |from: u64, to: u64| {
        let window = Window { from: wall(minutes(from)), to: wall(minutes(to)) };
        reader.cables(&[host.end()], window).unwrap()
    };
    assert_eq!((told(10, 30).len(), told(30, 42).len(), told(38, 42).len()), (1, 2, 1));
    let both = told(30, 42);
    let old = both.iter().find(|cable| cable.ends.iter().any(|end| end.port == 2)).unwrap();
    let new = both.iter().find(|cable| cable.ends.iter().any(|end| end.port == 5)).unwrap();
    assert_eq!(new.up, Some(true), "{new:?}");
    assert_ne!(old, new);
    assert_eq!(told(0, 1).len(), 1);
}

/// Whoever records next begins with how everything is then.
#[test]
fn a_restart_leaves_no_hole() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let mut taped = Taped::new(STORY, &file);
    taped.run_to(minutes(16));
    taped.recorder.end(wall(minutes(16)));
    let Taped { simulated, recorder, account, at } = taped;
    drop(recorder);
    let settings = fabric_history::settings::HistorySettings::new(file.clone());
    let settings = fabric_history::settings::HistorySettings { least_free: 0, ..settings };
    let recorder = fabric_history::Recorder::new(settings, account.clone());
    let mut taped = Taped { simulated, recorder, account, at: at + minutes(5) };
    taped.run_to(minutes(25));
    let reader = Reader::open(&file).unwrap();
    let before = then(&reader, minutes(16));
    assert_eq!(cables(&before, "leaf-0-0", 9)[0].up, Some(false));
    let after = then(&reader, minutes(23));
    assert_eq!(cables(&after, "leaf-0-0", 9)[0].up, Some(true));
    let window = Window { from: wall(minutes(10)), to: wall(minutes(24)) };
    let known = &reader.cover(window).unwrap().fabrics["default"];
    assert_eq!(known.gaps.len(), 1, "{known:?}");
    assert!(known.gaps[0].length() >= minutes(5), "{known:?}");
}
