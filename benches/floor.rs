//! A sweep compared with the least that its MADs cost on the same path, and with ibqueryerrors.
//!
//! The requests of one sweep are recorded, and a loop without any logic sends them again: the floor. Exporter, floor
//! and ibqueryerrors read the same ibsim in turn, through a proxy that adds 50 µs to each round trip, five rounds each
//! pinned (ibsim and the client on CPU 0, the proxy on CPU 1) and unpinned. CPU times are those of the clocks of the
//! processes: of the exporter, the proxy (this process without its main thread) and ibsim.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod measure;
#[path = "measure/ibsim.rs"]
mod on_ibsim;
use test_rig as rig;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use measure::{median, ratios, sweep_cpus, sweeps};
use on_ibsim::{IBQUERYERRORS, count_waits, timed};
use rig::capture::Request;
use rig::replay::{self, Device};
use rig::{Exporter, Ibsim, OpenSm, Proxy, Seat, cpu_time, thread_cpu_time, topology};

const ROUNDS: usize = 5;
const SWEEPS: usize = 5;
/// Evaluation and rendering of one sweep have ended when the next one begins.
const INTERVAL: &str = "--fabric.interval=4s";
const DELAY: Duration = Duration::from_micros(50);
/// As the exporter's by default, in total. It has limits for each LID, too, and waits between the parts of a sweep: the
/// floor does not.
const WINDOWS: replay::Windows = [8, 128];
/// A pause of the requests that is longer than any within a sweep.
const PAUSE: Duration = Duration::from_millis(300);
/// The CPUs of ibsim and its client, and of the proxy.
#[derive(Clone, Copy)]
struct Placement {
    name: &'static str,
    client: &'static str,
    proxy: &'static str,
}

const PLACEMENTS: [Placement; 2] = [
    Placement { name: "pinned", client: "0", proxy: "1" },
    Placement { name: "unpinned", client: "0,1", proxy: "0,1" },
];

impl Placement {
    /// Moves ibsim, the proxy and this thread, whose CPUs new processes get.
    fn apply(self, ibsim: &Ibsim) {
        taskset(self.client, &ibsim.pid().to_string());
        for thread in std::fs::read_dir("/proc/self/task").unwrap() {
            let thread = thread.unwrap().path();
            let id = thread.file_name().unwrap().to_str().unwrap().to_owned();
            let is_main = id == std::process::id().to_string();
            taskset(if is_main { self.client } else { self.proxy }, &id);
        }
    }
}

fn taskset(cpus: &str, id: &str) {
    let mut command = Command::new("taskset");
    let status = command.args(["-pc", cpus, id]).stdout(Stdio::null()).status();
    assert!(status.expect("taskset (package util-linux)").success());
}

/// CPU times of ibsim and of the proxy.
#[derive(Clone, Copy)]
struct Rig {
    ibsim: Duration,
    proxy: Duration,
}

