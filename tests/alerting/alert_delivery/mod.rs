//! From a fault in the fabric to the page on the pager, through all components in between: the simulated
//! fabric, the exporter, a real Prometheus with the project's rules, a real Alertmanager with the sample
//! configuration, and a webhook in place of the pager. All clocks are accelerated,
//! and all durations in rules and routes are shortened by the same factor; nothing else is changed.
//!
//! A busy machine may not keep up with accelerated clocks: then sweeps, scrapes or evaluations are missing, and
//! the run says nothing about the rules. [`Stage::lag`] measures that, and the run is repeated at a lower pace.
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
use scenes::{ONSET, SCENES};

/// The scrape and evaluation intervals that the README recommends.
const INTERVAL: Duration = Duration::from_secs(15);

/// How long the scenes last, by their clock.
const LENGTH: Duration = Duration::from_secs(25 * 60);

/// How many times as fast as ours the clocks run, at the first attempt and at further ones.
const PACES: [u32; 3] = [10, 5, 2];

/// The share of sweeps and scrapes that a run must have had to count.
const COMPLETE: f64 = 0.9;

/// The alert on a full disk, and how much longer than [`LENGTH`] to wait for it, on the wall clock.
const FULL_DISK_ALERT: &str = "FabricExporterHistoryFailing";
const FULL_DISK_TIMEOUT: Duration = Duration::from_secs(180);

/// A watched fabric.
struct Watched {
    name: &'static str,
    exporter: Exporter,
    began: Instant,
    pace: u32,
}

fn since_1970() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The alerts of one fabric that arrived at a path, each with its time on the fabric's clock since the
/// faults began.
fn alerts_at<'a>(
    received: &'a [Received],
    watched: &Watched,
    path: &str,
    status: &str,
) -> Vec<(f64, &'a Alert)> {
    let since_onset = |at: Instant| {
        (at - watched.began).as_secs_f64() * f64::from(watched.pace) - ONSET.as_secs_f64()
    };
    received
        .iter()
        .filter(|it| it.path == path)
        .flat_map(|it| it.told.alerts.iter().map(move |alert| (since_onset(it.at), alert)))
        .filter(|(_, alert)| alert.label("fabric") == watched.name && alert.status == status)
        .collect()
}

/// All scenes, and everything that watches them.
struct Stage {
    pace: u32,
    began: f64,
    watched: Vec<Watched>,
    host: Host,
    full_disk: GuestExporter,
    webhook: Webhook,
    prometheus: Prometheus,
    _alertmanager: Alertmanager,
}

impl Stage {
    fn set(pace: u32) -> Self {
        // It takes its time to boot, and the stories begin with the exporters.
        let host = Host::start();
        let full_disk = full_disk::start(pace);
        let began = since_1970();
        let watched: Vec<Watched> = SCENES
            .iter()
            .map(|scene| {
                let began = Instant::now();
                Watched { name: scene.name, exporter: scene.watch(pace), began, pace }
            })
            .collect();
        let webhook = Webhook::start();
        let sample = include_str!("../../../alerts/alertmanager.yml");
        let routes = hurried(sample, pace, began).replace("127.0.0.1:9095", webhook.address());
        assert!(routes.contains(webhook.address()));
        let alertmanager = Alertmanager::start(&routes);
        let rules = rules::files("alerts", ".rules.yml");
        let targets = watched.iter().map(|it| it.exporter.address());
        let targets = targets.chain([host.address(), full_disk.address()]);
        let prometheus = Prometheus::start(&Setup {
            jobs: vec![("fabric-exporter".into(), targets.map(str::to_owned).collect())],
            interval: INTERVAL / pace,
            lookback: Duration::from_secs(300) / pace,
            rules: rules.iter().map(|file| hurried(&rules::text(file), pace, began)).collect(),
            alertmanager: Some(alertmanager.address()),
            keep: None,
        });
        Stage {
            pace,
            began,
            watched,
            host,
            full_disk,
            webhook,
            prometheus,
            _alertmanager: alertmanager,
        }
    }

