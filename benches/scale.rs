//! The exporter on simulated fabrics of 1,000 to 162,000 ports: the cost per port, and per MAD.
//!
//! The simulator responds immediately, in the same process. Its time and memory are subtracted: the time
//! by a clock around each call of the transport, the memory by the size of the heap before the exporter
//! starts. The figures of the exporter contain everything else, with rendering and compressing the metrics
//! of each sweep, but not discoveries, scrapes and, because there is no device, system calls. Memory is
//! the allocated heap, without the overhead of the allocator and without stacks. Each size runs in its own
//! process, so that leftovers of one do not affect the next.
//!
//! `UPDATE_DOCS=1` regenerates the plot of docs/dev/measurements.md.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod measure;
#[path = "scale/plot.rs"]
mod plot;
#[path = "scale/rendering.rs"]
mod rendering;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use fabric_exporter::config::options::{FabricOptions, Options};
use fabric_exporter::config::{FabricSettings, Settings};
use fabric_exporter::metrics::RenderedMetrics;
use fabric_exporter::monitor::Monitor;
use fabric_observation::{Observation, SharedState};
use ib_mad::Moment;
use ib_mad::moment::Anchor;
use ib_sim::scenario::{Overrides, Scenario};
use ib_sim::simulation::Simulation;
use ib_sim::transport::{SimClock, SimTransport, share};
use ib_umad::stats::MadOutcome;
use ib_umad::{LocalPort, MadTransport, OutgoingMad, Received, SendError, TransportError};
use measure::{median, ratios};
use peak_alloc::PeakAlloc;
use process_clock::Clock;
use rendering::Renderings;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

/// Counts the bytes of the heap.
#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Published states that are measured, each with a sweep or more, after a first one that reads the capabilities
/// of devices.
const SWEEPS: u64 = 5;

/// A fabric: three levels, all of its switches alike.
#[derive(Clone, Copy)]
struct Size {
    hosts: u32,
    radix: u8,
    down: u8,
    up: u8,
}

/// 1,000, 5,900, 25,000, 60,000 and 162,000 connected ports.
const SIZES: [Size; 5] = [
    Size { hosts: 168, radix: 16, down: 8, up: 8 },
    Size { hosts: 990, radix: 24, down: 12, up: 12 },
    Size { hosts: 4_160, radix: 40, down: 20, up: 20 },
    Size { hosts: 10_000, radix: 40, down: 20, up: 20 },
    Size { hosts: 27_000, radix: 40, down: 18, up: 18 },
];

/// That of `make bench-quick`.
const QUICK_SIZE: Size = SIZES[2];

/// The heap of the exporter between two sweeps, in KiB per port.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
struct Heap {
    at_rest: f64,
    /// The compressed metrics.
    text: f64,
    /// What the monitor keeps from sweep to sweep.
    kept: f64,
    /// The published assessment of ports and links.
    verdicts: f64,
    /// The published readings and states.
    readings: f64,
}

/// The cost of one size.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Cost {
    /// Connected ports.
    pub ports: f64,
    nodes: f64,
    discovery: f64,
    sweep: f64,
    mads: f64,
    /// CPU time of the exporter per MAD, in µs.
    pub own_micros: f64,
    sim_micros: f64,
    /// Peak heap of the exporter, in KiB per port.
    pub kib: f64,
    heap: Heap,
    /// The share of the text of the metrics that was rendered again after the last sweep, of which the traffic of all
    /// ports has moved.
    again: f64,
    renderings: Renderings,
}

impl Cost {
    /// CPU time of the exporter per port and sweep, in µs.
    pub fn micros_a_port(&self) -> f64 {
        self.own_micros * self.mads / self.ports
    }
}

/// A transport that measures the simulator's time.
struct Timed {
    transport: SimTransport,
    nanos: Arc<AtomicU64>,
}

/// A call that took longer than this was preempted: it does not count as the simulator's, which takes half
/// a microsecond, but as the exporter's.
const OFF_PROCESSOR: Duration = Duration::from_micros(20);

impl Timed {
    fn took(&self, began: Instant) {
        let took = began.elapsed();
        if took < OFF_PROCESSOR {
            self.nanos.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
        }
    }
}

impl MadTransport for Timed {
    fn now(&self) -> Moment {
        self.transport.now()
    }

    fn anchor(&self) -> Anchor {
        self.transport.anchor()
    }

    fn local_port(&self) -> LocalPort {
        self.transport.local_port()
    }

    fn refresh(&mut self) {
        self.transport.refresh();
    }

    fn send(&mut self, parcel: &OutgoingMad) -> Result<(), SendError> {
        let began = Instant::now();
        let sent = self.transport.send(parcel);
        self.took(began);
        sent
    }

