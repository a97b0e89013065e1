//! Whether sweeps are on time under the load of clients: the exporter on a fabric of 60,000 ports with 200
//! scrapes at once, with 1,000 slow clients, with malformed requests, with 1,000 guessed logins a second, and with
//! clients that request all links.
//!
//! Only one situation: `cargo bench --bench load -- --only logins`, or `scrapes`, `slow`, `noise`, `lists`.
//!
//! The exporter with its simulated fabric has CPU 1 for itself, and the clients CPU 0, so that the
//! measurement shows how serving delays sweeps, without the cost of the clients.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

mod lists;
#[path = "../measure/mod.rs"]
mod measure;
use test_rig as rig;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use measure::{median, pin, sweeps};
use rig::Exporter;
use rig::certs::login;
use rustix::net::{AddressFamily, SocketType};

/// 60,000 connected ports: each host has one, and each of three levels as many again at both ends of its
/// cables. Fewer by `cargo bench --bench load -- --hosts 500`.
const HOSTS: u32 = 10_000;

/// The sweep interval.
const INTERVAL: &str = "--fabric.interval=5s";

/// How many sweeps are measured in each situation.
const SWEEPS: usize = 12;

const SCRAPERS: usize = 200;
const SLOW: usize = 1_000;
const SHOUTERS: usize = 8;

/// Number of addresses that they connect from.
const CLIENTS: usize = 16;

/// Connections that guess logins, and their guesses per second together. Each guess has a new name, so
/// that it is not cached.
const GUESSERS: usize = 128;
const GUESSES: u64 = 1_000;

/// The address of guesses, and that of valid logins: client addresses take turns.
const GUESSER: [u8; 4] = [127, 0, 0, 2];
const OTHERS: [u8; 4] = [127, 0, 0, 1];

/// Number of users that log in for the first time during the guesses, one per second.
const NEWCOMERS: usize = 2_000;

/// What was measured in a situation.
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

/// Measures sweeps while `threads` repeat an action, with the sum of what that returns.
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
        // The running sweep did not begin under load.
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

/// A connection from one of several addresses: connections per address are limited.
fn connect(exporter: &Exporter, thread: usize) -> Option<TcpStream> {
    let stream = connect_from([127, 0, 1, 1 + (thread % CLIENTS) as u8], exporter)?;
    stream.set_read_timeout(Some(Duration::from_millis(500))).ok()?;
    stream.set_write_timeout(Some(Duration::from_millis(500))).ok()?;
    Some(stream)
}

/// One scrape, read to its end; every other one is plain.
fn scrape(exporter: &Exporter, thread: usize, over: &AtomicBool) -> u64 {
    let packed = if thread.is_multiple_of(2) { "Accept-Encoding: gzip\r\n" } else { "" };
    let request = format!("GET /metrics HTTP/1.1\r\nHost: x\r\n{packed}Connection: close\r\n\r\n");
    let Some(mut stream) = connect(exporter, thread) else { return 0 };
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
            // It may be slow.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return 0,
        }
    }
    0
}

/// A client that sends its head piece by piece, or one that does not read the response, until it is
/// disconnected.
fn slow_client(exporter: &Exporter, thread: usize, over: &AtomicBool) -> u64 {
    let Some(mut stream) = connect(exporter, thread) else {
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
        // More of an endless head, or bytes that are never read.
        alive =
            stream.write_all(b"X: y\r\n").is_ok() && stream.take_error().ok().flatten().is_none();
    }
    1
}

/// A malformed request.
fn send_malformed(exporter: &Exporter, thread: usize) -> u64 {
    const NONSENSE: [&[u8]; 4] = [
        b"\0\x01\x02\x03\x04\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost x\r\n\r\n",
        b"BREW /metrics HTCPCP/1.0\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n",
    ];
    let Some(mut stream) = connect(exporter, thread) else { return 0 };
    let _ = stream.write_all(NONSENSE[thread % NONSENSE.len()]);
    let mut answer = [0; 512];
    u64::from(matches!(stream.read(&mut answer), Ok(1..)))
}

