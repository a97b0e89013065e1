//! The demo: its past, its own host, fabrics of other sizes, and the browser that it opens.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use fabric_api::model::{NodeDetail, NodeName};
use fabric_exporter::history_client::HistoryClient;
use fabric_exporter::remote::Access;
use fabric_history::model::{Event, Window};
use fabric_history::source::{EventFilter, SeriesDetail};
use fabric_history::{EventKind, Source};
use ib_mad::Counter;
use test_rig::child::{Running, read_lossy};
use test_rig::metrics::Metrics;
use test_rig::{Exporter, program, wait_until};

const LIMIT: Duration = Duration::from_secs(60);

/// A host with eight adapters, whose counters are set, and a RoCE device.
const STORY: &str = "
fabric: {fat-tree: {hosts: 8, radix: 16, down: 4, up: 4, rail-hosts: 1}}
seat: gpu-0-mlx5_0
traffic: {pattern: none}
own-host: {roce: mlx5_8, pfc-storm: 0s}
timeline:
  - set: {port: 'gpu-0-mlx5_3[1]', counters: {SymbolErrorCounter: 42, PortRcvErrors: 7, PortXmitData: 5000000000}}
";

/// The values of a family by port, of the fabric's view or of the host's.
fn by_guid(metrics: &Metrics, name: &str, of_host: bool) -> Vec<(String, f64)> {
    let of_view = metrics.all(name).filter(|(labels, _)| labels.contains_key("device") == of_host);
    let mut values: Vec<_> = of_view.map(|(labels, it)| (labels["guid"].clone(), it)).collect();
    values.sort_by(|a, b| a.0.cmp(&b.0));
    values
}

#[test]
fn own_host_has_the_counters_of_its_ports_in_the_fabric() {
    let scenario = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
    std::fs::write(scenario.path(), STORY).unwrap();
    let story = format!("--scenario={}", scenario.path().display());
    let mut exporter = Exporter::demo(&[&story, "--fabric.interval=1s"]);
    exporter.wait_ready();
    let errors = "infiniband_port_symbol_errors_total";
    let metrics = wait_until(LIMIT, "both views", || {
        let metrics = exporter.metrics();
        let is_set = |of_host| by_guid(&metrics, errors, of_host).iter().any(|it| it.1 > 41.0);
        (is_set(false) && is_set(true)).then_some(metrics)
    });
    let devices: Vec<_> = metrics.all("infiniband_device_info").map(|(labels, _)| labels).collect();
    assert_eq!(devices.len(), 9);
    let mut rails = 0;
    for device in devices {
        let guid = device["guid"].as_str();
        let mut nodes = metrics.all("infiniband_node_info").map(|(labels, _)| labels);
        let Some(node) = nodes.find(|node| node["guid"] == guid) else {
            assert_eq!(device["device"], "mlx5_8", "the RoCE device is in no fabric");
            continue;
        };
        rails += 1;
        assert_eq!(node["node"], format!("gpu-0 {}", device["device"]));
        assert_eq!(node["host"], "gpu-0");
        for name in [
            errors,
            "infiniband_port_receive_errors_total",
            "infiniband_port_transmit_bytes_total",
            "infiniband_port_link_downed_total",
            "infiniband_port_state",
        ] {
            let [fabric, host] = [false, true].map(|of_host| {
                let mut values = by_guid(&metrics, name, of_host);
                values.retain(|it| it.0 == guid);
                values
            });
            assert_eq!(fabric, host, "{name}");
            assert_eq!(fabric.len(), 1, "{name}");
        }
    }
    assert_eq!(rails, 8);
    let infos: Vec<_> = metrics.all("infiniband_rail_info").map(|(labels, _)| labels).collect();
    let mut names: Vec<&str> = infos.iter().map(|labels| &*labels["rail"]).collect();
    names.sort_unstable();
    assert_eq!(names, (0..8).map(|nth| format!("mlx5_{nth}")).collect::<Vec<_>>());
    let third = infos.iter().find(|labels| labels["rail"] == "mlx5_3").unwrap();
    assert_eq!(third["host"], "gpu-0");
    rails_are_side_by_side(&exporter, &third["guid"]);
    // The storm, between two readings.
    let roce = [("device", "mlx5_8"), ("priority", "3")];
    let pauses = |metrics: &Metrics| {
        metrics.get("infiniband_netdev_priority_transmit_pause_seconds_total", &roce).unwrap()
    };
    let read_at = |metrics: &Metrics| {
        metrics.get("fabric_exporter_host_read_timestamp_seconds", &[]).unwrap()
    };
    let later = exporter.wait_reads(3);
    let share = (pauses(&later) - pauses(&metrics)) / (read_at(&later) - read_at(&metrics));
    assert!((0.75..0.90).contains(&share), "{share}");
    let page = exporter.get("/host", &[]);
    assert!(page.text().contains("PFC storm") && page.text().contains("CNPs: "), "{}", page.text());
    assert!(exporter.stop().success());
}

