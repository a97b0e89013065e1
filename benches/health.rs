//! The cost of evaluating a sweep: 60,000 ports of a simulated fabric, with different sets of waiting ports.
//!
//! The exporter's query plans read the fabric three times, 15 s apart in virtual time. The evaluated sweeps
//! extrapolate from there: time and counters of each increase as between the last two reads. Some cases
//! replace the set of waiting ports; one port in a hundred has errors. Only the evaluation is timed. Memory
//! is the heap that is released when the evaluator is dropped; the thread is pinned and nothing else runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod measure;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};

use ib_fabric::collect::agent_cache::AgentCache;
use ib_fabric::collect::discovery::Discovery;
use ib_fabric::collect::sweep::Sweep;
use ib_fabric::names::Naming;
use ib_fabric::{Fabric, PortIndex, Snapshot};
use ib_health::congestion::{Role, wait};
use ib_health::totals::PortTotals;
use ib_health::{Assessment, LimitTable, LinkEvaluator, PortAssessment};
use ib_mad::pma::OptionalCounters;
use ib_mad::reading::Raw;
use ib_mad::{Counter, Moment};
use ib_sim::scenario::{Overrides, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SimClock, SimTransport, share};
use ib_umad::MadTransport;
use ib_umad::client::MadClient;
use ib_umad::client::SendConfig;
use ib_umad::plan::{QueryPlan, run};
use measure::{median, pin};
use peak_alloc::PeakAlloc;

