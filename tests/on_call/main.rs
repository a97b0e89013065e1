//! From a fault in the fabric to the page that somebody gets, through everything that is between them:
//! the simulated fabric, the exporter, a real Prometheus with the project's rules, a real Alertmanager
//! with its sample configuration, and a webhook that stands for the pager. All clocks run ten times as
//! fast, and so do all lengths of time in the rules and routes; nothing else is changed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod full_disk;
mod host;
mod panels;
mod scenes;

use test_rig as rig;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::{Duration, Instant, SystemTime};

use host::Host;
use panels::{Query, Question};
use rig::alertmanager::{Alert, Received};
use rig::guest::GuestExporter;
use rig::hurried::hurried;
use rig::prometheus::Setup;
use rig::{Alertmanager, Exporter, Prometheus, Webhook, rules};
use scenes::{ONSET, PACE, SCENES};

/// Between scrapes, between evaluations: what README tells to set.
const INTERVAL: Duration = Duration::from_secs(15);

/// For how long the stories are followed, by their clock.
const LENGTH: Duration = Duration::from_secs(25 * 60);

/// The alert on a full disk, and how much longer than [`LENGTH`] to wait for it, on the wall clock.
const FULL_DISK_ALERT: &str = "FabricExporterHistoryFails";
const FULL_DISK_TIMEOUT: Duration = Duration::from_secs(180);

/// A fabric that is watched.
struct Watched {
    name: &'static str,
    exporter: Exporter,
    began: Instant,
}

fn since_1970() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
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

/// All that there is to watch, and everything that watches it.
struct Stage {
    began: f64,
    watched: Vec<Watched>,
    host: Host,
    full_disk: GuestExporter,
    webhook: Webhook,
    prometheus: Prometheus,
    _alertmanager: Alertmanager,
}

impl Stage {
    fn set() -> Self {
        // It takes its time to boot, and the stories begin with the exporters.
        let host = Host::start();
        let full_disk = full_disk::start();
        let began = since_1970();
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
        let rules = rules::files("alerts", ".rules.yml");
        let targets = watched.iter().map(|it| it.exporter.address());
        let targets = targets.chain([host.address(), full_disk.address()]);
        let prometheus = Prometheus::start(&Setup {
            jobs: vec![("fabric-exporter".into(), targets.map(str::to_owned).collect())],
            interval: INTERVAL / PACE,
            lookback: Duration::from_secs(300) / PACE,
            rules: rules.iter().map(|file| hurried(&rules::text(file), PACE, began)).collect(),
            alertmanager: Some(alertmanager.address()),
            keep: None,
        });
        // All of it is there before any trouble is.
        assert!(watched[0].began.elapsed() * PACE < ONSET, "{:?}", watched[0].began.elapsed());
        Stage { began, watched, host, full_disk, webhook, prometheus, _alertmanager: alertmanager }
    }

    fn fabric(&self, name: &str) -> &Watched {
        self.watched.iter().find(|it| it.name == name).unwrap()
    }
}

