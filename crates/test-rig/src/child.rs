//! Child processes: signals, bounded waits, and termination when their owner is dropped.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long a child may take to end after SIGTERM before that counts as a failure.
pub const STOP_LIMIT: Duration = Duration::from_secs(15);

/// A running program that is terminated when this value is dropped.
pub struct Running {
    name: String,
    child: Child,
    ended: Option<ExitStatus>,
}

impl Running {
    /// Starts `command`, called `name` in every message.
    pub fn spawn(name: &str, command: &mut Command) -> Self {
        let child = command.spawn().unwrap_or_else(|e| panic!("cannot start {name}: {e}"));
        Self { name: name.to_owned(), child, ended: None }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, if the program has ended.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self
                .child
                .try_wait()
                .unwrap_or_else(|e| panic!("cannot wait for {}: {e}", self.name));
        }
        self.ended
    }

    /// Sends a signal by its short name, such as `TERM`, unless the program has ended.
    ///
    /// The child is not reaped yet when this sends, so its id cannot belong to another process.
    pub fn signal(&mut self, signal: &str) {
        if self.try_wait().is_some() {
            return;
        }
        // The shell's own `kill`: the standard library can only send SIGKILL.
        let sent = Command::new("/bin/sh")
            .args(["-c", &format!("kill -{signal} {}", self.pid())])
            .status();
        // A zombie can still be signalled, so a failure here is a bug in the rig.
        assert!(
            sent.as_ref().is_ok_and(ExitStatus::success),
            "cannot send SIG{signal} to {}: {sent:?}",
            self.name
        );
    }

    /// The exit status, waiting at most `limit`; `None` when the program is still running then.
    pub fn wait_at_most(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.try_wait() {
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the program by SIGTERM and returns its exit status; panics if it does not end.
    pub fn stop(&mut self) -> ExitStatus {
        self.end_within(STOP_LIMIT)
            .unwrap_or_else(|| panic!("{} did not end within {STOP_LIMIT:?} of SIGTERM", self.name))
    }

    /// Ends the program by SIGTERM, or by SIGKILL at the limit, and then returns `None`.
    ///
    /// SIGKILL is the last resort: a killed client of ibsim keeps its slot there.
    pub fn end_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        self.signal("TERM");
        self.signal("CONT"); // a paused program acts on SIGTERM only when it goes on
        let status = self.wait_at_most(limit);
        if status.is_none() {
            self.kill();
        }
        status
    }

    /// Ends the program by SIGKILL, and reaps it.
    pub fn kill(&mut self) {
        if self.try_wait().is_none() {
            let _ = self.child.kill();
            self.ended = self.child.wait().ok();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.end_within(STOP_LIMIT);
    }
}

/// The result of a program that ran to its end.
#[derive(Debug)]
pub struct Output {
    /// The exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Runs `command` to its end in `dir`, which keeps its output as files.
///
/// Files rather than pipes: nothing has to read while the program runs, however much it prints.
pub fn run(name: &str, command: &mut Command, dir: &Path, limit: Duration) -> Output {
    let (out, err) = (dir.join("stdout"), dir.join("stderr"));
    command.stdin(Stdio::null()).stdout(create(&out)).stderr(create(&err));
    let mut running = Running::spawn(name, command);
    let Some(status) = running.wait_at_most(limit) else {
        running.kill();
        panic!("{name} did not end within {limit:?}; its stderr:\n{}", read_lossy(&err));
    };
    Output { status, stdout: read_lossy(&out), stderr: read_lossy(&err) }
}

/// A new file for a child to write to.
pub fn create(path: &Path) -> File {
    File::create(path).unwrap_or_else(|e| panic!("cannot create {}: {e}", path.display()))
}

/// The text of a file; an absent file reads as empty, for a log that does not exist yet.
pub fn read_lossy(path: &Path) -> String {
    match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
        Err(e) => panic!("cannot read {}: {e}", path.display()),
    }
}
