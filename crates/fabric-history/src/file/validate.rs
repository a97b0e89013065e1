//! Whether a path leads to a regular file, whether that is a history that we can write, and whether SQLite
//! finds it damaged.
//!
//! Additions of others to a file are ignored: statistics (`ANALYZE`), indexes, views, triggers, columns, the
//! tables of replicators. A file has to have our tables and columns, and nothing else is required.
//!
//! SQLite checks a whole file only when something about it is odd (see `Recorder`), and never at the start:
//! reading 10 GB takes 10 s of a processor where they are in memory, and 5 minutes from a slow disk
//! (measured: `PRAGMA quick_check` of 0.6 GB, 0.6 s and 19 s). A killed process causes no damage:
//! the write-ahead log is complete or ignored; pages are checked as they are read.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::super::HistoryError;
use super::schema::{self, APPLICATION, APPLICATION_AT};

/// The first bytes of a file of SQLite.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Where the header says which versions of SQLite may write it and read it. One that may only be read
/// looks like a file without permission to write (sqlite.org/fileformat2.html, 1.3.3).
const VERSIONS_AT: std::ops::Range<usize> = 18..20;

/// The highest supported version: the write-ahead log.
const LAST_VERSION: u8 = 2;

/// How many faults SQLite lists: an operator's table may have one in each of its rows. This many about pages
/// are 6 MB of text.
const MOST_FAULTS: u32 = 100_000;

/// The last line of SQLite's check when it cannot read on.
const MALFORMED: &str = "database disk image is malformed";

/// How often a check is polled for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// An error if there is something other than a regular file. It is not opened for this: a FIFO would wait
/// for a writer, and a device may do something when it is opened.
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
        let failed = |error| HistoryError::Io { path: path.into(), doing: "read it", error };
        let found = match std::fs::metadata(path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
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
    let failed = |error| HistoryError::Io { path: path.into(), doing: "read it", error };
    // A FIFO that has replaced the file since then must not block us either.
    let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(failed)?;
    regular(path, &file.metadata().map_err(failed)?)?;
    Ok(file)
}

/// Whether a header marks the file as a history, or there is none yet.
pub(crate) fn is_history(header: &[u8]) -> bool {
    header.is_empty() || header.get(APPLICATION_AT) == Some(&APPLICATION.to_be_bytes())
}

/// An error if a header requires a later SQLite than ours.
pub(crate) fn ensure_format(path: &Path, header: &[u8]) -> Result<(), HistoryError> {
    let versions = header.get(VERSIONS_AT).unwrap_or_default();
    if header.starts_with(MAGIC) && versions.iter().any(|version| *version > LAST_VERSION) {
        let what = format!("its header asks for a later SQLite (file format {versions:?})");
        return Err(HistoryError::Unusable { path: path.into(), what });
    }
    Ok(())
}

/// An error if a file has another version than this program reads and writes.
pub(crate) fn ensure_version(path: &Path, version: i64) -> Result<(), HistoryError> {
    match version {
        schema::VERSION => Ok(()),
        newer if newer > schema::VERSION => Err(HistoryError::Newer { path: path.into(), version }),
        _ => {
            let what =
                format!("it has version {version}, which no released fabric-exporter writes");
            Err(HistoryError::Unusable { path: path.into(), what })
        }
    }
}

/// An error if a file is neither empty nor a complete history of our version.
pub(crate) fn ensure_usable(db: &Connection, path: &Path) -> Result<(), HistoryError> {
    let failed = |error| HistoryError::database(path, "open it", error);
    let version = schema::version(db).map_err(failed)?;
    let found = schema::columns(db).map_err(failed)?;
    if version == 0 {
        let is_empty = found.iter().all(|(table, _)| table.starts_with("sqlite_"));
        let foreign = || HistoryError::Foreign { path: path.into() };
        return if is_empty { Ok(()) } else { Err(foreign()) };
    }
    ensure_version(path, version)?;
    let required = schema::required_columns().map_err(failed)?;
    match required.difference(&found).next() {
        None => Ok(()),
        Some((table, column)) => {
            let what = format!("version {version} has a column {table}.{column}, and it has none");
            Err(HistoryError::Unusable { path: path.into(), what })
        }
    }
}

