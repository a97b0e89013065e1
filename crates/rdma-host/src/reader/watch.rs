//! Which file a job is reading, and since when: a read may block in the kernel for as long as the device's firmware
//! likes (mlx5 waits 60 s for a command: `MLX5_CMD_TIMEOUT_MSEC` in drivers/net/ethernet/mellanox/mlx5/core/cmd.c),
//! and cannot be interrupted.
//!
//! The owner of the job sees by its [`FileWatch`] which file blocks, abandons the job with its thread, and gives a
//! [successor](FileWatch::successor) to another one, whose reads of that file fail at once. When the abandoned read
//! returns, its job ends without touching another file, and the file is read again after the backoff. The files of a
//! directory `hw_counters` are skipped together, for the kernel reads them all at once, and holds a lock meanwhile
//! (drivers/infiniband/core/sysfs.c: `hw_stat_port_show`).

use std::cell::RefCell;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ib_mad::Moment;

use super::time::Time;

/// How long the read of a file may take. It takes microseconds, or a millisecond if the firmware is asked.
pub(super) const FILE_LIMIT: Duration = Duration::from_secs(2);

thread_local! {
    /// That of the job on this thread. A thread without one reads unobserved.
    static CURRENT: RefCell<Option<Arc<FileWatch>>> = const { RefCell::new(None) };
}

/// The files that a job reads.
#[derive(Debug)]
pub(super) struct FileWatch {
    time: Time,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the job began, while it runs.
    began: Option<Moment>,
    last_duration: Duration,
    /// The file that is being read; empty between two files. The memory is used again.
    file: Vec<u8>,
    file_began: Moment,
    is_abandoned: bool,
    skipped: Vec<SkippedFile>,
}

/// A file that is not read, because a read of it blocked.
#[derive(Clone, Debug)]
struct SkippedFile {
    /// Its path, or that of its directory, if no file of that is read.
    path: Box<[u8]>,
    /// Until when, once the read has returned.
    until: Option<Moment>,
}

impl FileWatch {
    pub fn new(time: Time) -> Self {
        FileWatch { time, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a job, and watches the files that it reads on this thread.
    pub fn run<T>(self: &Arc<Self>, job: impl FnOnce() -> T) -> T {
        /// Also after a panic.
        struct Ended<'a>(&'a FileWatch, Moment);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                CURRENT.set(None);
                let duration = self.0.time.now().since(self.1);
                let mut state = self.0.state();
                (state.began, state.last_duration) = (None, duration);
            }
        }
        let began = self.time.now();
        self.state().began = Some(began);
        CURRENT.set(Some(Arc::clone(self)));
        let _ended = Ended(self, began);
        job()
    }

    /// The duration of the job that ended last.
    pub fn last_duration(&self) -> Duration {
        self.state().last_duration
    }

    /// How long to wait before looking at the job again; `None` if it has run for longer than `limit`, or reads one
    /// file for too long.
    pub fn patience(&self, limit: Duration) -> Option<Duration> {
        let (state, now) = (self.state(), self.time.now());
        // It may not have begun yet.
        let job = state.began.map_or(limit, |began| limit.saturating_sub(now.since(began)));
        let file = if state.file.is_empty() { FILE_LIMIT } else { state.rest_of_file(now) };
        Some(job.min(file)).filter(|rest| !rest.is_zero()).map(|rest| self.time.real(rest))
    }

    /// The file whose read blocks.
    pub fn blocked_file(&self) -> Option<PathBuf> {
        let (state, now) = (self.state(), self.time.now());
        let is_blocked = !state.file.is_empty() && state.rest_of_file(now).is_zero();
        is_blocked.then(|| std::ffi::OsStr::from_bytes(&state.file).into())
    }

    /// Ends the job, as far as that is possible: it reads no other file.
    pub fn abandon(&self) {
        self.state().is_abandoned = true;
    }

    /// One for the job that takes over, which skips this file, too.
    pub fn successor(&self, blocked: &Path) -> Self {
        let mut skipped = self.state().skipped.clone();
        skipped.push(SkippedFile { path: extent(blocked).into(), until: None });
        FileWatch {
            time: self.time.clone(),
            state: Mutex::new(State { skipped, ..State::default() }),
        }
    }

    /// The blocked read of a file has returned: it is read again at this moment, and not before.
    pub fn release(&self, blocked: &Path, until: Moment) {
        let path = extent(blocked);
        for file in self.state().skipped.iter_mut().filter(|file| *file.path == *path) {
            file.until = Some(until);
        }
    }

    /// Whether the next job tries a file whose last read blocked.
    pub fn tries_again(&self) -> bool {
        let (state, now) = (self.state(), self.time.now());
        state.skipped.iter().any(|file| file.until.is_some_and(|until| now >= until))
    }

    /// The files that are not read.
    pub fn skipped(&self) -> Vec<PathBuf> {
        let path = |file: &SkippedFile| std::ffi::OsStr::from_bytes(&file.path).into();
        self.state().skipped.iter().map(path).collect()
    }

    fn begin(&self, directory: &Path, name: &str) -> io::Result<()> {
        let now = self.time.now();
        let mut state = self.state();
        if state.is_abandoned {
            return Err(io::Error::from_raw_os_error(libc::ECANCELED));
        }
        state.file.clear();
        state.file.extend_from_slice(directory.as_os_str().as_bytes());
        state.file.push(b'/');
        state.file.extend_from_slice(name.as_bytes());
        state.file_began = now;
        let State { file, skipped, .. } = &mut *state;
        let is_it = |skipped: &SkippedFile| {
            *skipped.path == **file || *skipped.path == *directory.as_os_str().as_bytes()
        };
        if let Some(index) = skipped.iter().position(is_it) {
            if skipped[index].until.is_none_or(|until| now < until) {
                file.clear();
                return Err(io::ErrorKind::TimedOut.into());
            }
            skipped.swap_remove(index);
        }
        Ok(())
    }
}

