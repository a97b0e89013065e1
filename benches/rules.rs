//! The cost of the rules in Prometheus, with the metrics of a simulated fabric with a few faults of every kind: 60,000
//! ports with the profiles `lean` and `full`, and 162,000 with `lean`.
//!
//! Two scrapes of the exporter are continued to samples every 15 s for the longest usual range, and stored. Recording
//! rules are stored next, level by level, because rules read what others record. Then Prometheus evaluates each
//! expression. Nothing is scraped meanwhile, and nothing depends on the speed of this program:
//! `cargo bench --profile dev --bench rules`. Only one of the three: `-- --hosts 10000 --profile lean`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod measure;
use test_rig as rig;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use fabric_exporter::config::options::FabricOptions;
use fabric_exporter::metrics::selection::{Profile, Selection};
use fabric_exporter::metrics::{Format, OwnMetrics, RenderedMetrics};
use ib_sim::scenario::{Overrides, Scenario};
use measure::median;
use rig::rules::Rule;
use rig::{Prometheus, Simulated, cpu_time, promql, rules};

/// From one sample to the next.
const INTERVAL: u64 = 15;
/// From one sweep to the next: fewer sweeps are faster to simulate.
const SWEEPS: u64 = 60;
/// The range of the rates, and a little more.
const SAMPLES: u64 = 24;
/// The time of the last sample, in seconds since 1970.
const NOW: u64 = 1_700_000_000;
const ROUNDS: usize = 3;
/// Rules with less CPU time in seconds are not listed.
const CHEAP: f64 = 0.05;

/// Hosts, down and up links of a switch, profile, and the seconds that all rules may take.
const CASES: [(u32, u8, u8, Profile, &str); 3] = [
    (10_000, 20, 20, Profile::Lean, "target: at most 2.5 s"),
    (10_000, 20, 20, Profile::Full, ""),
    (27_000, 18, 18, Profile::Lean, "target: at most 8 s"),
];

const STORY: &str = "\
timeline:
- bad-cable: {at: 10s, into: 'host-77[1]', ratio: 1e-11}
- bad-cable: {at: 10s, into: 'host-4711[1]', ratio: 1e-11}
- flap: {at: 20s, link: 'host-9000[1]', down: 2s, every: 40s, times: 5}
- degrade: {at: 20s, link: 'host-8000[1]', width: 1x}
- unplug: {at: 20s, link: 'host-7000[1]'}
- reboot: {at: 20s, node: leaf-3-3, down: 10m}
- burst: {at: 20s, from: 300, to: host-300, load: 50%}
";
/// When the faults have been found.
const LENGTH: Duration = Duration::from_secs(370);

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let option = |name: &str| args.iter().position(|it| it == name).map(|at| args[at + 1].clone());
    let (hosts_only, profile_only) = (option("--hosts"), option("--profile"));
    for (hosts, down, up, profile, target) in CASES {
        let is_chosen = hosts_only.as_ref().is_none_or(|it| *it == hosts.to_string())
            && profile_only.as_ref().is_none_or(|it| it == profile.label());
        if is_chosen {
            measure(hosts, down, up, profile, target);
        }
    }
}

fn measure(hosts: u32, down: u8, up: u8, profile: Profile, target: &str) {
    let (earlier, later) = scrapes(hosts, down, up, profile);
    let read = read_metrics();
    let mut stored = 0;
    let prometheus = Prometheus::stored(|file| stored = continued(file, &earlier, &later, &read));
    drop((earlier, later));
    let (prometheus, levels, recorded) = record(prometheus);
    let costs: Vec<Cost> = rules::all().iter().map(|(_, rule)| cost(&prometheus, rule)).collect();
    println!(
        "{} ports, {}: {stored} series that rules read; {recorded} recorded in {levels} levels; wall time and CPU time in seconds:",
        6 * hosts,
        profile.label()
    );
    for cost in costs.iter().filter(|cost| cost.processors > CHEAP) {
        println!("    {:<86} {:>7.3} {:>7.3}", cost.name, cost.wall, cost.processors);
    }
    let wall: f64 = costs.iter().map(|cost| cost.wall).sum();
    let processors: f64 = costs.iter().map(|cost| cost.processors).sum();
    let all = format!("all {} rules, one after the other", costs.len());
    println!("  {all:<88} {wall:>7.3} {processors:>7.3}     {target}");
}

/// Two scrapes of a simulated fabric, one sweep apart.
fn scrapes(hosts: u32, down: u8, up: u8, profile: Profile) -> (String, String) {
    let yaml = format!(
        "fabric: {{fat-tree: {{levels: 3, hosts: {hosts}, radix: 40, down: {down}, up: {up}}}}}\n{STORY}"
    );
    let scenario = Scenario::parse("rules", &yaml).unwrap();
    let story = scenario.resolve(&Overrides::default()).unwrap();
    let interval = format!("{SWEEPS}s").parse().ok();
    let simulated = Simulated::with(story, FabricOptions { interval, ..FabricOptions::default() });
    let step = Duration::from_millis(250);
    let scrape = |at: Duration| {
        // In small steps: `run_for` waits for a limited time, and a sweep of this size takes long on a busy machine.
        while simulated.passed() < at {
            simulated.run_for(step);
        }
        let exposition = RenderedMetrics::first(vec![simulated.observation()].into());
        let own = OwnMetrics::new(Path::new("/proc"));
        let selection = Selection::from(profile);
        let now = std::time::UNIX_EPOCH + rig::simulated::BEGAN + at;
        exposition.document_at(now, &selection, Format::Text, &own).to_text().unwrap()
    };
    (scrape(LENGTH), scrape(LENGTH + Duration::from_secs(SWEEPS)))
}

