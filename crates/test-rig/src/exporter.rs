//! The program under test, running on a simulated fabric.

use crate::paths::program;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use super::capture::{self, Mad};
use super::child::{self, Output, Running};
use super::metrics::Metrics;
use super::seat::Seat;
use super::sysfs::Tree;
use super::wait_until;

/// How long the exporter may take to listen.
const LISTEN_LIMIT: Duration = Duration::from_secs(120);

/// How long the first sweep may take.
const READY_LIMIT: Duration = Duration::from_secs(240);

/// How long one response may take.
const HTTP_LIMIT: Duration = Duration::from_secs(60);

/// How long a start may take to fail.
const EXIT_LIMIT: Duration = Duration::from_secs(60);

/// A response as it was received: a compressed body stays compressed.
#[derive(Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap_or_else(|e| panic!("the body is not text: {e}"))
    }
}

/// A running exporter.
pub struct Exporter {
    running: Running,
    dir: PathBuf,
    address: String,
    agent: ureq::Agent,
    // Kept so that its files can be read when the fabric is gone.
    _keeps: Arc<TempDir>,
}

impl Exporter {
    /// Starts `fabric-exporter serve` on a fabric (`&Ibsim`), behind a proxy (`&Proxy`) or on a seat,
    /// and waits until it listens. It captures its MADs, which are checked when it stops.
    pub fn start(seat: impl Into<Seat>, flags: &[&str]) -> Self {
        Self::spawn(&seat.into(), flags, true)
    }

    /// The same without a capture, which takes time of its own, for measurements.
    pub fn start_uncaptured(seat: impl Into<Seat>, flags: &[&str]) -> Self {
        Self::spawn(&seat.into(), flags, false)
    }

    fn spawn(seat: &Seat, flags: &[&str], captured: bool) -> Self {
        let dir = seat.new_dir("exporter");
        let command = seat.command_in(program(), &dir);
        // The machine that the tests run on may have devices of its own. ibsim forwards MADs of the vendor class to the
        // client at the port, which crashes OpenSM there.
        let always = ["--no-collector.host", "--no-fabric.registers"];
        let missing = always.into_iter().filter(|flag| !flags.contains(flag));
        let flags: Vec<&str> = missing.chain(flags.iter().copied()).collect();
        Self::run(command, "serve", &flags, captured, dir, seat.shared_dir())
    }

    /// Starts `fabric-exporter demo`, which brings its own fabric, and waits until it listens.
    pub fn demo(flags: &[&str]) -> Self {
        Self::spawn_demo(flags, true, None)
    }

    /// The same with another `PATH`, in which it finds commands of a scheduler.
    pub fn demo_with_path(flags: &[&str], path: &str) -> Self {
        Self::spawn_demo(flags, true, Some(path))
    }

    /// The same without a capture, for a fabric of several planes.
    pub fn demo_uncaptured(flags: &[&str]) -> Self {
        Self::spawn_demo(flags, false, None)
    }

    fn spawn_demo(flags: &[&str], captured: bool, path: Option<&str>) -> Self {
        let keeps = tempfile::Builder::new()
            .prefix("demo-")
            .tempdir()
            .unwrap_or_else(|e| panic!("cannot make a temporary directory for the demo: {e}"));
        let dir = keeps.path().to_owned();
        let mut command = Command::new(program());
        command.current_dir(&dir);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        // By default it logs little, and the address is read from its log.
        let says = flags.iter().any(|flag| flag.starts_with("--log.level"));
        let level: &[&str] = if says { &[] } else { &["--log.level=info"] };
        let flags = [level, flags].concat();
        Self::run(command, "demo", &flags, captured, dir, Arc::new(keeps))
    }

    /// Starts `fabric-exporter serve` on a host without any device, and waits until it listens.
    pub fn without_devices(flags: &[&str]) -> Self {
        let keeps = tempfile::Builder::new()
            .prefix("exporter-")
            .tempdir()
            .unwrap_or_else(|e| panic!("cannot make a temporary directory: {e}"));
        let dir = keeps.path().to_owned();
        let sysfs = dir.join("sys");
        std::fs::create_dir(&sysfs).unwrap_or_else(|e| panic!("{}: {e}", sysfs.display()));
        let mut command = Command::new(program());
        command.current_dir(&dir);
        let of_tree = format!("--path.sysfs={}", sysfs.display());
        let flags = [&["--no-collector.host", &of_tree], flags].concat();
        Self::run(command, "serve", &flags, false, dir, Arc::new(keeps))
    }

