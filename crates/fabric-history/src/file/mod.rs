//! The file as a file: whose it is, who may write it, and what becomes of it when it is damaged.

mod counted;
mod cover;
pub mod digest;
pub mod dump;
pub mod frame;
pub(crate) mod growth;
pub(crate) mod ledger;
pub(crate) mod numbers;
pub mod packed;
pub mod reader;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod state;
pub(crate) mod stretch;
mod then;
pub mod tier;
pub(crate) mod timeline;
mod varint;
pub(crate) mod whole;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;

use super::HistoryError;

/// What stands in the lock beside a file of ours.
const MARK: &[u8] = b"a history of fabric-exporter\n";

/// How long who writes waits for somebody else who does: nobody should.
pub(crate) const BUSY: Duration = Duration::from_secs(5);

pub(crate) fn prepare(db: &mut Connection) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY)?;
    // Before there is any table, or it is too late.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    // A process that is killed loses nothing; a host that loses its power the last sweeps at most.
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "journal_size_limit", 4 << 20)?;
    db.set_prepared_statement_cache_capacity(64);
    Ok(())
}

/// A path with something behind its name.
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

/// An error if what is at a path, or at that of its lock, cannot be a file of ours.
pub fn ensure_place(path: &Path) -> Result<(), HistoryError> {
    whole::ensure_regular(path)?;
    whole::ensure_regular(&lock_path(path))
}

/// A lock of its own: SQLite's come and go with each transaction.
pub(crate) fn lock(path: &Path, lock_path: &Path) -> Result<File, HistoryError> {
    use rustix::fs::{FlockOperation, flock};
    let failed =
        |error| HistoryError::Io { path: path.into(), doing: "make the lock beside it", error };
    whole::ensure_regular(lock_path)?;
    let lock = File::options().create(true).truncate(false).write(true).open(lock_path);
    let lock = lock.map_err(failed)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(HistoryError::Taken { path: path.into() }),
        Err(error) => Err(failed(error.into())),
    }
}

/// Says in the lock that the file beside it is ours, for the day on which that cannot be seen any more:
/// as when the process that makes it is killed before its header says so. What is there already stays, for a full
/// disk would take it and have no room to give it back.
pub(crate) fn mark(path: &Path, lock: &Path) -> Result<(), HistoryError> {
    if is_marked(lock) {
        return Ok(());
    }
    let failed = |error| HistoryError::Io { path: path.into(), doing: "mark its lock", error };
    std::fs::write(lock, MARK).map_err(failed)
}

/// Whether a lock says that the file beside it is ours.
fn is_marked(lock: &Path) -> bool {
    std::fs::read(lock).is_ok_and(|mark| mark == MARK)
}

/// An error if a file is somebody else's: a mistyped name must not cost anybody a file.
pub(crate) fn ensure_ours(
    path: &Path,
    header: &[u8],
    lock_path: &Path,
) -> Result<(), HistoryError> {
    if whole::is_history(header) || is_marked(lock_path) {
        Ok(())
    } else {
        Err(HistoryError::Foreign { path: path.into() })
    }
}

/// What stands behind the name of a file that was set aside, before the time.
const ASIDE: &str = ".damaged-";

/// How many damaged files are set aside: whatever damages one after the other has to be looked at, and
/// a disk must not fill with them. Nothing that was set aside is ever removed by the exporter.
const MOST_ASIDE: usize = 3;

/// What belongs to a history, in the order in which it is set aside.
///
/// The file comes first. After a kill between two renames there is a log without a file, which is nothing
/// but that: [`set_log_aside`] sets it aside when the file is opened next, and nothing is lost. In any
/// other order there would be a file without its log: it looks like a whole one, is recorded in, and its
/// last sweeps, or a checkpoint that was begun, are missing for good.
const BELONGS: [&str; 3] = ["", "-wal", "-shm"];

/// Gives a damaged file another name, with all that belongs to it, so that an operator can examine it; an
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

/// Gives all that belongs to a file names of its own, or to nothing of it; returns the file's.
fn rename_aside(path: &Path, what: impl FnOnce() -> String) -> Result<PathBuf, HistoryError> {
    let failed = |error| HistoryError::Io { path: path.into(), doing: "set it aside", error };
    let count = whole::aside(path).map_err(failed)?;
    if count >= MOST_ASIDE {
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

/// Renames a file with all that belongs to it, or nothing of it.
fn rename_all(from: &Path, to: &Path) -> std::io::Result<()> {
    let rename = |from: &Path, to: &Path, suffix| {
        std::fs::rename(with_suffix(from, suffix), with_suffix(to, suffix))
    };
    for (at, suffix) in BELONGS.iter().enumerate() {
        match rename(from, to, suffix) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                // The file last: until then the log is not without one under both names.
                for suffix in BELONGS[..at].iter().rev() {
                    // What stays under its new name is counted there.
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
    fn a_file_that_cannot_be_renamed_with_its_log_keeps_it() {
        let folder = tempfile::tempdir().unwrap();
        let [file, aside] = ["history.db", "aside"].map(|name| folder.path().join(name));
        for stuck in ["-wal", "-shm"] {
            for suffix in BELONGS {
                std::fs::write(with_suffix(&file, suffix), suffix).unwrap();
            }
            // A folder takes no file's name.
            std::fs::create_dir(with_suffix(&aside, stuck)).unwrap();
            rename_all(&file, &aside).unwrap_err();
            for suffix in BELONGS {
                assert_eq!(std::fs::read_to_string(with_suffix(&file, suffix)).unwrap(), suffix);
            }
            assert!(!aside.exists());
            std::fs::remove_dir(with_suffix(&aside, stuck)).unwrap();
        }
        rename_all(&file, &aside).unwrap();
        for suffix in BELONGS {
            assert!(!with_suffix(&file, suffix).exists());
            assert_eq!(std::fs::read_to_string(with_suffix(&aside, suffix)).unwrap(), suffix);
        }
    }
}
