//! Runs a program of the site, within limits of time and output.

use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// What a program may take.
#[derive(Clone, Copy, Debug)]
pub struct CommandLimits {
    /// Until it has ended.
    pub time: Duration,
    /// The length of its standard output.
    pub bytes: u64,
}

/// Why there is no output.
#[derive(Debug, Error)]
pub enum CommandError {
    /// There is no such program.
    #[error("it is not installed, or not in PATH")]
    NotInstalled,
    /// It has not ended, and was killed.
    #[error("no answer within {} s", .0.as_secs_f64())]
    TimeOut(Duration),
    /// It wrote more, and was killed.
    #[error("it wrote more than {0} bytes")]
    TooLong(u64),
    /// It ended with an error: the first line of its standard error, or its exit status.
    #[error("{0}")]
    Failed(String),
    /// It could not be started or read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// How much of the standard error is kept: its first line says why.
const MAX_ERROR: usize = 4096;

/// How long a program that was killed is waited for, so that it is no zombie.
const REAP_TIME: Duration = Duration::from_secs(1);

/// The program and those that it has started, until it was waited for. They are killed also if nobody wants the output any
/// more.
struct Group(Option<Pid>);

impl Group {
    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The standard output of a program, which is found in `PATH` and gets its arguments without a shell. Times of Slurm are
/// in seconds since 1970.
pub async fn output(
    program: impl AsRef<OsStr>,
    arguments: &[&str],
    limits: CommandLimits,
) -> Result<Vec<u8>, CommandError> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("SLURM_TIME_FORMAT", "%s")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // It may be a script that waits for another program: both are killed.
        .process_group(0)
        .kill_on_drop(true);
    let mut child = match command.spawn() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(CommandError::NotInstalled);
        }
        child => child?,
    };
    let mut group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let result = timeout(limits.time, finish(&mut child, limits.bytes)).await;
    let result = result.unwrap_or(Err(CommandError::TimeOut(limits.time)));
    if child.id().is_some() {
        group.kill();
        let _ = timeout(REAP_TIME, child.wait()).await;
    } else {
        // It was waited for: another process may have its id.
        group.0 = None;
    }
    let (status, stdout, stderr) = result?;
    if status.success() {
        return Ok(stdout);
    }
    let stderr = String::from_utf8_lossy(&stderr);
    let first = stderr.lines().map(str::trim).find(|line| !line.is_empty());
    Err(CommandError::Failed(first.map_or_else(|| status.to_string(), str::to_owned)))
}

async fn finish(
    child: &mut Child,
    limit: u64,
) -> Result<(ExitStatus, Vec<u8>, Vec<u8>), CommandError> {
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    // Both at once: it waits while one of the pipes is full.
    let (stdout, stderr) = tokio::try_join!(bounded(stdout, limit), beginning(stderr))?;
    Ok((child.wait().await?, stdout, stderr))
}

async fn bounded(
    pipe: Option<impl AsyncRead + Unpin>,
    limit: u64,
) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    let Some(pipe) = pipe else { return Ok(bytes) };
    pipe.take(limit.saturating_add(1)).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 > limit { Err(CommandError::TooLong(limit)) } else { Ok(bytes) }
}

/// Reads all, and keeps the beginning.
async fn beginning(pipe: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, CommandError> {
    let (mut kept, mut chunk) = (Vec::new(), [0; 1024]);
    let Some(mut pipe) = pipe else { return Ok(kept) };
    loop {
        let length = pipe.read(&mut chunk).await?;
        if length == 0 {
            return Ok(kept);
        }
        let room = MAX_ERROR.saturating_sub(kept.len()).min(length);
        kept.extend_from_slice(&chunk[..room]);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn run(script: &str, time: Duration, bytes: u64) -> Result<String, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let output = runtime.block_on(output("sh", &["-c", script], CommandLimits { time, bytes }));
        output.map(|it| String::from_utf8(it).unwrap()).map_err(|error| error.to_string())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn output_or_the_first_line_of_the_error_is_returned() {
        assert_eq!(run("echo $SLURM_TIME_FORMAT", LONG, 100).unwrap(), "%s\n");
        assert_eq!(
            run("echo; echo ' why ' >&2; echo more >&2; exit 3", LONG, 100).unwrap_err(),
            "why"
        );
        assert_eq!(run("exit 3", LONG, 100).unwrap_err(), "exit status: 3");
        // More than a pipe holds on both.
        let both = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero";
        assert_eq!(run(both, LONG, 300_000).unwrap().len(), 300_000);
    }

    #[test]
    fn program_that_hangs_or_writes_for_ever_is_killed_with_its_children() {
        let began = Instant::now();
        let hangs = run("sleep 1000 & sleep 1000", Duration::from_millis(200), 100);
        assert_eq!(hangs.unwrap_err(), "no answer within 0.2 s");
        assert_eq!(
            run("yes | cat", LONG, 1 << 20).unwrap_err(),
            "it wrote more than 1048576 bytes"
        );
        assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
    }

    #[test]
    fn nothing_runs_on_when_the_output_is_not_wanted_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("id");
        let script = format!("sleep 1000 & echo $! > {}; sleep 1000", file.display());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let id = runtime.block_on(async {
            let limits = CommandLimits { time: LONG, bytes: 1 };
            let arguments = ["-c", &*script];
            let started = async {
                loop {
                    let text = std::fs::read_to_string(&file).unwrap_or_default();
                    match text.strip_suffix('\n') {
                        Some(id) => return id.to_owned(),
                        None => tokio::time::sleep(Duration::from_millis(10)).await,
                    }
                }
            };
            tokio::select! {
                output = output("sh", &arguments, limits) => panic!("{output:?}"),
                id = started => id,
            }
        });
        // An orphan may stay a zombie, if nobody waits for it.
        let began = Instant::now();
        let runs = || {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while runs() {
            assert!(began.elapsed() < LONG, "the child of the program runs on");
            std::thread::yield_now();
        }
    }

    #[test]
    fn missing_program_is_called_missing() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let limits = CommandLimits { time: LONG, bytes: 1 };
        let found = runtime.block_on(output("no-such-program-of-slurm", &[], limits));
        assert!(matches!(found, Err(CommandError::NotInstalled)), "{found:?}");
    }
}
