//! Arbitrary texts.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::super::{FabricChange, Overrides};
use super::{TREE, net, resolve, resolve_on};
use ib_mad::Counter;

/// A text with most features.
fn most() -> String {
    let mut text = String::from(
        "about: One of each\nseed: 7\nfabric: {fat-tree: {hosts: 6, radix: 8, down: 4, up: 2}}\n\
         seat: host-1\nmaster: host-2\ntraffic: {pattern: neighbours, load: 30%, packet: 4KiB}\n\
         way: {round-trip: 20us, per-hop: 1us, jitter: 10us, loss: 0%}\ntimeline:\n",
    );
    for entry in [
        "bad-cable: {at: 30s, into: \"leaf-0-1[1]\", ratio: 1e-9, for: 10m}",
        "dirty-connector: {at: 30s, into: \"spine-0[1]\", lane: 2, ratio: 1e-5, light: 5%}",
        "hot-module: {at: 1m, port: \"spine-0[1]\", celsius: 80, for: 1m}",
        "swap-cable: {at: 1m, link: host-3, down: 30s}",
        "registers: {at: 1m, node: leaf-0-1, behavior: hung}",
        "front-panel: {at: 1m, behavior: blank, node: leaf-0-1}",
        "state-table: {at: 1m, behavior: zero, node: leaf-0-1}",
        "vs-key: {at: 1m, key: 0x1234, node: leaf-0-0}",
        "flap: {at: 1m, link: \"leaf-0-0[3]\", down: [5ms, 2s], every: 20s, times: 5}",
        "degrade: {at: 2m, link: host-3, width: 1x, speed: SDR, for: 1m}",
        "burst: {at: 1m, from: [host-1, host-2], to: host-3, load: 90%, for: 1m}",
        "set: {at: 1s, port: host-2, counters: {SymbolErrorCounter: 4242}}",
        "clear: {at: 1m, node: leaf-0-1, every: 1m, times: 3}",
        "lose-mads: {at: 1s, share: 1%, for: 5m}",
        "m-key: {at: 2m, key: 0x1234, level: 2, node: host-5}",
        "limited-member: {at: 2m, node: host-4}",
        "move-cable: {at: 4m, from: \"leaf-0-0[1]\", to: \"leaf-0-0[8]\"}",
        "new-master: {at: 5m, host: host-4, readdress: true}",
    ] {
        let _ = writeln!(text, "  - {entry}");
    }
    text
}

#[test]
fn text_with_most_features_is_resolved() {
    let story = resolve(&most()).unwrap();
    assert_eq!(story.descriptions.len(), 18);
    assert!(story.changes.iter().any(|step| matches!(
        step.change,
        FabricChange::SetCounter { counter: Counter::SymbolErrors, value: 4242, .. }
    )));
}
proptest! {
    #[test]
    fn changed_text_is_resolved_or_refused_in_one_line(
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4usize, "[ -~\n\u{0}ö]{0,3}|[0-9]{1,20}|-1|~|\\*x|&x|for|times|host-[0-9]|leaf-0-[0-9]\\[[0-9]{0,3}\\]|1e9|999999999999y|NaN|%|!!binary|<<"), 1..5),
        speedup in prop_oneof![Just(1.0), 0.01..10_000.0, any::<f64>()],
    ) {
        let mut text: Vec<char> = most().chars().collect();
        for (place, removed, put) in changes {
            let from = place.index(text.len());
            let to = (from + removed).min(text.len());
            text.splice(from..to, put.chars());
        }
        let text: String = text.into_iter().collect();
        let overrides = Overrides { speedup, ..Overrides::default() };
        match resolve_on(&text, net(TREE), &overrides) {
            Ok(story) => {
                prop_assert!(story.changes.is_sorted_by_key(|change| change.at));
                prop_assert!(story.descriptions.is_sorted_by_key(|(at, _)| *at));
                prop_assert!(story.descriptions.iter().all(|(_, words)| !words.contains('\n')));
            }
            Err(error) => prop_assert!(!error.contains('\n'), "{}", error),
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic(text in "\\PC{0,200}|[a-z:\\[\\]{}, \n-]{0,200}") {
        let _ = resolve(&text);
    }
}
