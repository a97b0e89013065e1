//! Small text files of sysfs, below directories that are held open.
//!
//! A look at a node of eight HCAs reads some 500 files. Opened by their last name alone, from a
//! directory that is open already, and read into a buffer on the stack, each costs three system
//! calls and no allocation; by its whole path the kernel walks eight directories for each. An open
//! directory of sysfs holds nothing back: when the device goes, its files are not found any more.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, openat};

/// What fits a value. Those of sysfs are a line each; its longest here, a node description, has 64
/// bytes.
const LONGEST: usize = 256;

/// Where a value is read to.
pub(crate) struct Buffer([u8; LONGEST]);

impl Buffer {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Buffer([0; LONGEST])
    }
}

/// How many names that are not UTF-8 are remembered, so that each is logged once.
const MOST_STRANGE: usize = 256;

/// An open directory.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    /// The path that it was opened by, for messages.
    path: PathBuf,
}

impl Directory {
    /// Opens one by its path.
    pub fn open(path: &Path) -> io::Result<Directory> {
        let fd = openat(rustix::fs::CWD, path, DIRECTORY, Mode::empty())?;
        Ok(Directory { fd, path: path.to_owned() })
    }

    /// Opens one below this.
    pub fn below(&self, path: &str) -> io::Result<Directory> {
        let fd = openat(&self.fd, path, DIRECTORY, Mode::empty())?;
        Ok(Directory { fd, path: self.path.join(path) })
    }

    /// The number that the kernel gave this directory. It stays when the directory is renamed, and a
    /// directory that is made again under the same name has another one.
    pub(crate) fn number(&self) -> Option<u64> {
        rustix::fs::fstat(&self.fd).ok().map(|stat| stat.st_ino)
    }

    /// Whether this is what a path leads to now. A directory that is open stays the device's own,
    /// whatever its device is called by now, and whoever has its name.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        match (rustix::fs::fstat(&self.fd), rustix::fs::stat(path)) {
            (Ok(open), Ok(there)) => (open.st_dev, open.st_ino) == (there.st_dev, there.st_ino),
            _ => false,
        }
    }

    /// The names in it, sorted, without those that start with a dot. A name that is not UTF-8 is left
    /// out, because no label can hold it, and logged once.
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

    /// Reads a file below it, without the blanks around its value.
    pub(crate) fn read<'b>(&self, name: &CStr, buffer: &'b mut Buffer) -> io::Result<&'b str> {
        // Not to wait for a pipe's other end, should somebody have put one there.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(&self.fd, name, flags, Mode::empty())?;
        let length = rustix::io::read(&file, &mut buffer.0[..])?;
        let text = buffer.0.get(..length).unwrap_or_default();
        std::str::from_utf8(text).map(str::trim).map_err(io::Error::other)
    }

    /// Reads a file below it that may be missing or refuse: what is not there is empty.
    pub fn text(&self, name: &str) -> String {
        let mut buffer = Buffer::new();
        let text = CString::new(name)
            .ok()
            .and_then(|name| self.read(&name, &mut buffer).ok().map(str::to_owned));
        text.unwrap_or_default()
    }

    /// The last name of what a link below it leads to: `driver` leads to `…/drivers/mlx5_core`.
    pub fn link(&self, name: &str) -> Option<String> {
        let target = rustix::fs::readlinkat(&self.fd, name, Vec::new()).ok()?;
        let target = target.into_string().ok()?;
        target.rsplit('/').next().filter(|last| !last.is_empty()).map(str::to_owned)
    }
}

/// Logs a name that is not UTF-8. A directory may be listed at each reading, so each path is logged once.
fn warn_once(path: PathBuf) {
    static LOGGED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut logged = LOGGED.lock().unwrap_or_else(PoisonError::into_inner);
    if logged.len() < MOST_STRANGE && !logged.contains(&path) {
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
    fn values_come_without_blanks_and_what_is_not_there_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [("a", "12\n"), ("b", " 3 \n\n"), ("c", ""), ("d", "7")] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        std::fs::write(dir.path().join("latin"), [0xe9, b'\n']).unwrap();
        std::fs::write(dir.path().join("long"), "9".repeat(5000)).unwrap();
        let open = Directory::open(dir.path()).unwrap();
        let told = ["a", "b", "c", "d", "e", "latin"].map(|name| open.text(name));
        assert_eq!(told, ["12", "3", "", "7", "", ""]);
        assert_eq!(open.text("long").len(), LONGEST, "cut off, and no number any more");
        assert_eq!(open.names().unwrap(), ["a", "b", "c", "d", "latin", "long"]);
    }

    #[test]
    fn a_directory_is_not_at_a_path_that_another_one_took() {
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
    fn a_pipe_without_a_writer_does_not_hang() {
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
