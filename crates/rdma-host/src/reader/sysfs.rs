//! Reads small text files of sysfs, relative to directories that are held open.
//!
//! Reading a node of eight HCAs reads some 500 files. Opened by its name in a directory that is open
//! already, and read into a buffer on the stack, a file costs three system calls and no allocation; by its
//! whole path the kernel walks eight directories for each. An open directory of sysfs keeps no device alive:
//! when the device is removed, its files are not found any more.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, openat};

/// The most bytes that are read of a value; the longest here, a node description, has 64.
const MAX_VALUE: usize = 256;

pub(crate) struct Buffer([u8; MAX_VALUE]);

impl Buffer {
    pub(crate) fn new() -> Self {
        Buffer([0; MAX_VALUE])
    }
}

/// How many names that are not UTF-8 are remembered, so that each is logged once.
const MAX_LOGGED_NAMES: usize = 256;

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    /// For messages.
    path: PathBuf,
}

impl Directory {
    /// Opens a directory by its path.
    pub fn open(path: &Path) -> io::Result<Directory> {
        let fd = openat(rustix::fs::CWD, path, DIRECTORY, Mode::empty())?;
        Ok(Directory { fd, path: path.to_owned() })
    }

    /// Opens a directory below this one.
    pub fn open_below(&self, path: &str) -> io::Result<Directory> {
        let fd = openat(&self.fd, path, DIRECTORY, Mode::empty())?;
        Ok(Directory { fd, path: self.path.join(path) })
    }

    /// The inode number: it stays when the directory is renamed, and a directory that is made again under
    /// the same name has another one.
    pub(crate) fn inode(&self) -> Option<u64> {
        rustix::fs::fstat(&self.fd).ok().map(|stat| stat.st_ino)
    }

    /// Whether `path` leads to this directory now. An open directory stays that of its device when the
    /// device is renamed and another one takes its name.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        match (rustix::fs::fstat(&self.fd), rustix::fs::stat(path)) {
            (Ok(open), Ok(there)) => (open.st_dev, open.st_ino) == (there.st_dev, there.st_ino),
            _ => false,
        }
    }

    /// The names of its entries, sorted, without those that start with a dot. A name that is not UTF-8 is
    /// skipped, because no label can hold it, and logged once.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = entry.file_name();
            match name.to_str() {
                Ok(name) if name.starts_with('.') => {}
                Ok(name) => names.push(name.to_owned()),
                Err(_) => warn_once(self.path.join(OsStr::from_bytes(name.to_bytes()))),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Reads a file, without the blanks around its value.
    pub(crate) fn read<'b>(&self, name: &CStr, buffer: &'b mut Buffer) -> io::Result<&'b str> {
        // NONBLOCK: to open a FIFO must not wait for its writer.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(&self.fd, name, flags, Mode::empty())?;
        let length = rustix::io::read(&file, &mut buffer.0[..])?;
        let text = buffer.0.get(..length).unwrap_or_default();
        std::str::from_utf8(text).map(str::trim).map_err(io::Error::other)
    }

    /// Reads a file; empty if it is missing or cannot be read.
    pub fn text(&self, name: &str) -> String {
        let mut buffer = Buffer::new();
        let text = CString::new(name)
            .ok()
            .and_then(|name| self.read(&name, &mut buffer).ok().map(str::to_owned));
        text.unwrap_or_default()
    }

    /// The last part of a symbolic link's target: `mlx5_core` for `driver`, a link to `…/drivers/mlx5_core`.
    pub fn link_target(&self, name: &str) -> Option<String> {
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new()).ok()?;
        let target = target.into_string().ok()?;
        target.rsplit('/').next().filter(|last| !last.is_empty()).map(str::to_owned)
    }
}

/// Logs a name that is not UTF-8. A directory may be listed at each reading, so each path is logged once.
fn warn_once(path: PathBuf) {
    static LOGGED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.len() < MAX_LOGGED_NAMES && !logged.contains(&path) {
        let shown = path.as_os_str().as_bytes().escape_ascii().to_string();
        tracing::warn!(path = shown, "the name is not UTF-8: nothing of it is exported");
        logged.insert(path);
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_trimmed_and_missing_files_are_empty() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("a", "12\n"), ("b", " 3 \n\n"), ("c", ""), ("d", "7")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        std::fs::write(dir.path().join("latin"), [0xe9, b'\n']).unwrap();
        std::fs::write(dir.path().join("long"), "9".repeat(5000)).unwrap();
        let open = Directory::open(dir.path()).unwrap();
        let values = ["a", "b", "c", "d", "e", "latin"].map(|name| open.text(name));
        assert_eq!(values, ["12", "3", "", "7", "", ""]);
        assert_eq!(open.text("long").len(), MAX_VALUE, "cut off");
        assert_eq!(open.names().unwrap(), ["a", "b", "c", "d", "latin", "long"]);
    }

    #[test]
    fn is_at_tells_renamed_directory_from_new_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name| dir.path().join(name);
        std::fs::create_dir(path("a")).unwrap();
        let open = Directory::open(&path("a")).unwrap();
        assert!(open.is_at(&path("a")));
        std::fs::rename(path("a"), path("b")).unwrap();
        assert!(!open.is_at(&path("a")) && open.is_at(&path("b")));
        std::fs::create_dir(path("a")).unwrap();
        assert!(!open.is_at(&path("a")));
    }

    #[test]
    fn fifo_without_writer_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            dir.path().join("pipe"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        assert_eq!(Directory::open(dir.path()).unwrap().text("pipe"), "");
    }
}