    /// Follows the stories to their end; one exporter is stopped when its time comes.
    fn follow(&mut self) {
        let began = self.watched[0].began;
        let wait_until = |at: Instant| {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
        };
        wait_until(began + ONSET / self.pace);
        let stopped = self.watched.iter_mut().find(|it| it.name == "stopped").unwrap();
        stopped.exporter.stop();
        // The guest has one emulated CPU: its first scrapes may be late. Several must find a disk that is nearly
        // full, so that the query of that alert returns series.
        let low =
            "fabric_exporter_history_free_bytes < 2 * fabric_exporter_history_free_floor_bytes";
        let scrapes = format!("count_over_time(({low})[5m:1s]) > 3");
        let is_low = || self.prometheus.number(&scrapes);
        rig::wait_until(FULL_DISK_TIMEOUT, "scrapes of a disk that is nearly full", is_low);
        full_disk::fill();
        // Only after the whole time is it certain that no other alert fires.
        wait_until(began + LENGTH / self.pace);
        // So may the alert on its full disk.
        self.webhook.wait_for(FULL_DISK_TIMEOUT, |received| {
            let alerts = received.iter().flat_map(|it| &it.told.alerts);
            alerts.into_iter().any(|alert| alert.label("alertname") == FULL_DISK_ALERT)
        });
    }

    /// Why the run says nothing about the rules, if the machine did not keep up with its clocks.
    fn lag(&self, started: Duration) -> Option<String> {
        if started * self.pace >= ONSET {
            return Some(format!("the exporters took {started:.1?} to start"));
        }
        let own = self.prometheus.own_metrics();
        let mut missed = own.all("prometheus_rule_group_iterations_missed_total");
        // The routes wait for two intervals (group_wait), so one missed evaluation changes no notification.
        if let Some((group, count)) = missed.find(|(_, count)| *count > 1.0) {
            return Some(format!("{count} evaluations of {group:?} were missed"));
        }
        let length = LENGTH.as_secs_f64();
        for it in self.watched.iter().filter(|it| it.name != "stopped") {
            let range = format!("{:.0}s", length / f64::from(self.pace));
            let up = format!("up{{instance=\"{}\"}}", it.exporter.address());
            let scrapes = self.prometheus.number(&format!("sum_over_time({up}[{range}])"));
            let due = length / INTERVAL.as_secs_f64() * COMPLETE;
            if scrapes.unwrap_or(0.0) < due {
                return Some(format!("{} had {scrapes:?} scrapes, {due:.0} were due", it.name));
            }
        }
        // Of the fabrics that are swept as usual to the end.
        for name in ["bad-cable", "congestion", "dead-switch", "reboot", "links", "full-counters"] {
            let sweeps = format!("fabric_exporter_sweeps_total{{fabric=\"{name}\"}}");
            let sweeps = self.prometheus.number(&sweeps).unwrap_or(0.0);
            let due = length / INTERVAL.as_secs_f64() * COMPLETE;
            if sweeps < due {
                return Some(format!("{name} had {sweeps} sweeps, {due:.0} were due"));
            }
        }
        None
    }

    fn fabric(&self, name: &str) -> &Watched {
        self.watched.iter().find(|it| it.name == name).unwrap()
    }
}