    fn receive(&mut self, until: Moment) -> Result<Option<Received>, TransportError> {
        let began = Instant::now();
        let received = self.transport.receive(until)?;
        // A wait without a response is the pause between two sweeps.
        if received.is_some() {
            self.took(began);
        }
        Ok(received)
    }
}

fn settings() -> FabricSettings {
    let fabric = FabricOptions { interval: "1s".parse().ok(), ..FabricOptions::default() };
    let options = Options { fabric, ..Options::default() };
    Settings::load(options, None).unwrap().fabrics.remove(0)
}

fn measure(size: Size) -> Cost {
    let Size { hosts, radix, down, up } = size;
    let scenario = format!(
        "fabric: {{fat-tree: {{levels: 3, hosts: {hosts}, radix: {radix}, down: {down}, up: {up}}}}}\n\
         traffic: {{pattern: across, load: 20%}}\n\
         way: {{round-trip: 0s, per-hop: 0s, jitter: 0s}}\n"
    );
    let scenario = Scenario::parse("scale", &scenario).unwrap();
    let story = scenario.resolve(&Overrides::default()).unwrap();
    let seat = story.local_ports[0];
    let (time, world) = (SimClock::Real(Clock::start()), share(Simulation::new(story)));
    let nanos = Arc::new(AtomicU64::new(0));
    let open =
        || Timed { transport: SimTransport::new(world.clone(), seat, time), nanos: nanos.clone() };
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();

    let settings = settings();
    let stop = Arc::new(AtomicBool::new(false));
    let (state, mut seen) =
        watch::channel(SharedState::from(vec![Arc::new(Observation::default())]));
    let monitor = Monitor::new(settings, None, Arc::new(state), 0, Arc::clone(&stop)).unwrap();
    let transport = open();
    let thread = std::thread::spawn(move || {
        monitor.run(transport, || Err::<Timed, _>("the simulated device never goes"));
    });

    let mut sweeps = Vec::new();
    let (mut begin, mut end) = (None, (Duration::ZERO, 0, 0, 0));
    let mut last = Observation::default();
    // The served exposition stays in memory until the next one is rendered, as in the server.
    let mut served: Option<RenderedMetrics> = None;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    while sweeps.len() < SWEEPS as usize {
        runtime.block_on(seen.changed()).unwrap();
        let state = seen.borrow_and_update().clone();
        last = (*state.fabrics[0]).clone();
        served = Some(match served {
            None => RenderedMetrics::first(state),
            Some(served) => served.next(state),
        });
        let Some(snapshot) = &last.snapshot else { continue };
        let answered = last.mads.total(MadOutcome::Answered);
        let cpu = test_rig::cpu_time(std::process::id());
        let now = (cpu, nanos.load(Ordering::Relaxed), answered, last.stats.sweeps);
        if begin.is_some() {
            sweeps.push(snapshot.ended.since(snapshot.began).as_secs_f64());
            end = now;
        }
        begin.get_or_insert(now);
    }
    let (kib, rests) = ((HEAP.peak_usage() - before) as f64 / 1024.0, HEAP.current_usage());
    let served = served.unwrap();
    let again = served.rendered().bytes as f64 / rendering::text_of(&served) as f64;
    // What becomes free as each owner goes is what it has alone.
    let mut now = HEAP.current_usage();
    let mut freed = || {
        let was = std::mem::replace(&mut now, HEAP.current_usage());
        was.saturating_sub(now) as f64 / 1024.0
    };
    drop(served);
    let text = freed();
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    drop(seen);
    let kept = freed();
    let renderings = rendering::measure(&last);
    let Observation { snapshot, assessment, stats, .. } = last;
    let snapshot = snapshot.unwrap();
    freed();
    drop(assessment);
    let verdicts = freed();
    let fabric = Arc::clone(&snapshot.fabric);
    drop(snapshot);
    let readings = freed();
    let ports = fabric.ports.iter().filter(|port| port.peer.is_some()).count() as f64;
    let begin = begin.unwrap();
    let mads = (end.2 - begin.2) as f64;
    let (all, sim) = (end.0.saturating_sub(begin.0).as_nanos() as f64, (end.1 - begin.1) as f64);
    let (anchor, ended) = stats.discovery.unwrap();
    let heap = Heap {
        at_rest: (rests - before) as f64 / 1024.0 / ports,
        text: text / ports,
        kept: kept / ports,
        verdicts: verdicts / ports,
        readings: readings / ports,
    };
    Cost {
        ports,
        nodes: fabric.nodes.len() as f64,
        discovery: ended.since(anchor.moment).as_secs_f64(),
        sweep: median(sweeps),
        mads: mads / (end.3 - begin.3) as f64,
        own_micros: (all - sim) / mads / 1e3,
        sim_micros: sim / mads / 1e3,
        kib: kib / ports,
        heap,
        again,
        renderings,
    }
}

