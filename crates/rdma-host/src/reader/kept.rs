//! Files that stay open from one read to the next: a read takes one system call instead of three.
//!
//! Sysfs asks the driver at each read from the start of an open file (kernel: `seq_read_iter` in fs/seq_file.c). An
//! open file holds neither its device nor the driver: once the file is removed, a read fails with ENODEV, and a removal
//! waits for reads in progress only (fs/kernfs/file.c: `kernfs_seq_start`, dir.c: `kernfs_drain`). It costs a
//! descriptor and 5 KiB in the kernel, most of it the page for its text; so their number is bounded, and the other
//! files are opened for each read.
//!
//! Outside of sysfs a file may be replaced by another one of the same name. That changes the time of the directory, and
//! its files are opened again.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use super::sysfs::{Directory, Text, Version};
use super::watch;

/// How many files stay open at most: those of 36 ports of mlx5, which take 10 MiB in the kernel.
const MOST: usize = 2048;

/// How much older than a look at it the last change of a directory must be: another one within a tick of the file
/// system's clock (up to 10 ms) has the same time.
const SETTLED: Duration = Duration::from_secs(1);

/// How many files of all devices may stay open.
#[derive(Debug)]
pub(super) struct Allowance {
    most: usize,
    open: AtomicUsize,
}

impl Allowance {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Allowance { most, open: AtomicUsize::new(0) })
    }

    /// A quarter of the descriptors of this process: directories, events and connections need some, too.
    pub fn of_process() -> Arc<Self> {
        let limit = getrlimit(Resource::Nofile).current;
        let quarter = limit.and_then(|limit| usize::try_from(limit / 4).ok());
        Allowance::new(quarter.unwrap_or(MOST).min(MOST))
    }

    #[cfg(test)]
    pub fn most(&self) -> usize {
        self.most
    }

    fn permit(self: &Arc<Self>) -> Option<Permit> {
        let more = |open| (open < self.most).then_some(open + 1);
        self.open.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Permit(Arc::clone(self)))
    }
}

/// That a file may stay open.
#[derive(Debug)]
struct Permit(Arc<Allowance>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// A directory with files that stay open.
#[derive(Debug)]
pub(super) struct KeepingDirectory {
    pub directory: Directory,
    /// Of the latest look at it, if it had not just changed then.
    version: Option<Version>,
}

impl KeepingDirectory {
    pub fn new(directory: Directory) -> Self {
        KeepingDirectory { directory, version: None }
    }

    /// Looks whether files of it may have been replaced, before they are read.
    pub fn look(&mut self) {
        let is_settled = |version: &Version| version.age().is_some_and(|age| age >= SETTLED);
        self.version = self.directory.version().filter(is_settled);
    }
}

/// A file that stays open, by its name.
#[derive(Debug)]
pub(super) struct KeptFile {
    pub name: Box<str>,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: OwnedFd,
    /// That of its directory, from before it was opened.
    version: Version,
    _permit: Permit,
}

impl KeptFile {
    pub fn new(name: &str) -> Self {
        KeptFile { name: name.into(), open: None }
    }

    /// Reads and parses its value, as [`Directory::read`] does. It stays open if that succeeds.
    pub fn read<T>(
        &mut self,
        KeepingDirectory { directory, version }: &KeepingDirectory,
        files: &Arc<Allowance>,
        parse: impl FnOnce(&str) -> T,
    ) -> io::Result<T> {
        let _watched = watch::begin(&directory.path, &self.name)?;
        let text = self.read_kept(directory, *version);
        let text = text.unwrap_or_else(|| self.read_opened(directory, *version, files))?;
        text.parse(parse)
    }

    /// Reads it if it is open. A read that fails closes it: the next one is of what is there then.
    fn read_kept(
        &mut self,
        directory: &Directory,
        version: Option<Version>,
    ) -> Option<io::Result<Text>> {
        let open = self.open.take().filter(|open| Some(open.version) == version)?;
        let text = directory.read_open(&open.file, &self.name);
        match &text {
            Ok(_) => self.open = Some(open),
            // It was removed, and may have been made again.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return None,
            Err(_) => {}
        }
        Some(text)
    }

    /// Opens and reads it.
    fn read_opened(
        &mut self,
        directory: &Directory,
        version: Option<Version>,
        files: &Arc<Allowance>,
    ) -> io::Result<Text> {
        let file = directory.open_file(&self.name)?;
        let text = directory.read_open(&file, &self.name)?;
        self.open = version.and_then(|version| {
            let permit = files.permit()?;
            Some(Open { file, version, _permit: permit })
        });
        Ok(text)
    }
}
