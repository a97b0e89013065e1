//! The program under test, running in the guest.

use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use super::super::exporter::{self, Response};
use super::super::metrics::Metrics;
use super::super::{child, require};
use super::{Forward, Guest, ScriptOutput, quoted};

/// How long one response may take. The emulated guest gets a tenth of a CPU while all other tests run on two: responses
/// of 60 s were seen.
const HTTP_LIMIT: Duration = Duration::from_secs(240);

/// How long the guest may take, in seconds, to start the exporter, and to stop it.
const START_LIMIT: u32 = 240;

/// An exporter that runs in the guest and is scraped from outside.
pub struct GuestExporter {
    /// Its directory in the guest.
    dir: String,
    pid: u32,
    ended: Option<i32>,
    forward: Forward,
    agent: ureq::Agent,
}

impl GuestExporter {
    /// Starts `fabric-exporter serve` with these flags, and waits until it listens.
    pub fn start(flags: &[&str]) -> Self {
        Self::run("serve", flags)
    }

    /// Starts `fabric-exporter demo`, which does not need the guest's devices, and waits in the same way.
    pub fn demo(flags: &[&str]) -> Self {
        // By default it logs nothing, and its log shows when it listens. The guest has no disk for a history.
        let records = flags.iter().any(|flag| flag.starts_with("--history."));
        let own: &[&str] = if records { &[] } else { &["--no-history"] };
        Self::run("demo", &[&["--log.level=info"], own, flags].concat())
    }

    fn run(verb: &str, flags: &[&str]) -> Self {
        let guest = Guest::get();
        let forward = guest.forward();
        let listen = format!("--web.listen-address=0.0.0.0:{}", forward.guest_port);
        let command = command(&[&[verb, &listen], flags].concat());
        let started = guest.must(&format!(
            "set -e; dir=$(mktemp -d /tmp/exporter.XXXXXX); cd \"$dir\"
            {{ {command} >stdout 2>stderr & echo $! >pid; wait $!; echo $? >status; }} &
            left={START_LIMIT}00
            until grep -q listening stderr || [ -s status ] || [ $left -eq 0 ]; do
                sleep 0.01; left=$((left - 1))
            done 2>/dev/null
            if [ $left -eq 0 ] || [ -s status ]; then cat stderr; kill -9 $(cat pid); exit 1; fi
            echo \"$dir\" $(cat pid)"
        ));
        let (dir, pid) = started.trim_end().split_once(' ').expect("a directory and an id");
        let pid = pid.parse().unwrap_or_else(|e| panic!("{started:?}: {e}"));
        Self { dir: dir.to_owned(), pid, ended: None, forward, agent: exporter::agent(HTTP_LIMIT) }
    }

    /// Gets a path with these request headers.
    pub fn get(&self, path: &str, headers: &[(&str, &str)]) -> Response {
        exporter::get(&self.agent, &self.forward.address, path, headers)
            .unwrap_or_else(|e| panic!("GET {path}: {e}; the exporter's log:\n{}", self.log()))
    }

    /// Scrapes it.
    pub fn metrics(&self) -> Metrics {
        let response = self.get("/metrics", &[]);
        assert_eq!(response.status, 200, "GET /metrics: {}", response.text());
        Metrics::parse(response.text())
    }

    /// Where the host reaches it, as `127.0.0.1:PORT`.
    pub fn address(&self) -> &str {
        &self.forward.address
    }

    /// Its process id in the guest.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        // As `Running::wait_until_log_is_written` does.
        let writes = format!("grep -qs ' (log) [RD]' /proc/{}/task/*/stat", self.pid);
        Guest::get().must(&format!("while {writes}; do sleep 0.1; done; cat {}/stderr", self.dir))
    }

    /// Sends it a signal by its short name, such as `HUP`.
    pub fn signal(&self, signal: &str) {
        Guest::get().must(&format!("kill -{signal} {}", self.pid));
    }

    /// Stops it by SIGTERM and returns its exit status; panics if it does not stop.
    pub fn stop(&mut self) -> i32 {
        if let Some(status) = self.ended {
            return status;
        }
        let script = self.ending();
        let output = Guest::get().must(&script);
        let status = output.trim().parse().unwrap_or_else(|e| panic!("{script:?}: {output}: {e}"));
        self.ended = Some(status);
        status
    }

    /// Prints the exit status, or the log of one that had to be killed.
    fn ending(&self) -> String {
        format!(
            "cd {}; kill -TERM {pid} 2>/dev/null; left={START_LIMIT}00
            until [ -s status ] || [ $left -eq 0 ]; do sleep 0.01; left=$((left - 1)); done
            cat status || {{ kill -9 {pid}; echo did not end:; cat stderr; exit 1; }}",
            self.dir,
            pid = self.pid,
        )
    }
}

impl Drop for GuestExporter {
    fn drop(&mut self) {
        // An exporter that does not stop fails its test, unless that has failed already.
        if std::thread::panicking() {
            let _ = Guest::get().try_sh(&self.ending());
        } else {
            self.stop();
        }
    }
}

/// Runs the program in the guest with these arguments to its end.
pub fn run_to_exit(args: &[&str]) -> ScriptOutput {
    let command = command(args);
    // A program that does not end is killed.
    Guest::get().sh(&format!("exec timeout -s KILL {START_LIMIT} {command}"))
}

/// A command line for the guest's shell.
fn command(args: &[&str]) -> String {
    args.iter().fold(program().to_owned(), |line, arg| line + " " + &quoted(arg))
}

/// The path of the program in the guest, copied there by the first call.
///
/// The guest has its libraries already, from packages of the same release.
fn program() -> &'static str {
    static PROGRAM_IN_GUEST: OnceLock<()> = OnceLock::new();
    PROGRAM_IN_GUEST.get_or_init(|| {
        let guest = Guest::get();
        // Debug information makes nine tenths of it.
        let mut strip = Command::new(require("strip"));
        strip.arg("-o").arg(guest.share().join("fabric-exporter")).arg(crate::paths::program());
        let dir = tempfile::tempdir().expect("a temporary directory");
        let output = child::run("strip", &mut strip, dir.path(), HTTP_LIMIT);
        assert!(output.status.success(), "strip {}: {}", crate::paths::program(), output.stderr);
        // Into memory: each page of a program is otherwise a request to the host.
        guest.must("cp /share/fabric-exporter /bin/fabric-exporter");
    });
    "/bin/fabric-exporter"
}
