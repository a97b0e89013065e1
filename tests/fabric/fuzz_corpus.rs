//! What fuzzing has found of interest is looked at again, without a fuzzer: each kept input goes
//! through the entry that it was kept for, which must not panic, and its assertions hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../fuzz/entries/mod.rs"]
mod entries;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What one kept input may take, and all of them together: they are in everybody's clone.
const MOST_BYTES: u64 = 4 << 10;
const MOST_BYTES_OF_ALL: u64 = 1 << 20;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// The paths in a folder, sorted.
fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Runs the entries of one half, so that two processors have something to do.
fn replay(half: usize) {
    for (name, _) in entries::ENTRIES.iter().skip(half).step_by(2) {
        let began = std::time::Instant::now();
        let kept = listed(&fuzz().join("corpus").join(name));
        assert!(!kept.is_empty(), "{name} has no corpus");
        for path in &kept {
            let bytes = fs::read(path).unwrap();
            let done = std::panic::catch_unwind(|| entries::run(name, &bytes));
            assert!(done.is_ok(), "above is what {} does to the entry {name}", path.display());
        }
        println!("{name}: {} inputs in {:?}", kept.len(), began.elapsed());
    }
}

#[test]
fn one_half_of_what_was_kept_finds_nothing() {
    replay(0);
}

#[test]
fn nor_does_the_other() {
    replay(1);
}

#[test]
fn each_entry_has_a_target_and_a_small_corpus_and_nothing_else_is_kept() {
    let names: BTreeSet<String> =
        entries::ENTRIES.iter().map(|(name, _)| (*name).to_owned()).collect();
    let stems = |folder: &str| -> BTreeSet<String> {
        let paths = listed(&fuzz().join(folder));
        paths.iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(stems("targets"), names);
    assert_eq!(stems("corpus"), names);
    let manifest = fs::read_to_string(fuzz().join("Cargo.toml")).unwrap();
    let mut all = 0;
    for name in &names {
        assert!(manifest.contains(&format!("path = \"targets/{name}.rs\"")), "{name}");
        let target = fs::read_to_string(fuzz().join(format!("targets/{name}.rs"))).unwrap();
        assert!(target.contains(&format!("\"{name}\"")), "{target}");
        for path in listed(&fuzz().join("corpus").join(name)) {
            let length = fs::metadata(&path).unwrap().len();
            assert!(length <= MOST_BYTES, "{} has {length} bytes", path.display());
            all += length;
        }
    }
    assert!(all <= MOST_BYTES_OF_ALL, "{all} bytes are kept");
    println!("{all} bytes are kept");
}
