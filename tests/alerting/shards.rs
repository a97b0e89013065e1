//! The sample configuration with shards, in a real Prometheus and VictoriaMetrics.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use test_rig::{Exporter, Prometheus, root, rules, wait_until};

const LIMIT: Duration = Duration::from_secs(120);

/// The sample configuration for this exporter, with this number of shards, without rules, and quicker.
pub fn sample(address: &str, shards: usize) -> String {
    let text = std::fs::read_to_string(root().join("deploy/prometheus/shards.yml")).unwrap();
    let (head, jobs) = text.split_once("scrape_configs:\n").unwrap();
    assert!(head.contains("rule_files:"));
    let mut made = "scrape_configs:\n".to_owned();
    for line in jobs.lines() {
        if line.contains("__param_shard: 0/8") {
            let line = |shard| line.replace("0/8", &format!("{shard}/{shards}")) + "\n";
            made.extend((0..shards).map(line));
        } else if !line.contains("__param_shard: ") {
            made.extend([line, "\n"]);
        }
    }
    made.replace("monitor-host:10315", address)
        .replace("scrape_interval: 15s", "scrape_interval: 2s\n    scrape_timeout: 2s")
        .replace("scrape_interval: 2m", "scrape_interval: 2s")
        .replace("scrape_timeout: 30s", "scrape_timeout: 2s")
}

/// An exporter of a fabric in which nothing happens, however long a test takes: while a link is down, the series of the
/// host behind it are missing. The file of its scenario is in the directory.
fn exporter() -> (Exporter, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let scenario = folder.path().join("scenario.yml");
    std::fs::write(
        &scenario,
        "fabric: {fat-tree: {hosts: 36, radix: 18, down: 9, up: 6}}\ntimeline: []\n",
    )
    .unwrap();
    let scenario = format!("--scenario={}", scenario.display());
    let mut exporter = Exporter::demo(&[&scenario, "--fabric.interval=1s"]);
    exporter.wait_ready();
    (exporter, folder)
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// Waits until each of these shards was scraped successfully so many times by each job.
pub fn wait_scrapes(prometheus: &Prometheus, shards: usize, scrapes: f64) {
    let query = format!("min(sum_over_time(up{{shard=~'.+/{shards}'}}[10m]))");
    let targets = format!("count(up{{shard=~'.+/{shards}'}})");
    wait_until(LIMIT, "scrapes", || {
        let all = prometheus.number(&targets) == Some(2.0 * shards as f64);
        (all && prometheus.number(&query) >= Some(scrapes)).then_some(())
    });
}

#[test]
fn shard_that_is_not_scraped_fires_an_alert() {
    let (mut exporter, _scenario) = exporter();
    let all = sample(exporter.address(), 4);
    let some: String = all.split_inclusive('\n').filter(|line| !line.contains("3/4")).collect();
    let mut prometheus = Prometheus::configured(&some);
    let rules = rules::all().into_iter().map(|(_, rule)| rule);
    let mut rules = rules.filter(|it| it.alert.as_deref() == Some("FabricExporterShardsMissing"));
    let scraped = rules.next().unwrap().expr;
    wait_until(LIMIT, "three of four shards", || {
        (prometheus.number(&scraped) == Some(3.0)).then_some(())
    });
    prometheus.reconfigure(&all);
    wait_until(LIMIT, "all shards", || prometheus.query(&scraped).is_empty().then_some(()));
    assert!(exporter.stop().success());
}

fn labels(series: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(series["metric"].clone()).unwrap()
}

#[test]
fn series_stay_the_same_when_the_number_of_shards_changes() {
    let (mut exporter, _scenario) = exporter();
    let began = now();
    let mut prometheus = Prometheus::configured(&sample(exporter.address(), 4));
    wait_scrapes(&prometheus, 4, 5.0);
    let before = now();
    prometheus.reconfigure(&sample(exporter.address(), 8));
    wait_scrapes(&prometheus, 8, 5.0);
    let after = now();

    for name in [
        "infiniband_port_transmit_bytes_total",
        "infiniband_link_flaps_total",
        "infiniband_node_info",
    ] {
        // Of all scrapes of one number of shards: on a busy machine one may time out, and then Prometheus marks its
        // series as stale until the next.
        let series = |from: f64, to: f64| -> BTreeSet<_> {
            let query = format!("last_over_time({name}[{:.0}s])", (to - from).ceil());
            prometheus.query_at(&query, to).unwrap().iter().map(labels).collect()
        };
        let (old, new) = (series(began, before), series(before, after));
        // The whole fabric, without a label of shards.
        let whole = exporter.metrics().all(name).count();
        assert!(whole > 30 && old.len() == whole, "{name}: {} of {whole}", old.len());
        assert!(old.iter().all(|labels| !labels.contains_key("shard")), "{old:?}");
        assert_eq!(old, new, "{name}");
    }
    // Both numbers of shards wrote to the same series: no sample is missing between them, none is there twice, and the
    // increase over both is that of the values.
    let range = format!("[{:.0}s]", (now() - began).ceil());
    let bytes = "infiniband_port_transmit_bytes_total";
    let raw = prometheus.query(&format!("{bytes}{range}"));
    let fell = prometheus.query(&format!("resets({bytes}{range}) > 0"));
    assert!(fell.is_empty(), "{fell:?}");
    for series in &raw {
        let samples: Vec<(f64, f64)> = series["values"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (it[0].as_f64().unwrap(), it[1].as_str().unwrap().parse().unwrap()))
            .collect();
        assert!(samples.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{samples:?}");
        assert!(samples.iter().filter(|it| it.0 < before).count() >= 5, "{samples:?}");
        assert!(samples.iter().filter(|it| it.0 > before).count() >= 5, "{samples:?}");
    }
    let shards = "count(count by (index) (fabric_exporter_shards == 8))";
    // None for a moment if a scrape times out.
    wait_until(LIMIT, "8 shards", || (prometheus.number(shards) == Some(8.0)).then_some(()));
    assert!(exporter.stop().success());
}

#[test]
fn victoria_metrics_gets_the_whole_fabric_in_shards() {
    let (mut exporter, _scenario) = exporter();
    let victoria = Prometheus::victoria_metrics(&sample(exporter.address(), 8));
    for name in [
        "infiniband_port_transmit_bytes_total",
        "infiniband_link_flaps_total",
        "infiniband_port_symbol_errors_total",
    ] {
        let whole = exporter.metrics().all(name).count() as f64;
        wait_until(LIMIT, name, || {
            (victoria.number(&format!("count({name}{{shard=''}})")) == Some(whole)).then_some(())
        });
    }
    assert!(exporter.stop().success());
}
