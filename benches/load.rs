//! Whether sweeps are on time while clients do what they can: the exporter on a fabric of 60,000 ports,
//! scraped by 200 at once, held up by 1,000 that neither ask nor read in earnest, and shouted at.
//!
//! The exporter, its simulated fabric included, has processor 1 for itself, and the clients processor 0,
//! so that what is measured is what serving takes from sweeping, and not what the clients take.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod measure;
#[path = "../tests/rig/mod.rs"]
mod rig;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use measure::{median, pin, sweeps};
use rig::Exporter;

/// 60,000 connected ports: each host has one, and each of three levels as many again at both ends of its
/// cables. Fewer by `cargo bench --bench load -- --hosts 500`.
const HOSTS: u32 = 10_000;

/// From one sweep to the next.
const INTERVAL: &str = "--fabric.interval=5s";

/// How many sweeps each trouble is watched for.
const SWEEPS: usize = 12;

const SCRAPERS: usize = 200;
const SLOW: usize = 1_000;
const SHOUTERS: usize = 8;

/// How a trouble went.
struct Phase {
    sweep: f64,
    worst: f64,
    rss: f64,
    done: u64,
}

/// A field of /proc/PID/status, in MiB.
fn mib(exporter: &Exporter, field: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", exporter.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

/// Watches so many sweeps while `threads` do something again and again; what they count is told.
fn phase(
    exporter: &Exporter,
    threads: usize,
    act: &(impl Fn(usize, &AtomicBool) -> u64 + Sync),
) -> Phase {
    let (over, done) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut rss: f64 = 0.0;
    let mut took = Vec::new();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (over, done) = (&over, &done);
            // Small stacks: there are a thousand of them.
            let builder = std::thread::Builder::new().stack_size(128 << 10);
            let run = move || {
                while !over.load(Ordering::Relaxed) {
                    done.fetch_add(act(thread, over), Ordering::Relaxed);
                }
            };
            builder.spawn_scoped(scope, run).unwrap();
        }
        // The one that is under way did not begin under load.
        let before = sweeps(&exporter.log()).len() + 1;
        took = rig::wait_until(Duration::from_secs(900), "the sweeps", || {
            std::thread::sleep(Duration::from_millis(100));
            rss = rss.max(mib(exporter, "VmRSS"));
            Some(sweeps(&exporter.log())).filter(|all| all.len() >= before + SWEEPS)
        })
        .split_off(before);
        over.store(true, Ordering::Relaxed);
    });
    let worst = took.iter().copied().fold(0.0, f64::max);
    Phase { sweep: median(took), worst, rss, done: done.load(Ordering::Relaxed) }
}

fn connect(exporter: &Exporter) -> Option<TcpStream> {
    let stream = TcpStream::connect(exporter.address()).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(500))).ok()?;
    stream.set_write_timeout(Some(Duration::from_millis(500))).ok()?;
    Some(stream)
}

/// One scrape, read to its end; every other one is plain.
fn scrape(exporter: &Exporter, thread: usize, over: &AtomicBool) -> u64 {
    let packed = if thread.is_multiple_of(2) { "Accept-Encoding: gzip\r\n" } else { "" };
    let request = format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{packed}Connection: close\r\n\r\n");
    let Some(mut stream) = connect(exporter) else { return 0 };
    if stream.write_all(request.as_bytes()).is_err() {
        return 0;
    }
    let mut chunk = vec![0; 64 << 10];
    let mut first = true;
    while !over.load(Ordering::Relaxed) {
        match stream.read(&mut chunk) {
            Ok(0) => return u64::from(!first),
            Ok(bytes) if first => {
                if !chunk[..bytes].starts_with(b"HTTP/1.1 200") {
                    return 0;
                }
                first = false;
            }
            Ok(_) => {}
            // It takes its time.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return 0,
        }
    }
    0
}

/// A client that sends its head bit by bit, or one that asks and does not read, until it is sent away.
fn dawdle(exporter: &Exporter, thread: usize, over: &AtomicBool) -> u64 {
    let Some(mut stream) = connect(exporter) else {
        std::thread::sleep(Duration::from_millis(100));
        return 0;
    };
    let begin: &[u8] = if thread.is_multiple_of(2) {
        b"GET /metrics HTTP/1.1\r\n"
    } else {
        b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    };
    let mut alive = stream.write_all(begin).is_ok();
    while alive && !over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_secs(1));
        // What asks on is a head that has no end, or nothing that anybody waits for.
        alive =
            stream.write_all(b"X: y\r\n").is_ok() && stream.take_error().ok().flatten().is_none();
    }
    1
}

/// Nonsense, and whatever is said to it.
fn shout(exporter: &Exporter, thread: usize) -> u64 {
    const NONSENSE: [&[u8]; 4] = [
        b"\0\x01\x02\x03\x04\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
        b"BREW /metrics HTCPCP/1.0\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n",
    ];
    let Some(mut stream) = connect(exporter) else { return 0 };
    let _ = stream.write_all(NONSENSE[thread % NONSENSE.len()]);
    let mut answer = [0; 512];
    u64::from(matches!(stream.read(&mut answer), Ok(1..)))
}

fn main() {
    // `cargo test --benches` asks for a list of tests; there are none here.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    let hosts = std::env::args().skip_while(|arg| arg != "--hosts").nth(1);
    let hosts = hosts.map_or(HOSTS, |hosts| hosts.parse().unwrap());
    let scenario =
        format!("about: Load\nfabric: {{fat-tree: {{levels: 3, hosts: {hosts}, radix: 40}}}}\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), scenario).unwrap();
    let scenario = format!("--scenario={}", file.path().display());
    pin(1);
    let mut exporter = Exporter::demo_uncaptured(&[&scenario, INTERVAL, "--log.level=debug"]);
    pin(0);
    exporter.wait_ready();
    let ports = exporter.metrics().get("infiniband_ports_seen", &[]).unwrap_or_default();
    println!(
        "{ports} ports, a sweep each 5 s, the exporter on one processor, its clients on another"
    );
    println!(
        "  {:<44} {:>9} {:>9} {:>7} {:>9} {:>9}",
        "", "sweep", "worst", "ratio", "RSS", "done"
    );
    let rest = phase(&exporter, 0, &|_, _| 0);
    let row = |what: &str, phase: &Phase| {
        println!(
            "  {what:<44} {:>7.3} s {:>7.3} s {:>7.2} {:>5.0} MiB {:>9}",
            phase.sweep,
            phase.worst,
            phase.sweep / rest.sweep,
            phase.rss,
            phase.done
        );
    };
    row("at rest", &rest);
    let scraped = phase(&exporter, SCRAPERS, &|thread, over| scrape(&exporter, thread, over));
    row("200 scrapes at once, gzip and plain", &scraped);
    let slow = phase(&exporter, SLOW, &|thread, over| dawdle(&exporter, thread, over));
    row("1,000 clients that trickle or do not read", &slow);
    let noise = phase(&exporter, SHOUTERS, &|thread, _| shout(&exporter, thread));
    row("malformed requests, as many as there can be", &noise);
    row("at rest again", &phase(&exporter, 0, &|_, _| 0));
    println!(
        "  wanted: a ratio of at most 1.10; the most memory ever was {:.0} MiB",
        mib(&exporter, "VmHWM")
    );
    assert!(exporter.stop().success());
}
