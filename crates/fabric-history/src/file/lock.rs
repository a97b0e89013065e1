//! The two locks of the process that writes a history.
//!
//! [`WriterLock`] is on a file beside the history, so that it exists before the history does. It belongs to a name: with
//! a symbolic or hard link to the history, or after somebody deleted the lock file, two exporters hold different ones.
//! [`FileLock`] is on the history's own inode, so that these two exclude each other as well.
//!
//! The lock file may be in a directory that others can write, while the exporter is root. So nothing is written to a
//! file that is not ours, and no link is followed.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, OFlags, flock, fstatfs};
use rustix::io::Errno;

use crate::HistoryError;
use crate::file::paths::{ensure_regular, regular, with_suffix};

/// The content of the lock beside a history.
const MARK: &[u8] = b"a history of fabric-exporter\n";

pub(crate) fn lock_path(path: &Path) -> PathBuf {
    with_suffix(path, ".lock")
}

/// An error if a path, or that of its lock, cannot be a history file.
pub fn ensure_place(path: &Path) -> Result<(), HistoryError> {
    ensure_regular(path)?;
    ensure_regular(&lock_path(path))
}

/// The lock of the process that writes a file. A separate file: SQLite holds its own lock only during each
/// transaction.
#[derive(Debug)]
pub(crate) struct WriterLock(File);

impl Drop for WriterLock {
    // Closing is not enough: a child process that another thread forked holds a copy of the descriptor, and
    // with it the lock, until its exec.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Takes the lock beside a file, and creates it if necessary. An error if it is not a lock of ours.
pub(crate) fn lock(path: &Path, lock_path: &Path) -> Result<WriterLock, HistoryError> {
    let failed = HistoryError::io(path, "create the lock file");
    ensure_regular(lock_path)?;
    let foreign = |what| HistoryError::ForeignLock(lock_path.into(), what);
    let mut options = File::options();
    options.create(true).truncate(false).read(true).write(true).custom_flags(special_flags());
    let lock = options.open(lock_path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => foreign("a symbolic link"),
        _ => failed(error),
    })?;
    regular(lock_path, &lock.metadata().map_err(failed)?)?;
    if let Some(what) = fault(&lock).map_err(failed)? {
        return Err(foreign(what));
    }
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(WriterLock(lock)),
        Err(Errno::WOULDBLOCK) => Err(HistoryError::Taken(path.into())),
        Err(error) => Err(failed(error.into())),
    }
}

/// A lock may be replaced by a link or a FIFO at any time.
fn special_flags() -> i32 {
    (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed()
}

/// Why a file is not a lock that we may mark; `None` if it is. A lock with our mark may belong to another user, for
/// example that of the service, as nothing is written to it. An exporter that was killed may have written a part of the
/// mark.
fn fault(lock: &File) -> std::io::Result<Option<&'static str>> {
    let (content, about) = (content(lock)?, lock.metadata()?);
    let is_own = about.uid() == rustix::process::geteuid().as_raw();
    Ok(match () {
        () if content == MARK => None,
        () if !MARK.starts_with(&content) => Some("a file with other content"),
        () if !is_own => Some("an unmarked file of another user"),
        () if about.nlink() > 1 => Some("an unmarked file with a second hard link"),
        () => None,
    })
}

/// The content of a lock, as far as it can be one of ours.
fn content(lock: &File) -> std::io::Result<Vec<u8>> {
    let mut content = vec![0; MARK.len() + 1];
    let length = lock.read_at(&mut content, 0)?;
    content.truncate(length);
    Ok(content)
}

/// Marks the lock, so that the file beside it counts as ours if its header does not show it: the process was
/// killed before it wrote the header, or the header is damaged.
pub(crate) fn mark(path: &Path, lock: &WriterLock) -> Result<(), HistoryError> {
    let failed = HistoryError::io(path, "write the lock file");
    // An existing mark stays: on a full disk it could not be written again.
    if content(&lock.0).map_err(failed)? == MARK {
        return Ok(());
    }
    lock.0.write_all_at(MARK, 0).map_err(failed)
}

/// Whether a lock marks the file beside it as ours.
pub(crate) fn is_marked(lock: &Path) -> bool {
    let opened = File::options().read(true).custom_flags(special_flags()).open(lock);
    opened.and_then(|lock| content(&lock)).is_ok_and(|content| content == MARK)
}

/// The lock on the inode of a history.
///
/// It is a lock of flock(2) on the descriptor of the [header](super::header::Header), and does not disturb SQLite, whose locks
/// are POSIX locks of fcntl(2): on a local file system Linux keeps the two kinds apart (`i_flctx` has a list for each),
/// so neither waits for the other. A POSIX lock of our own, on bytes that SQLite does not use, would be shared by all
/// descriptors of the process, and lost whenever SQLite closes one of them. A lock of flock(2) belongs to the open file
/// description, which SQLite never has. The descriptor must stay open as long as the process has connections to the
/// file, because closing it would drop SQLite's locks; so this lock is released without closing it.
///
/// NFS and SMB emulate flock(2) by a POSIX lock on the whole file: SQLite could not write any more. There only the lock
/// beside the file exists.
#[derive(Debug)]
pub(crate) struct FileLock(Option<Arc<File>>);

