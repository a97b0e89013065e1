//! Compares a Prometheus that has scraped an exporter with one that has imported its export.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use fabric_history::Reader;
use fabric_history::export;
use fabric_history::export::ExportFilter;
use fabric_history::file::record_kind::RecordKind;
use fabric_history::model::Window;
use ib_mad::Counter;
use serde_json::Value;

use crate::minutes;
use test_rig::prometheus::{Prometheus, Setup};
use test_rig::{Exporter, wait_until};

const STORY: &str = "timeline:\n\
    - unplug: {at: 3s, link: \"leaf-0-0[9]\", for: 4s}\n\
    - degrade: {at: 4s, link: \"leaf-0-0[10]\", width: 1x}\n\
    - clear: {at: 6s, node: leaf-0-0}\n";

/// How long a sample counts as present: an export cannot mark the end of a series.
const FRESH: f64 = 4.0;

/// The values of a metric at a time, by labels without those that a scrape adds.
fn told(server: &Prometheus, metric: &str, at: f64) -> BTreeMap<String, String> {
    let query = format!("{metric} unless (timestamp({metric}) < {:.3})", at - FRESH);
    let value = |mut it: Value| {
        let labels = it["metric"].as_object_mut().unwrap();
        labels.retain(|label, _| !["job", "instance"].contains(&label.as_str()));
        (it["metric"].to_string(), it["value"][1].as_str().unwrap().to_owned())
    };
    server.query_at(&query, at).unwrap().into_iter().map(value).collect()
}

#[test]
fn export_equals_what_was_scraped() {
    let folder = tempfile::tempdir().unwrap();
    let (story, file) = (folder.path().join("story.yml"), folder.path().join("history.db"));
    std::fs::write(&story, STORY).unwrap();
    let recorded = format!("--history.file={}", file.display());
    let scenario = story.to_str().unwrap();
    // Error details are read in each sweep: by default some are first read after the story, and grow late.
    let flags = [&*recorded, "--fabric.interval=1s", "--fabric.details", "--scenario", scenario];
    let mut exporter = Exporter::demo(&flags);
    exporter.wait_ready();
    let live = Prometheus::start(&Setup {
        jobs: vec![("fabric".into(), vec![exporter.address().to_owned()])],
        interval: Duration::from_secs(1),
        lookback: Duration::from_secs(300),
        rules: Vec::new(),
        alertmanager: None,
        keep: None,
    });
    // All that the story does is done by then, and nothing but traffic grows any more.
    exporter.wait_sweeps(20);
    // The time of a scrape soon after a sweep: both servers have fresh samples then, however busy the machine is.
    let sweep = "fabric_exporter_sweep_timestamp_seconds";
    let swept = exporter.metrics().get(sweep, &[]).unwrap();
    let soon = format!("timestamp({sweep}) < {sweep} + 2 and {sweep} > {swept}");
    let limit = Duration::from_secs(60);
    let at = wait_until(limit, "a scrape soon after a sweep", || live.number(&soon));
    wait_until(limit, "a later scrape, and a later sweep", || {
        (!live.query(&format!("{sweep} > {:.3}", at + 1.0)).is_empty()).then_some(())
    });
    let reader = Reader::open(&file).unwrap();
    let window = Window { from: SystemTime::UNIX_EPOCH, to: SystemTime::now() + minutes(1) };
    let mut text = Vec::new();
    export::openmetrics(&reader, &ExportFilter::all(window), &mut text).unwrap();
    let filled = Prometheus::stored(|to| std::fs::write(to, &text).unwrap());
    let counters = Counter::all().filter(|it| RecordKind::of(*it) == RecordKind::ErrorDeltas);
    let counters = counters.map(|it| format!("infiniband_port_{}_total", it.row().metric));
    let states = ["node_up", "port_info", "link_info", "link_up"];
    let states = states.map(|it| format!("infiniband_{it}"));
    let mut compared = 0;
    for metric in counters.chain(states) {
        let (mut ours, theirs) = (told(&filled, &metric, at), told(&live, &metric, at));
        // A scrape leaves some counters out while they are 0.
        let is_counter = metric.ends_with("_total");
        ours.retain(|port, total| !is_counter || total != "0" || theirs.contains_key(port));
        assert_eq!(ours, theirs, "{metric}");
        compared += ours.len();
    }
    assert!(compared > 1_000, "{compared}");
    let moved = told(&filled, "infiniband_port_link_downed_total", at);
    assert!(moved.values().any(|total| total != "0"), "{moved:?}");
    assert!(exporter.stop().success());
}
