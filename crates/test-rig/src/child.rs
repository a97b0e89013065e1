//! Child processes: signals, bounded waits, and termination when their owner is dropped, or when the test process is
//! killed.

use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::pause;

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
        Self::of(name, spawn_bound(command))
    }

    fn of(name: &str, child: io::Result<Child>) -> Self {
        let child = child.unwrap_or_else(|e| panic!("cannot start {name}: {e}"));
        Self { name: name.to_owned(), child, ended: None }
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until an exporter has written what it has logged. A thread of its own writes, so on a busy machine a response
    /// may come before the lines that were logged before it.
    pub fn wait_until_log_is_written(&self) {
        super::wait_until(STOP_LIMIT, "the log to be written", || {
            (!self.is_writing_log()).then_some(())
        });
    }

    /// Whether the thread that writes the log runs or could run. It sleeps while nothing is queued.
    fn is_writing_log(&self) -> bool {
        // A process that has ended has no threads.
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.pid()));
        threads.into_iter().flatten().flatten().any(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.split_once(" (log) ").is_some_and(|(_, rest)| rest.starts_with(['R', 'D']))
        })
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
        let number = match signal {
            "CONT" => Signal::CONT,
            "HUP" => Signal::HUP,
            "INT" => Signal::INT,
            "KILL" => Signal::KILL,
            "STOP" => Signal::STOP,
            "TERM" => Signal::TERM,
            _ => panic!("SIG{signal} is not among the signals that tests send"),
        };
        // A zombie can still be signalled, so a failure here is a bug in the rig.
        kill_process(Pid::from_child(&self.child), number)
            .unwrap_or_else(|e| panic!("cannot send SIG{signal} to {}: {e}", self.name));
    }

    /// The exit status, waiting at most `limit`; `None` when the program is still running then.
    pub fn wait_at_most(&mut self, limit: Duration) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.try_wait() {
                return Some(status);
            }
            let waited = began.elapsed();
            if waited >= limit {
                return None;
            }
            std::thread::sleep(pause(waited));
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

/// Starts a program that gets SIGTERM when this process ends, however that ends.
///
/// The kernel sends it when the thread that started the program ends, and those of tests end with their test.
/// So one thread that lives as long as the process starts all programs.
#[allow(unsafe_code)]
fn spawn_bound(command: &mut Command) -> io::Result<Child> {
    type Started = (Command, io::Result<Child>);
    static STARTER: LazyLock<Mutex<(Sender<Command>, Receiver<Started>)>> = LazyLock::new(|| {
        let (orders, ordered) = mpsc::channel::<Command>();
        let (started, results) = mpsc::channel();
        let start = move || {
            for mut command in ordered {
                let child = command.spawn();
                if started.send((command, child)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("starter".into()).spawn(start).expect("a thread");
        Mutex::new((orders, results))
    });
    let parent = std::process::id();
    // SAFETY: between fork and exec it makes two system calls, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::TERM))?;
            // The parent may have ended just before.
            let has_parent = std::os::unix::process::parent_id() == parent;
            if has_parent { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
        });
    }
    let starter = STARTER.lock().unwrap_or_else(PoisonError::into_inner);
    let ordered = std::mem::replace(command, Command::new(""));
    starter.0.send(ordered).expect("the thread lives as long as the process");
    let (ordered, child) = starter.1.recv().expect("the thread answers each order");
    *command = ordered;
    child
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
    // It ends by itself, and a fork of a large test process would take longer than most of these programs.
    let mut running = Running::of(name, command.spawn());
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
