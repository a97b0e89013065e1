//! The process that runs the commands of Slurm for an exporter that may start no programs.
//!
//! The sandbox of the exporter permits neither programs nor connections. So `serve` leaves a second process behind, before
//! it enters the sandbox, which runs `squeue` and `sinfo` at intervals and writes what it has understood into a pipe. It
//! takes no requests, has no capabilities, cannot write files, and ends with the exporter.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tokio::net::unix::pipe;
use tokio::time::{MissedTickBehavior, interval};

use super::report::JobsReport;
use super::slurm::Slurm;
use crate::config::JobsSettings;
use crate::sandbox::{User, enter_for_programs};

/// The first argument of the process, instead of the name of the program.
pub const NAME: &str = "fabric-exporter: runs squeue and sinfo";

/// The problem once the process has ended: the sandbox permits no other.
pub(super) const ENDED: &str =
    "the process that runs squeue is not running: restart the exporter to read jobs again";

/// The longest report: a million hosts.
const MAX_REPORT: u32 = 128 << 20;

/// The process.
#[derive(Debug)]
pub struct Helper {
    reports: ChildStdout,
    /// It ends when this is closed.
    _alive: ChildStdin,
    _process: Child,
}

/// Whether the process gets a variable of the environment: what commands of Slurm use. The socket of the service manager
/// and the like are not for it.
fn is_passed(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    ["PATH", "HOME", "LANG", "TZ", "LD_LIBRARY_PATH"].contains(&&*name)
        || name.starts_with("SLURM_")
        || name.starts_with("LC_")
}

impl Helper {
    /// Starts it, for commands of this user.
    pub fn start(settings: &JobsSettings, user: Option<&User>, confine: bool) -> io::Result<Self> {
        Self::start_program(&std::env::current_exe()?, settings, user, confine)
    }

    /// The same with this exporter, for tests.
    pub fn start_program(
        program: &Path,
        settings: &JobsSettings,
        user: Option<&User>,
        confine: bool,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command
            .arg0(NAME)
            .arg(settings.interval.as_millis().to_string())
            .arg(settings.drained.to_string())
            .arg(confine.to_string())
            .arg(user.map(User::reference).unwrap_or_default())
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| is_passed(name)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let lost = || io::Error::other("it has no pipe");
        let reports = process.stdout.take().ok_or_else(lost)?;
        let alive = process.stdin.take().ok_or_else(lost)?;
        Ok(Helper { reports, _alive: alive, _process: process })
    }

    /// Waits for the next report.
    pub(super) fn receive(&mut self) -> io::Result<JobsReport> {
        let mut length = [0; 4];
        self.reports.read_exact(&mut length)?;
        let length = u32::from_be_bytes(length);
        if length > MAX_REPORT {
            return Err(io::Error::new(ErrorKind::InvalidData, "the report is too long"));
        }
        let mut bytes = Vec::new();
        (&mut self.reports).take(length.into()).read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes).map_err(io::Error::from)
    }
}

/// The process: reports until the exporter ends.
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<String> =
        arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    let [interval, drained, confine, user] = &arguments[..] else { return ExitCode::from(2) };
    let Ok(interval) = interval.parse().map(Duration::from_millis) else {
        return ExitCode::from(2);
    };
    // The exporter ends on these, and this with it. SIGHUP is for its web config.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let _ = signal_hook::flag::register(signal, Arc::default());
    }
    let wanted = Some(user.as_str()).filter(|name| !name.is_empty());
    let user = wanted.and_then(|name| User::choose(Some(name), false).ok().flatten());
    if wanted.is_some() && user.is_none() {
        return ExitCode::from(2);
    }
    enter_for_programs(user.as_ref(), confine == "true");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    match runtime.block_on(report(interval, drained == "true")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

async fn report(every: Duration, drained: bool) -> io::Result<()> {
    let exporter = pipe::Receiver::from_owned_fd(io::stdin().as_fd().try_clone_to_owned()?)?;
    let mut slurm = Slurm::default();
    // A zero would panic.
    let mut ticks = interval(every.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let next = async {
            ticks.tick().await;
            slurm.read(drained).await
        };
        let report = tokio::select! {
            // What runs is killed.
            () = end_of(&exporter) => return Ok(()),
            report = next => report,
        };
        // Blocks while the exporter does not read; nothing else is to be done meanwhile.
        send(&report)?;
    }
}

/// Waits until the exporter has closed the pipe, into which it writes nothing.
async fn end_of(exporter: &pipe::Receiver) {
    let mut bytes = [0; 16];
    loop {
        if exporter.readable().await.is_err() {
            return;
        }
        match exporter.try_read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn send(report: &JobsReport) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(report)?;
    if bytes.len() > MAX_REPORT as usize {
        let jobs = Err("the jobs are too many to pass on".to_owned());
        bytes = serde_json::to_vec(&JobsReport { jobs, drained: None })?;
    }
    let mut out = io::stdout().lock();
    out.write_all(&(bytes.len() as u32).to_be_bytes())?;
    out.write_all(&bytes)?;
    out.flush()
}
