//! Since when regions have been there.

use super::*;
use ib_mad::Guid;

const TREE: &str =
    "h1:1-s1:1 h2:1-s1:2 h3:1-s1:3 h4:1-s1:4 h5:1-s2:1 h6:1-s2:2 s1:5-s9:1 s2:5-s9:2";

/// In which minute it is, who waits, and the regions with the minute since when they are there.
type Sweep<'a> = (u64, &'a str, &'a [(&'a str, u64)]);

fn story(sweeps: &[Sweep]) {
    let mut bench = Bench::new(TREE);
    let mut congestion = Congestion::default();
    for (minute, waits, regions) in sweeps {
        bench.waits = bench.say(waits);
        let found = bench.follow(&mut congestion, minutes(*minute));
        let told: Vec<(String, Moment)> =
            found.regions.iter().map(|r| (name(&bench.fabric, r.root), r.since)).collect();
        let expected: Vec<(String, Moment)> =
            regions.iter().map(|(root, since)| ((*root).to_owned(), minutes(*since))).collect();
        assert_eq!(told, expected, "in minute {minute}");
    }
}

fn minutes(minutes: u64) -> Moment {
    Moment(minutes * 60_000_000_000)
}

const AT_1: &str = "s1:1=0.5 h2:1=0.3 h3:1=0.2 ";
const AT_1_BY_2: &str = "s1:1=0.5 s1:2=0.6 h2:1=0.3 h3:1=0.2 ";

#[test]
fn a_region_lasts_while_its_root_does() {
    story(&[(1, AT_1, &[("s1:1", 1)]), (2, "s1:1=0.1", &[("s1:1", 1)]), (3, AT_1, &[("s1:1", 1)])]);
}

#[test]
fn a_pause_between_bursts_does_not_end_it_and_a_longer_one_does() {
    story(&[
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
fn it_is_forgotten_while_others_last() {
    let other = "s2:1=0.9 h6:1=0.4";
    let both = format!("{AT_1}{other}");
    story(&[
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
fn it_is_the_same_with_another_root_if_its_ports_are() {
    story(&[
        (1, AT_1, &[("s1:1", 1)]),
        (2, AT_1_BY_2, &[("s1:2", 1)]),
        (3, "s1:2=0.6 h3:1=0.2 h4:1=0.2", &[("s1:2", 1)]),
        // One port of the earlier one's, among others that were not: another region.
        (4, "s2:1=0.5 h6:1=0.3 s9:2=0.4 s1:5=0.4 h4:1=0.2", &[("s2:1", 4)]),
    ]);
}

#[test]
fn of_two_that_part_each_has_the_longer_past_that_it_can_have() {
    let joined = "s1:1=0.5 s2:1=0.6 h2:1=0.3 h3:1=0.2 s1:5=0.2 s9:2=0.2 h6:1=0.2";
    let apart = "s1:1=0.5 h2:1=0.3 h3:1=0.2 s2:1=0.6 h6:1=0.2";
    story(&[
        (1, AT_1, &[("s1:1", 1)]),
        (2, apart, &[("s1:1", 1), ("s2:1", 2)]),
        // The hosts of the one lead to the other's root now: one region, by its root the second.
        (3, joined, &[("s2:1", 2)]),
        (4, apart, &[("s1:1", 1), ("s2:1", 2)]),
    ]);
}

#[test]
fn ports_are_known_by_their_names() {
    let mut congestion = Congestion::default();
    let mut bench = Bench::new(TREE);
    bench.waits = bench.say(AT_1);
    bench.follow(&mut congestion, minutes(1));
    // A host is gone and another one has come before it: all indexes are others.
    let mut moved = Bench::new(&TREE.replace("h2:1-s1:2", "h0:1-s1:2 h9:2-s1:9"));
    moved.waits = moved.say("s1:1=0.5 h3:1=0.2");
    let at = |bench: &Bench| bench.fabric.node_by_guid(Guid(SWITCHES + 1)).unwrap();
    assert_ne!(moved.find("s1:1"), bench.find("s1:1"), "{:?}", at(&moved));
    let found = moved.follow(&mut congestion, minutes(2));
    assert_eq!(found.regions[0].since, minutes(1));
    assert_eq!(moved.roles(&found), "h3:1<s1:1 s1:1!SlowReceiver");
    // By its ports alone, and without those that are gone.
    moved.waits = moved.say("s1:3=0.7 h3:1=0.2 h4:1=0.4 s1:1=0.3");
    let found = moved.follow(&mut congestion, minutes(3));
    assert_eq!(moved.regions(&found), "s1:3 4/2 0.7");
    assert_eq!(found.regions[0].since, minutes(1));
}

#[test]
fn nothing_is_kept_of_what_is_long_over() {
    let mut congestion = Congestion::default();
    let mut bench = Bench::new(TREE);
    bench.waits = bench.say(AT_1);
    bench.follow(&mut congestion, minutes(1));
    bench.waits = bench.say("");
    bench.follow(&mut congestion, minutes(7));
    assert!(congestion.history.is_empty());
}
