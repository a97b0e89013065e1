//! The order of entries, and their overlap.

use std::time::Duration;

use super::super::{AgentBehavior, FabricChange, Overrides};
use super::{TREE, net, resolve, resolve_on, short, timeline};

#[test]
fn changes_are_in_order_of_time_and_file() {
    let story = timeline(
        "- clear: {at: 30s, node: host-1}\n\
         - silent: {at: 10s, node: host-1, for: 20s}\n\
         - reboot: {at: 30s, node: host-2, down: 1s}\n",
    );
    assert_eq!(
        short(&story),
        [
            "10000 agents host-1 Silent",
            "30000 clear 1",
            "30000 agents host-1 Normal",
            "30000 power host-2 false",
            "31000 power host-2 true"
        ]
    );
    let shown: Vec<u64> = story.descriptions.iter().map(|(at, _)| at.as_secs()).collect();
    assert_eq!(shown, [10, 30, 30]);
}

#[test]
fn either_end_names_the_same_link() {
    let story = timeline(
        "- unplug: {link: 'leaf-0-0[3]', for: 10s}\n\
         - unplug: {at: 5s, link: host-2, for: 10s}\n",
    );
    assert_eq!(short(&story), ["0 signal host-2[1] false", "15000 signal host-2[1] true"]);
}

#[test]
fn node_has_one_agent_behavior_at_a_time() {
    let story = timeline(
        "- slow: {node: host-2, by: 1s}\n\
         - silent: {at: 5s, node: host-2, for: 10s}\n",
    );
    let behaviors: Vec<(u64, AgentBehavior)> = story
        .changes
        .iter()
        .map(|step| match step.change {
            FabricChange::SetAgents { behavior, .. } => (step.at.as_secs(), behavior),
            ref other => panic!("{other:?}"),
        })
        .collect();
    let delayed = AgentBehavior::Delayed(Duration::from_secs(1));
    assert_eq!(behaviors, [(0, delayed), (5, AgentBehavior::Silent), (15, delayed)]);
}

#[test]
fn cables_are_found_where_they_are_at_the_time() {
    let moved = "- unplug: {at: 10s, link: 'leaf-0-0[4]'}\n\
                 - move-cable: {at: 5s, from: 'leaf-0-0[1]', to: 'leaf-0-0[4]'}\n";
    assert_eq!(
        timeline(moved).descriptions[1].1,
        "the cable between leaf-0-0[4] and host-0[1] is unplugged"
    );
    let left = "traffic: {pattern: none}\ntimeline:\n\
                - move-cable: {at: 5s, from: 'leaf-0-0[1]', to: 'leaf-0-1[4]'}\n\
                - unplug: {at: 10s, link: 'leaf-0-0[1]'}\n";
    assert_eq!(resolve(left).unwrap_err(), "x.yml: line 4: unplug: leaf-0-0[1] has no cable");
}

#[test]
fn moved_cable_has_no_effects() {
    let story = timeline(
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
fn speedup_scales_times_only() {
    let text = "way: {round-trip: 1ms}\ntraffic: {pattern: none}\ntimeline:\n\
                - flap: {at: 1m, link: 'leaf-0-0[3]', down: [200ms, 20ms], every: 20s, times: 2}\n\
                - slow: {at: 2m, node: host-1, by: 800ms, for: 30s}\n";
    let overrides = Overrides { speedup: 10.0, ..Overrides::default() };
    let story = resolve_on(text, net(TREE), &overrides).unwrap();
    assert_eq!(
        short(&story),
        [
            "6000 signal host-2[1] false",
            "6020 signal host-2[1] true",
            // Only the short one is a retraining, whatever the speed-up.
            "8000 retrain leaf-0-0[3]",
            "12000 agents host-1 Delayed(800ms)",
            "15000 agents host-1 Normal"
        ]
    );
    assert_eq!(story.delivery.round_trip, Duration::from_millis(1));
    assert_eq!(story.descriptions[1].1, "host-1 responds 800ms later for 3s");
    assert!(story.descriptions[0].1.contains("for 20ms and 2ms in turn, 2 times, every 2s"));
    // A faster clock shortens only what the reader waits for.
    let overrides = Overrides { clock: 20, ..Overrides::default() };
    let faster = resolve_on(text, net(TREE), &overrides).unwrap();
    assert!(faster.descriptions[0].1.contains("for 10ms and 1ms in turn, 2 times, every 1s"));
    assert_eq!(
        faster.descriptions[1].0,
        Duration::from_secs(120),
        "on the clock of the simulation"
    );
    assert_eq!(faster.changes.len(), story.changes.len());
}