/// Configures users: one that scrapes, those that log in once, and one whose hash takes 15 s to check.
fn configure_users(exporter: &Exporter, file: &Path) {
    // The time of a check depends on the cost alone: the users have one hash, and the slow one any.
    let hash = bcrypt::hash("right", 10).unwrap();
    let slow = format!("basic_auth_users:\n  slow: $2b$18${}\n", ".".repeat(53));
    let newcomers = (0..NEWCOMERS).map(|newcomer| format!("  user-{newcomer}: {hash}\n"));
    let users = [slow, format!("  prometheus: {hash}\n")].into_iter().chain(newcomers);
    let users = users.collect::<String>();
    std::fs::write(file, users).unwrap();
    rig::wait_until(Duration::from_secs(30), "logins to be necessary", || {
        (exporter.get("/-/healthy", &[]).status == 401).then_some(())
    });
}

/// A connection from an address of the loopback.
fn connect_from(own: [u8; 4], exporter: &Exporter) -> Option<TcpStream> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).ok()?;
    rustix::net::bind(&socket, &SocketAddr::from((own, 0))).ok()?;
    rustix::net::connect(&socket, &exporter.address().parse::<SocketAddr>().unwrap()).ok()?;
    let stream = TcpStream::from(socket);
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    Some(stream)
}

