//! The alerts about the own host of the demo, in a real Prometheus: those that the demo shows, and no others.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use test_rig::hurried::hurried;
use test_rig::prometheus::Setup;
use test_rig::{Exporter, Prometheus, rules, wait_until};

/// How many times as fast as ours the clocks run: 20 minutes take two. On a busy machine the alerts come later.
const PACE: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(15);
const LIMIT: Duration = Duration::from_secs(300);

/// The alerts of the hosts' rule file in this state, and their devices.
fn alerts(prometheus: &Prometheus, state: &str) -> BTreeSet<(String, String)> {
    let names: Vec<String> = (rules::all().into_iter())
        .filter(|(file, _)| file == "hosts.rules.yml")
        .filter_map(|(_, rule)| rule.alert)
        .collect();
    assert!(names.len() > 5, "{names:?}");
    let query = format!("ALERTS{{alertstate='{state}', alertname=~'{}'}}", names.join("|"));
    let label = |alert: &serde_json::Value, name: &str| {
        alert["metric"][name].as_str().unwrap_or_default().to_owned()
    };
    let found = prometheus.query(&query);
    found.iter().map(|alert| (label(alert, "alertname"), label(alert, "device"))).collect()
}

#[test]
fn own_host_of_the_demo_fires_the_alerts_on_pauses_and_congestion() {
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    let clock = format!("--clock={PACE}");
    let flags = [&*clock, "--fabric.interval=15s", "--fabric.timeout=5s", "--no-history"];
    let mut exporter = Exporter::demo_uncaptured(&flags);
    exporter.wait_ready();
    let rules = rules::files("alerts", "hosts.rules.yml");
    let prometheus = Prometheus::start(&Setup {
        jobs: vec![("fabric-exporter".into(), vec![exporter.address().to_owned()])],
        interval: INTERVAL / PACE,
        lookback: Duration::from_secs(300) / PACE,
        rules: rules.iter().map(|file| hurried(&rules::text(file), PACE, began)).collect(),
        alertmanager: None,
        keep: None,
    });
    let storm = ("RocePfcStorm".to_owned(), "mlx5_8".to_owned());
    let notifications = ("RoceCnpRateHigh".to_owned(), "mlx5_8".to_owned());
    wait_until(LIMIT, "the alert on the storm", || {
        alerts(&prometheus, "firing").contains(&storm).then_some(())
    });
    wait_until(LIMIT, "the alert on CNPs", || {
        alerts(&prometheus, "firing").contains(&notifications).then_some(())
    });
    let all = BTreeSet::from([storm, notifications]);
    assert_eq!(alerts(&prometheus, "firing"), all);
    // Nor will there be others.
    assert_eq!(alerts(&prometheus, "pending"), BTreeSet::new());
    assert!(exporter.stop().success());
}
