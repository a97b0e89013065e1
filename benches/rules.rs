//! The cost of the rules in Prometheus with 60,000 ports: a simulated fabric with a few faults of every kind,
//! monitored at the default intervals for the longest usual range, so that each rate covers 20 scrapes. Then
//! scraping stops, and each expression is evaluated. Only series that rules read are kept, of about 50 per
//! port; the others cost memory, but no evaluation time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod measure;
use test_rig as rig;

use std::time::{Duration, Instant, SystemTime};

use measure::median;
use rig::prometheus::Setup;
use rig::{Exporter, Prometheus, promql, rules};

const INTERVAL: Duration = Duration::from_secs(15);
/// The range of the rates, and a little more.
const LENGTH: Duration = Duration::from_secs(330);
const ROUNDS: usize = 3;

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

/// The cost of an expression: wall time and CPU time in seconds.
struct Cost {
    name: String,
    wall: f64,
    processors: f64,
}

fn main() {
    let scenario = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
    std::fs::write(scenario.path(), STORY).unwrap();
    let story = format!("--scenario={}", scenario.path().display());
    let mut exporter = Exporter::demo_uncaptured(&[&story, "--fabric.interval=15s"]);
    let texts = rules::files("alerts", ".rules.yml");
    let mut prometheus = Prometheus::start(&Setup {
        jobs: vec![("fabric-exporter".into(), vec![exporter.address().into()])],
        interval: INTERVAL,
        lookback: Duration::from_secs(300),
        keep: Some(read_metrics()),
        rules: texts.iter().map(|file| rules::text(file)).collect(),
        alertmanager: None,
    });
    std::thread::sleep(LENGTH);
    let ports = prometheus.number("sum(fabric_exporter_ports_seen)").unwrap();
    prometheus.rest();
    exporter.stop();
    let at = since_1970() - 5.0;
    let series = prometheus.ask("status/tsdb", &[])["headStats"]["numSeries"].as_u64().unwrap();
    println!("{ports} ports, {series} series; wall time and CPU time in seconds:");
    let own = costs(&prometheus, rules::all(), at);
    report("all of alerts/, one after the other", &own, "     target: at most 5 s");
}

fn report(what: &str, costs: &[Cost], wanted: &str) {
    for cost in costs.iter().filter(|cost| cost.processors > 0.1) {
        println!("    {:<86} {:>7.3} {:>7.3}", cost.name, cost.wall, cost.processors);
    }
    let wall: f64 = costs.iter().map(|cost| cost.wall).sum();
    let processors: f64 = costs.iter().map(|cost| cost.processors).sum();
    println!("  {what:<88} {wall:>7.3} {processors:>7.3}{wanted}");
}

fn costs(prometheus: &Prometheus, rules: Vec<(String, rules::Rule)>, at: f64) -> Vec<Cost> {
    rules
        .into_iter()
        .map(|(_, rule)| {
            let name = rule.record.or(rule.alert).unwrap();
            // Without the cost of writing the result as text.
            let counted = format!("count({})", rule.expr);
            let (wall, processors) = (0..ROUNDS)
                .map(|_| {
                    let (began, before) = (Instant::now(), processor_seconds(prometheus.pid()));
                    prometheus.query_at(&counted, at).unwrap_or_else(|e| panic!("{name}: {e}"));
                    let used = processor_seconds(prometheus.pid()) - before;
                    (began.elapsed().as_secs_f64(), used)
                })
                .unzip();
            Cost { name, wall: median(wall), processors: median(processors) }
        })
        .collect()
}

/// The CPU time of a process, user and system.
fn processor_seconds(pid: u32) -> f64 {
    let stat = procfs::process::Process::new(i32::try_from(pid).unwrap()).unwrap().stat().unwrap();
    (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64
}

fn since_1970() -> f64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64()
}

/// The metrics that rules read, and one for the heading, as a regular expression.
fn read_metrics() -> String {
    let all = rules::all().into_iter();
    let mut names: Vec<String> =
        all.flat_map(|(_, rule)| promql::metrics(&rule.expr).unwrap()).collect();
    names.push("fabric_exporter_ports_seen".to_owned());
    names.sort_unstable();
    names.dedup();
    names.join("|")
}