/// On the page of each HCA of the host, and in the API.
fn rails_are_side_by_side(exporter: &Exporter, guid: &str) {
    let response = exporter.get(&format!("/api/v1/nodes/{guid}"), &[]);
    let detail: NodeDetail = serde_json::from_str(response.text()).unwrap();
    assert_eq!(detail.node.rail.as_deref(), Some("mlx5_3"));
    let found = detail.rails.iter().map(|rail| (&*rail.rail, rail.up, rail.switches.len()));
    let wanted: Vec<String> = (0..8).map(|nth| format!("mlx5_{nth}")).collect();
    let wanted = wanted.iter().map(|rail| (&**rail, true, 1));
    assert!(found.clone().eq(wanted), "{:?}", found.collect::<Vec<_>>());
    let response = exporter.get(&format!("/node/{guid}"), &[]);
    let page = response.text();
    assert!(page.contains("Rails of gpu-0") && page.contains(">mlx5_7<"), "{page}");
    let leaf: &NodeName = &detail.rails[0].switches[0];
    let response = exporter.get(&format!("/node/{}", leaf.guid), &[]);
    let page = response.text();
    assert!(page.contains(&leaf.node) && !page.contains("Rails of"), "a switch has no rails");
}

#[test]
fn fabrics_of_other_sizes_are_swept() {
    // The smallest one, and the smallest one of three levels.
    for (hosts, switches) in [("2", 3), ("1921", 65 + 90 + 60)] {
        let mut exporter =
            Exporter::demo_uncaptured(&["--hosts", hosts, "--fabric.interval=15s", "--no-history"]);
        exporter.wait_ready();
        let metrics = exporter.metrics();
        let count =
            |kind| metrics.get("infiniband_fabric_nodes", &[("node_type", kind), ("state", "up")]);
        let wanted = hosts.parse::<f64>().unwrap() + 8.0;
        assert_eq!((count("ca"), count("switch")), (Some(wanted), Some(f64::from(switches))));
        assert!(exporter.stop().success());
    }
}

/// Runs a demo with this browser, until its log or the file has a text, which is returned.
fn opened(folder: &Path, browser: &str, file: &Path) -> String {
    let log = folder.join("log");
    let mut command = Command::new(program());
    command
        .args(["demo", "--web.listen-address=127.0.0.1:0", "--open", "--no-history"])
        .env("BROWSER", browser)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap());
    let mut demo = Running::spawn("fabric-exporter", &mut command);
    let text = wait_until(LIMIT, "the browser", || {
        let text = [read_lossy(file), read_lossy(&log)].concat();
        text.ends_with('\n').then_some(text)
    });
    assert!(demo.stop().success(), "{text}");
    text
}

#[test]
fn browser_is_opened_outside_of_the_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    let (script, file) = (folder.path().join("browser"), folder.path().join("url"));
    // The sandbox permits neither to start programs nor to write this file.
    std::fs::write(&script, format!("#!/bin/sh\necho \"$@\" > {}\n", file.display())).unwrap();
    std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
    let text = opened(folder.path(), &format!("/nowhere:{} --new", script.display()), &file);
    assert!(text.starts_with("--new http://127.0.0.1:"), "{text}");
    std::fs::remove_file(&file).unwrap();
    // Without one the demo goes on, and says where to look.
    let text = opened(folder.path(), "/nowhere", &file);
    assert!(
        text.contains("no browser could be opened") && text.contains("url=http://127"),
        "{text}"
    );
}

/// How long the past of a demo is at least.
const PAST: Duration = Duration::from_secs(2 * 3600);