/// The status of the response to a login, which is read completely; the connection stays open.
fn log_in(stream: &mut TcpStream, user: &str, password: &str) -> Option<u16> {
    let login = login(user, password);
    let request = format!("GET /-/healthy HTTP/1.1\r\nHost: x\r\nAuthorization: {login}\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let (mut answer, mut chunk) = (String::new(), [0; 1024]);
    loop {
        let bytes = stream.read(&mut chunk).ok().filter(|bytes| *bytes > 0)?;
        answer.push_str(std::str::from_utf8(&chunk[..bytes]).ok()?);
        let Some((head, body)) = answer.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        if body.len() >= length.parse().ok()? {
            return head.get(9..12)?.parse().ok();
        }
    }
}

/// How long valid logins took, and how many were not accepted.
#[derive(Default)]
struct Waited {
    seconds: Mutex<Vec<f64>>,
    refused: AtomicU64,
}

impl Waited {
    /// One login by a connection of its own.
    fn log_in(&self, exporter: &Exporter, user: &str) {
        let began = Instant::now();
        let status = connect_from(OTHERS, exporter)
            .and_then(|mut stream| log_in(&mut stream, user, "right"));
        if status == Some(200) {
            self.seconds.lock().unwrap().push(began.elapsed().as_secs_f64());
        } else {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn report(&self, who: &str) {
        let mut seconds = self.seconds.lock().unwrap().clone();
        seconds.sort_by(f64::total_cmp);
        let at = |percent: usize| seconds[(seconds.len() - 1) * percent / 100];
        println!(
            "    {who}: {} answered, p50 {:.3} s, p99 {:.3} s, max {:.3} s; {} refused",
            seconds.len(),
            at(50),
            at(99),
            at(100),
            self.refused.load(Ordering::Relaxed)
        );
    }
}

/// Guessed logins, and valid ones: a cached one, and first logins of users.
struct Logins {
    began: Instant,
    guesses: AtomicU64,
    newcomers: AtomicU64,
    remembered: Waited,
    first: Waited,
}

impl Logins {
    fn new() -> Self {
        Logins {
            began: Instant::now(),
            guesses: AtomicU64::new(0),
            newcomers: AtomicU64::new(0),
            remembered: Waited::default(),
            first: Waited::default(),
        }
    }

    fn act(&self, exporter: &Exporter, thread: usize, over: &AtomicBool) -> u64 {
        match thread {
            0 => {
                self.remembered.log_in(exporter, "prometheus");
                std::thread::sleep(Duration::from_millis(100));
                0
            }
            1 => {
                let newcomer = self.newcomers.fetch_add(1, Ordering::Relaxed);
                assert!(newcomer < NEWCOMERS as u64, "more users are needed");
                self.first.log_in(exporter, &format!("user-{newcomer}"));
                std::thread::sleep(Duration::from_secs(1));
                0
            }
            _ => self.guess(exporter, over),
        }
    }

    /// Guesses on one connection while it is open, at a fixed rate, independent of the responses.
    fn guess(&self, exporter: &Exporter, over: &AtomicBool) -> u64 {
        let Some(mut stream) = connect_from(GUESSER, exporter) else { return 0 };
        let mut done = 0;
        while !over.load(Ordering::Relaxed) {
            let guess = self.guesses.fetch_add(1, Ordering::Relaxed);
            let due = self.began + Duration::from_secs(1) * guess as u32 / GUESSES as u32;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            match log_in(&mut stream, &format!("guess-{guess}"), "wrong") {
                Some(401 | 503) => done += 1,
                _ => return done,
            }
        }
        done
    }
}

fn main() {
    // `cargo test --benches` requests a list of tests; a benchmark has none.
    if std::env::args().any(|arg| arg == "--list" || arg == "--test") {
        return;
    }
    let option = |name: &str| std::env::args().skip_while(|arg| arg != name).nth(1);
    let only = option("--only");
    let wanted = |situation: &str| only.as_ref().is_none_or(|only| only == situation);
    let hosts = option("--hosts");
    let hosts = hosts.map_or(HOSTS, |hosts| hosts.parse().unwrap());
    let scenario =
        format!("about: Load\nfabric: {{fat-tree: {{levels: 3, hosts: {hosts}, radix: 40}}}}\n");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), scenario).unwrap();
    let scenario = format!("--scenario={}", file.path().display());
    // Without users no login is required.
    let web = tempfile::NamedTempFile::new().unwrap();
    let config = format!("--web.config.file={}", web.path().display());
    pin(1);
    let flags = [&scenario, &config, INTERVAL, "--log.level=debug"];
    let mut exporter = Exporter::demo_uncaptured(&flags);
    pin(0);
    exporter.wait_ready();
    let ports = exporter.metrics().get("fabric_exporter_ports_seen", &[]).unwrap_or_default();
    println!("{ports} ports, a sweep every 5 s, the exporter on one CPU, its clients on another");
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
    if wanted("scrapes") {
        let scraped = phase(&exporter, SCRAPERS, &|thread, over| scrape(&exporter, thread, over));
        row("200 scrapes at once, gzip and plain", &scraped);
    }
    if wanted("slow") {
        let slow = phase(&exporter, SLOW, &|thread, over| slow_client(&exporter, thread, over));
        row("1,000 clients that send slowly or do not read", &slow);
    }
    if wanted("noise") {
        let noise = phase(&exporter, SHOUTERS, &|thread, _| send_malformed(&exporter, thread));
        row("malformed requests at full rate", &noise);
    }
    if wanted("lists") {
        for kind in lists::Kind::ALL {
            let lists = lists::Lists::new(kind);
            let measured = phase(&exporter, lists.threads(), &|thread, over| {
                lists.act(&exporter, thread, over)
            });
            row(kind.title(), &measured);
            lists.report(measured.rss / rest.rss);
        }
    }
    if wanted("logins") {
        configure_users(&exporter, web.path());
        let logins = Logins::new();
        let act = |thread, over: &AtomicBool| logins.act(&exporter, thread, over);
        row("1,000 logins per second of unknown users", &phase(&exporter, 2 + GUESSERS, &act));
        logins.remembered.report("cached logins");
        logins.first.report("first logins");
        println!("    target: at most 1 s each");
    }
    row("at rest again", &phase(&exporter, 0, &|_, _| 0));
    println!("  target: a ratio of at most 1.10; peak memory {:.0} MiB", mib(&exporter, "VmHWM"));
    assert!(exporter.stop().success());
}