    /// Starts `fabric-exporter serve` on a host's own devices alone, and waits until it listens.
    pub fn on_host(tree: &Tree, flags: &[&str]) -> Self {
        let (dir, keeps) = tree.dir_for("exporter");
        let mut command = Command::new(program());
        command.current_dir(&dir);
        let of_tree = tree.flag();
        let flags = [&["--no-collector.fabric", &of_tree], flags].concat();
        Self::run(command, "serve", &flags, false, dir, keeps)
    }

    fn run(
        mut command: Command,
        verb: &str,
        flags: &[&str],
        captured: bool,
        dir: PathBuf,
        keeps: Arc<TempDir>,
    ) -> Self {
        let log = dir.join("stderr");
        command.args([verb, "--web.listen-address=127.0.0.1:0"]);
        if captured {
            command.arg(format!("--fabric.capture={}", capture_file(&dir).display()));
        }
        command
            .args(flags)
            .stdin(Stdio::null())
            .stdout(child::create(&dir.join("stdout")))
            .stderr(child::create(&log));
        let mut running = Running::spawn("fabric-exporter", &mut command);
        let address = wait_until(LISTEN_LIMIT, "the exporter to listen", || {
            let text = child::read_lossy(&log);
            let address = listening_address(&text);
            if address.is_none()
                && let Some(status) = running.try_wait()
            {
                panic!("fabric-exporter {flags:?}: {status}\n{}", child::read_lossy(&log));
            }
            address
        });
        Self { running, dir, address, agent: agent(HTTP_LIMIT), _keeps: keeps }
    }

    /// Waits until it is ready.
    pub fn wait_ready(&mut self) {
        wait_until(READY_LIMIT, "the exporter to be ready", || {
            if let Some(status) = self.running.try_wait() {
                panic!("fabric-exporter: {status}\n{}", self.log());
            }
            (self.get("/-/ready", &[]).status == 200).then_some(())
        });
    }

