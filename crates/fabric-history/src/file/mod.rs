//! The file of a history: its header, and how a damaged file is set aside.

mod cables;
pub mod dump;
pub(crate) mod flaps;
pub mod frame;
pub(crate) mod id_map;
pub(crate) mod link_errors;
pub(crate) mod lock;
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

use super::HistoryError;
use crate::model::time::clamped;
use lock::{is_marked, lock_path};

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
            None => Arc::new(open(path, false)?),
        };
        let mut header = vec![0; 100];
        let length = file.read_at(&mut header, 0).map_err(failed)?;
        header.truncate(length);
        self.0 = Some(file);
        Ok(header)
    }

    /// The file at a path, which is created empty if it does not exist.
    pub(crate) fn file(&mut self, path: &Path) -> Result<Arc<File>, HistoryError> {
        if metadata(path, "open the file")?.is_none() {
            self.0 = Some(Arc::new(open(path, true)?));
        } else {
            self.read(path)?;
        }
        self.0
            .clone()
            .ok_or_else(|| HistoryError::io(path, "open the file")(ErrorKind::NotFound.into()))
    }
}

fn open(path: &Path, create: bool) -> Result<File, HistoryError> {
    let failed = HistoryError::io(path, if create { "create the file" } else { "read the file" });
    // A FIFO that has replaced the file since then must not block us either.
    let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY).bits().cast_signed();
    let mut options = File::options();
    // With the mode that SQLite gives a file.
    options.read(true).write(create).create(create).truncate(false).mode(0o644);
    let file = options.custom_flags(flags).open(path).map_err(failed)?;
    regular(path, &file.metadata().map_err(failed)?)?;
    Ok(file)
}

/// An error if a path, or that of its lock, cannot be a history file.
pub fn ensure_place(path: &Path) -> Result<(), HistoryError> {
    ensure_regular(path)?;
    ensure_regular(&lock_path(path))
}

/// The files that belong to a history, its lock included. Not all of them need exist.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    let files = SUFFIXES.iter().map(|suffix| with_suffix(path, suffix));
    files.chain([lock_path(path)]).collect()
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
    let aside = rename_aside(path, &SUFFIXES, what)?;
    tracing::error!(
        %error, file = %path.display(), aside = %aside.display(),
        "history file damaged: set aside, starting a new file"
    );
    Ok(())
}

/// Sets a write-ahead log aside whose file is missing or empty: SQLite would delete it. The caller holds the lock.
pub(crate) fn set_log_aside(path: &Path) -> Result<(), HistoryError> {
    if length(path, "")? > 0 || length(path, "-wal")? == 0 {
        return Ok(());
    }
    rename_log_aside(path)
}

/// Sets a write-ahead log aside that does not belong to the file beside it. The caller holds the lock.
pub(crate) fn rename_log_aside(path: &Path) -> Result<(), HistoryError> {
    let what = || "the write-ahead log exists without the file".into();
    let aside = rename_aside(path, &SUFFIXES[1..], what)?;
    tracing::warn!(
        file = %path.display(), aside = %aside.display(),
        "history write-ahead log without its file: set aside, starting a new file"
    );
    Ok(())
}

/// The length of one of the files of a history; 0 if it does not exist.
pub(crate) fn length(path: &Path, suffix: &str) -> Result<u64, HistoryError> {
    let found = metadata(&with_suffix(path, suffix), "find the write-ahead log")?;
    Ok(found.map_or(0, |found| found.len()))
}

/// Renames files of a history to ones with the time in their names; returns the name.
fn rename_aside(
    path: &Path,
    suffixes: &[&str],
    what: impl FnOnce() -> String,
) -> Result<PathBuf, HistoryError> {
    let failed = HistoryError::io(path, "set the file aside");
    let count = count_aside(path).map_err(failed)?;
    if count >= MAX_ASIDE {
        return Err(HistoryError::Crowded(path.into(), what(), count));
    }
    let now = humantime::format_rfc3339_micros(clamped(SystemTime::now()));
    let aside = with_suffix(path, &format!("{ASIDE}{}", now.to_string().replace(':', "")));
    if aside.try_exists().map_err(failed)? {
        return Err(failed(ErrorKind::AlreadyExists.into()));
    }
    rename_all(path, &aside, suffixes).map_err(failed)?;
    Ok(aside)
}

/// Renames a history and its log, or neither.
fn rename_all(from: &Path, to: &Path, suffixes: &[&str]) -> std::io::Result<()> {
    let rename = |from: &Path, to: &Path, suffix| {
        std::fs::rename(with_suffix(from, suffix), with_suffix(to, suffix))
    };
    for (at, suffix) in suffixes.iter().enumerate() {
        if let Err(error) = rename(from, to, suffix)
            && error.kind() != ErrorKind::NotFound
        {
            // The file last: until then the log has its file under one of the names.
            for suffix in suffixes[..at].iter().rev() {
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
    fn failed_rename_leaves_file_and_log_together() {
        let folder = tempfile::tempdir().unwrap();
        let [file, aside] = ["history.db", "aside"].map(|name| folder.path().join(name));
        for stuck in ["-wal", "-shm"] {
            for suffix in SUFFIXES {
                std::fs::write(with_suffix(&file, suffix), suffix).unwrap();
            }
            // A file cannot be renamed to a folder.
            std::fs::create_dir(with_suffix(&aside, stuck)).unwrap();
            rename_all(&file, &aside, &SUFFIXES).unwrap_err();
            for suffix in SUFFIXES {
                assert_eq!(std::fs::read_to_string(with_suffix(&file, suffix)).unwrap(), suffix);
            }
            assert!(!aside.exists());
            std::fs::remove_dir(with_suffix(&aside, stuck)).unwrap();
        }
        rename_all(&file, &aside, &SUFFIXES).unwrap();
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