/// The recorded events of a kind.
fn recorded(source: &dyn Source, kind: EventKind, window: Window) -> Vec<Event> {
    source.events(&EventFilter { kinds: vec![kind], ..EventFilter::all(window) }).unwrap()
}

#[test]
fn demo_starts_with_a_green_fabric_that_has_a_past() {
    let mut exporter = Exporter::demo_uncaptured(&["--speedup=20"]);
    let started = SystemTime::now();
    exporter.wait_ready();
    let page = exporter.get("/", &[]).text().to_owned();
    assert!(page.contains("All ok: 68 links, 50 nodes"), "{page}");
    assert!(!page.contains("earning"), "{page}");
    // A monitor that has swept for hours, and goes on.
    let metrics = exporter.metrics();
    assert!(metrics.get("fabric_exporter_sweeps_total", &[("fabric", "default")]).unwrap() > 500.0);
    let swept = metrics.get("fabric_exporter_sweep_timestamp_seconds", &[]).unwrap();
    let now = started.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
    assert!((swept - now).abs() < 60.0, "the last sweep is one of now: {swept}, {now}");

    let url = format!("http://{}/", exporter.address());
    let history = HistoryClient::new(&url, &Access::default()).unwrap();
    let window = Window { from: started - 2 * PAST, to: started };
    assert!(history.span().unwrap().first.unwrap() < started - PAST);
    for kind in [EventKind::ClockJump, EventKind::ExporterStop, EventKind::CongestionStart] {
        assert_eq!(recorded(&history, kind, window), [], "{kind:?}");
    }
    assert_eq!(recorded(&history, EventKind::ExporterStart, window).len(), 2, "once each");
    let changed = recorded(&history, EventKind::CableChanged, window);
    assert!(changed.iter().any(|it| it.text.contains("serial number")), "{changed:?}");
    let changed = changed[0].at;
    let flaps = recorded(&history, EventKind::Flap, window);
    // The replacement was one as well.
    assert!(flaps.iter().filter(|it| it.at > changed).count() >= 2, "{flaps:?}");
    assert!(flaps.iter().all(|it| it.at < started - Duration::from_secs(3600)), "{flaps:?}");

    // The cable was bad before, and is clean since then.
    let end = |label: &str| history.ports(label).unwrap().remove(0).end();
    let errors = history.series(&[end("leaf-0-0[12]")], SeriesDetail::Errors, window).unwrap();
    let errors = errors.iter().find(|it| it.counter == Counter::SymbolErrors).unwrap();
    assert!(errors.steps.iter().map(|step| step.by).sum::<u64>() > 1_000);
    assert!(errors.steps.iter().all(|step| step.from < changed), "{errors:?}");
    // The traffic of a host is that of jobs.
    let traffic = history.series(&[end("host-0")], SeriesDetail::All, window).unwrap();
    let traffic = traffic.iter().find(|it| it.counter == Counter::XmitData).unwrap();
    let rates = traffic.steps.iter().map(|step| {
        step.by as f64 / step.to.duration_since(step.from).unwrap().as_secs_f64().max(1e-3)
    });
    let most = rates.clone().fold(0.0, f64::max);
    let idle = rates.clone().filter(|rate| *rate < most / 5.0).count();
    let busy = rates.filter(|rate| *rate > most / 2.0).count();
    assert!(
        idle >= 5 && busy >= 50,
        "{idle} idle and {busy} busy steps of {}",
        traffic.steps.len()
    );

    // The timeline of faults happens from now on.
    let text = wait_until(LIMIT, "the bad cable", || {
        let text = exporter.get("/links?verdict=bad", &[]).text().to_owned();
        text.contains("leaf-0-1 port 10").then_some(text)
    });
    assert!(!text.contains("leaf-0-0 port 12"), "{text}");
    wait_until(LIMIT, "the storm", || {
        exporter.get("/host", &[]).text().contains("PFC storm").then_some(())
    });
    wait_until(LIMIT, "the congestion", || {
        let since = Window { from: started, to: SystemTime::now() };
        let roots = recorded(&history, EventKind::CongestionStart, since);
        (!roots.is_empty()).then_some(())
    });
    assert!(exporter.stop().success());
}