    /// Gets a path with these request headers.
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        self.try_get(path, headers)
            .unwrap_or_else(|e| panic!("GET {path}: {e}; the exporter's log:\n{}", self.log()))
    }

    /// Gets a path; the exporter may fail to respond.
    pub fn try_get(&self, path: &str, headers: &[(&str, &str)]) -> Result<Response, ureq::Error> {
        get(&self.agent, &self.address, path, headers)
    }

    /// Scrapes it.
    pub fn metrics(&self) -> Metrics {
        let response = self.get("/metrics", &[]);
        assert_eq!(response.status, 200, "GET /metrics: {}", response.text());
        Metrics::parse(response.text())
    }

    /// Waits until the metrics count this many more sweeps than at the call. The last of two began after it.
    pub fn wait_sweeps(&self, count: u64) {
        let sweeps = || self.metrics().get_u64("fabric_exporter_sweeps_total", &[]).unwrap_or(0);
        let goal = sweeps() + count;
        wait_until(READY_LIMIT, "the next sweeps", || (sweeps() >= goal).then_some(()));
    }

    /// Waits until the served sweep began after the call. Counting two more sweeps is not enough on a busy machine:
    /// what is served may be several sweeps behind, if rendering takes longer than the interval. Only for exporters
    /// with the clock of this host.
    pub fn wait_fresh_sweep(&self) {
        let called = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
        wait_until(READY_LIMIT, "a sweep that began after the call", || {
            let metrics = self.metrics();
            let ended = metrics.get("fabric_exporter_sweep_timestamp_seconds", &[])?;
            let took = metrics.get("fabric_exporter_sweep_duration_seconds", &[])?;
            (ended - took > called.as_secs_f64()).then_some(())
        });
    }

    /// Waits until the metrics count this many more reads of the host than at the call, and scrapes. The last of
    /// two began after it.
    pub fn wait_reads(&self, count: u64) -> Metrics {
        let reads = |metrics: &Metrics| metrics.get_u64("fabric_exporter_host_reads_total", &[]);
        let goal = reads(&self.metrics()).unwrap_or(0) + count;
        wait_until(READY_LIMIT, "the next reads of the host", || {
            Some(self.metrics()).filter(|metrics| reads(metrics) >= Some(goal))
        })
    }

    /// Where it listens, as `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.running.wait_until_log_is_written();
        child::read_lossy(&self.dir.join("stderr"))
    }

    /// Its working directory, which stays while this value lives.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its process id, for measurements and signals.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Sends it a signal by its short name, such as `HUP`.
    pub fn signal(&mut self, signal: &str) {
        self.running.signal(signal);
    }

    /// Stops it, as dropping it does, and checks the MADs that it sent.
    pub fn stop(&mut self) -> ExitStatus {
        let status = self.running.stop();
        // In every test: no MAD that it sent may change a fabric.
        let capture = capture_file(&self.dir);
        if status.success() && capture.exists() {
            capture::assert_read_only(&capture);
        }
        status
    }

    /// The MADs it has captured; whole once it has stopped.
    pub fn capture_mads(&self) -> Vec<Mad> {
        capture::read(&capture_file(&self.dir))
    }

    /// The requests it has captured; whole once it has stopped.
    pub fn capture_requests(&self) -> Vec<capture::Request> {
        capture::requests(&capture_file(&self.dir))
    }

    /// Panics unless it has sent and received MADs, and none that could change the fabric.
    pub fn assert_read_only_capture(&self) {
        capture::assert_read_only(&capture_file(&self.dir));
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // An exporter that does not stop fails its test, unless that has failed already.
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

/// Runs the program with these arguments to its end, for starts that fail and for commands other than servers.
pub fn run_to_exit(seat: impl Into<Seat>, args: &[&str]) -> Output {
    let seat = seat.into();
    let dir = seat.new_dir("exporter");
    let mut command = seat.command_in(program(), &dir);
    child::run("fabric-exporter", command.args(args), &dir, EXIT_LIMIT)
}

/// Runs `serve` on a host's own devices, for starts that fail.
pub fn run_on_host_to_exit(tree: &Tree, flags: &[&str]) -> Output {
    let (dir, _keeps) = tree.dir_for("exporter");
    let mut command = Command::new(program());
    command.args(["serve", "--web.listen-address=127.0.0.1:0", "--no-collector.fabric"]);
    child::run("fabric-exporter", command.arg(tree.flag()).args(flags), &dir, EXIT_LIMIT)
}

/// A client that returns every status, with a time limit for each response.
pub fn agent(limit: Duration) -> ureq::Agent {
    ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(limit))
        .build()
        .into()
}

/// Gets a path from `address` with these request headers.
pub fn get(
    agent: &ureq::Agent,
    address: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<Response, ureq::Error> {
    let request = agent.get(format!("http://{address}{path}"));
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    response(request.call()?)
}

/// The whole response.
pub fn response(answer: ureq::http::Response<ureq::Body>) -> Result<Response, ureq::Error> {
    let (parts, mut body) = answer.into_parts();
    let headers = parts.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    Ok(Response {
        status: parts.status.as_u16(),
        headers: headers.collect(),
        // A fabric of 25,000 ports gives some 100 MB, far above the usual limit.
        body: body.with_config().limit(1 << 30).read_to_vec()?,
    })
}

fn capture_file(dir: &Path) -> PathBuf {
    dir.join("capture.pcap")
}

/// The address in the line that says where the program listens, in either log format.
fn listening_address(log: &str) -> Option<String> {
    // Only whole lines: the rest of one may be on its way.
    let (whole, _) = log.rsplit_once('\n')?;
    let line = whole.lines().find(|line| line.contains("listening"))?;
    let (_, rest) = line.split_once("127.0.0.1:")?;
    let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!port.is_empty()).then(|| format!("127.0.0.1:{port}"))
}
