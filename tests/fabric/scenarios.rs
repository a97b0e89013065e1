//! The scenarios of the library, and the documentation of scenario files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};

use ib_sim::scenario::ENTRIES;
use ib_sim::scenario::{Overrides, Scenario};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios")
}

fn library() -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder()).unwrap();
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/dev/scenarios.md"))
        .unwrap()
}

#[test]
fn scenarios_of_the_library_are_resolved() {
    let library = library();
    assert!(library.len() >= 12, "{library:?}");
    for path in library {
        let scenario = Scenario::read(&path).unwrap_or_else(|error| panic!("{error}"));
        assert!(scenario.about().len() > 20, "{}: what is it about?", path.display());
        let story =
            scenario.resolve(&Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        assert!(!story.descriptions.is_empty(), "{}: nothing happens", path.display());
        assert!(story.changes.is_sorted_by_key(|step| step.at), "{}", path.display());
        // Each entry has at least one change at its time.
        for (at, words) in &story.descriptions {
            assert!(story.changes.iter().any(|step| step.at == *at), "{}: {words}", path.display());
        }
    }
}

#[test]
fn library_has_every_entry() {
    let texts: String =
        library().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for name in ENTRIES {
        assert!(texts.contains(&format!("- {name}:")), "{name} is in no scenario");
    }
}

/// The known keys or values at a place, from the error for an unknown one.
fn known(text: &str) -> Vec<String> {
    let error = Scenario::parse("x", text).map(|_| ()).expect_err(text).to_string();
    let known = error.split_once("known: ").or_else(|| error.split_once("is not one of: "));
    let known = known.unwrap_or_else(|| panic!("{text}: {error}")).1;
    known.split(", ").map(String::from).collect()
}

/// The part of the page under a heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let begin = format!("\n## {heading}\n");
    let after = page.split_once(&begin).unwrap_or_else(|| panic!("no section {heading}")).1;
    after.split("\n## ").next().unwrap()
}

#[test]
fn documentation_has_all_keys() {
    let page = page();
    let told = |heading: &str, names: Vec<String>| {
        let section = section(&page, heading);
        for name in names {
            assert!(section.contains(&format!("`{name}`")), "{name} is not described in {heading}");
        }
    };
    told("File", known("nonsense: 1"));
    let shapes = known("fabric: {nonsense: {}}");
    assert!(shapes.len() >= 4);
    for shape in shapes.iter().filter(|shape| *shape != "file") {
        told("Fabric", known(&format!("fabric: {{{shape}: {{nonsense: 1}}}}")));
    }
    told("Fabric", shapes);
    told("Traffic", known("traffic: {nonsense: 1}"));
    told("Traffic", known("traffic: {pattern: nonsense}"));
    told("Way", known("way: {nonsense: 1}"));
    told("Own host", known("own-host: {nonsense: 1}"));
    let entries = known("timeline: [nonsense: {}]");
    assert_eq!(entries, ENTRIES);
    for entry in &entries {
        let keys = known(&format!("timeline: [{entry}: {{nonsense: 1}}]"));
        assert!(keys.iter().any(|key| key == "at"), "{entry}: {keys:?}");
        // Its keys are in its row.
        let row = section(&page, "Timeline")
            .lines()
            .find(|line| line.starts_with(&format!("| `{entry}` |")));
        let row = row.unwrap_or_else(|| panic!("{entry} has no row"));
        for key in keys.iter().filter(|key| *key != "at") {
            assert!(row.contains(&format!("`{key}`")), "{entry}: {key} is not in its row");
        }
    }
    told("Timeline", vec!["at".into()]);
}

#[test]
fn documentation_has_no_unknown_keys() {
    let page = page();
    for entry in ENTRIES {
        let row = section(&page, "Timeline")
            .lines()
            .find(|line| line.starts_with(&format!("| `{entry}` |")))
            .unwrap();
        let keys = row.split('|').nth(2).unwrap();
        let known = known(&format!("timeline: [{entry}: {{nonsense: 1}}]"));
        for key in keys.split('`').skip(1).step_by(2) {
            assert!(known.iter().any(|other| other == key), "{entry} has no {key}");
        }
    }
}

#[test]
fn documented_examples_are_resolved() {
    let page = page();
    let examples: Vec<&str> =
        page.split("```yaml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    assert!(!examples.is_empty());
    for example in examples {
        let scenario = Scenario::parse("docs/dev/scenarios.md", example).unwrap();
        let story =
            scenario.resolve(&Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
        assert!(!story.descriptions.is_empty());
    }
}

#[test]
fn documented_defaults_are_the_defaults() {
    let (said, usual) = ("the_defaults.yml", Scenario::parse("x", "").unwrap());
    let page = page();
    let text = page.split_once("```yml\n").unwrap().1.split_once("```").unwrap().0;
    let said = Scenario::parse(said, text).unwrap().resolve(&Overrides::default()).unwrap();
    let usual = usual.resolve(&Overrides::default()).unwrap();
    assert_eq!(
        (said.seed, said.delivery, &said.local_ports),
        (usual.seed, usual.delivery, &usual.local_ports)
    );
    assert_eq!((&said.sm_ports, &said.changes), (&usual.sm_ports, &usual.changes));
    assert_eq!(said.net, usual.net);
}
