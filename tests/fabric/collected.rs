//! The same fabric judged by MADs and by what other programs collect of it: verdicts and reasons of all links are equal
//! after each sweep, if counters and intervals are.
//!
//! The stub reads the simulated devices at the end of each sweep, and publishes what UFM Telemetry publishes of them, with
//! its names of fields, as CSV and in the text format of Prometheus; and what ibdiagnet writes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod program;
mod stub;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fabric_exporter::config::options::{FabricOptions, Options};
use fabric_exporter::config::{FabricSettings, Settings};
use fabric_exporter::monitor::{CollectedMonitor, Monitor};
use fabric_observation::{Observation, SharedState};
use ib_health::{Reason, Verdict};
use ib_mad::moment::Anchor;
use ib_mad::{Moment, PortKey};
use ib_sim::scenario::{Overrides, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SimClock, SimTransport, lock, share};
use tokio::sync::watch;

use stub::{Endpoint, Sample};

const BEGAN: Duration = Duration::from_secs(1_800_000_000);

/// A fabric with one fault of each kind. None begins while a sweep reads: what a sample at its end shows is what it read.
fn story(devices: &str) -> String {
    format!(
        "
seed: 11
fabric:
  fat-tree: {{levels: 2, hosts: 24, radix: 16, down: 8, up: 8, {devices}}}
traffic: {{pattern: across, load: 20%, packet: 4KiB}}
timeline:
  - bad-cable: {{at: 5m 4s, into: 'leaf-0-1[9]', ratio: 1e-11}}
  - bad-cable: {{at: 5m 4s, into: host-7, ratio: 2e-14}}
  - flap: {{at: 8m 4s, link: 'leaf-0-2[3]', down: [3s, 17s], every: 2m, times: 6}}
  - flap: {{at: 9m 4s, link: 'leaf-0-2[12]', down: [3s, 17s], every: 3m, times: 4}}
  - degrade: {{at: 10m 4s, link: 'leaf-0-0[10]', width: 1x}}
  - degrade: {{at: 11m 4s, link: host-12, speed: SDR}}
  - unplug: {{at: 12m 4s, link: host-15}}
  - unplug: {{at: 13m 4s, link: 'leaf-0-0[14]'}}
  - slow-receiver: {{at: 14m 4s, host: host-20, takes: 10%, for: 6m}}
  - reboot: {{at: 22m 4s, node: host-22, down: 4m}}
"
    )
}

/// What both ways say of links: verdict and reasons with their weights.
type Judged = BTreeMap<(PortKey, PortKey), (Verdict, Vec<(Reason, Verdict)>)>;

fn judged(observation: &Observation) -> Judged {
    let Some(snapshot) = &observation.snapshot else { return Judged::new() };
    let fabric = &snapshot.fabric;
    let links = observation.assessment.links.iter().map(|found| {
        let ends = (fabric.port_key(found.link.low), fabric.port_key(found.link.high));
        (ends, (found.verdict, found.reasons.iter().collect()))
    });
    links.collect()
}

/// The same without congestion, which makes no verdict worse.
fn without_congestion(judged: &Judged) -> Judged {
    let mut judged = judged.clone();
    for (_, reasons) in judged.values_mut() {
        reasons.retain(|(reason, _)| !matches!(reason, Reason::Congested | Reason::Victim));
    }
    judged
}

/// A monitor that is polled, and what it published.
struct Way {
    name: &'static str,
    monitor: CollectedMonitor,
    states: watch::Receiver<SharedState>,
}

fn settings(fabric: FabricOptions) -> FabricSettings {
    Settings::load(Options { fabric, ..Options::default() }, None).unwrap().fabrics.remove(0)
}

impl Way {
    fn new(name: &'static str, from: String) -> Way {
        let settings = settings(FabricOptions { from: Some(from), ..FabricOptions::default() });
        let (shared, states) = watch::channel(SharedState::from(vec![Arc::default()]));
        let (from, stop) = (settings.from.clone().unwrap(), Arc::default());
        let monitor = CollectedMonitor::new(settings, &from, Arc::new(shared), 0, stop).unwrap();
        Way { name, monitor, states }
    }

    fn judge(&mut self, now: Anchor) -> Judged {
        let is_new = self.monitor.poll(now);
        let latest = Arc::clone(&self.states.borrow().fabrics[0]);
        assert!(is_new, "{}: {:?}", self.name, latest.source);
        judged(&latest)
    }
}

/// What only MADs read is not read: what is left is what UFM publishes. Cables are looked for as often as counters are
/// read, as the others do: by default a link that comes back is known one or two sweeps later.
fn published_fields() -> FabricOptions {
    FabricOptions {
        registers: Some(false),
        fec: Some(false),
        details_interval: "0s".parse().ok(),
        discovery_interval: "5s".parse().ok(),
        ..FabricOptions::default()
    }
}

