//! What is fuzzed: one entry for each kind of bytes that come from outside.
//!
//! An entry takes any bytes and must not panic; what else it holds them to, it asserts. They are the
//! bodies of the targets of `cargo fuzz` (fuzz/targets), and tests/fabric/fuzz_corpus.rs runs each over its
//! kept corpus without a fuzzer. So they are deterministic: what they found once they find again.

// An entry says by panicking what it found.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Where it panics is said once, above, not in a section for each.
#![allow(clippy::missing_panics_doc, missing_docs)]

mod agents;
mod answers;
mod exposition;
mod fabric;
mod files;
mod frames;
mod history;
mod host;
mod input;
mod kernel;
mod mad;
mod requests;
mod web;
mod words;

/// What takes the bytes.
pub type Entry = fn(&[u8]);

/// Each entry by the name of its target, and of its folder in fuzz/corpus.
pub const ENTRIES: &[(&str, Entry)] = &[
    ("agents", agents::run),
    ("answers", answers::run),
    ("certificate", web::certificate),
    ("fabric", fabric::run),
    ("frames", frames::run),
    ("history", history::run),
    ("host", host::run),
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

/// Runs the entry of a name.
pub fn run(name: &str, bytes: &[u8]) {
    let entry = ENTRIES.iter().find(|(known, _)| *known == name);
    entry.expect("each target has a row in ENTRIES").1(bytes);
}