/// Prints past cargo's capture: the measurements are shown even when the test passes.
fn print(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn from_the_fault_to_the_page() {
    for pace in PACES {
        let mut stage = Stage::set(pace);
        let started = stage.watched[0].began.elapsed();
        stage.follow();
        let Some(lag) = stage.lag(started) else { return assert_stage(&stage) };
        print(&format!("at {pace} times the speed the machine does not keep up: {lag}"));
    }
    panic!("the machine does not keep up at any of these speeds: {PACES:?}");
}

fn assert_stage(stage: &Stage) {
    let received = stage.webhook.received();
    print("\nNotifications, and their time since the faults began, by the clock of the fabric:");
    for it in &stage.watched {
        for path in ["page", "ticket", "info"] {
            for status in ["firing", "resolved"] {
                for (at, alert) in alerts_at(&received, it, path, status) {
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
    assert_pages(stage, &received);
    assert_queries(stage);
}

/// Which faults page and which do not.
fn assert_pages(stage: &Stage, received: &[Received]) {
    let pages = |name: &str, status: &str| alerts_at(received, stage.fabric(name), "page", status);
    let names = |name: &str, path: &str| -> BTreeSet<String> {
        let alerts = alerts_at(received, stage.fabric(name), path, "firing");
        // All of them have no standby subnet manager.
        let names = alerts.iter().map(|(_, alert)| alert.label("alertname").to_owned());
        names.filter(|name| name != "InfinibandNoStandbySubnetManager").collect()
    };
    let tickets = |name: &str| names(name, "ticket");

    let bad = pages("bad-cable", "firing");
    assert_eq!(bad.len(), 1, "one page for one cable: {bad:?}");
    let (after, alert) = &bad[0];
    assert_eq!(alert.label("alertname"), "InfinibandCableBad");
    let summary = &alert.annotations["summary"];
    assert!(summary.contains("leaf-0-1 port 5") && summary.contains("spine-0 port 3"), "{summary}");
    assert!((0.0..=180.0).contains(after), "paged {after} s after the cable went bad");
    let url = format!("http://{}", stage.fabric("bad-cable").exporter.address());
    let annotation = |name: &str| alert.annotations[name].as_str();
    let dashboard = fabric_api::address::link("bad-cable", alert.label("link"));
    let urls = [annotation("dashboard_url"), annotation("runbook_url")];
    assert_eq!(urls[0], format!("{url}{dashboard}").replace("%2D", "-"));
    assert!(urls[1].ends_with("/runbooks/InfinibandCableBad"), "{urls:?}");
    let repaired = pages("bad-cable", "resolved");
    assert!(repaired.len() == 1 && repaired[0].0 > 300.0, "{repaired:?}");
    assert_eq!(tickets("bad-cable"), BTreeSet::new());

    assert!(pages("congestion", "firing").is_empty(), "congestion is no fault of a cable");
    let hints = names("congestion", "info");
    assert!(hints.contains("InfinibandCongestionRoot"), "{hints:?}");
    assert!(
        !tickets("congestion").iter().any(|name| name.contains("Cable") || name.contains("Link"))
    );

    let dead = pages("dead-switch", "firing");
    assert_eq!(dead.len(), 1, "one page for a switch and its hosts: {dead:?}");
    assert_eq!(dead[0].1.annotations["summary"], "Switch down: leaf-0-2");
    assert_eq!(pages("dead-switch", "resolved").len(), 1);
    assert_eq!(tickets("dead-switch"), BTreeSet::new());

    let alone = pages("alone", "firing");
    assert_eq!(alone.len(), 1, "not one for each node that it no longer sees: {alone:?}");
    assert_eq!(alone[0].1.label("alertname"), "InfinibandFabricNotMonitored");

    // A full disk opens one ticket. None is opened by a history that can be written, nor by a disk that was
    // nearly full for a few minutes.
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

/// Each query returns series for the scene that is meant to show it.
fn assert_queries(stage: &Stage) {
    let mut scenes: BTreeMap<String, String> = (stage.watched.iter())
        .map(|it| (it.exporter.address().to_owned(), it.name.to_owned()))
        .collect();
    scenes.insert(stage.host.address().to_owned(), host::FABRIC.to_owned());
    scenes.insert(stage.full_disk.address().to_owned(), full_disk::FABRIC.to_owned());
    let time = (stage.began, since_1970(), INTERVAL / stage.pace);
    let question = Question { prometheus: &stage.prometheus, time, scenes: &scenes };
    let mut queries: Vec<Query> = panels::of_rules((stage.pace, stage.began));
    queries.extend(panels::of_dashboards(&question, (stage.pace, stage.began)));
    print("\nThe fabrics for which each rule and each panel returns series:");
    let mut silent = Vec::new();
    // The exporters of the scenes are not scraped in shards; the test of shards has one that is not scraped.
    let of_shards = |query: &&Query| query.place.ends_with(": FabricExporterShardsMissing");
    // Half an hour of clears, and a fabric of hosts that has no subnet manager: their unit tests, and the simulated
    // week, show them. Flaps on three days, a node in maintenance, VSKeys that refuse 32 devices, which are more than
    // the scenes have, hosts with several HCAs, and links of several planes: the unit tests show them. So they do with
    // jobs and pods, whose series are those of other exporters; `dashboards::jobs` shows their panels.
    let elsewhere = |query: &&Query| {
        ["InfinibandCountersCleared", "infiniband_port_counters_reset:seconds_between1h"]
            .into_iter()
            .chain(["InfinibandNoSubnetManager (host)", "InfinibandPortsInInit (host)"])
            .chain(["InfinibandLinkFlapsRepeatedly", "infiniband_node_maintenance:max5m"])
            .chain(["InfinibandVSKeySuspected", "Rails that differ from their siblings A"])
            .chain(["InfinibandRailTrafficDiffers", "InfinibandSwitchRingBroken"])
            .chain(["InfinibandLinkPlanesDown", "InfinibandLinkPlanesSwapped"])
            .any(|name| query.place.ends_with(name))
            || query.place.contains("infiniband_rail_")
            || query.place.starts_with("jobs: ")
            || query.place.contains("fabric_system_guid_aggregated_port:")
    };
    for query in queries.iter().filter(|query| !of_shards(query) && !elsewhere(query)) {
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
        "{} of {} queries return nothing:\n{}",
        silent.len(),
        queries.len(),
        silent.join("\n")
    );
}
