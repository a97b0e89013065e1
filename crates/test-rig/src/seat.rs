//! A seat: a node of a simulated fabric on which a program runs.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::child::{self, Output};
use super::require;

/// How long a diagnostic may run. The slowest, on the largest fabric through a proxy with a delay, takes about 20 s.
const TOOL_LIMIT: Duration = Duration::from_secs(120);

/// The environment that puts a program on a node of a simulated fabric.
///
/// From an [`Ibsim`](super::Ibsim) or, for a slow or lossy way to the same fabric, from a [`Proxy`](super::Proxy).
#[derive(Clone)]
pub struct Seat {
    socket_name: String,
    host: String,
    // Shared, so that a program's files outlive the ibsim it ran on.
    dir: Arc<TempDir>,
}

impl Seat {
    pub(super) fn new(socket_name: &str, host: &str, dir: Arc<TempDir>) -> Self {
        Self { socket_name: socket_name.to_owned(), host: host.to_owned(), dir }
    }

    /// The same fabric from another node: a node id or a description; a switch will do.
    #[must_use]
    pub fn at(&self, host: &str) -> Self {
        Self { host: host.to_owned(), ..self.clone() }
    }

    /// The same node, reached under another socket name.
    #[must_use]
    pub fn under(&self, socket_name: &str) -> Self {
        Self { socket_name: socket_name.to_owned(), ..self.clone() }
    }

    /// The name under which this seat reaches its fabric.
    pub fn socket_name(&self) -> &str {
        &self.socket_name
    }

    /// The directory of the fabric this seat belongs to.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A copy.
    pub(super) fn shared_dir(&self) -> Arc<TempDir> {
        Arc::clone(&self.dir)
    }

    /// A new directory for one program.
    ///
    /// One each: the preload library writes `sys-<pid>` below the working directory, and a program
    /// may not see another one's.
    pub fn new_dir(&self, name: &str) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.path().join(format!("{name}-{number}"));
        std::fs::create_dir(&dir)
            .unwrap_or_else(|e| panic!("cannot create {}: {e}", dir.display()));
        dir
    }

    /// A command for `program` on this seat, to run in `dir`.
    pub fn command_in(&self, program: impl AsRef<Path>, dir: &Path) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .current_dir(dir)
            .env("LD_PRELOAD", preload_library())
            .env("IBSIM_SOCKNAME", &self.socket_name)
            .env("SIM_HOST", &self.host)
            // Left over in a user's shell, these would send the program elsewhere.
            .env_remove("IBSIM_SERVER_NAME")
            .env_remove("IBSIM_SERVER_PORT")
            .env_remove("SIM_SET_ISSM");
        command
    }

    /// A command for an external program on this seat, in a new directory.
    pub fn command(&self, program: &str) -> Command {
        self.command_in(require(program), &self.new_dir(program))
    }

    /// Runs a diagnostic to its end and returns its standard output; panics when it fails.
    pub fn tool(&self, program: &str, args: &[&str]) -> String {
        let output = self.try_tool(program, args);
        assert!(
            output.status.success(),
            "{program} {args:?}: {}\n{}{}",
            output.status,
            output.stdout,
            output.stderr
        );
        output.stdout
    }

    /// Runs a diagnostic to its end, with any outcome.
    ///
    /// With a proxy that drops MADs note two things. The diagnostics leave retries to the kernel, which
    /// ibsim does not replace: they fail at the first loss. And a response that arrives
    /// while one exits can block it in the preload library: give it a timeout far above the delay.
    pub fn try_tool(&self, program: &str, args: &[&str]) -> Output {
        let dir = self.new_dir(program);
        let mut command = self.command_in(require(program), &dir);
        child::run(program, command.args(args), &dir, TOOL_LIMIT)
    }
}

impl From<&Seat> for Seat {
    fn from(seat: &Self) -> Self {
        seat.clone()
    }
}

/// The library that redirects a program's umad calls to ibsim, wherever this architecture keeps it.
fn preload_library() -> PathBuf {
    std::fs::read_dir("/usr/lib")
        .expect("/usr/lib cannot be listed")
        .filter_map(|entry| Some(entry.ok()?.path().join("umad2sim/libumad2sim.so")))
        .find(|file| file.is_file())
        .unwrap_or_else(|| {
            panic!(
                "/usr/lib/*/umad2sim/libumad2sim.so is missing: apt-get install ibsim-utils (make test does it)"
            )
        })
}
