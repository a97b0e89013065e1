//! What a path leads to, whether a file there is a history that we can write, and whether SQLite finds
//! fault with it.
//!
//! What others add to a file is none of our business: statistics (`ANALYZE`), indexes, views, triggers,
//! columns, the tables of replicators. A file has to have what we need of it, and no more is asked.
//!
//! SQLite checks a whole file only when something about it is odd (see `Recorder`), and never at the start:
//! reading 10 GB takes 10 s of a processor where they are in memory, and 5 minutes from a slow disk
//! (measured: `PRAGMA quick_check` of 0.6 GB, 0.6 s and 19 s). A process that is killed leaves nothing to
//! be found, for the write-ahead log is whole or passed over; pages are checked as they are read.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::super::HistoryError;
use super::schema::{self, APPLICATION, APPLICATION_AT};

/// What a file of SQLite begins with.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Where the header says which versions of SQLite may write it and read it. One that may only be read
/// looks like a file without permission to write (sqlite.org/fileformat2.html, 1.3.3).
const VERSIONS_AT: std::ops::Range<usize> = 18..20;

/// The highest of them that we know: the write-ahead log.
const LAST_VERSION: u8 = 2;

/// How many faults are asked for: some of them may be about what others added.
const MOST_FAULTS: u32 = 100;

/// An error if something is there that is no regular file. Nothing is opened for that: a FIFO would wait
/// for whoever writes it, and a device may do something when it is opened.
pub(crate) fn ensure_regular(path: &Path) -> Result<(), HistoryError> {
    match std::fs::metadata(path) {
        Ok(data) => regular(path, &data),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(HistoryError::Io { path: path.into(), doing: "find it", error }),
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
    match names.into_iter().find(|(is_it, _)| *is_it) {
        Some((_, what)) => Err(HistoryError::NotAFile { path: path.into(), what }),
        None => Ok(()),
    }
}

/// The header of a file, as far as there is one; nothing of a file that is not there yet. To be called
/// while this process has no connection to the file: closing a file takes POSIX locks, which are the
/// process's, off it, those of SQLite as well.
pub(in crate::history) fn header(path: &Path) -> Result<Vec<u8>, HistoryError> {
    ensure_regular(path)?;
    let failed = |error| HistoryError::Io { path: path.into(), doing: "read it", error };
    // What took the file's place meanwhile must not make us wait, either.
    let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY).bits().cast_signed();
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    regular(path, &file.metadata().map_err(failed)?)?;
    let mut header = Vec::new();
    file.take(100).read_to_end(&mut header).map_err(failed)?;
    Ok(header)
}

/// Whether a header says that the file is a history, or there is none yet.
pub(in crate::history) fn is_history(header: &[u8]) -> bool {
    header.is_empty() || header.get(APPLICATION_AT) == Some(&APPLICATION.to_be_bytes())
}

/// An error if a header asks for a later SQLite than ours.
pub(in crate::history) fn ensure_format(path: &Path, header: &[u8]) -> Result<(), HistoryError> {
    let versions = header.get(VERSIONS_AT).unwrap_or_default();
    if header.starts_with(MAGIC) && versions.iter().any(|version| *version > LAST_VERSION) {
        let what = format!("its header asks for a later SQLite (file format {versions:?})");
        return Err(HistoryError::Unusable { path: path.into(), what });
    }
    Ok(())
}

/// The version of a file that has all that a file of that version needs, or that has nothing yet.
pub(in crate::history) fn version(db: &Connection, path: &Path) -> Result<i64, HistoryError> {
    let failed = |error| HistoryError::database(path, "open it", error);
    let unusable = |what: String| HistoryError::Unusable { path: path.into(), what };
    let version = schema::version(db).map_err(failed)?;
    if version > schema::VERSION {
        return Err(HistoryError::Newer { path: path.into(), version });
    }
    if version < 0 {
        return Err(unusable(format!("it has version {version}, which no history has")));
    }
    let found = schema::columns(db).map_err(failed)?;
    if version == 0 {
        let is_empty = found.iter().all(|(table, _)| table.starts_with("sqlite_"));
        let foreign = || HistoryError::Foreign { path: path.into() };
        return if is_empty { Ok(version) } else { Err(foreign()) };
    }
    let wanted = schema::wanted(version).map_err(failed)?;
    match wanted.difference(&found).next() {
        None => Ok(version),
        Some((table, column)) => {
            let what = format!("version {version} has a column {table}.{column}, and it has none");
            Err(unusable(what))
        }
    }
}

