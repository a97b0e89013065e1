//! A multi-plane fabric (XDR): each fault of planes is one finding of one link, and the sound links have none.

use std::collections::BTreeMap;
use std::time::Duration;

use fabric_exporter::config::options::FabricOptions;
use fabric_observation::Observation;
use ib_health::{LinkAssessment, Reason, Verdict};
use ib_sim::scenario::{Overrides, Scenario};
use test_rig::Simulated;

const SOUND: &str = "
seed: 3
fabric:
  xdr: {hosts: 8, down: 4, up: 4, spines: 2}
seat: host-0
traffic: {pattern: across, load: 20%, packet: 4KiB}
";

const FAULTS: &str = r#"
timeline:
  # All planes of a cable: one bad cable, and not four.
  - bad-cable: {at: 1m, into: "host-5[1]", ratio: 1e-9}
  - bad-cable: {at: 1m, into: "host-5[2]", ratio: 1e-9}
  - bad-cable: {at: 1m, into: "host-5[3]", ratio: 1e-9}
  - bad-cable: {at: 1m, into: "host-5[4]", ratio: 1e-9}
  # One plane.
  - bad-cable: {at: 1m, into: "host-3[2]", ratio: 1e-9}
  - unplug: {at: 2m, link: "host-6[2]"}
  - degrade: {at: 2m, link: "host-7[3]", speed: NDR}
  - move-cable: {at: 2m, from: "leaf-0-a1[3]", to: "leaf-0-a2[3]"}
  - unplug: {at: 2m, link: "spine-0-a2[145]"}
"#;

fn simulated(story: &str, interval: &str) -> Simulated {
    let scenario = Scenario::parse("test", story).unwrap();
    let options =
        FabricOptions { interval: Some(interval.parse().unwrap()), ..FabricOptions::default() };
    Simulated::with(scenario.resolve(&Overrides::default()).unwrap(), options)
}

/// The links that are degraded or bad, by the name of their last end: the reasons and verdicts.
fn findings(observation: &Observation) -> BTreeMap<String, Vec<(Reason, Verdict)>> {
    let fabric = &observation.snapshot.as_ref().unwrap().fabric;
    let name = |link: &LinkAssessment| {
        let [low, high] = link.link.ports().map(|port| fabric.node_of(port));
        let node = if low.is_switch() { high } else { low };
        node.host.clone().unwrap_or_else(|| node.name.clone())
    };
    let reasons = |link: &LinkAssessment| -> Vec<_> {
        link.reasons.iter().filter(|(_, weight)| *weight >= Verdict::Watch).collect()
    };
    let suspects = observation.assessment.links.iter();
    let suspects = suspects.filter(|link| link.verdict >= Verdict::Watch);
    suspects.map(|link| (name(link), reasons(link))).collect()
}

#[test]
fn each_fault_of_planes_is_one_finding() {
    let simulated = simulated(&[SOUND, FAULTS].concat(), "5s");
    simulated.run_to(Duration::from_secs(30 * 60));
    let found = findings(&simulated.observation());
    let expected = [
        ("host-2", (Reason::PlanesSwapped, Verdict::Watch)),
        ("host-3", (Reason::BitErrors, Verdict::Bad)),
        ("host-5", (Reason::BitErrors, Verdict::Bad)),
        ("host-6", (Reason::PlanesDown, Verdict::Bad)),
        ("host-7", (Reason::PlanesUnequal, Verdict::Watch)),
        ("spine-0-a", (Reason::RingBroken, Verdict::Watch)),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for ((name, reasons), (host, reason)) in found.iter().zip(expected) {
        assert!(name.starts_with(host) && reasons.contains(&reason), "{host}: {found:#?}");
    }
    // On the map, too, a cable is one link: 8 to spines and 8 to hosts, beside 16 links of FNM rings.
    let map = fabric_api::topology::topology(&simulated.observation());
    let [switches, hosts] = [map.switch_links, map.host_links];
    assert_eq!((switches.count(), switches.bad, hosts.count(), hosts.bad), (24, 0, 8, 3));
}

/// The reboot of one of the four ASICs of a switch says nothing about cables.
#[test]
fn plane_at_another_switch_is_a_finding_and_an_asic_that_reboots_is_none() {
    let faults = r#"
timeline:
  - reboot: {at: 10m, node: spine-1-a3, down: 2m}
  - move-cable: {at: 20m, from: "leaf-0-a4[2]", to: "leaf-1-a4[1]"}
"#;
    let simulated = simulated(&[SOUND, faults].concat(), "5s");
    for minutes in [11, 19] {
        simulated.run_to(Duration::from_secs(60 * minutes));
        assert_eq!(findings(&simulated.observation()), BTreeMap::new(), "{minutes} min");
    }
    simulated.run_to(Duration::from_secs(30 * 60));
    let found = findings(&simulated.observation());
    let both = ["host-1", "host-4"];
    assert!(found.keys().map(|name| &**name).eq(both), "{found:#?}");
    for reasons in found.values() {
        assert!(reasons.contains(&(Reason::PlanesSwapped, Verdict::Watch)), "{found:#?}");
    }
}

#[test]
fn sound_planes_have_no_finding() {
    expect_no_finding(2);
}

#[test]
#[ignore = "minutes: make week"]
fn day_of_sound_planes_has_no_finding() {
    expect_no_finding(24);
}

/// Ports of two ASICs for each switch, all planes on one node (Prism), hosts of two planes, and ordinary ones.
fn expect_no_finding(hours: u64) {
    for prism in ["", ", prism: true, two-plane-hosts: 2, ordinary-hosts: 2"] {
        let story = SOUND.replace("spines: 2}", &format!("spines: 2{prism}}}"));
        let simulated = simulated(&[&story, "timeline: []\n"].concat(), "60s");
        for hour in 1..=hours {
            simulated.run_to(Duration::from_secs(3600 * hour));
            let found = findings(&simulated.observation());
            assert_eq!(found, BTreeMap::new(), "{prism}, hour {hour}");
        }
        let observation = simulated.observation();
        let links = &observation.assessment.links;
        let whole = links.iter().filter(|link| !link.planes.is_empty());
        let (planes, cables) =
            (whole.clone().map(|link| link.planes.len()).sum::<usize>(), whole.count());
        assert!(cables >= 16 && planes > 3 * cables, "{cables} cables with {planes} planes");
        let unknown = links.iter().filter(|link| link.verdict == Verdict::Unknown);
        let is_internal = |link: &&LinkAssessment| link.reasons.weight(Reason::Internal).is_some();
        let judged = unknown.filter(|link| !is_internal(link)).map(|link| &link.reasons);
        assert_eq!(judged.count(), 0);
    }
}
