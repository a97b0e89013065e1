//! A site with the imperfections of real ones has one screen of findings at most, and its bad cables are among them.

use std::time::Duration;

use fabric_api::condition;
use fabric_api::model::Condition;
use ib_sim::scenario::FabricChange;
use test_rig::Simulated;
use test_rig::site::{self, Size};

/// A tenth of the site of `cargo bench --bench noise`, for four hours.
#[test]
fn imperfect_site_has_few_findings_and_its_bad_cables_are_among_them() {
    let watched = site::watch(Size::SMALL, 1);
    println!("{watched}");
    let findings = &watched.findings;
    assert_eq!((findings.nodes, findings.switches, findings.links), (556, 38, 1_264));
    assert_eq!(watched.wrong(), [""; 0]);
}

#[test]
fn site_of_the_bench_has_the_size_of_the_published_one() {
    assert_eq!(Size::REAL.counts(), (6_003, 480, 15_735));
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

fn has(condition: &Condition, kind: &str) -> bool {
    condition.findings.iter().any(|it| it.kind == kind)
}

#[test]
fn known_host_that_does_not_respond_is_no_gap_of_the_discovery() {
    let simulated = Simulated::text("timeline: [{silent: {at: 2m, node: host-3}}]");
    let missed = (3..20).find(|minute| {
        simulated.run_to(minutes(*minute));
        simulated.observation().stats.discovery_gaps > 0
    });
    let seen = simulated.observation();
    assert!(missed.is_some() && seen.stats.known_gaps > 0, "{:?}", seen.stats);
    let found = condition::latest(&seen);
    assert!(has(&found, "nodes_down") && !has(&found, "discovery_gaps"), "{found:?}");
}

#[test]
fn host_behind_a_disabled_port_is_in_maintenance() {
    let simulated = Simulated::text("seed: 1");
    simulated.run_to(minutes(2));
    let port = simulated.port("leaf-0-0[4]");
    simulated.act(FabricChange::SetDisabled { port, disabled: true });
    simulated.run_to(minutes(30));
    let found = condition::latest(&simulated.observation());
    assert!(has(&found, "maintenance") && !has(&found, "nodes_down"), "{found:?}");
    let metrics = simulated.metrics();
    let maintained = metrics.samples.iter().filter(|it| it.name == "infiniband_node_maintenance");
    assert_eq!(maintained.count(), 1);
}