/// Samples by metric and labels.
fn samples<'a>(text: &'a str, read: &BTreeSet<String>) -> BTreeMap<&'a str, f64> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let is_read = |line: &&str| read.contains(line.split(['{', ' ']).next().unwrap());
    let parts = lines.filter(is_read).map(|line| line.rsplit_once(' ').unwrap());
    parts.map(|(series, value)| (series, value.parse().unwrap())).collect()
}

/// Writes all samples up to the last one: counters continue as they did between two scrapes. Returns the number of
/// series.
fn continued(file: &Path, earlier: &str, later: &str, read: &BTreeSet<String>) -> usize {
    let mut out = BufWriter::new(std::fs::File::create(file).unwrap());
    let (earlier, later) = (samples(earlier, read), samples(later, read));
    for (series, &last) in &later {
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let comma = if labels == "}" { "" } else { "," };
        let head =
            format!("{name}{{instance=\"mon1:10315\",job=\"fabric-exporter\"{comma}{labels}");
        let grown = name.ends_with("_total") || name.contains("sweep_timestamp");
        let step = match earlier.get(series) {
            Some(first) if grown => (last - first) / SWEEPS as f64 * INTERVAL as f64,
            _ => 0.0,
        };
        for ago in (0..SAMPLES).rev() {
            let (value, time) = (last - step * ago as f64, NOW - INTERVAL * ago);
            writeln!(out, "{head} {value} {time}").unwrap();
        }
    }
    writeln!(out, "# EOF").unwrap();
    out.flush().unwrap();
    later.len()
}

/// Stores what rules record, those first that read nothing recorded. Returns the numbers of levels and series.
fn record(mut prometheus: Prometheus) -> (Prometheus, usize, usize) {
    let mut pending: Vec<Rule> = rules::all().into_iter().map(|(_, rule)| rule).collect();
    pending.retain(|rule| rule.record.is_some());
    let (mut levels, mut recorded) = (0, 0);
    while !pending.is_empty() {
        let inputs: Vec<BTreeSet<String>> =
            pending.iter().map(|rule| promql::metrics(&rule.expr).unwrap()).collect();
        let is_ready = |at: usize| {
            let others = pending.iter().enumerate().filter(|(other, rule)| {
                let is_earlier = rule.record == pending[at].record && *other < at;
                *other != at && (is_earlier || rule.record != pending[at].record)
            });
            !others.map(|(_, rule)| rule.record.as_ref().unwrap()).any(|it| inputs[at].contains(it))
        };
        let ready: Vec<bool> = (0..pending.len()).map(is_ready).collect();
        assert!(ready.contains(&true), "rules read each other");
        let mut ready = ready.into_iter();
        let (level, rest): (Vec<Rule>, Vec<Rule>) =
            pending.into_iter().partition(|_| ready.next().unwrap());
        pending = rest;
        let mut text = Vec::new();
        for rule in &level {
            for series in prometheus.query_at(&rule.expr, NOW as f64).unwrap() {
                recorded += 1;
                let mut labels: BTreeMap<String, String> =
                    serde_json::from_value(series["metric"].clone()).unwrap();
                labels.remove("__name__");
                labels.extend(rule.labels.clone());
                let labels: Vec<String> =
                    labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
                let (name, labels) = (rule.record.as_ref().unwrap(), labels.join(","));
                let value = series["value"][1].as_str().unwrap();
                writeln!(text, "{name}{{{labels}}} {value} {NOW}").unwrap();
            }
        }
        levels += 1;
        prometheus = prometheus.stored_too(|file| {
            text.extend_from_slice(b"# EOF\n");
            std::fs::write(file, text).unwrap();
        });
    }
    (prometheus, levels, recorded)
}

/// The cost of an expression: wall time and CPU time in seconds.
struct Cost {
    name: String,
    wall: f64,
    processors: f64,
}

fn cost(prometheus: &Prometheus, rule: &Rule) -> Cost {
    let name = rule.record.as_ref().or(rule.alert.as_ref()).unwrap().clone();
    // Without the cost of writing the result as text.
    let counted = format!("count({})", rule.expr);
    let (wall, processors) = (0..ROUNDS)
        .map(|_| {
            let (began, before) = (Instant::now(), cpu_time(prometheus.pid()));
            prometheus.query_at(&counted, NOW as f64).unwrap_or_else(|e| panic!("{name}: {e}"));
            let processors = cpu_time(prometheus.pid()).saturating_sub(before);
            (began.elapsed().as_secs_f64(), processors.as_secs_f64())
        })
        .unzip();
    Cost { name, wall: median(wall), processors: median(processors) }
}

/// The metrics that rules read.
fn read_metrics() -> BTreeSet<String> {
    let all = rules::all().into_iter();
    all.flat_map(|(_, rule)| promql::metrics(&rule.expr).unwrap()).collect()
}