/// Counts the bytes of the heap.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The tree of 10,000 hosts of the scale benchmark, with a slow receiver and two bad cables.
const SCENARIO: &str = "\
fabric: {fat-tree: {levels: 3, hosts: 10000, radix: 40, down: 20, up: 20}}
traffic: {pattern: across, load: 60%}
way: {round-trip: 0s, per-hop: 0s, jitter: 0s}
timeline:
  - slow-receiver: {host: host-77, takes: 10%}
  - bad-cable: {into: \"leaf-0-1[30]\", ratio: 1e-9}
  - bad-cable: {into: \"leaf-3-2[5]\", ratio: 1e-11}
";

const INTERVAL: Duration = Duration::from_secs(15);

/// Sweeps of each case, after a first one without a predecessor.
const SWEEPS: u32 = 25;

/// One of this many ports has errors.
const WITH_ERRORS: u32 = 100;

/// Two sweeps as they were read; all others are derived from them.
struct Read {
    first: Snapshot<Raw>,
    second: Snapshot<Raw>,
}

/// Which ports wait.
#[derive(Clone, Copy)]
enum Crowd {
    AsRead,
    Ports(fn(PortIndex, &Fabric) -> bool),
}

impl Read {
    /// Discovers a simulated fabric and sweeps it; the first sweep learns what devices can do.
    fn new() -> Read {
        let scenario = Scenario::parse("health", SCENARIO).unwrap();
        let story = scenario.resolve(&Overrides::default()).unwrap();
        let seat = story.local_ports[0];
        let time = SimClock::Virtual { began: SystemTime::UNIX_EPOCH };
        let mut transport = SimTransport::new(share(Simulation::new(story)), seat, time);
        let mut client = MadClient::new(SendConfig::default());
        let mut go = |step: &mut dyn FnMut(&mut MadClient, &mut SimTransport)| {
            let next = transport.now() + INTERVAL;
            step(&mut client, &mut transport);
            transport.receive(next).unwrap();
        };
        let mut discovery = Discovery::new(Arc::default(), None, HashSet::new());
        go(&mut |client, transport| execute(&mut discovery, client, transport));
        let (found, names) = (discovery.finish().fabric, Naming::default());
        let fabric = Arc::new(Fabric::assemble(found, &names, Moment::default(), None));
        let mut agents =
            AgentCache::new(OptionalCounters { fec: true, ..OptionalCounters::default() });
        let mut sweeps = Vec::new();
        for _ in 0..3 {
            go(&mut |client, transport| {
                let mut sweep = Sweep::new(&fabric, &mut agents, transport.anchor(), true);
                execute(&mut sweep, client, transport);
                sweeps.push(sweep.finish().snapshot);
            });
        }
        let second = sweeps.pop().unwrap();
        Read { first: sweeps.pop().unwrap(), second }
    }

    /// The sweep this many intervals after the second.
    fn after(&self, intervals: u32, crowd: Crowd) -> Snapshot<Raw> {
        let mut snapshot = self.second.clone();
        let later = self.second.began.since(self.first.began) * intervals;
        snapshot.began = snapshot.began + later;
        snapshot.ended = snapshot.ended + later;
        snapshot.anchor.moment = snapshot.anchor.moment + later;
        snapshot.anchor.wall += later;
        let fabric = Arc::clone(&snapshot.fabric);
        for port in fabric.port_indexes() {
            let Some(reading) = &mut snapshot.readings[port] else { continue };
            let Some(before) = self.first.reading(port) else { continue };
            let waits = match crowd {
                Crowd::AsRead => None,
                Crowd::Ports(waits) => Some(waits(port, &fabric)),
            };
            reading.at = reading.at + later;
            for counter in Counter::all() {
                let Some((from, to)) = before.get(counter).zip(reading.get(counter)) else {
                    continue;
                };
                let growth = match (counter, waits) {
                    (Counter::XmitWait, Some(waits)) => {
                        if waits {
                            self.ticks(port)
                        } else {
                            0
                        }
                    }
                    // A waiting port does not send.
                    (Counter::XmitData, Some(true)) => (to - from) / 6,
                    _ => to - from,
                };
                let more = errors(port, counter, intervals);
                reading.set(counter, to + growth * u64::from(intervals) + more);
            }
        }
        snapshot
    }

    /// The ticks that a port waits between two sweeps, if it waits: 5 to 95% of the time.
    #[expect(clippy::cast_sign_loss, reason = "no share is below zero")]
    fn ticks(&self, port: PortIndex) -> u64 {
        const SOME: u64 = 1_000_000;
        let share = 0.05 + f64::from(port.0.wrapping_mul(2_654_435_761) % 900) / 1000.0;
        let status = self.second.status(port).unwrap();
        let tick = self.second.ticks[self.second.fabric.port(port).node];
        let seconds = INTERVAL.as_secs_f64();
        let runs = status.width.zip(status.speed);
        let of_some = runs.and_then(|(width, speed)| wait(SOME, tick, width, speed, seconds));
        of_some.map_or(0, |some| (SOME as f64 * share / f64::from(some.share)) as u64)
    }
}

fn execute(plan: &mut impl QueryPlan, client: &mut MadClient, transport: &mut SimTransport) {
    run(plan, client, transport, &AtomicBool::new(false)).unwrap();
}

/// Errors that a port has counted after this many sweeps.
fn errors(port: PortIndex, counter: Counter, sweeps: u32) -> u64 {
    let has = port.0.is_multiple_of(WITH_ERRORS);
    let sweeps = u64::from(sweeps);
    match counter {
        Counter::SymbolErrors if has => sweeps * u64::from(port.0 / WITH_ERRORS % 3),
        Counter::RcvErrors if has => sweeps / 2,
        Counter::RcvRemotePhysicalErrors if has => sweeps / 3,
        _ => 0,
    }
}

/// Ports of one part of the fabric, as when a job's nodes wait for each other.
fn in_a_row(port: PortIndex, fabric: &Fabric) -> bool {
    let first = fabric.ports.len() as u32 / 4;
    (first..first + 20_000).contains(&port.0)
}

/// The result of a case.
struct Cost {
    times: Vec<f64>,
    /// A sweep after a new discovery.
    rediscovered: f64,
    /// The state of the evaluator, and the assessment, in bytes.
    kept: usize,
    assessed: usize,
    assessment: Assessment,
}

fn timed(evaluator: &mut LinkEvaluator, snapshot: Snapshot<Raw>) -> ((Snapshot, Assessment), f64) {
    let began = Instant::now();
    let evaluated = evaluator.evaluate(snapshot);
    (evaluated, began.elapsed().as_secs_f64())
}

fn measure(read: &Read, crowd: Crowd) -> Cost {
    let mut evaluator = LinkEvaluator::new(LimitTable::default());
    let mut last = timed(&mut evaluator, read.after(0, crowd)).0.1;
    let mut times = Vec::new();
    for sweep in 1..=SWEEPS {
        let ((_snapshot, assessment), took) = timed(&mut evaluator, read.after(sweep, crowd));
        times.push(took);
        // As in the exporter: a published assessment is kept until the next one.
        last = assessment;
    }
    let with_all = HEAP.current_usage();
    let assessment = last.clone();
    let assessed = HEAP.current_usage() - with_all;
    let mut snapshot = read.after(SWEEPS + 1, crowd);
    snapshot.fabric = Arc::new((*snapshot.fabric).clone());
    let (evaluated, rediscovered) = timed(&mut evaluator, snapshot);
    // The evaluator shares this fabric; it is not counted.
    let fabric = Arc::clone(&evaluated.0.fabric);
    drop((evaluated, last));
    let with_evaluator = HEAP.current_usage();
    drop(evaluator);
    let kept = with_evaluator - HEAP.current_usage();
    drop(fabric);
    Cost { times, rediscovered, kept, assessed, assessment }
}

fn main() {
    // `cargo test --benches` requests a list of tests; a benchmark has none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    pin(0);
    let read = Read::new();
    let fabric = &read.second.fabric;
    let ports = fabric.ports.iter().filter(|port| port.peer.is_some()).count();
    println!(
        "{ports} connected ports of {}, {} links; {SWEEPS} sweeps of each case",
        fabric.ports.len(),
        fabric.links().count()
    );
    println!(
        "{:<44} {:>9} {:>9} {:>12} {:>7} {:>6} {:>8}",
        "waiting ports", "median", "worst", "rediscovered", "roles", "roots", "regions"
    );
    let crowds: [(&str, Crowd); 6] = [
        ("as read: the ports to a slow host", Crowd::AsRead),
        ("none", Crowd::Ports(|_, _| false)),
        ("one in a thousand", Crowd::Ports(|port, _| port.0.is_multiple_of(1000))),
        ("one in three", Crowd::Ports(|port, _| port.0.is_multiple_of(3))),
        ("20,000 in a row", Crowd::Ports(in_a_row)),
        ("all", Crowd::Ports(|_, _| true)),
    ];
    let mut all = Vec::new();
    for (about, crowd) in crowds {
        let cost = measure(&read, crowd);
        let worst = cost.times.iter().copied().fold(0.0, f64::max);
        let roles = cost.assessment.ports.iter().filter(|port| port.role.is_some()).count();
        let is_root = |port: &&PortAssessment| matches!(port.role, Some(Role::Root(_)));
        let roots = cost.assessment.ports.iter().filter(is_root).count();
        println!(
            "{about:<44} {:>6.1} ms {:>6.1} ms {:>9.1} ms {roles:>7} {roots:>6} {:>8}",
            median(cost.times.clone()) * 1e3,
            worst * 1e3,
            cost.rediscovered * 1e3,
            cost.assessment.regions.len()
        );
        all.push(cost);
    }
    let a_port = |bytes: usize| bytes as f64 / ports as f64;
    let slowest = all.iter().map(|cost| median(cost.times.clone())).fold(0.0, f64::max);
    let kept = all.iter().map(|cost| cost.kept).max().unwrap();
    let above = kept - fabric.ports.len() * size_of::<PortTotals>();
    let assessed = all.iter().map(|cost| cost.assessed).max().unwrap();
    println!("\n  60,000 ports: {:.1} ms per sweep, target: at most 60", slowest * 1e3);
    println!("  state per port, without totals: {:.0} bytes, target: at most 400", a_port(above));
    println!(
        "  totals: {} bytes; assessment per port: {:.0} bytes",
        size_of::<PortTotals>(),
        a_port(assessed)
    );
}
