//! The suggested repairs, and the verdicts of links that are not at fault.

use std::time::Duration;

use fabric_exporter::config::options::{FabricOptions, HealthOptions, Options};
use ib_health::verdict::Repair;
use ib_health::{Reason, Verdict};
use ib_sim::scenario::{Overrides, Scenario};

use crate::verdicts::watch::{label, link, summary};
use test_rig::Simulated;
use test_rig::simulated::BEGAN;

const MINUTE: Duration = Duration::from_secs(60);

fn after(story: &str, minutes: u32) -> Simulated {
    let simulated = Simulated::text(story);
    simulated.run_to(minutes * MINUTE + Duration::from_secs(5));
    simulated
}

fn repair(story: &str, minutes: u32, at: &str) -> Option<Repair> {
    let observation = after(story, minutes).observation();
    let found = link(&observation, at).unwrap();
    assert_eq!(found.verdict, Verdict::Bad, "{}", summary(found));
    found.repair
}

#[test]
fn marked_packets_name_the_upstream_link() {
    let simulated =
        after("timeline: [bad-cable: {at: 20m, into: \"leaf-0-1[9]\", ratio: 1e-9}]", 30);
    let observation = simulated.observation();
    let fabric = &observation.snapshot.as_ref().unwrap().fabric;
    // host-8 is behind that leaf, and its packets use that cable.
    let host = link(&observation, "host-8[1]").unwrap();
    assert_eq!((host.verdict, host.repair), (Verdict::Ok, Some(Repair::CheckUpstream)));
    assert_eq!(host.reasons.weight(Reason::UpstreamErrors), Some(Verdict::Ok));
    assert_eq!(host.upstream.map(|port| label(fabric, port)).as_deref(), Some("leaf-0-1[9]"));
    let marked = observation.assessment.links.iter().filter(|found| found.upstream.is_some());
    assert!(marked.count() >= 1);
}

#[test]
fn errors_one_way_mean_an_end_both_ways_the_cable() {
    let one = "bad-cable: {at: 15m, into: \"leaf-0-1[9]\", ratio: 1e-10}";
    assert_eq!(repair(&format!("timeline: [{one}]"), 30, "leaf-0-1[9]"), Some(Repair::Reseat));
    let net = after("timeline: [clear: {at: 1s}]", 1);
    let net = &net.story().net;
    let leaf = net.port_ids().find(|&port| net.label(port) == "leaf-0-1[9]").unwrap();
    let spine = net.label(net.port(leaf).cable.unwrap());
    let both =
        format!("timeline: [{one}, bad-cable: {{at: 15m, into: \"{spine}\", ratio: 1e-10}}]");
    assert_eq!(repair(&both, 30, "leaf-0-1[9]"), Some(Repair::SwapCable));
    // Unplugging and plugging it did not help. Its ends are part of it.
    let again = format!("timeline: [{one}, unplug: {{at: 25m, link: \"leaf-0-1[9]\", for: 30s}}]");
    assert_eq!(repair(&again, 45, "leaf-0-1[9]"), Some(Repair::SwapCable));
}

#[test]
fn links_under_maintenance_may_go_down() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let time = |minutes: u32| humantime_of(BEGAN + minutes * MINUTE);
    let work = format!("- {{node: leaf-0-1, from: {}, until: {}}}\n", time(20), time(50));
    std::fs::write(file.path(), work).unwrap();
    let story = "timeline:\n\
                 - unplug: {at: 25m, link: \"leaf-0-1[9]\", for: 20m}\n\
                 - unplug: {at: 80m, link: \"leaf-0-1[9]\", for: 2m}";
    let story = Scenario::parse("maintenance", story).unwrap();
    let options = Options {
        fabric: FabricOptions { details: Some(true), ..FabricOptions::default() },
        health: HealthOptions {
            maintenance_file: Some(file.path().to_owned()),
            ..HealthOptions::default()
        },
        ..Options::default()
    };
    let simulated = Simulated::set(story.resolve(&Overrides::default()).unwrap(), options);
    let at = |minutes: u32| {
        simulated.run_to(minutes * MINUTE + Duration::from_secs(5));
        let observation = simulated.observation();
        let found = link(&observation, "leaf-0-1[9]").unwrap();
        (found.verdict, found.reasons.weight(Reason::Maintenance).is_some(), found.outages)
    };
    assert!(matches!(at(19), (Verdict::Ok, false, _)));
    for minutes in [21, 26, 35, 46, 49] {
        let (verdict, maintenance, outages) = at(minutes);
        assert_eq!((verdict, maintenance, outages.flaps), (Verdict::Unknown, true, 0), "{minutes}");
    }
    let (verdict, maintenance, outages) = at(79);
    assert_eq!((verdict, maintenance), (Verdict::Ok, false));
    assert_eq!((outages.flaps, outages.expected), (0, [0, 1]));
    let down = outages.expected_down;
    assert!((1170..=1202).contains(&down.least.as_secs()), "{outages:?}");
    assert!((1199..=1232).contains(&down.most.as_secs()), "{outages:?}");
    let (_, _, outages) = at(90);
    assert_eq!((outages.flaps, outages.expected), (1, [0, 1]), "and not for ever");
}

/// Seconds since 1970 as the file has them.
fn humantime_of(time: Duration) -> String {
    humantime::format_rfc3339(std::time::SystemTime::UNIX_EPOCH + time).to_string()
}
