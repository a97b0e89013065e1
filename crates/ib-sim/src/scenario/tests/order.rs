//! Entries in the course of time, and next to each other.

use std::time::Duration;

use super::super::{Action, Manner, Overrides};
use super::{TREE, net, played, short, story, story_of};

#[test]
fn steps_come_in_the_order_of_time_and_the_file() {
    let story = played(
        "- clear: {at: 30s, node: host-1}\n\
         - silent: {at: 10s, node: host-1, for: 20s}\n\
         - reboot: {at: 30s, node: host-2, down: 1s}\n",
    );
    assert_eq!(
        short(&story),
        [
            "10000 agents host-1 Silent",
            "30000 clear 1",
            "30000 agents host-1 Well",
            "30000 power host-2 false",
            "31000 power host-2 true"
        ]
    );
    let told: Vec<u64> = story.told.iter().map(|(at, _)| at.as_secs()).collect();
    assert_eq!(told, [10, 30, 30]);
}

#[test]
fn the_two_ends_of_a_link_are_one_link() {
    let story = played(
        "- unplug: {link: 'leaf-0-0[3]', for: 10s}\n\
         - unplug: {at: 5s, link: host-2, for: 10s}\n",
    );
    assert_eq!(short(&story), ["0 signal host-2[1] false", "15000 signal host-2[1] true"]);
}

#[test]
fn a_node_has_one_manner_at_a_time() {
    let story = played(
        "- slow: {node: host-2, by: 1s}\n\
         - silent: {at: 5s, node: host-2, for: 10s}\n",
    );
    let manners: Vec<(u64, Manner)> = story
        .steps
        .iter()
        .map(|step| match step.action {
            Action::Agents { manner, .. } => (step.at.as_secs(), manner),
            ref other => panic!("{other:?}"),
        })
        .collect();
    let late = Manner::Late(Duration::from_secs(1));
    assert_eq!(manners, [(0, late), (5, Manner::Silent), (15, late)]);
}

#[test]
fn cables_are_looked_for_where_they_are_by_then() {
    let moved = "- unplug: {at: 10s, link: 'leaf-0-0[4]'}\n\
                 - move-cable: {at: 5s, from: 'leaf-0-0[1]', to: 'leaf-0-0[4]'}\n";
    assert_eq!(played(moved).told[1].1, "the cable between leaf-0-0[4] and host-0[1] is unplugged");
    let left = "traffic: {pattern: none}\ntimeline:\n\
                - move-cable: {at: 5s, from: 'leaf-0-0[1]', to: 'leaf-0-1[4]'}\n\
                - unplug: {at: 10s, link: 'leaf-0-0[1]'}\n";
    assert_eq!(story(left).unwrap_err(), "x.yml: line 4: unplug: leaf-0-0[1] has no cable");
}

#[test]
fn a_cable_that_is_moved_is_plugged_in_anew() {
    let story = played(
        "- move-cable: {at: 10s, from: 'leaf-0-0[3]', to: 'leaf-0-0[8]'}\n\
         - unplug: {at: 5s, link: host-2, for: 10s}\n\
         - degrade: {at: 6s, link: host-2, width: 1x}\n\
         - flap: {at: 8s, link: 'leaf-0-0[3]', down: 1s, every: 10s, times: 9}\n\
         - flap: {at: 9s, link: host-2, down: 500ms, every: 10s, times: 2}\n",
    );
    assert_eq!(
        short(&story),
        [
            "5000 signal host-2[1] false",
            "6000 limit host-2[1] Some(X1) None",
            "10000 signal host-2[1] true",
            "10000 limit host-2[1] None None",
            "10000 move leaf-0-0[3] leaf-0-0[8]",
            "19000 signal host-2[1] false",
            "19500 signal host-2[1] true"
        ]
    );
}

#[test]
fn a_speed_up_shortens_times_and_leaves_the_rest() {
    let text = "way: {round-trip: 1ms}\ntraffic: {pattern: none}\ntimeline:\n\
                - flap: {at: 1m, link: 'leaf-0-0[3]', down: [200ms, 20ms], every: 20s, times: 2}\n\
                - slow: {at: 2m, node: host-1, by: 800ms, for: 30s}\n";
    let overrides = Overrides { speedup: 10.0, ..Overrides::default() };
    let story = story_of(text, net(TREE), &overrides).unwrap();
    assert_eq!(
        short(&story),
        [
            "6000 signal host-2[1] false",
            "6020 signal host-2[1] true",
            // What is short stays a retraining, and what is long none.
            "8000 retrain leaf-0-0[3]",
            "12000 agents host-1 Late(800ms)",
            "15000 agents host-1 Well"
        ]
    );
    assert_eq!(story.way.round_trip, Duration::from_millis(1));
    assert_eq!(story.told[1].1, "host-1 answers 800ms later for 3s");
    assert!(story.told[0].1.contains("for 20ms and 2ms in turn, 2 times, every 2s"));
}
