//! A file that may refuse: it is asked again seldom.
//!
//! Files answer EINVAL, EPERM, EOPNOTSUPP or `N/A (no PMA)`, one or all, for ever or for a while. On a
//! restricted function of an mlx5 each such read also writes a line to the kernel's log (ACCESS_REG
//! 0x805), so one that refused is left alone for a while.

use std::ffi::CString;
use std::io;
use std::time::Duration;

use ib_mad::Moment;

use super::file::{Buffer, Directory};

/// When it is asked, and how long it is left alone once it has refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub now: Moment,
    pub rest: Duration,
}

/// Whether something refused when it was last asked, and until when it is left alone for that.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LeftAlone {
    pub until: Option<Moment>,
}

impl LeftAlone {
    /// Whether its time to be left alone is over.
    pub(super) fn may_be_asked(self, asking: Asking) -> bool {
        self.until.is_none_or(|until| asking.now >= until)
    }

    /// For what has just refused.
    pub(super) fn after(asking: Asking) -> Self {
        LeftAlone { until: Some(asking.now + asking.rest) }
    }
}

/// A file, and whether it may be asked.
#[derive(Debug)]
pub(super) struct Asked {
    name: CString,
    left_alone: LeftAlone,
    /// It has said something once.
    answered: bool,
}

impl Asked {
    /// A file that has not been asked yet; `None` for what cannot be a file's name.
    pub(super) fn new(name: &str) -> Option<Self> {
        let name = CString::new(name).ok()?;
        Some(Asked { name, left_alone: LeftAlone::default(), answered: false })
    }

    /// What it says, if it may be asked now and `value` makes something of it. The error is the
    /// kernel's, for those who want to know why.
    pub(super) fn ask<T>(
        &mut self,
        directory: &Directory,
        asking: Asking,
        value: impl FnOnce(&str) -> Option<T>,
    ) -> io::Result<Option<T>> {
        if !self.may_be_asked(asking) {
            return Ok(None);
        }
        let mut buffer = Buffer::new();
        let read = directory.read(&self.name, &mut buffer);
        let found = read.as_ref().ok().and_then(|text| value(text));
        match (&found, &read) {
            (Some(_), _) => (self.left_alone, self.answered) = (LeftAlone::default(), true),
            // We could not ask, which is nothing that it said.
            (None, Err(error)) if is_our_own(error) => {}
            (None, _) => self.leave_alone(asking),
        }
        read.map(|_| found)
    }

    /// Whether its time to be left alone is over.
    pub(super) fn may_be_asked(&self, asking: Asking) -> bool {
        self.left_alone.may_be_asked(asking)
    }

    /// Leaves it alone as if it had been asked and had refused.
    pub(super) fn leave_alone(&mut self, asking: Asking) {
        self.left_alone = LeftAlone::after(asking);
    }

    /// Lets it be asked at once: something happened that may have changed its mind.
    pub(super) fn forgive(&mut self) {
        self.left_alone.until = self.left_alone.until.map(|_| Moment::default());
    }

    /// Whether it has ever said something.
    pub(super) fn answered(&self) -> bool {
        self.answered
    }

    /// Whether it refused when it was last asked.
    pub(super) fn refused(&self) -> bool {
        self.left_alone.until.is_some()
    }
}

/// Whether a read failed for want of descriptors or memory, or was interrupted.
fn is_our_own(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_refused_is_not_asked_until_its_time_has_come() {
        let dir = tempfile::tempdir().unwrap();
        let (path, open) = (dir.path().join("rate"), Directory::open(dir.path()).unwrap());
        let mut file = Asked::new("rate").unwrap();
        let mut ask = |seconds| {
            let now = Moment::default() + Duration::from_secs(seconds);
            let asking = Asking { now, rest: Duration::from_secs(60) };
            file.ask(&open, asking, |text| text.parse::<u8>().ok()).map_err(|error| error.kind())
        };
        assert_eq!(ask(0), Err(io::ErrorKind::NotFound));
        std::fs::write(&path, "7\n").unwrap();
        assert_eq!(ask(59), Ok(None), "it is left alone");
        assert_eq!(ask(60), Ok(Some(7)));
        std::fs::write(&path, "fast\n").unwrap();
        assert_eq!(ask(61), Ok(None), "it says nothing that makes sense");
        assert!(file.refused());
    }
}
