//! The fuzz entries: one for each kind of untrusted input.
//!
//! An entry accepts any bytes and must not panic; it asserts further properties. Entries are the bodies of
//! the targets of `cargo fuzz` (fuzz/targets), and tests/fabric/fuzz_corpus.rs runs each over its corpus
//! without a fuzzer. They are deterministic, so that every failure can be reproduced.

// An entry reports a failure by a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Panics are documented once, above, not in each entry.
#![allow(clippy::missing_panics_doc, missing_docs)]

mod agents;
mod answers;
mod dumps;
mod exposition;
mod fabric;
mod files;
mod frames;
mod history;
mod host;
mod input;
mod jobs;
mod kernel;
mod mad;
mod requests;
mod web;
mod words;

/// The function of an entry.
pub type Entry = fn(&[u8]);

/// All entries by the names of their targets, which are also the directories in fuzz/corpus.
pub const ENTRIES: &[(&str, Entry)] = &[
    ("agents", agents::run),
    ("answers", answers::run),
    ("certificate", web::certificate),
    ("dumps", dumps::run),
    ("fabric", fabric::run),
    ("frames", frames::run),
    ("history", history::run),
    ("host", host::run),
    ("jobs", jobs::run),
    ("kernel", kernel::run),
    ("mad", mad::run),
    ("names", files::names),
    ("requests", requests::run),
    ("scenario", files::scenario),
    ("settings", files::settings),
    ("topology", files::topology),
    ("web", web::config),
    ("words", words::run),
];

/// Runs the entry with this name.
pub fn run(name: &str, bytes: &[u8]) {
    let entry = ENTRIES.iter().find(|(known, _)| *known == name);
    entry.expect("each target has a row in ENTRIES").1(bytes);
}