/// What SQLite finds wrong with a file, if anything is: it reads all of it.
pub(in crate::history) fn fault(path: &Path) -> Result<Option<String>, HistoryError> {
    ensure_regular(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let check = || {
        let db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(super::BUSY)?;
        let mut check = db.prepare(&format!("PRAGMA integrity_check({MOST_FAULTS})"))?;
        let faults = check.query_map([], |row| row.get::<_, String>(0))?;
        let faults: Vec<String> = faults.collect::<rusqlite::Result<_>>()?;
        Ok(faults.into_iter().find(|fault| is_fault(fault)))
    };
    match check().map_err(|error| HistoryError::database(path, "check it", error)) {
        Err(error) if error.is_damage() => Ok(Some(error.to_string())),
        other => other,
    }
}

/// Whether a line of SQLite's tells of damage: constraints that somebody added after the rows, and indexes
/// that are not ours, are none.
fn is_fault(line: &str) -> bool {
    let added = ["NULL value in ", "CHECK constraint failed in "];
    let index = line.rsplit_once(" index ").map(|(_, name)| name);
    line != "ok"
        && !added.iter().any(|start| line.starts_with(start))
        && index.is_none_or(schema::is_ours)
}

/// The files beside a history that are damaged histories of its name: `.damaged-` and the time.
pub(in crate::history) fn aside(path: &Path) -> std::io::Result<usize> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut found = HashSet::new();
    for entry in std::fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        let entry = entry?.file_name();
        let rest = entry.as_encoded_bytes().strip_prefix(name);
        let time = rest.and_then(|rest| rest.strip_prefix(super::ASIDE.as_bytes()));
        if let Some(time) = time.filter(|time| is_time(time)) {
            found.insert(time.to_vec());
        }
    }
    Ok(found.len())
}

/// Whether it is a time as [`set_aside`](super::set_aside) writes it: `2026-12-01T080000.123456Z`.
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
    fn what_others_added_is_no_fault() {
        for (line, wanted) in [
            ("ok", false),
            ("NULL value in events.ticket", false),
            ("CHECK constraint failed in events", false),
            ("row 7 missing from index tickets_by_event", false),
            ("row 7 missing from index events_by_time", true),
            ("wrong # of entries in index sqlite_autoindex_nodes_1", true),
            ("wrong # of entries in index sqlite_autoindex_tickets_1", false),
            ("Tree 5 page 7: btreeInitPage() returns error code 11", true),
            ("Page 9: never used", true),
        ] {
            assert_eq!(is_fault(line), wanted, "{line}");
        }
    }

    #[test]
    fn a_table_of_a_later_sqlite_is_no_damage() {
        for (name, wanted) in [("tickets", true), ("events", false), ("events_by_time", false)] {
            let message = format!("malformed database schema ({name}) - near \"STRICTER\"");
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            let error = rusqlite::Error::SqliteFailure(code, Some(message));
            assert_eq!(schema::is_about_additions(&error), wanted, "{name}");
        }
    }

    #[test]
    fn files_that_were_set_aside_are_told_from_an_operators_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.db");
        for name in [
            "history.db.damaged-2026-12-01T080000.123456Z",
            "history.db.damaged-2026-12-01T080000.123456Z-wal",
            // A crash between the two renames leaves the log alone.
            "history.db.damaged-2026-12-02T080000.123456Z-wal",
            "history.db.damaged-notes.txt",
            "history.db.damaged-2026-12-01T080000.123456Z.gz",
            "other.db.damaged-2026-12-01T080000.123456Z",
        ] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(aside(&file).unwrap(), 1);
    }
}
