//! The file of a history: its lock, and how a damaged file is set aside.

pub(crate) mod counter_ids;
mod coverage;
pub mod digest;
pub mod dump;
pub mod frame;
pub mod packed;
pub mod reader;
pub mod record_kind;
pub(crate) mod schema;
pub(crate) mod segment_range;
mod series;
pub(crate) mod sql;
pub(crate) mod state;
mod state_at;
pub(crate) mod timeline;
pub(crate) mod totals;
pub(crate) mod validate;
mod varint;
pub(crate) mod walk;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
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

/// A path with a suffix behind its name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// How many bytes of a file's disk are free.
pub fn free(path: &Path) -> Result<u64, HistoryError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let disk = rustix::fs::statvfs(folder.unwrap_or(Path::new("."))).map_err(|error| {
        HistoryError::Io {
            path: path.into(),
            doing: "see what is free on its disk",
            error: error.into(),
        }
    })?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// The path of the lock beside a file.
pub(crate) fn lock_path(path: &Path) -> PathBuf {
    with_suffix(path, ".lock")
}

/// An error if a path, or that of its lock, cannot be a history file.
pub fn ensure_place(path: &Path) -> Result<(), HistoryError> {
    validate::ensure_regular(path)?;
    validate::ensure_regular(&lock_path(path))
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

/// Takes the lock of a file.
pub(crate) fn lock(path: &Path, lock_path: &Path) -> Result<WriterLock, HistoryError> {
    let failed =
        |error| HistoryError::Io { path: path.into(), doing: "make the lock beside it", error };
    validate::ensure_regular(lock_path)?;
    let lock = File::options().create(true).truncate(false).write(true).open(lock_path);
    let lock = lock.map_err(failed)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(WriterLock(lock)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(HistoryError::Taken { path: path.into() }),
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
    let failed = |error| HistoryError::Io { path: path.into(), doing: "mark its lock", error };
    std::fs::write(lock, MARK).map_err(failed)
}

/// Whether a lock marks the file beside it as ours.
fn is_marked(lock: &Path) -> bool {
    std::fs::read(lock).is_ok_and(|mark| mark == MARK)
}

/// An error if a file is not a history: a mistyped name must not cost a file.
pub(crate) fn ensure_ours(
    path: &Path,
    header: &[u8],
    lock_path: &Path,
) -> Result<(), HistoryError> {
    if validate::is_history(header) || is_marked(lock_path) {
        Ok(())
    } else {
        Err(HistoryError::Foreign { path: path.into() })
    }
}

/// The suffix of a file that was set aside, before the time.
const ASIDE: &str = ".damaged-";

/// Maximum number of damaged files that are set aside: the cause of repeated damage must be examined, and
/// a disk must not fill with them. Nothing that was set aside is ever removed by the exporter.
const MAX_ASIDE: usize = 3;

/// The suffixes of the files of a history, in the order in which they are set aside.
///
/// The file comes first. After a kill between two renames there is a log without a file: [`set_log_aside`]
/// sets it aside when the file is opened next, and nothing is lost. In any other order there would be a
/// file without its log: it looks complete, is recorded in, and its last sweeps, or a checkpoint that
/// had started, are lost.
const SUFFIXES: [&str; 3] = ["", "-wal", "-shm"];

/// Renames a damaged file and all that belongs to it, so that an operator can examine it; an
/// error if there are too many of those. The caller holds the lock.
pub(crate) fn set_aside(path: &Path, error: &HistoryError) -> Result<(), HistoryError> {
    let what = || match error {
        HistoryError::Damaged { what, .. } => what.clone(),
        HistoryError::Database { error, .. } => error.to_string(),
        other => other.to_string(),
    };
    let aside = rename_aside(path, what)?;
    tracing::error!(%error, aside = %aside.display(), "the history is damaged: set aside, and a new one is begun");
    Ok(())
}

/// Sets a write-ahead log aside whose file is missing or empty: SQLite would delete it. The caller holds the
/// lock.
pub(crate) fn set_log_aside(path: &Path) -> Result<(), HistoryError> {
    let failed = |error| HistoryError::Io { path: path.into(), doing: "find its log", error };
    let length = |suffix| match std::fs::metadata(with_suffix(path, suffix)) {
        Ok(data) => Ok(data.len()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(0),
        Err(error) => Err(failed(error)),
    };
    if length("")? > 0 || length("-wal")? == 0 {
        return Ok(());
    }
    let aside = rename_aside(path, || "its log is there, and it is not".into())?;
    tracing::warn!(
        file = %path.display(), aside = %aside.display(),
        "the history has a log and nothing else: set aside, and a new one is begun"
    );
    Ok(())
}

/// Renames a history to one with the time in its name, which it returns.
fn rename_aside(path: &Path, what: impl FnOnce() -> String) -> Result<PathBuf, HistoryError> {
    let failed = |error| HistoryError::Io { path: path.into(), doing: "set it aside", error };
    let count = validate::aside(path).map_err(failed)?;
    if count >= MAX_ASIDE {
        return Err(HistoryError::Crowded { path: path.into(), what: what(), count });
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
        match rename(from, to, suffix) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                // The file last: until then the log has its file under one of the names.
                for suffix in SUFFIXES[..at].iter().rev() {
                    // A file that keeps its new name is counted as set aside.
                    let _ = rename(to, from, suffix);
                }
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
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
        assert!(matches!(lock(&file, &beside), Err(HistoryError::Taken { .. })));
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
}