impl FileLock {
    pub(crate) fn new(path: &Path, file: &Arc<File>) -> Result<Self, HistoryError> {
        if is_emulated(file) {
            return Ok(FileLock(None));
        }
        match flock(&**file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(FileLock(Some(Arc::clone(file)))),
            Err(Errno::WOULDBLOCK) => Err(HistoryError::Taken(path.into())),
            Err(error) => Err(HistoryError::io(path, "lock the file")(error.into())),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            let _ = flock(&**file, FlockOperation::Unlock);
        }
    }
}

/// Whether the file system of a file emulates flock(2) by POSIX locks: NFS and SMB (linux/magic.h, fs/nfs/file.c, fs/smb/client).
fn is_emulated(file: &File) -> bool {
    const EMULATED: [u64; 4] = [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42];
    let kind = fstatfs(file).ok().and_then(|disk| u64::try_from(disk.f_type).ok());
    kind.is_some_and(|kind| EMULATED.contains(&kind))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::record::store::Store;

    #[test]
    fn dropped_lock_is_free_although_a_forked_child_has_its_descriptor() {
        let folder = tempfile::tempdir().unwrap();
        let [file, beside] = ["history.db", "history.db.lock"].map(|name| folder.path().join(name));
        let held = lock(&file, &beside).unwrap();
        let of_the_child = held.0.try_clone().unwrap();
        assert!(matches!(lock(&file, &beside), Err(HistoryError::Taken(_))));
        drop(held);
        lock(&file, &beside).unwrap();
        drop(of_the_child);
    }

    /// As root in a directory that others can write.
    #[test]
    fn lock_that_is_not_ours_is_neither_written_nor_followed() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let (file, beside) = (place("history.db"), place("history.db.lock"));
        let refused = |what: &str| {
            let error = Store::open(&file).unwrap_err();
            assert!(matches!(error, HistoryError::ForeignLock(..)), "{error}");
            let text = error.to_string();
            assert!(text.contains(what) && text.contains("remove it"), "{text}");
            assert!(text.contains("history.db.lock"), "{text}");
            assert!(!file.exists(), "{what}: nothing is created");
        };
        // The lock of another program.
        std::fs::write(&beside, "4711\n").unwrap();
        refused("other content");
        assert_eq!(std::fs::read_to_string(&beside).unwrap(), "4711\n");
        std::fs::remove_file(&beside).unwrap();
        // A link to a file that only root can write, with content, empty, and missing.
        for target in [Some("secret"), Some(""), None] {
            let shadow = place("shadow");
            let _ = std::fs::remove_file(&shadow);
            if let Some(text) = target {
                std::fs::write(&shadow, text).unwrap();
            }
            symlink(&shadow, &beside).unwrap();
            refused("symbolic link");
            assert_eq!(std::fs::read_to_string(&shadow).ok().as_deref(), target);
            std::fs::remove_file(&beside).unwrap();
        }
        std::fs::write(place("empty"), "").unwrap();
        std::fs::hard_link(place("empty"), &beside).unwrap();
        refused("hard link");
        assert_eq!(std::fs::read(place("empty")).unwrap(), b"");
        std::fs::remove_file(&beside).unwrap();
        // An exporter was killed while it wrote the mark.
        std::fs::write(&beside, &MARK[..9]).unwrap();
        drop(Store::open(&file).unwrap());
        assert_eq!(std::fs::read(&beside).unwrap(), MARK);
    }

    #[test]
    fn unmarked_lock_of_another_user_is_refused() {
        if !rustix::process::geteuid().is_root() {
            println!("not run: only root can give a file to another user");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let [file, beside] = ["history.db", "history.db.lock"].map(|name| folder.path().join(name));
        std::fs::write(&beside, "").unwrap();
        std::os::unix::fs::chown(&beside, Some(65534), None).unwrap();
        let error = Store::open(&file).unwrap_err().to_string();
        assert!(error.contains("another user"), "{error}");
        assert_eq!(std::fs::read(&beside).unwrap(), b"");
        // With our mark nothing is written: root may record to the file of the service.
        std::fs::write(&beside, MARK).unwrap();
        Store::open(&file).unwrap();
    }

    #[test]
    fn second_exporter_is_refused_by_any_name_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        let file = place("history.db");
        // Its header is in the file, and not only in the log.
        drop(Store::open(&file).unwrap());
        let held = Store::open(&file).unwrap();
        symlink(&file, place("symlink.db")).unwrap();
        std::fs::hard_link(&file, place("hardlink.db")).unwrap();
        std::fs::remove_file(place("history.db.lock")).unwrap();
        for name in ["symlink.db", "hardlink.db", "history.db"] {
            let second = Store::open(&place(name));
            assert!(matches!(second, Err(HistoryError::Taken(_))), "{name}: {second:?}");
        }
        drop(held);
        Store::open(&place("symlink.db")).unwrap();
    }
}
