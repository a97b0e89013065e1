//! From a fault in the fabric to the page that somebody gets, through everything that is between them:
//! the simulated fabric, the exporter, a real Prometheus with the project's rules, a real Alertmanager
//! with its sample configuration, and a webhook that stands for the pager. All clocks run ten times as
//! fast, and so do all lengths of time in the rules and routes; nothing else is changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../rig/mod.rs"]
mod rig;
mod scenes;

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rig::alertmanager::{Alert, Received};
use rig::hurried::hurried;
use rig::prometheus::Setup;
use rig::{Alertmanager, Exporter, Prometheus, Webhook, wait_until};
use scenes::{ONSET, PACE, SCENES};

/// Between scrapes, between evaluations: what README tells to set.
const INTERVAL: Duration = Duration::from_secs(15);

/// For how long the stories are followed, by their clock.
const LENGTH: Duration = Duration::from_secs(25 * 60);

/// A fabric that is watched.
struct Watched {
    name: &'static str,
    exporter: Exporter,
    began: Instant,
}

fn rules(began: f64) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("alerts");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.to_string_lossy().ends_with(".rules.yml"));
    files.sort();
    assert!(files.len() > 5, "{files:?}");
    files.iter().map(|file| hurried(&std::fs::read_to_string(file).unwrap(), PACE, began)).collect()
}

/// Alerts of one fabric that were told at a path, each with when, by the fabric's clock from the
/// beginning of the trouble.
fn told<'a>(
    received: &'a [Received],
    watched: &Watched,
    path: &str,
    status: &str,
) -> Vec<(f64, &'a Alert)> {
    let since_onset =
        |at: Instant| (at - watched.began).as_secs_f64() * f64::from(PACE) - ONSET.as_secs_f64();
    received
        .iter()
        .filter(|it| it.path == path)
        .flat_map(|it| it.told.alerts.iter().map(move |alert| (since_onset(it.at), alert)))
        .filter(|(_, alert)| alert.label("fabric") == watched.name && alert.status == status)
        .collect()
}

#[test]
fn from_the_fault_to_the_page() {
    let began = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    let watched: Vec<Watched> = SCENES
        .iter()
        .map(|scene| {
            let began = Instant::now();
            Watched { name: scene.name, exporter: scene.watch(), began }
        })
        .collect();
    let webhook = Webhook::start();
    let sample = include_str!("../../alerts/alertmanager.yml");
    let routes = hurried(sample, PACE, began).replace("127.0.0.1:9095", webhook.address());
    assert!(routes.contains(webhook.address()));
    let alertmanager = Alertmanager::start(&routes);
    let prometheus = Prometheus::start(&Setup {
        jobs: vec![(
            "fabric-exporter".into(),
            watched.iter().map(|it| it.exporter.address().to_owned()).collect(),
        )],
        interval: INTERVAL / PACE,
        lookback: Duration::from_secs(300) / PACE,
        rules: rules(began),
        alertmanager: Some(alertmanager.address()),
        keep: None,
    });
    println!("all runs {:.1} s after the first fabric", watched[0].began.elapsed().as_secs_f64());

    let end = watched[0].began + LENGTH / PACE;
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(500));
    }
    let received = webhook.received();
    for it in &watched {
        for path in ["page", "ticket"] {
            for status in ["firing", "resolved"] {
                for (at, alert) in told(&received, it, path, status) {
                    println!(
                        "{:>14} {path:>6} {status:>8} {at:>6.0} s  {}",
                        it.name, alert.annotations["summary"]
                    );
                }
            }
        }
    }
    for it in received.iter() {
        for a in &it.told.alerts {
            if a.label("fabric").is_empty() {
                println!("{} {:?}", it.path, a.annotations["summary"]);
            }
        }
    }
    for group in prometheus.ask("rules", &[])["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            if rule["health"] != "ok" {
                println!("{} {} {}", rule["name"], rule["health"], rule["lastError"]);
            }
        }
    }
    let _ = wait_until(Duration::from_secs(1), "x", || Some(1));
}