/// Prints past cargo's capture: what was measured is to be seen, though the test passes.
fn print(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn from_the_fault_to_the_page() {
    let mut stage = Stage::set();
    let end = stage.watched[0].began + LENGTH / PACE;
    // One exporter ends, and is missed.
    let stopped = SCENES.iter().position(|scene| scene.name == "stopped").unwrap();
    std::thread::sleep(
        (stage.watched[0].began + ONSET / PACE).saturating_duration_since(Instant::now()),
    );
    stage.watched[stopped].exporter.stop();
    // Only after the whole time is it certain that no other alert fires.
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
    // The guest boots and sweeps more slowly on a busy machine, so the alert on its full disk may be late.
    stage.webhook.wait_for(FULL_DISK_TIMEOUT, |received| {
        let alerts = received.iter().flat_map(|it| &it.told.alerts);
        alerts.into_iter().any(|alert| alert.label("alertname") == FULL_DISK_ALERT)
    });
    let received = stage.webhook.received();
    print("\nWhat was told, and how long after the trouble began, by the fabric's clock:");
    for it in &stage.watched {
        for path in ["page", "ticket"] {
            for status in ["firing", "resolved"] {
                for (at, alert) in told(&received, it, path, status) {
                    let summary = &alert.annotations["summary"];
                    print(&format!("{:>13} {path:>6} {status:>8} {at:>5.0} s  {summary}", it.name));
                }
            }
        }
    }
    for group in stage.prometheus.ask("rules", &[])["groups"].as_array().unwrap() {
        for rule in group["rules"].as_array().unwrap() {
            assert_eq!(rule["health"], "ok", "{}: {}", rule["name"], rule["lastError"]);
        }
    }
    assert_pages(&stage, &received);
    assert_queries(&stage);
}

/// Who is paged for what, and who is not.
fn assert_pages(stage: &Stage, received: &[Received]) {
    let pages = |name: &str, status: &str| told(received, stage.fabric(name), "page", status);
    let tickets = |name: &str| -> BTreeSet<String> {
        let told = told(received, stage.fabric(name), "ticket", "firing");
        // That nobody would take over as subnet manager holds for all of them.
        let names = told.iter().map(|(_, alert)| alert.label("alertname").to_owned());
        names.filter(|name| name != "InfinibandNoStandbySubnetManager").collect()
    };

    let bad = pages("bad-cable", "firing");
    assert_eq!(bad.len(), 1, "one page for one cable: {bad:?}");
    let (after, alert) = &bad[0];
    assert_eq!(alert.label("alertname"), "InfinibandCableBad");
    let summary = &alert.annotations["summary"];
    assert!(summary.contains("leaf-0-1 port 5") && summary.contains("spine-0 port 3"), "{summary}");
    assert!((0.0..=180.0).contains(after), "paged {after} s after the cable went bad");
    let mended = pages("bad-cable", "resolved");
    assert!(mended.len() == 1 && mended[0].0 > 300.0, "{mended:?}");
    assert_eq!(tickets("bad-cable"), BTreeSet::new());

    assert!(pages("congestion", "firing").is_empty(), "congestion is no fault of a cable");
    assert!(
        tickets("congestion").contains("InfinibandCongestionRoot"),
        "{:?}",
        tickets("congestion")
    );
    assert!(
        !tickets("congestion").iter().any(|name| name.contains("Cable") || name.contains("Link"))
    );

    let dead = pages("dead-switch", "firing");
    assert_eq!(dead.len(), 1, "one page for a switch and all that hangs on it: {dead:?}");
    assert_eq!(dead[0].1.annotations["summary"], "Switch gone: leaf-0-2");
    assert_eq!(pages("dead-switch", "resolved").len(), 1);
    assert_eq!(tickets("dead-switch"), BTreeSet::new());

    let alone = pages("alone", "firing");
    assert_eq!(alone.len(), 1, "not one for each node that it no longer sees: {alone:?}");
    assert_eq!(alone[0].1.label("alertname"), "InfinibandFabricUnwatched");

    // Of a full disk one ticket, by the graver of its alerts; and of a history that is written, none.
    let history: Vec<_> = (received.iter().flat_map(|it| &it.told.alerts))
        .filter(|alert| alert.label("alertname").starts_with("FabricExporterHistory"))
        .map(|alert| (alert.label("alertname"), alert.label("instance"), alert.status.as_str()))
        .collect();
    let wanted = (FULL_DISK_ALERT, stage.full_disk.address(), "firing");
    assert_eq!(history, [wanted]);

    let down: BTreeSet<String> = (received.iter().flat_map(|it| &it.told.alerts))
        .filter(|alert| alert.label("alertname") == "InfinibandDeviceDown")
        .map(|alert| alert.label("device").to_owned())
        .collect();
    assert_eq!(
        down,
        BTreeSet::from([host::LEAVING.to_owned()]),
        "the device that went, and no other"
    );

    assert!(pages("reboot", "firing").is_empty());
    assert_eq!(tickets("reboot"), BTreeSet::new(), "a host may be rebooted");
}

/// Each query has something to say of the scene that is meant to show it.
fn assert_queries(stage: &Stage) {
    let mut scenes: BTreeMap<String, String> = (stage.watched.iter())
        .map(|it| (it.exporter.address().to_owned(), it.name.to_owned()))
        .collect();
    scenes.insert(stage.host.address().to_owned(), host::FABRIC.to_owned());
    scenes.insert(stage.full_disk.address().to_owned(), full_disk::FABRIC.to_owned());
    let time = (stage.began, since_1970(), INTERVAL / PACE);
    let question = Question { prometheus: &stage.prometheus, time, scenes: &scenes };
    let mut queries: Vec<Query> = panels::of_rules((PACE, stage.began));
    queries.extend(panels::of_dashboards(&question, (PACE, stage.began)));
    print("\nWhat each rule and each panel has something to say of:");
    let mut silent = Vec::new();
    for query in &queries {
        match question.scenes_of(query) {
            Ok(scenes) if !scenes.is_empty() => {
                let fabrics = stage.watched.iter().filter(|it| scenes.contains(it.name)).count();
                let everywhere = (fabrics == SCENES.len()).then(|| "every fabric".to_owned());
                let listed = || scenes.into_iter().collect::<Vec<_>>().join(" ");
                print(&format!("{:<76} {}", query.place, everywhere.unwrap_or_else(listed)));
            }
            said => silent.push(format!("{}: {said:?}\n  {}", query.place, query.text())),
        }
    }
    assert!(
        silent.is_empty(),
        "{} of {} queries say nothing:\n{}",
        silent.len(),
        queries.len(),
        silent.join("\n")
    );
}
