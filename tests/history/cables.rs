//! The life of a cable: the same from a file, over HTTP and from a copy.

use std::path::Path;

use fabric_exporter::history_client::HistoryClient;
use fabric_exporter::remote::Access;
use fabric_history::cable_life::{CableLife, CableMatches};
use fabric_history::file::dump::Existing;
use fabric_history::{Reader, Source};
use ib_health::Verdict;

use crate::asked::{ask, told};
use crate::served::Served;
use crate::{RecordedSimulation, always, events, minutes, wall};

/// The bad cable of leaf-0-1 port 10 is replaced.
const STORY: &str = "
timeline:
  - bad-cable: {at: 2m, into: 'leaf-0-1[10]', ratio: 1e-9, for: 28m}
  - flap: {at: 20m, link: 'leaf-0-1[10]', down: 2s, every: 1m, times: 2}
  - swap-cable: {at: 30m, link: 'leaf-0-1[10]', down: 40s}
";

fn life(source: &dyn Source, serial: &str) -> CableLife {
    let found = source.cable(serial).unwrap();
    assert_eq!(found.found, 1, "{found:?}");
    found.life.unwrap()
}

fn recorded(file: &Path) -> (String, String) {
    let mut simulation = RecordedSimulation::new(STORY, file);
    simulation.run_to(minutes(50));
    simulation.recorder.finish(wall(minutes(50)));
    let events = events(file);
    let change = events.iter().find(|event| event.kind == "cable_changed").unwrap();
    let serial = |key: &str| change.detail[key].as_str().unwrap().to_owned();
    (serial("was_serial"), serial("serial"))
}

#[test]
fn life_of_a_replaced_cable_is_the_same_from_file_url_and_copy() {
    let folder = tempfile::tempdir().unwrap();
    let [file, copy] = ["history.db", "copy.db"].map(|name| folder.path().join(name));
    let (bad, new) = recorded(&file);
    let reader = Reader::open(&file).unwrap();
    let of_bad = life(&reader, &bad);
    let at_leaf = |life: &CableLife| {
        let place = life.places.iter().find(|place| place.port.label() == "leaf-0-1 port 10");
        place.unwrap_or_else(|| panic!("{life:#?}")).clone()
    };
    let place = at_leaf(&of_bad);
    assert_eq!(of_bad.places.len(), 2, "both ends: {of_bad:#?}");
    assert_eq!((place.since, place.worst_verdict), (None, Some(Verdict::Bad)));
    let until = place.until.unwrap();
    assert!((wall(minutes(10))..wall(minutes(33))).contains(&until), "{until:?}");
    assert!(place.link_downs >= 2, "{place:#?}");
    assert!(place.errors.iter().any(|sum| sum.counter.row().metric == "symbol_errors"));
    assert_eq!(place.peer.unwrap().label(), "spine-1 port 5");
    let kinds: Vec<&str> = of_bad.events.iter().map(|event| &*event.kind).collect();
    for kind in ["cable_changed", "verdict_changed", "flap"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    // The new cable has none of that.
    let of_new = life(&reader, &new);
    let place = at_leaf(&of_new);
    assert!(place.since > Some(wall(minutes(30))) && place.until.is_none(), "{place:#?}");
    assert_eq!((place.link_downs, of_new.part.is_some()), (0, true));
    assert!(!place.errors.iter().any(|sum| sum.counter.row().metric == "symbol_errors"));

    reader.dump(always(), &copy, Existing::Keep, 0).unwrap();
    let copy = Reader::open(&copy).unwrap();
    let served = Served::new(&file, exporter_web::Limits::default());
    let url = format!("http://{}", served.address);
    let client = HistoryClient::new(&url, &Access::default()).unwrap();
    for serial in [&*bad, &*new, &bad.to_lowercase(), &bad[..6], "abcd"] {
        // Times are in milliseconds there.
        let json = |of: &dyn Source| serde_json::to_value(of.cable(serial).unwrap()).unwrap();
        let matches = json(&reader);
        assert_eq!(json(&client), matches, "{serial}");
        assert_eq!(json(&copy), matches, "{serial}");
    }
}

#[test]
fn history_cable_prints_places_and_events() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let (bad, _) = recorded(&file);
    let text = told(&file, &["cable", &bad]);
    let line = text.lines().find(|line| line.contains("leaf-0-1 port 10")).unwrap();
    assert!(line.contains("bad") && line.contains("symbol_errors +"), "{text}");
    assert!(text.contains("cable_changed") && text.contains("flap"), "{text}");
    let several = String::from_utf8(ask(&file, &["cable", &bad[..4]]).stdout).unwrap();
    assert!(several.lines().count() > 2 && several.contains(&bad), "{several}");
    let json: CableMatches =
        serde_json::from_str(&told(&file, &["cable", &bad, "--json"])).unwrap();
    assert_eq!(json.serials, [bad]);
    for (serial, says) in [("NOBODY-HAS-IT", "not found in"), ("x", "at least 4 characters")] {
        let output = ask(&file, &["cable", serial]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(says), "{error}");
    }
}