/// What the kernel counts of a thread's CPU time, in its directory below `/proc`.
fn thread_time(directory: &Path) -> Duration {
    let text = std::fs::read_to_string(directory.join("schedstat")).unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

/// CPU time of the preload library's thread in an exporter. It has the name of the program, as the first thread has.
fn library_time(pid: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let name = |thread: &Path| std::fs::read_to_string(thread.join("comm")).unwrap_or_default();
    let first = name(Path::new(&format!("/proc/{pid}")));
    let named = |it: &PathBuf| name(it) == first && !it.ends_with(pid.to_string());
    let found: Vec<PathBuf> = threads.map(|it| it.unwrap().path()).filter(named).collect();
    assert_eq!(found.len(), 1, "the threads of the preload library");
    thread_time(&found[0])
}

impl Rig {
    fn now(ibsim: &Ibsim) -> Self {
        let proxy = cpu_time(std::process::id()).saturating_sub(thread_cpu_time());
        Rig { ibsim: cpu_time(ibsim.pid()), proxy }
    }

    fn since(ibsim: &Ibsim, before: Rig) -> Self {
        let now = Self::now(ibsim);
        let ibsim = now.ibsim.saturating_sub(before.ibsim);
        Rig { ibsim, proxy: now.proxy.saturating_sub(before.proxy) }
    }
}

/// A client's times of one sweep: seconds, and µs of CPU time per MAD.
#[derive(Clone, Copy)]
struct Cost {
    took: f64,
    /// Of the thread that sends and handles responses.
    cpu: f64,
    /// Of the preload library's thread, which receives for it: real devices have none.
    library: f64,
    proxy: f64,
    ibsim: f64,
}

impl Cost {
    /// CPU time per MAD of the client with what receives for it.
    fn with_library(&self) -> f64 {
        self.cpu + self.library
    }
}

struct Round {
    ours: Cost,
    /// CPU time per MAD of the rest of the process: evaluation, rendering, and what it serves.
    rest: f64,
    floor: Cost,
    ibqueryerrors: f64,
}

fn micros(time: Duration, mads: f64) -> f64 {
    time.as_secs_f64() * 1e6 / mads
}

/// Starts the exporter, and measures some sweeps without a request.
fn exporter_round(seat: &Seat, ibsim: &Ibsim, mads: usize) -> (Cost, f64) {
    let flags = [INTERVAL, "--log.level=debug"];
    let mut exporter = Exporter::start_uncaptured(seat, &flags);
    exporter.wait_ready();
    let pause = || std::thread::sleep(Duration::from_millis(20));
    let ended = |count: usize| {
        rig::wait_until(Duration::from_secs(120), "the sweeps", || {
            pause();
            Some(exporter.log()).filter(|log| sweeps(log).len() >= count)
        })
    };
    let done = sweeps(&exporter.log()).len() + 1;
    ended(done);
    std::thread::sleep(Duration::from_millis(1_500));
    let (before, pid) = (Rig::now(ibsim), exporter.pid());
    let (process, library) = (cpu_time(pid), library_time(pid));
    let log = ended(done + SWEEPS);
    std::thread::sleep(Duration::from_millis(1_500));
    let after = Rig::since(ibsim, before);
    let process = cpu_time(pid).saturating_sub(process);
    let library = library_time(pid).saturating_sub(library);
    assert!(exporter.stop().success());
    let total = (mads * SWEEPS) as f64;
    let cpus = &sweep_cpus(&log)[done..done + SWEEPS];
    let sweep_cpu: f64 = cpus.iter().sum::<f64>() * 1e6 / total;
    let cost = Cost {
        took: median(sweeps(&log)[done..done + SWEEPS].to_vec()),
        cpu: sweep_cpu,
        library: micros(library, total),
        proxy: micros(after.proxy, total),
        ibsim: micros(after.ibsim, total),
    };
    (cost, micros(process, total) - cost.cpu - cost.library)
}

/// Replays the requests as often as the exporter sweeps.
fn floor_round(seat: &Seat, ibsim: &Ibsim, list: &Path) -> Cost {
    let program = std::env::current_exe().unwrap();
    let mut client = seat
        .command_in(program, &seat.new_dir("floor"))
        .arg("--replay")
        .arg(list)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut orders = client.stdin.take().unwrap();
    let mut results = BufReader::new(client.stdout.take().unwrap());
    let mut one = || {
        writeln!(orders).unwrap();
        let mut line = String::new();
        results.read_line(&mut line).unwrap();
        let words: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        <[f64; 4]>::try_from(words).unwrap()
    };
    one();
    let before = Rig::now(ibsim);
    let (mut took, mut cpu, mut library, mut mads) = (Vec::new(), 0.0, 0.0, 0.0);
    for _ in 0..SWEEPS {
        let [matched, seconds, of_loop, of_library] = one();
        took.push(seconds);
        cpu += of_loop;
        library += of_library;
        mads += matched;
    }
    let after = Rig::since(ibsim, before);
    drop(orders);
    assert!(client.wait().unwrap().success());
    Cost {
        took: median(took),
        cpu: cpu * 1e6 / mads,
        library: library * 1e6 / mads,
        proxy: micros(after.proxy, mads),
        ibsim: micros(after.ibsim, mads),
    }
}

/// The client of the floor: one replay for each line that it reads.
fn replay_client(list: &Path) {
    let requests = replay::load(list);
    let device = Device::open(&requests);
    for _ in std::io::stdin().lines() {
        let replay = device.replay(&requests, WINDOWS);
        assert_eq!(replay.matched, requests.len());
        let [took, cpu, library] =
            [replay.took, replay.cpu, replay.library].map(|time| time.as_secs_f64());
        println!("{} {took} {cpu} {library}", replay.matched);
    }
}

/// The requests of the last whole sweep of an exporter that captures them.
fn record(seat: &Seat) -> Vec<Request> {
    let flags = [INTERVAL, "--log.level=debug", "--fabric.capture-limit=1000"];
    let mut exporter = Exporter::start(seat, &flags);
    exporter.wait_ready();
    rig::wait_until(Duration::from_secs(120), "the sweeps", || {
        std::thread::sleep(Duration::from_millis(50));
        (sweeps(&exporter.log()).len() >= 4).then_some(())
    });
    std::thread::sleep(PAUSE);
    assert!(exporter.stop().success());
    let all = exporter.capture_requests();
    let parts: Vec<&[Request]> = all.chunk_by(|one, next| next.at < one.at + PAUSE).collect();
    // The last one may be cut short by the stop; two of a length are whole.
    let mut pairs = parts.windows(2).rev();
    pairs.find(|pair| pair[0].len() == pair[1].len()).expect("two equal sweeps")[0].to_vec()
}

/// Median, least and most.
fn spread(values: impl Iterator<Item = f64>) -> String {
    let values: Vec<f64> = values.collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!("{:>8.3}  ({least:.3} to {most:.3})", median(values))
}

fn print(name: &str, rounds: &[Round]) {
    println!("\n{name}: median of {} rounds (least to most)", rounds.len());
    let row = |what: &str, value: &dyn Fn(&Round) -> f64| {
        println!("  {what:<52} {}", spread(rounds.iter().map(value)));
    };
    row("one sweep, s", &|it| it.ours.took);
    row("the floor: its MADs, s", &|it| it.floor.took);
    row("ibqueryerrors, s", &|it| it.ibqueryerrors);
    row("sweep / floor; target: at most 1.15", &|it| it.ours.took / it.floor.took);
    row("sweep / ibqueryerrors", &|it| it.ours.took / it.ibqueryerrors);
    row("floor / ibqueryerrors", &|it| it.floor.took / it.ibqueryerrors);
    row("CPU per MAD, sweep / floor; target: at most 1.3", &|it| {
        it.ours.with_library() / it.floor.with_library()
    });
    row("the same without the preload library's thread", &|it| it.ours.cpu / it.floor.cpu);
    row("CPU per MAD: the sweep's thread, µs", &|it| it.ours.cpu);
    row("CPU per MAD: the floor's, µs", &|it| it.floor.cpu);
    row("CPU per MAD: the preload library's thread, µs", &|it| it.ours.library);
    row("CPU per MAD: the preload library's at the floor, µs", &|it| it.floor.library);
    row("CPU per MAD: evaluation and rendering after it, µs", &|it| it.rest);
    row("CPU per MAD: the proxy's in a sweep, µs", &|it| it.ours.proxy);
    row("CPU per MAD: ibsim's in a sweep, µs", &|it| it.ours.ibsim);
    row("CPU per MAD: the proxy's at the floor, µs", &|it| it.floor.proxy);
    row("CPU per MAD: ibsim's at the floor, µs", &|it| it.floor.ibsim);
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    // `cargo test --benches` requests a list of tests; a benchmark has none.
    if args.iter().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    if let Some(at) = args.iter().position(|arg| arg == "--replay") {
        return replay_client(&PathBuf::from(&args[at + 1]));
    }
    let rounds = args
        .iter()
        .find_map(|arg| arg.strip_prefix("--rounds="))
        .map_or(ROUNDS, |rounds| rounds.parse().expect("a number"));
    let net = topology::five_thousand_hosts();
    let ibsim = Ibsim::start(&net);
    let opensm = OpenSm::start(&ibsim);
    count_waits(&ibsim, &net);
    let proxy = Proxy::between(&ibsim, DELAY, 0);
    let seat = proxy.seat();
    let requests = record(&seat);
    let smps = requests.iter().filter(|request| request.is_smp()).count();
    println!("{} MADs per sweep, {smps} of them SMPs", requests.len());
    let list = seat.new_dir("list").join("requests");
    replay::save(&list, &requests);

    if ratios::is_quick() {
        let unpinned = PLACEMENTS[1];
        unpinned.apply(&ibsim);
        let (ours, _) = exporter_round(&seat, &ibsim, requests.len());
        let floor = floor_round(&seat, &ibsim, &list);
        ratios::report(
            "sweep of 25,280 ports: time / that of its MADs alone",
            ours.took / floor.took,
        );
        ratios::report(
            "sweep of 25,280 ports: CPU per MAD / that of its MADs alone",
            ours.with_library() / floor.with_library(),
        );
        return;
    }
    let mut of_placement = PLACEMENTS.map(|_| Vec::new());
    for round in 0..rounds {
        for (placement, done) in PLACEMENTS.iter().zip(&mut of_placement) {
            eprintln!("round {} of {rounds}, {}", round + 1, placement.name);
            placement.apply(&ibsim);
            let (ours, rest) = exporter_round(&seat, &ibsim, requests.len());
            let floor = floor_round(&seat, &ibsim, &list);
            let ibqueryerrors = timed(&seat, "ibqueryerrors", &IBQUERYERRORS);
            done.push(Round { ours, rest, floor, ibqueryerrors });
        }
    }
    for (placement, done) in PLACEMENTS.iter().zip(&of_placement) {
        print(placement.name, done);
    }
    drop(opensm);
}
