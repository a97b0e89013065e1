//! The file as a file: whose it is, who may write it, and what becomes of it when it is damaged.

mod counted;
mod cover;
pub mod digest;
pub mod dump;
pub mod frame;
pub(in crate::history) mod growth;
pub(in crate::history) mod ledger;
pub(in crate::history) mod numbers;
pub mod packed;
pub mod reader;
pub(in crate::history) mod rows;
pub(in crate::history) mod schema;
pub(in crate::history) mod state;
pub(in crate::history) mod stretch;
mod then;
pub mod tier;
pub(in crate::history) mod timeline;
mod varint;
pub(in crate::history) mod whole;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::Connection;

use super::HistoryError;

/// What stands in the lock beside a file of ours.
const MARK: &[u8] = b"a history of fabric-exporter\n";

/// How long who writes waits for somebody else who does: nobody should.
pub(in crate::history) const BUSY: Duration = Duration::from_secs(5);

pub(in crate::history) fn prepare(db: &mut Connection) -> rusqlite::Result<()> {
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
pub(crate) fn free(path: &Path) -> Result<u64, HistoryError> {
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

/// A lock of its own: SQLite's come and go with each transaction.
pub(in crate::history) fn lock(path: &Path, lock_path: &Path) -> Result<File, HistoryError> {
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
/// as when whoever makes it is killed before its header says so. What is there already stays, for a full
/// disk would take it and have no room to give it back.
pub(in crate::history) fn mark(path: &Path, lock: &Path) -> Result<(), HistoryError> {
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
pub(in crate::history) fn ensure_ours(
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

/// Gives a damaged file another name, with all that belongs to it, for somebody to look at; an error if
/// there are too many of those. Whoever calls this holds the lock.
pub(in crate::history) fn set_aside(path: &Path, error: &HistoryError) -> Result<(), HistoryError> {
    let failed = |error| HistoryError::Io { path: path.into(), doing: "set it aside", error };
    let count = whole::aside(path).map_err(failed)?;
    if count >= MOST_ASIDE {
        let what = match error {
            HistoryError::Damaged { what, .. } => what.clone(),
            HistoryError::Database { error, .. } => error.to_string(),
            other => other.to_string(),
        };
        return Err(HistoryError::Crowded { path: path.into(), what, count });
    }
    let now = humantime::format_rfc3339_micros(SystemTime::now());
    let aside = with_suffix(path, &format!("{ASIDE}{}", now.to_string().replace(':', "")));
    if aside.try_exists().map_err(failed)? {
        return Err(failed(std::io::ErrorKind::AlreadyExists.into()));
    }
    // The log first: a new file of this name must not find it, for SQLite would remove it or bring it
    // into that. Whoever is killed in between leaves both under names of their own.
    for suffix in ["-wal", "-shm", ""] {
        match std::fs::rename(with_suffix(path, suffix), with_suffix(&aside, suffix)) {
            Err(error) if suffix.is_empty() || error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
    }
    tracing::error!(%error, aside = %aside.display(), "the history is damaged: set aside, and a new one is begun");
    Ok(())
}