impl State {
    fn rest_of_file(&self, now: Moment) -> Duration {
        FILE_LIMIT.saturating_sub(now.since(self.file_began))
    }
}

/// What is not read while a read of this file blocks.
fn extent(blocked: &Path) -> &[u8] {
    let directory = blocked.parent().filter(|directory| directory.ends_with("hw_counters"));
    directory.unwrap_or(blocked).as_os_str().as_bytes()
}

/// Whether a read was skipped, because an earlier one blocked. Errors of the kernel have a number.
pub(super) fn is_skipped(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut && error.raw_os_error().is_none()
}

/// Begins the read of a file; it ends when the result is dropped. An error says that it must not be read.
pub(super) fn begin(directory: &Path, name: &str) -> io::Result<FileInProgress> {
    CURRENT.with_borrow(|watch| {
        let begun = watch.as_ref().map_or(Ok(()), |watch| watch.begin(directory, name));
        begun.map(|()| FileInProgress)
    })
}

pub(super) struct FileInProgress;

impl Drop for FileInProgress {
    fn drop(&mut self) {
        CURRENT.with_borrow(|watch| watch.iter().for_each(|watch| watch.state().file.clear()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECTORY: &str = "/sys/class/infiniband/mlx5_0/ports/1/counters";

    fn begin_one(name: &str) -> io::Result<FileInProgress> {
        begin(Path::new(DIRECTORY), name)
    }

    fn path(name: &str) -> PathBuf {
        Path::new(DIRECTORY).join(name)
    }

    #[test]
    fn file_blocks_once_its_limit_is_over() {
        let time = Time::manual();
        let watch = Arc::new(FileWatch::new(time.clone()));
        let limit = 3 * FILE_LIMIT;
        watch.run(|| {
            let file = begin_one("a").unwrap();
            time.advance(FILE_LIMIT / 2);
            assert_eq!((watch.blocked_file(), watch.patience(limit).is_some()), (None, true));
            drop(file);
            let _file = begin_one("b").unwrap();
            time.advance(FILE_LIMIT);
            assert_eq!((watch.blocked_file(), watch.patience(limit)), (Some(path("b")), None));
        });
        assert_eq!(watch.blocked_file(), None, "the job ended");
        assert_eq!(watch.last_duration(), FILE_LIMIT + FILE_LIMIT / 2);
    }

    #[test]
    fn many_slow_files_exceed_the_limit_of_the_job() {
        let time = Time::manual();
        let watch = Arc::new(FileWatch::new(time.clone()));
        let limit = 2 * FILE_LIMIT;
        watch.run(|| {
            for expected in [true, true, true, false] {
                let _file = begin_one("a").unwrap();
                time.advance(FILE_LIMIT / 2);
                assert_eq!(watch.patience(limit).is_some(), expected);
            }
            assert_eq!(watch.blocked_file(), None);
        });
    }

    #[test]
    fn abandoned_job_reads_no_other_file_and_successor_skips_the_blocked_one() {
        let time = Time::manual();
        let watch = Arc::new(FileWatch::new(time.clone()));
        let successor = Arc::new(watch.successor(&path("a")));
        watch.abandon();
        watch.run(|| {
            let error = begin_one("b").err().unwrap();
            assert_eq!(error.raw_os_error(), Some(libc::ECANCELED));
        });
        let reads = |name| successor.run(|| begin_one(name).map(drop));
        assert!(is_skipped(&reads("a").unwrap_err()));
        assert!(reads("b").is_ok());
        successor.release(&path("a"), time.now() + FILE_LIMIT);
        assert!(reads("a").is_err() && !successor.tries_again(), "it backs off");
        time.advance(FILE_LIMIT);
        assert!(successor.tries_again());
        assert!(reads("a").is_ok() && successor.skipped().is_empty());
        assert!(begin_one("a").is_ok(), "a thread without a job");
    }
}
