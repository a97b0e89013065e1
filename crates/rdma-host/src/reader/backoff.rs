//! A sysfs file that may refuse to be read, with a backoff.
//!
//! A read may fail with EINVAL, EPERM or EOPNOTSUPP, or give `N/A (no PMA)`, for one file or for all, for
//! ever or for a while. On a restricted function of an mlx5 each such read also writes a line to the
//! kernel's log (ACCESS_REG 0x805), so a file that failed is not read again until its backoff is over.

use std::ffi::CString;
use std::io;
use std::time::Duration;

use ib_mad::Moment;

use super::sysfs::{Buffer, Directory};

/// The time of a read, and how long to back off should it fail.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub now: Moment,
    pub error_backoff: Duration,
}

/// Whether the latest read failed, and until when not to read again.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Backoff {
    pub until: Option<Moment>,
}

impl Backoff {
    /// Whether a read may be tried.
    pub(super) fn is_over(self, attempt: Attempt) -> bool {
        self.until.is_none_or(|until| attempt.now >= until)
    }

    /// After a read that failed.
    pub(super) fn after_failure(attempt: Attempt) -> Self {
        Backoff { until: Some(attempt.now + attempt.error_backoff) }
    }
}

/// A file, and whether it may be read now.
#[derive(Debug)]
pub(super) struct BackoffFile {
    name: CString,
    backoff: Backoff,
    has_succeeded: bool,
}

impl BackoffFile {
    /// A file that has not been read yet; `None` if `name` cannot be the name of a file.
    pub(super) fn new(name: &str) -> Option<Self> {
        let name = CString::new(name).ok()?;
        Some(BackoffFile { name, backoff: Backoff::default(), has_succeeded: false })
    }

    /// Reads and parses the file, unless it is backing off. `None` is a value that does not parse, or no
    /// read at all. The error is the kernel's.
    pub(super) fn read<T>(
        &mut self,
        directory: &Directory,
        attempt: Attempt,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        if !self.is_due(attempt) {
            return Ok(None);
        }
        let mut buffer = Buffer::new();
        let text = directory.read(&self.name, &mut buffer);
        let value = text.as_ref().ok().and_then(|text| parse(text));
        match (&value, &text) {
            (Some(_), _) => (self.backoff, self.has_succeeded) = (Backoff::default(), true),
            // Not the file's failure: it is tried again at the next read.
            (None, Err(error)) if is_local_shortage(error) => {}
            (None, _) => self.back_off(attempt),
        }
        text.map(|_| value)
    }

    /// Whether the file may be read now.
    pub(super) fn is_due(&self, attempt: Attempt) -> bool {
        self.backoff.is_over(attempt)
    }

    /// Backs off as if a read had failed.
    pub(super) fn back_off(&mut self, attempt: Attempt) {
        self.backoff = Backoff::after_failure(attempt);
    }

    /// Ends the backoff: something happened that may let the next read succeed.
    pub(super) fn reset_backoff(&mut self) {
        self.backoff.until = self.backoff.until.map(|_| Moment::default());
    }

    /// Whether any read has succeeded.
    pub(super) fn has_succeeded(&self) -> bool {
        self.has_succeeded
    }

    /// Whether the latest read failed.
    pub(super) fn has_failed(&self) -> bool {
        self.backoff.until.is_some()
    }
}

/// Whether a read failed because this process lacks descriptors or memory, or was interrupted.
fn is_local_shortage(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_file_is_not_read_until_backoff_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let (path, open) = (dir.path().join("rate"), Directory::open(dir.path()).unwrap());
        let mut file = BackoffFile::new("rate").unwrap();
        let mut read = |seconds| {
            let now = Moment::default() + Duration::from_secs(seconds);
            let attempt = Attempt { now, error_backoff: Duration::from_secs(60) };
            file.read(&open, attempt, |text| text.parse::<u8>().ok()).map_err(|error| error.kind())
        };
        assert_eq!(read(0), Err(io::ErrorKind::NotFound));
        std::fs::write(&path, "7\n").unwrap();
        assert_eq!(read(59), Ok(None), "it backs off");
        assert_eq!(read(60), Ok(Some(7)));
        std::fs::write(&path, "fast\n").unwrap();
        assert_eq!(read(61), Ok(None), "it does not parse");
        assert!(file.has_failed());
    }
}
