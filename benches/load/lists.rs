//! Clients that request all links: as a page, as CSV and as JSON; that disconnect, read slowly, or read.

use std::io::{Read, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use test_rig::Exporter;

use super::{OTHERS, connect_from};

/// What is requested, in turns.
const PATHS: [&str; 3] = ["/links?format=csv", "/api/v1/links", "/links"];

/// Requests per second of clients that disconnect, and how long they wait before that.
const DISCONNECTS: u64 = 500;
const PATIENCE: Duration = Duration::from_millis(5);

const SLOW: usize = 128;
const READERS: usize = 32;

/// The address of these clients; the others that must be served have another one.
const CLIENTS: [u8; 4] = [127, 0, 0, 3];

/// How clients behave.
#[derive(Clone, Copy)]
pub enum Kind {
    Disconnect,
    ReadSlowly,
    Read,
}

impl Kind {
    pub const ALL: [Kind; 3] = [Kind::Disconnect, Kind::ReadSlowly, Kind::Read];

    pub fn title(self) -> &'static str {
        match self {
            Kind::Disconnect => "500 lists per second, disconnected",
            Kind::ReadSlowly => "128 clients that read lists slowly",
            Kind::Read => "32 clients that read lists",
        }
    }

    fn threads(self) -> usize {
        match self {
            Kind::Disconnect => 32,
            Kind::ReadSlowly => SLOW,
            Kind::Read => READERS,
        }
    }
}

/// The clients, and two others that want an answer: a probe, and a person who opens the overview.
pub struct Lists {
    kind: Kind,
    began: Instant,
    sent: AtomicU64,
    /// By status; 0: closed without a response.
    statuses: Mutex<Vec<u16>>,
    probe: Waits,
    overview: Waits,
}

/// How long responses took, and how many did not come.
#[derive(Default)]
struct Waits {
    seconds: Mutex<Vec<f64>>,
    failed: AtomicU64,
}

impl Waits {
    fn get(&self, exporter: &Exporter, path: &str) {
        let began = Instant::now();
        let status = connect_from(OTHERS, exporter).and_then(|mut stream| {
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).ok()?;
            let mut response = Vec::new();
            stream.read_to_end(&mut response).ok()?;
            status(&response)
        });
        if status == Some(200) {
            self.seconds.lock().unwrap().push(began.elapsed().as_secs_f64());
        } else {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn report(&self, who: &str) {
        let seconds = self.seconds.lock().unwrap();
        let worst = seconds.iter().copied().fold(0.0, f64::max);
        let failed = self.failed.load(Ordering::Relaxed);
        println!("    {who}: {} answered, slowest {worst:.3} s; {failed} failed", seconds.len());
    }
}

fn status(response: &[u8]) -> Option<u16> {
    std::str::from_utf8(response.get(9..12)?).ok()?.parse().ok()
}

impl Lists {
    pub fn new(kind: Kind) -> Self {
        Lists {
            kind,
            began: Instant::now(),
            sent: AtomicU64::new(0),
            statuses: Mutex::default(),
            probe: Waits::default(),
            overview: Waits::default(),
        }
    }

    pub fn threads(&self) -> usize {
        2 + self.kind.threads()
    }

    pub fn act(&self, exporter: &Exporter, thread: usize, over: &AtomicBool) -> u64 {
        match thread {
            0 => {
                self.probe.get(exporter, "/-/healthy");
                std::thread::sleep(Duration::from_millis(100));
                return 0;
            }
            1 => {
                self.overview.get(exporter, "/");
                std::thread::sleep(Duration::from_secs(1));
                return 0;
            }
            _ => {}
        }
        let turn = self.sent.fetch_add(1, Ordering::Relaxed);
        if matches!(self.kind, Kind::Disconnect) {
            let due = self.began + Duration::from_micros(1_000_000 / DISCONNECTS) * turn as u32;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        let Some(mut stream) = connect_from(CLIENTS, exporter) else { return 0 };
        let path = PATHS[turn as usize % PATHS.len()];
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        if stream.write_all(request.as_bytes()).is_err() {
            return 0;
        }
        match self.kind {
            Kind::Disconnect => {
                std::thread::sleep(PATIENCE);
                // Closing with data that was not read resets the connection.
                return 1;
            }
            Kind::ReadSlowly => self.read(stream, 8 << 10, Duration::from_millis(100), over),
            Kind::Read => self.read(stream, 64 << 10, Duration::ZERO, over),
        }
        1
    }

    /// Reads the response in parts of this size, with a pause between them.
    fn read(
        &self,
        mut stream: std::net::TcpStream,
        size: usize,
        pause: Duration,
        over: &AtomicBool,
    ) {
        let mut part = vec![0; size];
        let mut code = None;
        while !over.load(Ordering::Relaxed) {
            match stream.read(&mut part) {
                Ok(0) | Err(_) => break,
                Ok(bytes) => {
                    code = code.or_else(|| status(&part[..bytes]));
                    std::thread::sleep(pause);
                }
            }
        }
        self.statuses.lock().unwrap().push(code.unwrap_or(0));
    }

    pub fn report(&self, memory: f64) {
        println!("    memory: {memory:.2} times that at rest; target: at most 1.75");
        self.probe.report("/-/healthy (target: 0.5 s)");
        self.overview.report("overview of another client");
        let mut statuses = self.statuses.lock().unwrap().clone();
        statuses.sort_unstable();
        for same in statuses.chunk_by(|a, b| a == b) {
            println!(
                "    {} of the lists: {}",
                same.len(),
                match same[0] {
                    0 => "closed before a response".to_owned(),
                    code => format!("status {code}"),
                }
            );
        }
    }
}