/// What SQLite finds wrong with a file, if anything is: it reads all of it, and changes nothing. An error
/// if `is_over` says so before the end.
pub(crate) fn fault(
    path: &Path,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<Option<String>, HistoryError> {
    ensure_regular(path)?;
    // A connection that may write would checkpoint the log into the file when it is closed.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let check = || {
        let db = Connection::open_with_flags(path, flags)?;
        db.busy_timeout(super::BUSY)?;
        let faults = schema::faults()?;
        until(is_over, &db, || {
            let mut check = db.prepare(&format!("PRAGMA integrity_check({MOST_FAULTS})"))?;
            let mut lines = check.query([])?;
            while let Some(line) = lines.next()? {
                let line: String = line.get(0)?;
                if is_fault(&line, &faults) {
                    return Ok(Some(line.lines().take(2).collect::<Vec<_>>().join(" ")));
                }
            }
            Ok(None)
        })
    };
    match check().map_err(|error| HistoryError::database(path, "check it", error)) {
        Err(error) if error.is_damage() => Ok(Some(error.to_string())),
        other => other,
    }
}

/// Works with a connection, which is interrupted when `is_over` says so.
fn until<T>(
    is_over: &(dyn Fn() -> bool + Sync),
    db: &Connection,
    work: impl FnOnce() -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let handle = db.get_interrupt_handle();
    let (working, has_worked) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let watch = move || {
            while has_worked.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                if is_over() {
                    handle.interrupt();
                }
            }
        };
        // Without a thread the work is done all the same.
        if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, watch) {
            tracing::debug!(%error, "a check of the history cannot be interrupted");
        }
        let result = work();
        drop(working);
        result
    })
}

/// Whether a line of SQLite's check is about damage to the file's pages, or to our tables or indexes. All
/// else is about what an operator added: indexes, columns, constraints, tables, virtual tables.
fn is_fault(line: &str, faults: &HashSet<String>) -> bool {
    // Faults of pages come first, all in one row (sqlite3.c, PragTyp_INTEGRITY_CHECK).
    let is_structure = line.starts_with("*** in database main ***") || line == MALFORMED;
    let index = line.rsplit_once(" index ").map(|(_, name)| name);
    is_structure || index.is_some_and(schema::is_ours) || faults.contains(line)
}

