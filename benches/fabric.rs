//! The exporter compared with ibqueryerrors, on a fabric of 507 switches and 5,000 hosts.
//!
//! Times on a shared host are not comparable; ratios within one run are. So both clients read the same
//! ibsim in the same way, in turn, round by round: once through a proxy that adds 50 µs to each round
//! trip, as a fabric does, and once directly, limited by the speed of the simulator. The speed of ibsim
//! varies by a factor of 4 with the CPUs of the two processes, so all are pinned: ibsim and its client to
//! CPU 0, the proxy to CPU 1.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod measure;
#[path = "measure/ibsim.rs"]
mod on_ibsim;
use test_rig as rig;

use std::time::{Duration, Instant};

use measure::{median, pin, sweeps};
use on_ibsim::{IBQUERYERRORS, count_waits, timed};
use rig::diags::Discovery;
use rig::{Exporter, Ibsim, OpenSm, Proxy, Seat, cpu_time, topology};

const ROUNDS: usize = 3;
const SWEEPS: usize = 5;
const DELAY: Duration = Duration::from_micros(50);

/// The times of a client in all rounds.
struct Figures(Vec<f64>);

impl Figures {
    fn row(&self, what: &str) {
        let all: Vec<String> = self.0.iter().map(|value| format!("{value:.3}")).collect();
        println!("  {what:<58} {:>8.3} s   ({})", median(self.0.clone()), all.join(" "));
    }
}

fn ratio(what: &str, ours: &Figures, theirs: &Figures, wanted: &str) {
    let pairs: Vec<f64> =
        ours.0.iter().zip(&theirs.0).map(|(ours, theirs)| ours / theirs).collect();
    println!("  {what:<58} {:>8.3}     target: {wanted}", median(pairs));
}

/// One round of the exporter: the median of its sweeps, its discovery, and other metrics.
struct Round {
    sweep: f64,
    discovery: f64,
    render: f64,
    peak_mib: f64,
    cpu_micros_a_mad: f64,
    ports: f64,
    packed: Scrape,
    plain: Scrape,
}

#[derive(Clone, Copy)]
struct Scrape {
    seconds: f64,
    bytes: usize,
}

fn scrape(exporter: &Exporter, headers: &[(&str, &str)]) -> Scrape {
    let one = || {
        let began = Instant::now();
        let bytes = exporter.get("/metrics", headers).body.len();
        (began.elapsed().as_secs_f64(), bytes)
    };
    let (_, bytes) = one();
    Scrape { seconds: median((0..9).map(|_| one().0).collect()), bytes }
}

/// The peak resident memory of a process, in MiB.
fn peak_mib(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

fn answered(exporter: &Exporter) -> f64 {
    let metrics = exporter.metrics();
    let mads = metrics.all("fabric_exporter_mads_total");
    mads.filter(|(labels, _)| labels["outcome"] == "answered").map(|it| it.1).sum()
}

fn exporter_round(seat: impl Into<Seat>) -> Round {
    let flags = ["--fabric.interval=2s", "--log.level=debug"];
    let mut exporter = Exporter::start_uncaptured(seat, &flags);
    exporter.wait_ready();
    let (mads, cpu, done) =
        (answered(&exporter), cpu_time(exporter.pid()), sweeps(&exporter.log()).len());
    let limit = Duration::from_secs(120);
    let durations = rig::wait_until(limit, "the sweeps", || {
        std::thread::sleep(Duration::from_millis(50));
        Some(sweeps(&exporter.log())).filter(|all| all.len() >= done + SWEEPS)
    });
    let cpu = cpu_time(exporter.pid()).saturating_sub(cpu);
    let mads = answered(&exporter) - mads;
    let metric =
        |name: &str| exporter.metrics().get(name, &[]).unwrap_or_else(|| panic!("no {name}"));
    let round = Round {
        sweep: median(durations[done..].to_vec()),
        discovery: metric("fabric_exporter_discovery_duration_seconds"),
        render: metric("fabric_exporter_render_duration_seconds"),
        ports: metric("fabric_exporter_ports_seen"),
        packed: scrape(&exporter, &[("Accept-Encoding", "gzip")]),
        plain: scrape(&exporter, &[]),
        peak_mib: peak_mib(exporter.pid()),
        cpu_micros_a_mad: cpu.as_secs_f64() / mads * 1e6,
    };
    assert!(exporter.stop().success());
    round
}

/// Runs both clients in turn and prints the results.
fn compare(way: &str, seat: &Seat, wanted: &str) -> Vec<Round> {
    let (mut ours, mut theirs) = (Vec::new(), Figures(Vec::new()));
    let mut walks = Figures(Vec::new());
    for round in 0..ROUNDS {
        eprintln!("{way}: round {} of {ROUNDS}", round + 1);
        ours.push(exporter_round(seat));
        theirs.0.push(timed(seat, "ibqueryerrors", &IBQUERYERRORS));
        walks.0.push(timed(seat, "ibnetdiscover", &[]));
    }
    let sweeps = Figures(ours.iter().map(|round| round.sweep).collect());
    let discoveries = Figures(ours.iter().map(|round| round.discovery).collect());
    println!("\n{way}");
    sweeps.row("one sweep: states and counters of all ports");
    theirs.row("ibqueryerrors, all ports");
    ratio("sweep / ibqueryerrors", &sweeps, &theirs, wanted);
    discoveries.row("one discovery");
    walks.row("ibnetdiscover");
    ratio("discovery / ibnetdiscover", &discoveries, &walks, "-");
    ours
}

fn main() {
    // `cargo test --benches` requests a list of tests; a benchmark has none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    pin(0);
    let net = topology::five_thousand_hosts();
    let ibsim = Ibsim::start(&net);
    let opensm = OpenSm::start(&ibsim);
    count_waits(&ibsim, &net);
    let found = Discovery::parse(&ibsim.tool("ibnetdiscover", &[]));
    println!("{} nodes, {} cables", found.nodes.len(), found.links.len());

    pin(1);
    let proxy = Proxy::between(&ibsim, DELAY, 0);
    pin(0);
    let mut rounds = compare("With 50 µs added to each round trip", &proxy.seat(), "at most 0.1");
    rounds.extend(compare("Directly", &ibsim.seat(), "at most 1"));

    let of = |value: fn(&Round) -> f64| median(rounds.iter().map(value).collect());
    let most = rounds.iter().map(|round| round.peak_mib).fold(0.0, f64::max);
    let (packed, plain) = (rounds[0].packed, rounds[0].plain);
    println!("\nThe exporter, {} ports read", of(|round| round.ports));
    println!("  peak memory                        {most:>8.1} MiB   target: at most 150");
    println!("  CPU per MAD, everything included   {:>8.2} µs", of(|round| round.cpu_micros_a_mad));
    println!("  encoding and compressing a sweep   {:>8.1} ms", of(|round| round.render) * 1e3);
    println!(
        "  a scrape, gzip                     {:>8.1} ms   {:.1} MB",
        of(|round| round.packed.seconds) * 1e3,
        packed.bytes as f64 / 1e6
    );
    println!(
        "  a scrape, plain (decompressed)     {:>8.1} ms   {:.1} MB",
        of(|round| round.plain.seconds) * 1e3,
        plain.bytes as f64 / 1e6
    );
    println!(
        "  scrape, gzip / encoding            {:>8.3}",
        of(|round| round.packed.seconds) / of(|round| round.render)
    );
    drop(opensm);
}
