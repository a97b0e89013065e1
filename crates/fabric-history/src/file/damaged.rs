//! How a damaged file is set aside, with all files that belong to it.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::HistoryError;
use crate::file::lock::lock_path;
use crate::file::paths::{folder_of, metadata, with_suffix};
use crate::model::time::clamped;

/// The files that belong to a history, its lock included. Not all of them need exist.
pub fn files_of(path: &Path) -> Vec<PathBuf> {
    let files = SUFFIXES.iter().map(|suffix| with_suffix(path, suffix));
    files.chain([lock_path(path)]).collect()
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