/// How many files beside a history were set aside: `.damaged-` and the time follow its name.
pub(crate) fn aside(path: &Path) -> std::io::Result<usize> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut found = HashSet::new();
    for entry in std::fs::read_dir(folder.unwrap_or(Path::new(".")))? {
        let entry = entry?.file_name();
        let rest = entry.as_encoded_bytes().strip_prefix(name);
        let time = rest.and_then(|rest| rest.strip_prefix(super::ASIDE.as_bytes()));
        // A kill between two renames leaves a log alone.
        let time = time.map(|time| time.strip_suffix(b"-wal").unwrap_or(time));
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
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn faults_of_additions_are_ignored() {
        let faults = schema::faults().unwrap();
        for (line, wanted) in [
            ("ok", false),
            ("NULL value in events.ticket", false),
            ("NULL value in events.port", false),
            ("NULL value in events.at", true),
            ("NUMERIC value in tickets.number", false),
            ("NUMERIC value in events.place", true),
            ("TEXT value in tickets.id", false),
            ("TEXT value in nodes.guid", true),
            ("non-INTEGER value in tickets.id", false),
            ("CHECK constraint failed in events", false),
            ("row not in PRIMARY KEY order for tickets", false),
            ("row not in PRIMARY KEY order for names", true),
            ("malformed inverted index for FTS5 table main.search", false),
            ("In RTree main.places: Node 1 is too small for cell count of 7", false),
            ("unable to validate the inverted index for FTS4 table main.search: no", false),
            ("index tickets_by_cost stores an imprecise floating-point value for row 7", false),
            ("row 7 missing from index tickets_by_event", false),
            ("row 7 missing from index events_by_time", true),
            ("row 7 values differ from index events_by_time", true),
            ("wrong # of entries in index sqlite_autoindex_nodes_1", true),
            ("wrong # of entries in index sqlite_autoindex_tickets_1", false),
            (
                "*** in database main ***\nTree 5 page 7: btreeInitPage() returns error code 11",
                true,
            ),
            ("*** in database main ***\nPage 9: never used", true),
            ("database disk image is malformed", true),
        ] {
            assert_eq!(is_fault(line, &faults), wanted, "{line}");
        }
    }

    /// A history with what an operator added; its path.
    fn added(folder: &Path, sql: &str) -> PathBuf {
        let file = folder.join("history.db");
        drop(crate::record::store::Store::open(&file).unwrap());
        Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        file
    }

    /// Lines about what an operator added do not hide those about our own tables.
    #[test]
    fn fault_is_found_behind_4000_lines_about_additions() {
        let folder = tempfile::tempdir().unwrap();
        let tables = ["aaa", "mmm", "tickets", "zzz"].map(|table| {
            format!(
                "CREATE TABLE {table} (number INTEGER CHECK (number < 0));
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
                 INSERT INTO {table} SELECT i FROM n;"
            )
        });
        let lines = format!("PRAGMA ignore_check_constraints = ON; {}", tables.concat());
        let file = added(folder.path(), &lines);
        assert_eq!(fault(&file, &|| false).unwrap(), None);
        // A name that is no text.
        for sql in [
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(sql, 'place TEXT', 'place BLOB') WHERE name = 'events'",
            "INSERT INTO events (at, fabric, kind, place, text) VALUES (1, 1, '', 7, '');
             PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(sql, 'place BLOB', 'place TEXT') WHERE name = 'events'",
        ] {
            Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        }
        let found = fault(&file, &|| false).unwrap();
        assert_eq!(found.as_deref(), Some("NUMERIC value in events.place"));
    }

    /// Without an interrupt this query has no end.
    #[test]
    fn check_can_be_interrupted() {
        let db = Connection::open_in_memory().unwrap();
        let endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let asked = until(&|| true, &db, || db.query_row(endless, [], |row| row.get::<_, i64>(0)));
        let code = asked.unwrap_err().sqlite_error_code();
        assert_eq!(code, Some(rusqlite::ErrorCode::OperationInterrupted));
    }

    /// The check must not change a file that may be damaged.
    #[test]
    fn check_does_not_change_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let file = added(folder.path(), "");
        let db = Connection::open(&file).unwrap();
        db.set_db_config(rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .unwrap();
        db.execute_batch("INSERT INTO fabrics VALUES (1, 'a')").unwrap();
        drop(db);
        let read =
            || ["", "-wal"].map(|it| std::fs::read(super::super::with_suffix(&file, it)).unwrap());
        let before = read();
        assert!(!before[1].is_empty());
        assert_eq!(fault(&file, &|| false).unwrap(), None);
        assert!(read() == before);
    }

    #[test]
    fn unreadable_foreign_table_is_not_damage() {
        for (name, wanted) in [("tickets", true), ("events", false), ("events_by_time", false)] {
            let message = format!("malformed database schema ({name}) - near \"STRICTER\"");
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            let error = rusqlite::Error::SqliteFailure(code, Some(message));
            assert_eq!(schema::is_about_additions(&error), wanted, "{name}");
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
        assert_eq!(aside(&file).unwrap(), 2);
    }
}