#[test]
fn only_a_fresh_history_gets_a_past() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.db");
    let own = format!("--history.file={}", file.display());
    for flags in [&[&*own][..], &["--no-past"], &["--hosts=500", "--fabric.interval=15s"]] {
        let started = SystemTime::now();
        let mut exporter = Exporter::demo_uncaptured(flags);
        exporter.wait_ready();
        let url = format!("http://{}/", exporter.address());
        let history = HistoryClient::new(&url, &Access::default()).unwrap();
        let first = wait_until(LIMIT, "a recorded sweep", || history.span().ok()?.first);
        // Times have milliseconds there.
        assert!(first > started - Duration::from_secs(1), "{flags:?}: {first:?}");
        assert!(exporter.get("/", &[]).text().contains("earning"), "{flags:?}");
        assert!(exporter.stop().success());
    }
}

/// Ends a demo with a signal as soon as its history exists; returns what it printed.
fn ended_early(signal: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let [out, temporary] = ["out", "tmp"].map(|name| folder.path().join(name));
    std::fs::create_dir(&temporary).unwrap();
    let mut command = Command::new(program());
    command
        .args(["demo", "--web.listen-address=127.0.0.1:0"])
        .env("TMPDIR", &temporary)
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&out).unwrap());
    let mut demo = Running::spawn("fabric-exporter", &mut command);
    let files = || std::fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().path());
    wait_until(LIMIT, "its history", || files().find(|it| it.join("history.db").exists()));
    demo.signal(signal);
    let ended = demo.wait_at_most(LIMIT).expect("it ends");
    assert!(ended.success(), "{signal}: {ended}");
    assert_eq!(files().count(), 0, "{signal}");
    read_lossy(&out)
}

#[test]
fn past_ends_at_a_signal() {
    for signal in ["INT", "TERM"] {
        // The past takes seconds; on a busy machine it may be over nevertheless.
        let ended = (0..5).any(|_| ended_early(signal).is_empty());
        assert!(ended, "{signal}: it served before it ended");
    }
}

#[test]
fn health_options_are_accepted() {
    let folder = tempfile::tempdir().unwrap();
    let work = folder.path().join("work.yml");
    std::fs::write(&work, "- {node: leaf-0-1, why: new firmware}\n").unwrap();
    let flag = format!("--health.maintenance-file={}", work.display());
    let flags = [&*flag, "--health.ber-confidence=medium", "--health.flap-days=4"];
    let mut exporter = Exporter::demo_uncaptured(&flags);
    exporter.wait_ready();
    let page = exporter.get("/links?verdict=unknown", &[]).text().to_owned();
    assert!(page.contains("leaf-0-1") && page.contains("aintenance"), "{page}");
    assert!(!page.contains("leaf-0-0"), "{page}");
    assert!(exporter.stop().success());
}

#[test]
fn drained_hosts_are_in_maintenance_while_the_file_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("drained");
    let flag = format!("--health.drained-hosts-file={}", file.display());
    let mut exporter = Exporter::demo_uncaptured(&[&flag]);
    exporter.wait_ready();
    // The hosts of the nodes in maintenance.
    let hosts = || -> BTreeSet<String> {
        let metrics = exporter.metrics();
        let nodes = metrics.all("infiniband_node_maintenance");
        let nodes: BTreeSet<String> = nodes.map(|(labels, _)| labels["guid"].clone()).collect();
        let infos = metrics.all("infiniband_node_info").map(|(labels, _)| labels);
        let infos = infos.filter(|labels| nodes.contains(&labels["guid"]));
        infos.filter_map(|labels| labels.get("host").cloned()).collect()
    };
    assert_eq!(hosts(), BTreeSet::new(), "the file is not there yet");
    let drained: BTreeSet<String> = ["host-2", "host-3"].map(str::to_owned).into();
    std::fs::write(&file, "# by the scheduler\nhost-[2-3]\n").unwrap();
    let limit = Duration::from_secs(60);
    wait_until(limit, "drained hosts", || (hosts() == drained).then_some(()));
    std::fs::write(&file, "host-[\n").unwrap();
    exporter.wait_sweeps(2);
    assert_eq!(hosts(), drained, "the file is damaged");
    std::fs::write(&file, "").unwrap();
    wait_until(limit, "no drained hosts", || hosts().is_empty().then_some(()));
    assert!(exporter.stop().success());
}
