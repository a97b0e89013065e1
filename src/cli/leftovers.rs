//! Files that no command leaves behind when it ends, also by a signal. Not for programs in a sandbox: their threads start
//! in it, and this has one.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::low_level::{emulate_default_handler, pipe};
use tempfile::TempDir;

use crate::exit::Fatal;

/// The files and folders.
static PATHS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Another part of the program handles signals, and removes them after that.
static IS_HANDLED: AtomicBool = AtomicBool::new(false);

/// A file or folder that is removed when a signal ends the program, while this value exists.
#[derive(Debug)]
pub struct Leftover(PathBuf);

impl Leftover {
    /// Removes a path at a signal.
    pub fn new(path: &Path) -> Result<Self, Fatal> {
        PATHS.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        let leftover = Leftover(path.to_owned());
        watch_signals()?;
        Ok(leftover)
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        PATHS.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| *path != self.0);
    }
}

/// A folder that is deleted when it is dropped, or when a signal ends the program.
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: TempDir,
    _leftover: Leftover,
}

impl TemporaryFolder {
    /// One in the usual place, whose name begins with this.
    pub fn new(prefix: &str) -> Result<Self, Fatal> {
        let folder = tempfile::Builder::new().prefix(prefix).tempdir();
        let folder = folder.map_err(Fatal::failed_to("cannot create a temporary directory"))?;
        let leftover = Leftover::new(folder.path())?;
        Ok(TemporaryFolder { folder, _leftover: leftover })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Leaves signals to other handlers from now on. They have to be installed before.
pub fn leave_signals_to_others() {
    IS_HANDLED.store(true, Ordering::Relaxed);
}

/// Removes everything, before the process ends in any way.
pub fn remove_all() {
    let paths = std::mem::take(&mut *PATHS.lock().unwrap_or_else(PoisonError::into_inner));
    for path in paths {
        // A second time if another thread has just made a file in the folder.
        let _ = fs::remove_file(&path)
            .or_else(|_| fs::remove_dir_all(&path))
            .or_else(|_| fs::remove_dir_all(&path));
    }
}

/// Has signals remove everything before they end the process as they always do.
fn watch_signals() -> Result<(), Fatal> {
    static ONCE: Once = Once::new();
    let mut result = Ok(());
    ONCE.call_once(|| result = start_watch());
    result.map_err(Fatal::failed_to("cannot install the handlers of signals"))
}

fn start_watch() -> std::io::Result<()> {
    let latest = Arc::new(AtomicUsize::new(0));
    let (mut received, wake) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        if !is_ignored(signal) {
            flag::register_usize(signal, Arc::clone(&latest), signal.unsigned_abs() as usize)?;
            pipe::register(signal, wake.try_clone()?)?;
        }
    }
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut byte = [0];
        while matches!(received.read(&mut byte), Ok(1..)) {
            if !IS_HANDLED.load(Ordering::Relaxed) {
                remove_all();
                let signal = i32::try_from(latest.load(Ordering::SeqCst)).unwrap_or(SIGTERM);
                let _ = emulate_default_handler(signal);
            }
        }
    })?;
    Ok(())
}

/// Whether this process was started with a signal ignored, as nohup does.
pub fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}
