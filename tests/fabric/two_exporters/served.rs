//! The same over HTTP, between two real processes.

use std::collections::BTreeSet;
use std::time::Duration;

use fabric_api::model::Totals;
use fabric_api::totals::TOTALS;
use test_rig::{Exporter, wait_until};

const LIMIT: Duration = Duration::from_secs(60);

/// A demo whose fabric a tool clears, or not.
fn demo(timeline: &str, flags: &[&str]) -> (Exporter, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("scenario.yml");
    let text = format!(
        "fabric: {{fat-tree: {{hosts: 4, radix: 8, down: 2, up: 2}}}}\ntraffic: {{load: 10%}}\n{timeline}"
    );
    std::fs::write(&scenario, text).unwrap();
    let scenario = format!("--scenario={}", scenario.display());
    let flags = [&[&*scenario, "--fabric.interval=1s"], flags].concat();
    let mut exporter = Exporter::demo(&flags);
    exporter.wait_ready();
    (exporter, folder)
}

/// The ports with counters that were reset.
fn ports(exporter: &Exporter) -> BTreeSet<(String, u8)> {
    let response = exporter.get(TOTALS, &[]);
    assert_eq!(response.status, 200, "{}", response.text());
    let totals: Totals = serde_json::from_str(response.text()).unwrap();
    let ports = totals.fabrics.into_iter().flat_map(|fabric| fabric.ports);
    ports.map(|port| (port.guid, port.port)).collect()
}

/// When totals of the other exporter were received.
fn received(exporter: &Exporter) -> Option<f64> {
    exporter.metrics().get("fabric_exporter_totals_timestamp_seconds", &[])
}

#[test]
fn totals_of_the_other_exporter_are_taken_over() {
    let (mut one, _scenario) = demo("timeline:\n- clear: {at: 3s, node: leaf-0-0}\n", &[]);
    let cleared = wait_until(LIMIT, "a clear", || Some(ports(&one)).filter(|it| !it.is_empty()));
    let url = format!("--fabric.totals-from=http://{}", one.address());
    // Nothing is cleared in this fabric: what was counted before a reset is known from the other one alone.
    let (mut other, _scenario) = demo("", &[&url]);
    wait_until(LIMIT, "the same totals", || (ports(&other) == cleared).then_some(()));
    assert!(!other.log().contains("totals continue"), "{}", other.log());
    assert!(received(&other) > received(&one), "{:?}", received(&other));
    assert!(one.stop().success());
    wait_until(LIMIT, "a warning", || other.log().contains("totals continue").then_some(()));
    assert_eq!(ports(&other), cleared);
    assert!(other.stop().success());
}

#[test]
fn unreachable_exporter_is_only_a_warning() {
    // A port of the dynamic range that is not bound: connections are refused.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (mut exporter, _scenario) = demo("", &[&format!("--fabric.totals-from=http://{address}")]);
    assert!(exporter.log().contains("totals continue without"), "{}", exporter.log());
    assert_eq!(ports(&exporter), BTreeSet::new());
    assert_eq!(received(&exporter), None);
    assert!(exporter.stop().success());
}
