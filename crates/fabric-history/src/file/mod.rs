//! The file of a history: its lock, and how a damaged file is set aside.

pub mod dump;
pub mod frame;
pub(crate) mod id_map;
pub(crate) mod link_errors;
pub mod packed;
pub mod reader;
pub mod record_kind;
pub(crate) mod schema;
pub(crate) mod sql;
pub(crate) mod timeline;
pub(crate) mod totals;
pub(crate) mod walk;

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use rustix::fs::{FlockOperation, flock};

use super::HistoryError;

/// The content of the lock beside a history.
const MARK: &[u8] = b"a history of fabric-exporter\n";

/// How long a writer waits for another one: there should be none.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

/// Sets up a connection that writes.
pub(crate) fn prepare(db: &mut Connection) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY)?;
    // It has to be set before there is any table.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // A killed process loses nothing; a power failure loses at most the last sweeps.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "journal_size_limit", 4 << 20)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(())
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// How many bytes of a file's disk are free.
pub fn free(path: &Path) -> Result<u64, HistoryError> {
    let failed = HistoryError::io(path, "query the free disk space");
    let disk = rustix::fs::statvfs(folder_of(path)).map_err(|error| failed(error.into()))?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// An error if less than `least` bytes are free.
pub(crate) fn ensure_free(path: &Path, free: u64, least: u64) -> Result<(), HistoryError> {
    if free < least { Err(HistoryError::Full(path.into(), free, least)) } else { Ok(()) }
}

pub(crate) fn lock_path(path: &Path) -> PathBuf {
    with_suffix(path, ".lock")
}

/// An error if there is something other than a regular file. It is not opened for this: a FIFO would wait
/// for a writer, and a device may do something when it is opened.
pub(crate) fn ensure_regular(path: &Path) -> Result<(), HistoryError> {
    let found = metadata(path, "open the file")?;
    found.map_or(Ok(()), |found| regular(path, &found))
}

/// The metadata of a file; `None` if it does not exist.
fn metadata(path: &Path, doing: &'static str) -> Result<Option<Metadata>, HistoryError> {
    match std::fs::metadata(path) {
        Ok(data) => Ok(Some(data)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(HistoryError::io(path, doing)(error)),
    }
}

fn regular(path: &Path, data: &Metadata) -> Result<(), HistoryError> {
    let kind = data.file_type();
    let names = [
        (kind.is_dir(), "a directory"),
        (kind.is_fifo(), "a FIFO"),
        (kind.is_socket(), "a socket"),
        (kind.is_block_device() || kind.is_char_device(), "a device"),
    ];
    let found = names.into_iter().find(|(is_it, _)| *is_it);
    found.map_or(Ok(()), |(_, what)| Err(HistoryError::NotAFile(path.into(), what)))
}

/// A file whose header is read again and again, kept open.
///
/// A process that closes any descriptor of a file loses all POSIX locks that it holds on it (fcntl(2)),
/// those of SQLite's connections as well, and SQLite does not notice. Then another program may believe
/// that it has the file alone, and delete the write-ahead log in use. So the descriptor has to stay
/// open for as long as the process may have connections to the file.
#[derive(Clone, Debug, Default)]
pub struct Header(Option<Arc<File>>);

impl Header {
    /// The header of the file at a path, as far as it exists; empty if the file does not exist yet.
    pub(crate) fn read(&mut self, path: &Path) -> Result<Vec<u8>, HistoryError> {
        let failed = HistoryError::io(path, "read the file");
        let Some(found) = metadata(path, "read the file")? else { return Ok(Vec::new()) };
        regular(path, &found)?;
        let is_same = |file: &Arc<File>| {
            let held = file.metadata();
            held.is_ok_and(|held| (held.dev(), held.ino()) == (found.dev(), found.ino()))
        };
        // A file that has replaced another one is opened; nothing is written to the other.
        let file = match self.0.take().filter(is_same) {
            Some(file) => file,
            None => Arc::new(open(path)?),
        };
        let mut header = vec![0; 100];
        let length = file.read_at(&mut header, 0).map_err(failed)?;
        header.truncate(length);
        self.0 = Some(file);
        Ok(header)
    }
}

fn open(path: &Path) -> Result<File, HistoryError> {
    let failed = HistoryError::io(path, "read the file");
    // A FIFO that has replaced the file since then must not block us either.
    let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(failed)?;
    regular(path, &file.metadata().map_err(failed)?)?;
    Ok(file)
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

pub(crate) fn lock(path: &Path, lock_path: &Path) -> Result<WriterLock, HistoryError> {
    let failed = HistoryError::io(path, "create the lock file");
    ensure_regular(lock_path)?;
    let lock = File::options().create(true).truncate(false).write(true).open(lock_path);
    let lock = lock.map_err(failed)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(WriterLock(lock)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(HistoryError::Taken(path.into())),
        Err(error) => Err(failed(error.into())),
    }
}

/// Marks the lock, so that the file beside it counts as ours if its header does not show it: the process was
/// killed before it wrote the header, or the header is damaged. An existing mark is not written again: on
/// a full disk the lock would be truncated and not written.
pub(crate) fn mark(path: &Path, lock: &Path) -> Result<(), HistoryError> {
    if is_marked(lock) {
        return Ok(());
    }
    std::fs::write(lock, MARK).map_err(HistoryError::io(path, "write the lock file"))
}

/// Whether a lock marks the file beside it as ours.
fn is_marked(lock: &Path) -> bool {
    std::fs::read(lock).is_ok_and(|mark| mark == MARK)
}

/// An error if a file is not a history: a mistyped name must not cost a file.
pub(crate) fn ensure_ours(path: &Path, header: &[u8], lock: &Path) -> Result<(), HistoryError> {
    let is_ours = schema::is_history(header) || is_marked(lock);
    if is_ours { Ok(()) } else { Err(HistoryError::foreign(path)) }
}

/// The suffix of a file that was set aside, before the time.
const ASIDE: &str = ".damaged-";

/// Maximum number of damaged files that are set aside: the cause of repeated damage must be examined, and
/// a disk must not fill with them. Nothing that was set aside is ever removed by the exporter.
const MAX_ASIDE: usize = 3;

/// The suffixes of the files of a history, in the order in which they are set aside.
///
/// The file comes first. After a kill between two renames there is a log without a file: [`set_log_aside`] sets
/// it aside when the file is opened next, and nothing is lost. In any other order there would be a file without
/// its log: it looks complete, is recorded in, and its last sweeps, or a checkpoint that had started, are lost.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Renames a damaged file and all that belongs to it, so that an operator can examine it; an
/// error if there are too many of those. The caller holds the lock.
pub(crate) fn set_aside(path: &Path, error: &HistoryError) -> Result<(), HistoryError> {
    let what = || match error {
        HistoryError::Damaged(_, what) => what.clone(),
        HistoryError::Database(_, _, error) => error.to_string(),
        other => other.to_string(),
    };
    let aside = rename_aside(path, what)?;
    tracing::error!(
        %error, file = %path.display(), aside = %aside.display(),
        "history file damaged: set aside, starting a new file"
    );
    Ok(())
}

/// Sets a write-ahead log aside whose file is missing or empty: SQLite would delete it. The caller holds the lock.
pub(crate) fn set_log_aside(path: &Path) -> Result<(), HistoryError> {
    let length = |suffix| {
        let found = metadata(&with_suffix(path, suffix), "find the write-ahead log")?;
        Ok::<_, HistoryError>(found.map_or(0, |found| found.len()))
    };
    if length("")? > 0 || length("-wal")? == 0 {
        return Ok(());
    }
    let aside = rename_aside(path, || "the write-ahead log exists without the file".into())?;
    tracing::warn!(
        file = %path.display(), aside = %aside.display(),
        "history write-ahead log without its file: set aside, starting a new file"
    );
    Ok(())
}

/// Renames a history to one with the time in its name, which it returns.
fn rename_aside(path: &Path, what: impl FnOnce() -> String) -> Result<PathBuf, HistoryError> {
    let failed = HistoryError::io(path, "set the file aside");
    let count = count_aside(path).map_err(failed)?;
    if count >= MAX_ASIDE {
        return Err(HistoryError::Crowded(path.into(), what(), count));
    }
    let now = humantime::format_rfc3339_micros(SystemTime::now());
    let aside = with_suffix(path, &format!("{ASIDE}{}", now.to_string().replace(':', "")));
    if aside.try_exists().map_err(failed)? {
        return Err(failed(ErrorKind::AlreadyExists.into()));
    }
    rename_all(path, &aside).map_err(failed)?;
    Ok(aside)
}

/// Renames a history and its log, or neither.
fn rename_all(from: &Path, to: &Path) -> std::io::Result<()> {
    let rename = |from: &Path, to: &Path, suffix| {
        std::fs::rename(with_suffix(from, suffix), with_suffix(to, suffix))
    };
    for (at, suffix) in SUFFIXES.iter().enumerate() {
        if let Err(error) = rename(from, to, suffix)
            && error.kind() != ErrorKind::NotFound
        {
            // The file last: until then the log has its file under one of the names.
            for suffix in SUFFIXES[..at].iter().rev() {
                // A file that keeps its new name is counted as set aside.
                let _ = rename(to, from, suffix);
            }
            return Err(error);
        }
    }
    Ok(())
}

/// How many files beside a history were set aside: `.damaged-` and the time follow its name.
pub(crate) fn count_aside(path: &Path) -> std::io::Result<usize> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut found = HashSet::new();
    for entry in std::fs::read_dir(folder_of(path))? {
        let entry = entry?.file_name();
        let rest = entry.as_encoded_bytes().strip_prefix(name);
        let time = rest.and_then(|rest| rest.strip_prefix(ASIDE.as_bytes()));
        // A kill between two renames leaves a log alone.
        let time = time.map(|time| time.strip_suffix(b"-wal").unwrap_or(time));
        if let Some(time) = time.filter(|time| is_time(time)) {
            found.insert(time.to_vec());
        }
    }
    Ok(found.len())
}

/// Whether it is a time as [`set_aside`] writes it: `2026-12-01T080000.123456Z`.
fn is_time(text: &[u8]) -> bool {
    const PATTERN: &[u8] = b"0000-00-00T000000.000000Z";
    let fits = |(byte, pattern): (&u8, &u8)| match pattern {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    };
    text.len() == PATTERN.len() && text.iter().zip(PATTERN).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn failed_rename_leaves_file_and_log_together() {
        let folder = tempfile::tempdir().unwrap();
        let [file, aside] = ["history.db", "aside"].map(|name| folder.path().join(name));
        for stuck in ["-wal", "-shm"] {
            for suffix in SUFFIXES {
                std::fs::write(with_suffix(&file, suffix), suffix).unwrap();
            }
            // A file cannot be renamed to a folder.
            std::fs::create_dir(with_suffix(&aside, stuck)).unwrap();
            rename_all(&file, &aside).unwrap_err();
            for suffix in SUFFIXES {
                assert_eq!(std::fs::read_to_string(with_suffix(&file, suffix)).unwrap(), suffix);
            }
            assert!(!aside.exists());
            std::fs::remove_dir(with_suffix(&aside, stuck)).unwrap();
        }
        rename_all(&file, &aside).unwrap();
        for suffix in SUFFIXES {
            assert!(!with_suffix(&file, suffix).exists());
            assert_eq!(std::fs::read_to_string(with_suffix(&aside, suffix)).unwrap(), suffix);
        }
    }

    #[test]
    fn only_files_with_a_time_count_as_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        for name in [
            "history.db.damaged-2026-12-01T080000.123456Z",
            "history.db.damaged-2026-12-01T080000.123456Z-wal",
            // A log alone, and empty shared memory alone.
            "history.db.damaged-2026-12-02T080000.123456Z-wal",
            "history.db.damaged-2026-12-03T080000.123456Z-shm",
            "history.db.damaged-notes.txt",
            "history.db.damaged-2026-12-01T080000.123456Z.gz",
            "other.db.damaged-2026-12-01T080000.123456Z",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(count_aside(&file).unwrap(), 2);
    }
}
