//! A Linux kernel in QEMU with RDMA devices that a test creates and breaks.
//!
//! Devices, interfaces and kernel modules belong to a whole machine, and a test cannot use those of
//! the machine that it runs on. So each test process has one guest, booted when the first test needs
//! it, in which every test has its own devices. `tests/kernel` builds it.
//!
//! A script is sent by HTTP and its output comes back the same way. Programs in the guest are reached
//! by forwarded ports; QEMU takes free ones of the host's loopback for them.

mod exporter;
mod hca;
mod qemu;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

pub use exporter::{GuestExporter, run_to_exit};
pub use hca::{Rxe, TestHca};

use super::child;
use super::exporter::{agent, response};
use qemu::Qemu;

/// How long a script may run.
const SCRIPT_LIMIT: Duration = Duration::from_secs(300);

/// How long a rebuild after a change of sources may take.
const PREPARE_LIMIT: Duration = Duration::from_secs(300);

/// The running guest.
pub struct Guest {
    qemu: Qemu,
    agent: ureq::Agent,
    /// The unused ones of these ports.
    free: Mutex<Vec<(u16, String)>>,
}

/// The result of a script.
#[derive(Debug)]
pub struct ScriptOutput {
    /// Its exit status.
    pub status: i32,
    /// Its output, standard error included.
    pub text: String,
}

/// A port of the guest that is reached from outside, until this is dropped.
pub struct Forward {
    /// Where a program in the guest is to listen, on every address.
    pub guest_port: u16,
    /// Where it is then reached, as `127.0.0.1:PORT`.
    pub address: String,
}

impl Guest {
    /// The guest of this process, booted by the first call.
    pub fn get() -> &'static Self {
        // Never dropped. `Qemu` ends it. Every test gets the error of a failed boot.
        static GUEST: LazyLock<Result<Guest, String>> = LazyLock::new(|| {
            std::panic::catch_unwind(Guest::boot)
                .map_err(|panic| *panic.downcast().unwrap_or_else(|_| Box::default()))
        });
        GUEST.as_ref().unwrap_or_else(|e| panic!("cannot start the guest: {e}"))
    }

    /// The same kernel under a Debian with systemd, for a process that has no other guest. Programs
    /// are installed there by their packages.
    pub fn debian() -> Self {
        let rig = prepared();
        prepare("prepare-debian", &[]);
        Self::new(Qemu::boot(&rig, Some(&rig.join("debian.img"))))
    }

    fn boot() -> Self {
        Self::new(Qemu::boot(&prepared(), None))
    }

    fn new(qemu: Qemu) -> Self {
        let free = Mutex::new(qemu.forwards.clone());
        Self { qemu, agent: agent(SCRIPT_LIMIT), free }
    }

    /// Runs a shell script to its end. Any number of them may run at the same time.
    pub fn sh(&self, script: &str) -> ScriptOutput {
        self.try_sh(script).unwrap_or_else(|e| {
            panic!("the guest did not run {script:?}: {e}; {}", self.qemu.last_words())
        })
    }

    /// Runs a shell script that must succeed, and returns its output.
    pub fn must(&self, script: &str) -> String {
        let output = self.sh(script);
        assert_eq!(output.status, 0, "in the guest, {script:?} printed:\n{}", output.text);
        output.text
    }

    /// For use where a second panic would abort.
    fn try_sh(&self, script: &str) -> Result<ScriptOutput, String> {
        let url = format!("http://{}/cgi-bin/sh", self.qemu.control);
        let answer = self.agent.post(url).send(script).and_then(response);
        let answer = answer.map_err(|e| e.to_string())?;
        let status = answer.header("x-exit-status").and_then(|status| status.trim().parse().ok());
        Ok(ScriptOutput {
            status: status.ok_or_else(|| format!("invalid response: {answer:?}"))?,
            text: String::from_utf8_lossy(&answer.body).into_owned(),
        })
    }

    /// A port for a program in the guest to be reached at.
    pub fn forward(&self) -> Forward {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let (guest_port, address) = free.pop().expect("more programs in the guest than ports");
        Forward { guest_port, address }
    }

    /// A directory of the host that the guest has as `/share`.
    pub fn share(&self) -> &Path {
        &self.qemu.share
    }

    /// What the kernel has printed on its console, for a failure's message.
    pub fn console(&self) -> String {
        self.qemu.console()
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        let mut free = Guest::get().free.lock().unwrap_or_else(PoisonError::into_inner);
        free.push((self.guest_port, std::mem::take(&mut self.address)));
    }
}

/// Quotes a word for a shell script.
pub fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The directory of the kernel and its initial file system, rebuilt if their sources have changed.
fn prepared() -> PathBuf {
    prepare("prepare", &["--offline"])
}

/// Runs a script of tests/kernel, and returns the path of its output.
fn prepare(script: &str, args: &[&str]) -> PathBuf {
    let target = crate::paths::target();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = crate::paths::root().join("tests/kernel").join(script);
    let mut command = Command::new(path);
    command.args(args).env("CARGO_TARGET_DIR", &target);
    let output = child::run(script, &mut command, dir.path(), PREPARE_LIMIT);
    assert!(output.status.success(), "tests/kernel/{script}: {}", output.stderr);
    target.join("kernel-rig")
}
