//! A fabric of 162,000 ports in eight shards: the size of each response, and what Prometheus and VictoriaMetrics make
//! of it, with the profile `lean` and with all groups but hardware and modules.
//!
//! Prometheus scrapes each shard 20 times. Some of the three: `cargo bench --bench shards -- --only lean,details,victoria`;
//! another size by `--hosts 10000` (a port of a host is one of six). With `details`, Prometheus needs 16 GB.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod measure;

use std::io::Read;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_rig::{Exporter, Metrics, Prometheus};

const SHARDS: usize = 8;
const ROUNDS: f64 = 20.0;
/// The interval of sweeps and scrapes.
const INTERVAL: &str = "15s";
const LIMIT: Duration = Duration::from_secs(1800);

/// What is scraped: a name, and the parameters.
const CONTENTS: [(&str, &str, &str); 2] =
    [("lean", "profile", "lean"), ("details", "exclude[]", "hardware,modules")];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let option = |name: &str| args.iter().position(|it| it == name).map(|at| args[at + 1].clone());
    let hosts: u32 = option("--hosts").map_or(27_000, |it| it.parse().unwrap());
    let only = option("--only");
    let is_wanted =
        |name: &str| only.as_deref().is_none_or(|only| only.split(',').any(|it| it == name));
    let story = tempfile::NamedTempFile::with_suffix(".yml").unwrap();
    let fabric = format!(
        "fabric: {{fat-tree: {{levels: 3, hosts: {hosts}, radix: 40, down: 18, up: 18}}}}\n"
    );
    std::fs::write(story.path(), fabric).unwrap();
    let scenario = format!("--scenario={}", story.path().display());
    let interval = format!("--fabric.interval={INTERVAL}");
    let exporter = Exporter::demo_uncaptured(&[&scenario, &interval]);
    wait("the exporter", || exporter.get("/-/ready", &[]).status == 200);
    let own = |name: &str| {
        let text = exporter.get("/metrics?collect[]=self", &[]);
        Metrics::parse(text.text()).get(name, &[]).unwrap_or_default()
    };
    let sweeps = || own("fabric_exporter_sweeps_total");
    let rendered = || own("fabric_exporter_render_duration_seconds");
    // Capabilities, details and registers are read over some sweeps.
    wait("10 sweeps", || sweeps() >= 10.0);
    let whole = [0; 3].map(|_| {
        let next = sweeps() + 1.0;
        wait("the next sweep", || sweeps() >= next);
        rendered()
    });
    println!("{} connected ports, {SHARDS} shards; a response has", 6 * hosts);
    for (name, parameter, value) in CONTENTS {
        responses(&exporter, name, parameter, value);
    }
    responses(&exporter, "full", "profile", "full");
    let sliced = [0; 3].map(|_| {
        let next = sweeps() + 1.0;
        wait("the next sweep", || sweeps() >= next);
        rendered()
    });
    println!(
        "rendering takes {whole:.2?} s, in slices {sliced:.2?} s; the exporter has {:.0} MiB at most",
        peak(exporter.pid())
    );
    for (name, parameter, value) in CONTENTS.iter().filter(|it| is_wanted(it.0)) {
        let prometheus = Prometheus::configured(&config(&exporter, parameter, value));
        println!("Prometheus, {name}:");
        scraped(&prometheus);
    }
    if is_wanted("victoria") {
        let victoria = Prometheus::victoria_metrics(&config(&exporter, "profile", "lean"));
        println!("VictoriaMetrics, lean, default limits:");
        scraped(&victoria);
    }
}

fn query(parameter: &str, value: &str, shard: usize) -> String {
    let values = value.split(',').map(|value| format!("{parameter}={value}&"));
    format!("/metrics?{}shard={shard}/{SHARDS}", values.collect::<String>())
}

/// The largest of the responses of all shards.
fn responses(exporter: &Exporter, name: &str, parameter: &str, value: &str) {
    let (mut samples, mut plain, mut packed, mut took) = (Vec::new(), 0, 0, Duration::ZERO);
    for shard in 0..SHARDS {
        let began = Instant::now();
        let response =
            exporter.get(&query(parameter, value, shard), &[("accept-encoding", "gzip")]);
        took = took.max(began.elapsed());
        assert_eq!(response.header("content-encoding"), Some("gzip"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(&response.body[..]).read_to_string(&mut text).unwrap();
        samples.push(text.lines().filter(|line| !line.starts_with('#')).count());
        plain = plain.max(text.len());
        packed = packed.max(response.body.len());
    }
    let most = samples.iter().max().unwrap();
    let all: usize = samples.iter().sum();
    println!(
        "    {name:<8} at most {most:>9} samples ({all} in all), {:>6.1} MB plain, {:>5.2} MB gzip, in {:>4.2} s",
        plain as f64 / 1e6,
        packed as f64 / 1e6,
        took.as_secs_f64()
    );
}

fn config(exporter: &Exporter, parameter: &str, value: &str) -> String {
    let targets: Vec<Value> = (0..SHARDS)
        .map(|shard| {
            json!({
                "targets": [exporter.address()],
                "labels": {"__param_shard": format!("{shard}/{SHARDS}")},
            })
        })
        .collect();
    let values: Vec<&str> = value.split(',').collect();
    let config = json!({
        "global": {"scrape_interval": INTERVAL, "scrape_timeout": "10s"},
        "scrape_configs": [{
            "job_name": "fabric-exporter",
            "params": {parameter: values},
            "static_configs": targets,
            "relabel_configs": [{"source_labels": ["__param_shard"], "target_label": "shard"}],
            "metric_relabel_configs": [{"regex": "shard", "action": "labeldrop"}],
        }],
    });
    config.to_string()
}

/// Waits for the rounds, and prints what the store says of its scrapes.
fn scraped(store: &Prometheus) {
    let number = |query: &str| store.number(query);
    wait("scrapes", || number("min(count_over_time(up[1h]))") >= Some(ROUNDS));
    let value = |query: &str| number(query).unwrap_or(f64::NAN);
    let failed = value("sum(count_over_time(up[1h])) - sum(sum_over_time(up[1h]))");
    let slowest = value("max(max_over_time(scrape_duration_seconds[1h]))");
    // The first scrapes create all series.
    let lately = value("max(max_over_time(scrape_duration_seconds[3m]))");
    let median = value("quantile(0.5, quantile_over_time(0.5, scrape_duration_seconds[1h]))");
    let series = value("sum(scrape_samples_scraped)");
    let kept = value("sum(scrape_samples_post_metric_relabeling)");
    println!(
        "    {failed} failed scrapes, scrapes {median:.2} s (slowest {slowest:.2} s, of the last 3 minutes {lately:.2} s), {series} samples a round"
    );
    assert!(series.is_nan() || (series - kept).abs() < 0.5, "{series} {kept}");
    // Each series has a sample of each scrape of its shard; the shards are some rounds apart at most.
    let fewest = value("min(count_over_time(infiniband_port_state[1h]))");
    let least = value("min(count_over_time(up[1h]))");
    let lost = value("count(count_over_time(infiniband_port_state[1h]) < 20) or vector(0)");
    println!(
        "    each series has at least {fewest} samples after at least {least} scrapes; {lost} series have fewer than 20"
    );
    println!("    {:.0} MiB at most", peak(store.pid()));
}

/// The most resident memory that a process had, in MiB.
fn peak(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() / 1024.0
}

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < LIMIT, "{what}: not in {LIMIT:?}");
        std::thread::sleep(Duration::from_secs(1));
    }
}