/// Sweeps a scenario by MADs every 15 s, and calls a function with each observation and what the devices show.
fn sweep(
    text: &str,
    options: FabricOptions,
    length: Duration,
    mut each: impl FnMut(&Observation, &Sample, Anchor),
) {
    let scenario = Scenario::parse("test", text).unwrap();
    let story = scenario.resolve(&Overrides::default()).unwrap();
    let seat = story.local_ports[0];
    let world = share(Simulation::new(story));
    let began = SystemTime::UNIX_EPOCH + BEGAN;
    let mut transport = SimTransport::new(world.clone(), seat, SimClock::Virtual { began });
    let (shared, _states) = watch::channel(SharedState::from(vec![Arc::default()]));
    let settings = settings(options);
    let interval = settings.interval;
    let mut monitor = Monitor::new(settings, None, Arc::new(shared), 0, Arc::default()).unwrap();
    let goes_on = |observation: Arc<Observation>, now: Moment| {
        let wall = began + now.since(Moment::default());
        let mut world = lock(&world);
        world.advance(now);
        let sample = Sample::read(&world, &observation);
        drop(world);
        each(&observation, &sample, Anchor { moment: now, wall });
        now.since(Moment::default()) < length
    };
    monitor.monitor_while(&mut transport, interval, goes_on).unwrap();
}

/// The differences between two judgments, a line each.
fn differences(one: &Judged, other: &Judged) -> Vec<String> {
    let keys: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let differs = keys.into_iter().filter(|key| one.get(key) != other.get(key));
    differs
        .map(|key| format!("{key:?}: {:?} by MADs, {:?}", one.get(key), other.get(key)))
        .collect()
}

#[test]
fn verdicts_are_those_by_mads_at_equal_counters_and_interval() {
    for devices in ["switch: quantum-2, hca: connectx-7", "switch: switch-ib-2, hca: connectx-5"] {
        let (csv, prometheus) = (Endpoint::start(), Endpoint::start());
        let folder = tempfile::tempdir().unwrap();
        let mut ways = [
            Way::new("CSV", csv.url("/csv/xcset/low_freq_debug")),
            Way::new("Prometheus", prometheus.url("/metrics")),
            Way::new("ibdiagnet", folder.path().display().to_string()),
        ];
        let mut wrong = String::new();
        let mut seen: BTreeSet<(Reason, Verdict)> = BTreeSet::new();
        let mut sweeps = 0;
        sweep(
            &story(devices),
            published_fields(),
            Duration::from_secs(40 * 60),
            |observation, sample, now| {
                sweeps += 1;
                csv.publish(&sample.csv());
                prometheus.publish(&sample.prometheus());
                sample.write_db_csv(folder.path());
                let by_mads = judged(observation);
                seen.extend(by_mads.values().flat_map(|(_, reasons)| reasons));
                for way in &mut ways {
                    let found = way.judge(now);
                    // ibdiagnet writes whole seconds, and the tick of Switch-IB 2 is not published: there shares
                    // of time differ.
                    let is_exact = way.name != "ibdiagnet" && devices.contains("quantum-2");
                    let compared = |judged: &Judged| {
                        if is_exact { judged.clone() } else { without_congestion(judged) }
                    };
                    for line in differences(&compared(&by_mads), &compared(&found)) {
                        writeln!(wrong, "{devices}, {}, sweep {sweeps}: {line}", way.name).unwrap();
                    }
                }
            },
        );
        assert!(wrong.is_empty(), "{}\n{:.6000}", wrong.lines().count(), wrong);
        assert!(sweeps > 150, "{sweeps}");
        // The story has what it promises: otherwise nothing would be compared.
        for (reason, weight) in [
            (Reason::BitErrors, Verdict::Bad),
            (Reason::Flapping, Verdict::Watch),
            (Reason::Width, Verdict::Bad),
            (Reason::Speed, Verdict::Watch),
            (Reason::Down, Verdict::Watch),
        ] {
            assert!(seen.contains(&(reason, weight)), "{devices}: {reason:?} {weight:?}: {seen:?}");
        }
        let is_congested = seen.iter().any(|(reason, _)| *reason == Reason::Congested);
        assert!(is_congested || !devices.contains("quantum-2"), "{devices}: {seen:?}");
    }
}

/// When a link first had a reason with a weight, in seconds.
type Firsts = BTreeMap<((PortKey, PortKey), Reason, Verdict), u64>;

fn record(firsts: &mut Firsts, judged: &Judged, second: u64) {
    for (link, (_, reasons)) in judged {
        for (reason, weight) in reasons.iter().filter(|(_, weight)| *weight >= Verdict::Watch) {
            firsts.entry((*link, *reason, *weight)).or_insert(second);
        }
    }
}

