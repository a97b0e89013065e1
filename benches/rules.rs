//! What the rules cost Prometheus on 60,000 ports: a simulated fabric in which a little of everything
//! goes wrong, watched at the default intervals for as long as the longest usual range takes, so that
//! each rate is one over 20 scrapes. Only series that rules read are kept, of some 50 a port; the others
//! cost memory, and no time of an evaluation.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[path = "../tests/rig/mod.rs"]
mod rig;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rig::prometheus::Setup;
use rig::{Exporter, Prometheus, rules};

const INTERVAL: Duration = Duration::from_secs(15);
/// The rates' range, and a little more.
const LENGTH: Duration = Duration::from_secs(330);

const STORY: &str = "\
fabric: {fat-tree: {levels: 3, hosts: 10000, radix: 40, down: 20, up: 20}}
timeline:
- bad-cable: {at: 10s, into: 'host-77[1]', ratio: 1e-11}
- bad-cable: {at: 10s, into: 'host-4711[1]', ratio: 1e-11}
- flap: {at: 20s, link: 'host-9000[1]', down: 2s, every: 40s, times: 5}
- degrade: {at: 20s, link: 'host-8000[1]', width: 1x}
- unplug: {at: 20s, link: 'host-7000[1]'}
- reboot: {at: 20s, node: leaf-3-3, down: 10m}
- burst: {at: 20s, from: 300, to: host-300, load: 50%}
";

fn main() {
    let rules: Vec<String> =
        rules::files("alerts", ".rules.yml").iter().map(|file| rules::text(file)).collect();
    let scenario = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
    std::fs::write(scenario.path(), STORY).unwrap();
    let story = format!("--scenario={}", scenario.path().display());
    let exporter =
        Exporter::demo_uncaptured(&[&story, "--fabric.interval=15s", "--fabric.details"]);
    let prometheus = Prometheus::start(&Setup {
        jobs: vec![("fabric-exporter".into(), vec![exporter.address().into()])],
        interval: INTERVAL,
        lookback: Duration::from_secs(300),
        keep: Some(read_by(&rules)),
        rules,
        alertmanager: None,
    });
    let mut slowest: BTreeMap<String, f64> = BTreeMap::new();
    let mut series = 0;
    let began = Instant::now();
    while began.elapsed() < LENGTH + INTERVAL * 4 {
        std::thread::sleep(Duration::from_secs(3));
        if began.elapsed() < LENGTH {
            continue;
        }
        let head = &prometheus.ask("status/tsdb", &[])["headStats"];
        series = head["numSeries"].as_u64().unwrap();
        for group in prometheus.ask("rules", &[])["groups"].as_array().unwrap() {
            for rule in group["rules"].as_array().unwrap() {
                assert_eq!(rule["health"], "ok", "{rule}");
                let took = rule["evaluationTime"].as_f64().unwrap();
                let name = format!(
                    "{} {}",
                    group["name"].as_str().unwrap(),
                    rule["name"].as_str().unwrap()
                );
                let slowest = slowest.entry(name).or_default();
                *slowest = slowest.max(took);
            }
        }
    }
    let ports = prometheus.number("sum(infiniband_ports_seen)").unwrap();
    println!("{ports} ports, {series} series; the slowest evaluation of each rule of four:");
    for (name, took) in slowest.iter().filter(|(_, took)| **took > 0.05) {
        println!("  {name:<100} {took:>7.3} s");
    }
    let all: f64 = slowest.values().sum();
    println!("  {:<100} {all:>7.3} s     wanted: at most 5 s", "all of them, one after the other");
}

/// The metrics that rules read, as a regular expression.
fn read_by(rules: &[String]) -> String {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == ':';
    let words = rules.iter().flat_map(|text| text.split(move |letter| !is_name(letter)));
    let mut names: Vec<&str> = words.filter(|word| word.starts_with("infiniband_")).collect();
    names.sort_unstable();
    names.dedup();
    // For the heading.
    names.push("infiniband_ports_seen");
    names.join("|")
}