fn print_heaps(costs: &[Cost]) {
    println!(
        "\nHeap in KiB per port: the peak, between two sweeps, and of that what goes with each owner"
    );
    println!(
        "{:>8} {:>6} {:>8} {:>8} {:>13} {:>9} {:>9} {:>20}",
        "ports",
        "peak",
        "at rest",
        "metrics",
        "kept by sweep",
        "verdicts",
        "readings",
        "topology and others"
    );
    for Cost { ports, kib, heap, .. } in costs {
        let Heap { at_rest, text, kept, verdicts, readings } = heap;
        let rest = at_rest - text - kept - verdicts - readings;
        println!(
            "{ports:>8} {kib:>6.2} {at_rest:>8.2} {text:>8.2} {kept:>13.2} {verdicts:>9.2} {readings:>9.2} {rest:>20.2}"
        );
    }
}

fn main() {
    let mut args = std::env::args().skip_while(|arg| arg != "--size").skip(1);
    if let Some(index) = args.next() {
        let cost = measure(SIZES[index.parse::<usize>().unwrap()]);
        println!("{}", serde_json::to_string(&cost).unwrap());
        return;
    }
    // `cargo test --benches` requests a list of tests; a benchmark has none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    if ratios::is_quick() {
        let cost = measure(QUICK_SIZE);
        let Renderings { first, typical, .. } = cost.renderings;
        ratios::report(
            "rendering 25,440 ports: after a typical sweep / the first time",
            typical[0] / first[0],
        );
        ratios::report(
            "25,440 ports: CPU per MAD / the simulator's",
            cost.own_micros / cost.sim_micros,
        );
        ratios::report("25,440 ports: heap in KiB per port / 4", cost.kib / 4.0);
        return;
    }
    println!("The exporter on simulated fabrics, without added delay, excluding the simulator");
    println!(
        "{:>8} {:>7} {:>11} {:>8} {:>10} {:>11} {:>12} {:>11} {:>10}",
        "ports",
        "nodes",
        "discovery",
        "sweep",
        "MADs",
        "own CPU",
        "CPU per port",
        "memory",
        "simulator"
    );
    let mut costs = Vec::new();
    for index in 0..SIZES.len() {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--size", &index.to_string()])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let cost: Cost = serde_json::from_slice(&output.stdout).unwrap();
        println!(
            "{:>8} {:>7} {:>9.2} s {:>6.2} s {:>10} {:>5.2} us/MAD {:>9.2} us {:>5.2} KiB/p {:>4.2} us/MAD",
            cost.ports,
            cost.nodes,
            cost.discovery,
            cost.sweep,
            cost.mads,
            cost.own_micros,
            cost.micros_a_port(),
            cost.kib,
            cost.sim_micros
        );
        costs.push(cost);
    }
    println!("\nRendering the metrics: CPU time in ms, least and most of 5 runs");
    println!(
        "{:>8} {:>13} {:>13} {:>13} {:>30}",
        "ports", "first", "typical", "worst", "rendered again in the last sweep"
    );
    let range = |[least, most]: [f64; 2]| format!("{:.0} to {:.0}", least * 1e3, most * 1e3);
    for cost in &costs {
        let Renderings { first, typical, worst } = cost.renderings;
        println!(
            "{:>8} {:>13} {:>13} {:>13} {:>28.0} %",
            cost.ports,
            range(first),
            range(typical),
            range(worst),
            cost.again * 100.0
        );
    }
    print_heaps(&costs);
    let sixty = costs[3];
    println!(
        "\n  60,000 ports: rendering at most 150 ms after a typical sweep, 533 ms in the worst case"
    );
    println!("\n  60,000 ports: sweep {:.2} s, target: at most 1.5 s", sixty.sweep);
    let most = |of: fn(&Cost) -> f64| costs.iter().map(of).fold(0.0, f64::max);
    println!(
        "  own CPU per MAD: at most {:.2} us, target: at most 6",
        most(|cost| cost.own_micros)
    );
    println!("  memory per port: at most {:.2} KiB, target: at most 4", most(|cost| cost.kib));
    let (least, largest) = (costs[0], costs[SIZES.len() - 1]);
    println!(
        "  cost per port, 162,000 / 1,000: CPU {:.2}, memory {:.2}, target: 1",
        largest.micros_a_port() / least.micros_a_port(),
        largest.kib / least.kib
    );
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/dev/scale.svg");
        std::fs::write(file, plot::svg(&costs)).unwrap();
    }
}
