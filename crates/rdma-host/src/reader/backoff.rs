//! Files of sysfs that may refuse to be read, each with a backoff.
//!
//! A read may fail with EINVAL, EPERM or EOPNOTSUPP, or give `N/A (no PMA)`, for ever or for a while. On a restricted
//! function of an mlx5 each such read also writes a line to the kernel's log (ACCESS_REG 0x805), so a file that never
//! worked is not read again until its backoff is over. One that did work is tried again at the next read: firmware
//! that is busy fails a read now and then.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use ib_mad::Moment;

use super::kept::{Allowance, KeepingDirectory, KeptFile};
use super::watch;

/// The time of a read, how long to back off should it fail, and which files may stay open after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt<'a> {
    pub now: Moment,
    pub error_backoff: Duration,
    pub files: &'a Arc<Allowance>,
}

/// Until when not to read again after a read that failed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    pub until: Option<Moment>,
}

impl Backoff {
    pub(super) fn is_over(self, attempt: Attempt<'_>) -> bool {
        self.until.is_none_or(|until| attempt.now >= until)
    }

    pub(super) fn after_failure(attempt: Attempt<'_>) -> Self {
        Backoff { until: Some(attempt.now + attempt.error_backoff) }
    }

    /// After a read, of this outcome.
    pub(super) fn after<T>(attempt: Attempt<'_>, outcome: &io::Result<T>) -> Self {
        if outcome.is_ok() { Backoff::default() } else { Backoff::after_failure(attempt) }
    }
}

/// Why a file gave no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Failure {
    /// An error of the kernel.
    Kernel(i32),
    /// Not of the expected form, such as `N/A (no PMA)`.
    Malformed,
    /// A read of it blocked, so it is skipped.
    Blocked,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Kernel(number) => {
                let text = io::Error::from_raw_os_error(*number).to_string();
                f.write_str(text.split(" (os error").next().unwrap_or_default())
            }
            Failure::Malformed => f.write_str("not a valid value"),
            Failure::Blocked => f.write_str("the read hangs"),
        }
    }
}

#[derive(Debug)]
pub(super) struct BackoffFile {
    file: KeptFile,
    backoff: Backoff,
    has_succeeded: bool,
    /// Why the latest read gave no value.
    failure: Option<Failure>,
}

impl BackoffFile {
    /// A file that has not been read yet.
    pub(super) fn new(name: &str) -> Self {
        let (file, backoff) = (KeptFile::new(name), Backoff::default());
        BackoffFile { file, backoff, has_succeeded: false, failure: None }
    }

    pub(super) fn name(&self) -> &str {
        &self.file.name
    }

    /// Reads and parses the file; `None` if that fails, or while it is backing off. The error is the kernel's.
    pub(super) fn read<T>(
        &mut self,
        directory: &KeepingDirectory,
        attempt: Attempt<'_>,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        if !self.is_due(attempt) {
            return Ok(None);
        }
        let value = self.file.read(directory, attempt.files, parse);
        let failure = match &value {
            Ok(Some(_)) => {
                (self.backoff, self.has_succeeded) = (Backoff::default(), true);
                self.failure = None;
                return value;
            }
            Ok(None) => Failure::Malformed,
            Err(error) if is_local(error) => return value,
            Err(error) if watch::is_skipped(error) => {
                // No read, so no backoff: the watch has it.
                self.failure = Some(Failure::Blocked);
                return value;
            }
            Err(error) => error.raw_os_error().map_or(Failure::Malformed, Failure::Kernel),
        };
        if !self.has_succeeded || self.failure.is_some() {
            self.backoff = Backoff::after_failure(attempt);
        }
        self.failure = Some(failure);
        value
    }

    /// Whether it is not backing off.
    pub(super) fn is_due(&self, attempt: Attempt<'_>) -> bool {
        self.backoff.is_over(attempt)
    }

    /// Whether any read gave a value.
    pub(super) fn has_succeeded(&self) -> bool {
        self.has_succeeded
    }

    /// Does not read it until the backoff of another file is over, which was read for all.
    pub(super) fn back_off(&mut self, attempt: Attempt<'_>) {
        self.backoff = Backoff::after_failure(attempt);
    }

    /// Ends the backoff: something happened that may let the next read succeed.
    pub(super) fn reset_backoff(&mut self) {
        self.backoff = Backoff::default();
    }

    /// Whether the latest read failed, or was skipped because an earlier one blocked.
    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Why it is backing off, if it is: not after the first failure of a file that has worked.
    pub(super) fn backs_off(&self) -> Option<Failure> {
        self.failure.filter(|failure| *failure != Failure::Blocked && self.backoff.until.is_some())
    }
}

/// Whether a read failed because this process lacks descriptors or memory, was interrupted, or gave it up: not the
/// file's failure. It is tried again at the next read.
fn is_local(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR | libc::ECANCELED)
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::reader::sysfs::Directory;

    fn file_read_at(directory: &Path) -> impl FnMut(u64) -> Result<Option<u8>, io::ErrorKind> {
        let mut directory = KeepingDirectory::new(Directory::open(directory).unwrap());
        let (mut file, files) = (BackoffFile::new("rate"), Allowance::new(1));
        move |seconds| {
            let now = Moment::default() + Duration::from_secs(seconds);
            let error_backoff = Duration::from_secs(60);
            let attempt = Attempt { now, error_backoff, files: &files };
            directory.look();
            let read = file.read(&directory, attempt, |text| text.parse::<u8>().ok());
            read.map_err(|error| error.kind())
        }
    }

    #[test]
    fn file_that_never_worked_backs_off_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut read = file_read_at(dir.path());
        assert_eq!(read(0), Err(io::ErrorKind::NotFound));
        std::fs::write(dir.path().join("rate"), "7\n").unwrap();
        assert_eq!(read(59), Ok(None), "it backs off");
        assert_eq!(read(60), Ok(Some(7)));
    }

    #[test]
    fn file_that_worked_backs_off_after_second_failure() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rate");
        let mut read = file_read_at(dir.path());
        let put = |text| std::fs::write(&path, text).unwrap();
        put("7\n");
        assert_eq!(read(0), Ok(Some(7)));
        put("fast\n");
        assert_eq!(read(1), Ok(None), "it does not parse");
        put("8\n");
        assert_eq!(read(2), Ok(Some(8)), "it was tried again");
        put("fast\n");
        assert_eq!((read(3), read(4)), (Ok(None), Ok(None)));
        put("9\n");
        assert_eq!(read(63), Ok(None), "it backs off");
        assert_eq!(read(64), Ok(Some(9)));
    }

    #[test]
    fn failures_read_as_the_kernel_words_them() {
        assert_eq!(Failure::Kernel(libc::EINVAL).to_string(), "Invalid argument");
    }
}
