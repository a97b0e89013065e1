//! The exporter compared with node_exporter, on a host with eight HCAs and a bond.
//!
//! Both read the same sysfs tree; ours also reads driver counters, which Debian's node_exporter does not
//! support. Ours reads periodically and serves the latest read: it reads once per second and is scraped
//! once per second, in turn with node_exporter, so that each scrape corresponds to one read. Both are
//! pinned to CPU 0 and the client to CPU 1. A tree of plain files is cheaper to read than sysfs, where a
//! driver queries its device, but for both in the same way.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod measure;
use test_rig as rig;

use std::io::Read;
use std::time::{Duration, Instant};

use measure::{median, pin};
use rig::sysfs::hgx;
use rig::{Exporter, Metrics, NodeExporter, exporter};

const ROUNDS: usize = 3;
const SCRAPES: u32 = 40;
const EVERY: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(30);

/// The CPU time of the threads of a process, in µs.
fn cpu_micros(pid: u32) -> f64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    // The first number is in ns: stat's ticks of 10 ms are longer than a scrape.
    let of_task = |task: std::io::Result<std::fs::DirEntry>| {
        let text = std::fs::read_to_string(task.unwrap().path().join("schedstat")).unwrap();
        text.split_whitespace().next().unwrap().parse::<f64>().unwrap()
    };
    tasks.map(of_task).sum::<f64>() / 1e3
}

/// Memory of a process, in KiB: resident, and its proportional share of shared pages.
#[derive(Clone, Copy, Debug)]
struct Memory {
    resident: f64,
    proportional: f64,
    private: f64,
    anonymous: f64,
}

impl Memory {
    fn of(pid: u32) -> Self {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
        let of = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
        };
        Memory {
            resident: of("Rss"),
            proportional: of("Pss"),
            private: of("Private_Clean") + of("Private_Dirty"),
            anonymous: of("Anonymous"),
        }
    }
}

/// One side of a round.
#[derive(Clone, Copy, Debug)]
struct Side {
    /// A scrape.
    cpu: f64,
    memory: Memory,
    bytes: usize,
}

struct Round {
    ours: Side,
    theirs: Side,
    /// Reads per second; there is one scrape per second.
    reads: f64,
}

/// A scrape as Prometheus does it.
fn scrape(agent: &ureq::Agent, address: &str) -> Vec<u8> {
    let headers = [("Accept-Encoding", "gzip")];
    let response = exporter::get(agent, address, "/metrics", &headers).unwrap();
    assert_eq!(response.header("content-encoding"), Some("gzip"));
    response.body
}

/// The number of reads of ours, by a compressed scrape: an uncompressed one takes memory to decompress.
fn reads(agent: &ureq::Agent, address: &str) -> f64 {
    let mut text = String::new();
    let packed = scrape(agent, address);
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    Metrics::parse(&text).get("fabric_exporter_host_reads_total", &[]).unwrap()
}

fn round() -> Round {
    let tree = hgx();
    pin(0);
    let mut ours = Exporter::on_host(&tree, &["--host.interval=1s"]);
    let theirs = NodeExporter::start(&tree);
    pin(1);
    ours.wait_ready();
    let agent = exporter::agent(LIMIT);
    for _ in 0..3 {
        scrape(&agent, theirs.address());
        scrape(&agent, ours.address());
    }
    let (reads_before, scraped_at) = (reads(&agent, ours.address()), Instant::now());
    let before = (cpu_micros(ours.pid()), cpu_micros(theirs.pid()));
    let began = Instant::now();
    let mut bytes = (0, 0);
    for turn in 0..SCRAPES {
        let wait_until = |when: Duration| {
            std::thread::sleep((began + when).saturating_duration_since(Instant::now()));
        };
        wait_until(EVERY * turn);
        bytes.1 = scrape(&agent, theirs.address()).len();
        wait_until(EVERY * turn + EVERY / 2);
        bytes.0 = scrape(&agent, ours.address()).len();
    }
    let after = (cpu_micros(ours.pid()), cpu_micros(theirs.pid()));
    let memory = (Memory::of(ours.pid()), Memory::of(theirs.pid()));
    let reads = (reads(&agent, ours.address()) - reads_before) / scraped_at.elapsed().as_secs_f64();
    assert!(ours.stop().success());
    let a_scrape = |micros: f64| micros / f64::from(SCRAPES);
    Round {
        ours: Side { cpu: a_scrape(after.0 - before.0), memory: memory.0, bytes: bytes.0 },
        theirs: Side { cpu: a_scrape(after.1 - before.1), memory: memory.1, bytes: bytes.1 },
        reads,
    }
}

fn main() {
    // `cargo test --benches` requests a list of tests; a benchmark has none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    let rounds: Vec<Round> = (0..ROUNDS)
        .map(|number| {
            eprintln!("round {} of {ROUNDS}", number + 1);
            round()
        })
        .collect();
    let row = |what: &str, unit: &str, value: fn(&Side) -> f64, wanted: &str| {
        let of = |side: fn(&Round) -> &Side| {
            median(rounds.iter().map(|round| value(side(round))).collect())
        };
        let (ours, theirs) = (of(|round| &round.ours), of(|round| &round.theirs));
        let ratio =
            median(rounds.iter().map(|round| value(&round.ours) / value(&round.theirs)).collect());
        println!("  {what:<34} {ours:>8.0} {theirs:>8.0} {unit:<4} {ratio:>7.3}   {wanted}");
    };
    println!("{SCRAPES} scrapes with gzip in each of {ROUNDS} rounds; medians");
    println!("  {:<34} {:>8} {:>8} {:<4} {:>7}   target", "", "ours", "theirs", "", "ratio");
    row("CPU time per scrape", "µs", |side| side.cpu, "at most 1");
    row("memory: resident", "KiB", |side| side.memory.resident, "at most 0.5");
    row("memory: proportional share", "KiB", |side| side.memory.proportional, "-");
    row("memory: private", "KiB", |side| side.memory.private, "-");
    row("memory: anonymous (heap, stacks)", "KiB", |side| side.memory.anonymous, "-");
    row("response, compressed", "B", |side| side.bytes as f64, "-");
    println!(
        "  reads per second: {:.2}; scrapes per second: 1",
        median(rounds.iter().map(|round| round.reads).collect())
    );
}
