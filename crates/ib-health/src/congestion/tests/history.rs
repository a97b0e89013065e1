//! Since when regions have been there.

use super::*;
use ib_mad::Guid;

const TREE: &str =
    "h1:1-s1:1 h2:1-s1:2 h3:1-s1:3 h4:1-s1:4 h5:1-s2:1 h6:1-s2:2 s1:5-s9:1 s2:5-s9:2";

/// The minute, the waiting ports, and the regions with the minute in which each began.
type Sweep<'a> = (u64, &'a str, &'a [(&'a str, u64)]);

fn assert_regions(sweeps: &[Sweep]) {
    let mut bench = Bench::new(TREE);
    let mut congestion = Congestion::default();
    for (minute, waits, regions) in sweeps {
        bench.waits = bench.say(waits);
        let found = bench.update(&mut congestion, minutes(*minute));
        let actual: Vec<(String, Moment)> =
            found.regions.iter().map(|r| (name(&bench.fabric, r.root), r.since)).collect();
        let expected: Vec<(String, Moment)> =
            regions.iter().map(|(root, since)| ((*root).to_owned(), minutes(*since))).collect();
        assert_eq!(actual, expected, "in minute {minute}");
    }
}

fn minutes(minutes: u64) -> Moment {
    Moment(minutes * 60_000_000_000)
}

const AT_1: &str = "s1:1=0.5 h2:1=0.3 h3:1=0.2 ";
const AT_1_BY_2: &str = "s1:1=0.5 s1:2=0.6 h2:1=0.3 h3:1=0.2 ";

#[test]
fn region_continues_with_the_same_root() {
    assert_regions(&[
        (1, AT_1, &[("s1:1", 1)]),
        (2, "s1:1=0.1", &[("s1:1", 1)]),
        (3, AT_1, &[("s1:1", 1)]),
    ]);
}

#[test]
fn region_survives_short_pause_not_long_one() {
    assert_regions(&[
        (1, AT_1, &[("s1:1", 1)]),
        (2, "", &[]),
        (5, "", &[]),
        (6, AT_1, &[("s1:1", 1)]),
        (12, AT_1, &[("s1:1", 12)]),
        (13, "", &[]),
        (18, "", &[]),
        (19, AT_1, &[("s1:1", 19)]),
    ]);
}

#[test]
fn old_region_is_removed_while_others_last() {
    let other = "s2:1=0.9 h6:1=0.4";
    let both = format!("{AT_1}{other}");
    assert_regions(&[
        (1, AT_1, &[("s1:1", 1)]),
        (4, &both, &[("s1:1", 1), ("s2:1", 4)]),
        (8, other, &[("s2:1", 4)]),
        (9, &both, &[("s1:1", 1), ("s2:1", 4)]),
        (13, other, &[("s2:1", 4)]),
        (15, other, &[("s2:1", 4)]),
        (16, &both, &[("s1:1", 16), ("s2:1", 4)]),
    ]);
}

#[test]
fn region_with_same_ports_and_other_root_is_the_same() {
    assert_regions(&[
        (1, AT_1, &[("s1:1", 1)]),
        (2, AT_1_BY_2, &[("s1:2", 1)]),
        (3, "s1:2=0.6 h3:1=0.2 h4:1=0.2", &[("s1:2", 1)]),
        // One port of the earlier one's, among others that were not: another region.
        (4, "s2:1=0.5 h6:1=0.3 s9:2=0.4 s1:5=0.4 h4:1=0.2", &[("s2:1", 4)]),
    ]);
}

#[test]
fn split_regions_keep_the_longest_history() {
    let joined = "s1:1=0.5 s2:1=0.6 h2:1=0.3 h3:1=0.2 s1:5=0.2 s9:2=0.2 h6:1=0.2";
    let apart = "s1:1=0.5 h2:1=0.3 h3:1=0.2 s2:1=0.6 h6:1=0.2";
    assert_regions(&[
        (1, AT_1, &[("s1:1", 1)]),
        (2, apart, &[("s1:1", 1), ("s2:1", 2)]),
        // The hosts of the one lead to the other's root now: one region, by its root the second.
        (3, joined, &[("s2:1", 2)]),
        (4, apart, &[("s1:1", 1), ("s2:1", 2)]),
    ]);
}

#[test]
fn ports_are_matched_by_guid_and_number() {
    let mut congestion = Congestion::default();
    let mut bench = Bench::new(TREE);
    bench.waits = bench.say(AT_1);
    bench.update(&mut congestion, minutes(1));
    // A host is gone and another one has come before it: all indexes are others.
    let mut moved = Bench::new(&TREE.replace("h2:1-s1:2", "h0:1-s1:2 h9:2-s1:9"));
    moved.waits = moved.say("s1:1=0.5 h3:1=0.2");
    let at = |bench: &Bench| bench.fabric.node_by_guid(Guid(SWITCHES + 1)).unwrap();
    assert_ne!(moved.find("s1:1"), bench.find("s1:1"), "{:?}", at(&moved));
    let found = moved.update(&mut congestion, minutes(2));
    assert_eq!(found.regions[0].since, minutes(1));
    assert_eq!(moved.roles(&found), "h3:1<s1:1 s1:1!SlowReceiver");
    // By its ports alone, and without those that are gone.
    moved.waits = moved.say("s1:3=0.7 h3:1=0.2 h4:1=0.4 s1:1=0.3");
    let found = moved.update(&mut congestion, minutes(3));
    assert_eq!(moved.regions(&found), "s1:3 4/2 0.7");
    assert_eq!(found.regions[0].since, minutes(1));
}

#[test]
fn history_is_empty_after_grace() {
    let mut congestion = Congestion::default();
    let mut bench = Bench::new(TREE);
    bench.waits = bench.say(AT_1);
    bench.update(&mut congestion, minutes(1));
    bench.waits = bench.say("");
    bench.update(&mut congestion, minutes(7));
    assert!(congestion.history.is_empty());
}