/// What is later or lost with data each 30, 60 and 300 s, against sweeps of 15 s with all that MADs read. The table is that
/// of docs/collected.md.
#[test]
fn poorer_intervals_find_later_what_lasts_and_lose_what_is_short() {
    let intervals = [30_u64, 60, 300];
    let endpoints = intervals.map(|_| Endpoint::start());
    let mut ways = endpoints
        .each_ref()
        .map(|endpoint| Way::new("CSV", endpoint.url("/csv/xcset/low_freq_debug")));
    let (mut by_mads, mut by_ways) = (Firsts::new(), intervals.map(|_| Firsts::new()));
    let length = Duration::from_secs(3 * 3600);
    let mut labels = BTreeMap::new();
    sweep(
        &story("switch: quantum-2, hca: connectx-7"),
        FabricOptions::default(),
        length,
        |observation, sample, now| {
            let second = now.moment.since(Moment::default()).as_secs();
            record(&mut by_mads, &judged(observation), second);
            if labels.is_empty()
                && let Some(snapshot) = &observation.snapshot
            {
                let fabric = &snapshot.fabric;
                let ports = fabric.port_indexes().map(|port| {
                    let name = &fabric.node_of(port).name;
                    let key = fabric.port_key(port);
                    (key, format!("{name}[{}]", key.number))
                });
                labels.extend(ports);
            }
            for (index, interval) in intervals.iter().enumerate() {
                // Sweeps begin with the virtual time.
                if second % interval < 15 {
                    endpoints[index].publish(&sample.csv());
                    let found = ways[index].judge(now);
                    record(&mut by_ways[index], &found, second);
                }
            }
        },
    );
    let minutes = |second: u64| format!("{}:{:02}", second / 60, second % 60);
    let mut measured = Vec::new();
    for Fault { text, port, at } in &FAULTS {
        let is_of_fault = |(low, high): &(PortKey, PortKey)| {
            [low, high].iter().any(|end| labels[*end].starts_with(*port))
        };
        let keys = by_mads.keys().chain(by_ways.iter().flat_map(BTreeMap::keys));
        let keys: BTreeSet<_> = keys.filter(|(link, ..)| is_of_fault(link)).collect();
        for key in keys {
            let (_, reason, weight) = key;
            let (reason, weight) = (reason.label(), weight.label());
            let since = |firsts: &Firsts| {
                let second = firsts.get(key);
                second.map_or("never".to_owned(), |second| minutes(second.saturating_sub(*at)))
            };
            let ways = by_ways.each_ref().map(since).join(" | ");
            let mads = since(&by_mads);
            measured.push(Row {
                fault: (*text).to_owned(),
                cells: format!("`{weight}` `{reason}` | {mads} | {ways}"),
            });
        }
    }
    let documented = documented();
    let has_rows = |fault: &Fault| documented.iter().any(|row| row.fault == fault.text);
    assert!(FAULTS.iter().all(has_rows), "{documented:#?}");
    // The table leaves out what a fault causes besides, such as the flap at which a lane is lost.
    let wrong: Vec<_> = documented.iter().filter(|row| !measured.contains(row)).collect();
    assert!(wrong.is_empty(), "not so: {wrong:#?}\nmeasured: {measured:#?}");
}

/// A fault of the story, as the table names it, a port of its link, and its second.
struct Fault {
    text: &'static str,
    port: &'static str,
    at: u64,
}

const FAULTS: [Fault; 7] = [
    Fault { text: "bit error ratio 1e-11 (NDR)", port: "leaf-0-1[9]", at: 304 },
    Fault { text: "bit error ratio 2e-14, twice the limit", port: "host-7", at: 304 },
    Fault { text: "one lane of four is left", port: "leaf-0-0[10]", at: 604 },
    Fault { text: "speed falls to SDR", port: "host-12", at: 664 },
    Fault { text: "cable between switches unplugged", port: "leaf-0-0[14]", at: 784 },
    Fault {
        text: "link to a host flaps for 3 s and 17 s in turn, each 2 min, six times",
        port: "leaf-0-2[3]",
        at: 484,
    },
    Fault {
        text: "link between switches, the same each 3 min, four times",
        port: "leaf-0-2[12]",
        at: 544,
    },
];

/// A row of the table: its fault, and its other cells.
#[derive(Debug, PartialEq)]
struct Row {
    fault: String,
    cells: String,
}

/// The table of docs/collected.md. An empty fault is that of the row above.
fn documented() -> Vec<Row> {
    let lines = include_str!("../../docs/collected.md").lines();
    let rows = lines.skip_while(|line| !line.starts_with("| fault |")).skip(2);
    let mut found: Vec<Row> = Vec::new();
    for row in rows.map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |")) {
        let (fault, cells) = row.split_once("| ").expect("two cells");
        let fault = match (fault.trim(), found.last()) {
            ("", Some(above)) => above.fault.clone(),
            (fault, _) => fault.to_owned(),
        };
        found.push(Row { fault, cells: cells.to_owned() });
    }
    found
}
