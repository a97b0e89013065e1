//! The exporter compared with node_exporter, on a host with eight HCAs and a bond.
//!
//! Both read the same sysfs tree; ours also reads driver counters, which Debian's node_exporter does not
//! support. Ours reads periodically and serves the latest read: it reads once per second and is scraped
//! once per second, in turn with node_exporter, so that each scrape corresponds to one read. CPU time is that
//! of the process, with its threads that have ended. With `pinned`, both have CPU 0 and the client CPU 1; else
//! all have all CPUs, and each program may start as many threads as it likes. A tree of plain files is cheaper
//! to read than sysfs, where a driver queries its device, but for both in the same way.
//!
//! `make bench` has it measure the program of `make build`; otherwise it is that of the benchmarks, which has the
//! features of the tests.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod measure;
use test_rig as rig;

use std::io::Read;
use std::process::Command;
use std::time::{Duration, Instant};

use measure::{median, pin, ratios};
use rig::sysfs::hgx;
use rig::{Exporter, Metrics, NodeExporter, cpu_time, exporter};

const ROUNDS: usize = 5;
const QUICK_ROUNDS: usize = 2;
const SCRAPES: u32 = 40;
const EVERY: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(30);

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

type Value = fn(&Side) -> f64;

/// What `make bench-quick` compares.
const QUICK: [(&str, Value); 2] = [
    ("host: CPU time of a scrape / node_exporter's", |side| side.cpu),
    ("host: resident memory / node_exporter's", |side| side.memory.resident),
];

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

fn round(is_pinned: bool) -> Round {
    let tree = hgx();
    let pin = |cpu| {
        if is_pinned {
            pin(cpu);
        }
    };
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
    let cpu = || (cpu_time(ours.pid()), cpu_time(theirs.pid()));
    let before = cpu();
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
    let after = cpu();
    let memory = (Memory::of(ours.pid()), Memory::of(theirs.pid()));
    let reads = (reads(&agent, ours.address()) - reads_before) / scraped_at.elapsed().as_secs_f64();
    assert!(ours.stop().success());
    let a_scrape = |time: Duration| time.as_secs_f64() * 1e6 / f64::from(SCRAPES);
    Round {
        ours: Side {
            cpu: a_scrape(after.0.saturating_sub(before.0)),
            memory: memory.0,
            bytes: bytes.0,
        },
        theirs: Side {
            cpu: a_scrape(after.1.saturating_sub(before.1)),
            memory: memory.1,
            bytes: bytes.1,
        },
        reads,
    }
}

/// Rounds of one kind, and their table. In a process of its own: the programs inherit the CPUs of the thread that
/// starts them, which is one for all.
fn compare(is_pinned: bool) {
    let rounds: Vec<Round> = (0..ROUNDS)
        .map(|number| {
            eprintln!("round {} of {ROUNDS}", number + 1);
            round(is_pinned)
        })
        .collect();
    let row = |what: &str, unit: &str, value: fn(&Side) -> f64, wanted: &str| {
        let of = |side: fn(&Round) -> &Side| {
            median(rounds.iter().map(|round| value(side(round))).collect())
        };
        let (ours, theirs) = (of(|round| &round.ours), of(|round| &round.theirs));
        let ratio = |round: &Round| value(&round.ours) / value(&round.theirs);
        let ratios: Vec<f64> = rounds.iter().map(ratio).collect();
        let (least, most) = (ratios.iter().copied(), ratios.iter().copied());
        let (least, most) = (least.fold(f64::INFINITY, f64::min), most.fold(0.0, f64::max));
        println!(
            "  {what:<34} {ours:>8.0} {theirs:>8.0} {unit:<4} {:>7.3}   {least:.3} to {most:.3}   {wanted}",
            median(ratios)
        );
    };
    println!(
        "{SCRAPES} scrapes with gzip in each of {ROUNDS} rounds, {}; medians",
        if is_pinned { "the programs on one CPU" } else { "all CPUs" }
    );
    println!(
        "  {:<34} {:>8} {:>8} {:<4} {:>7}   {:<14}   target",
        "", "ours", "theirs", "", "ratio", "spread"
    );
    row("CPU time per scrape", "µs", |side| side.cpu, "at most 0.35");
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

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let has = |wanted: &str| args.iter().any(|arg| arg == wanted);
    // `cargo test --benches` requests a list of tests; a benchmark has none.
    if has("--list") || has("--test") {
        return;
    }
    if has("pinned") || has("unpinned") {
        return compare(has("pinned"));
    }
    println!("{}", rig::program());
    if ratios::is_quick() {
        let rounds: Vec<Round> = (0..QUICK_ROUNDS).map(|_| round(true)).collect();
        for (what, value) in QUICK {
            let ratio = |round: &Round| value(&round.ours) / value(&round.theirs);
            ratios::report(what, median(rounds.iter().map(ratio).collect()));
        }
        return;
    }
    for kind in ["pinned", "unpinned"] {
        let program = std::env::current_exe().unwrap();
        assert!(Command::new(program).arg(kind).status().unwrap().success());
    }
}
