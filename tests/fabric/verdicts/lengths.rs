//! The reported durations of outages against those of the scenario.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use fabric_exporter::config::options::{FabricOptions, Options};
use fabric_history::EventKind;
use fabric_history::record::events::EventDetector;
use ib_sim::scenario::{Overrides, Scenario};

use crate::verdicts::watch::link;
use test_rig::{Metrics, Simulated};

/// A scenario, swept at this interval.
fn swept(timeline: &str, interval: u64) -> Simulated {
    let scenario = Scenario::parse("test", timeline).unwrap_or_else(|error| panic!("{error}"));
    let story = scenario.resolve(&Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    let interval = Some(format!("{interval}s").parse().unwrap());
    let fabric = FabricOptions { interval, ..FabricOptions::default() };
    Simulated::set(story, Options { fabric, ..Options::default() })
}

/// The value of a counter of the link at a port.
fn link_counter(simulated: &Simulated, metrics: &Metrics, counter: &str, at: &str) -> f64 {
    let observation = simulated.observation();
    let found = link(&observation, at).unwrap();
    let id = observation.snapshot.as_ref().unwrap().fabric.link_id(found.link.low).unwrap();
    metrics.get(counter, &[("link", &id.to_string())]).unwrap()
}

/// The downtime of the link at a port, at least and at most.
fn down(simulated: &Simulated, at: &str) -> (f64, f64) {
    let metrics = simulated.metrics();
    let link_counter = |counter| link_counter(simulated, &metrics, counter, at);
    (
        link_counter("infiniband_link_down_seconds_total"),
        link_counter("infiniband_link_down_max_seconds_total"),
    )
}

/// The demo's flaps: five of two seconds each.
const DEMO: &str =
    "timeline: [flap: {at: 45s, link: \"leaf-0-2[3]\", down: 2s, every: 20s, times: 5}]";

#[test]
fn five_short_flaps_are_not_a_minute_of_downtime() {
    // The subnet manager needs another second to make the link Active: 15 s without traffic.
    for interval in [15, 5] {
        let simulated = swept(DEMO, interval);
        simulated.run_to(Duration::from_secs(300));
        let metrics = simulated.metrics();
        let at = "leaf-0-2[3]";
        assert!(
            (link_counter(&simulated, &metrics, "infiniband_link_flaps_total", at) - 5.0).abs()
                < 0.1
        );
        let least = link_counter(&simulated, &metrics, "infiniband_link_down_seconds_total", at);
        assert!(least <= 15.1, "every {interval} s: down for at least {least} s");
        let (_, most) = down(&simulated, at);
        // Each is within one interval, or within two if a sweep happened during it.
        let widest = 10.0 * Duration::from_secs(interval).as_secs_f64() + 1.0;
        assert!((10.0..=widest).contains(&most), "every {interval} s: down for at most {most} s");
    }
}

#[test]
fn outage_length_is_known_within_two_intervals() {
    let simulated = swept("timeline: [unplug: {at: 47s, link: \"leaf-0-2[3]\", for: 40s}]", 15);
    simulated.run_to(Duration::from_secs(300));
    let (least, most) = down(&simulated, "leaf-0-2[3]");
    assert!((14.9..=30.1).contains(&least), "at least {least} s");
    assert!((40.0..=60.1).contains(&most), "at most {most} s");
}

#[test]
fn host_with_restored_link_is_not_gone() {
    // After each discovery of a moved cable the next one is delayed longer: that must not hide the host.
    let simulated = swept(DEMO, 15);
    let gone = (1..=20).filter(|sweep| {
        simulated.run_to(Duration::from_secs(15 * sweep + 5));
        let observation = simulated.observation();
        let snapshot = observation.snapshot.as_ref().unwrap();
        snapshot.fabric.node_indexes().any(|node| !snapshot.is_up(node))
    });
    let gone = gone.count();
    assert!(gone <= 6, "for {gone} sweeps some host is down");
}

#[test]
fn each_flap_has_its_own_time() {
    for interval in [15, 5] {
        let simulated = swept(DEMO, interval);
        let mut story = EventDetector::default();
        let mut flaps = BTreeSet::new();
        let mut losses = 0;
        let mut now = Duration::from_secs(1);
        while now < Duration::from_secs(300) {
            simulated.run_to(now);
            for event in story.update(&simulated.observation(), SystemTime::now()) {
                if event.kind == EventKind::Flap {
                    let since = event.at.duration_since(SystemTime::UNIX_EPOCH).unwrap();
                    let at = since.saturating_sub(test_rig::simulated::BEGAN).as_secs();
                    losses += event.detail["losses"].as_u64().unwrap();
                    flaps.insert(at);
                }
            }
            now += Duration::from_secs(interval);
        }
        assert_eq!((losses, flaps.len()), (5, 5), "every {interval} s: {flaps:?}");
        for (flap, begun) in flaps.into_iter().zip([45, 65, 85, 105, 125]) {
            let near = (begun..=begun + interval).contains(&flap);
            assert!(near, "every {interval} s: at {flap} s, and not at {begun} s");
        }
    }
}
